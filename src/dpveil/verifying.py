"""Verifies whatever dpveil releases: a photo, a clip, or each release in a file of many."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from dpveil.batch import holds_many, verify_inside
from dpveil.io import MAX_PIXELS
from dpveil.io.document import PDF
from dpveil.io.names import check_path
from dpveil.release.saving import image_path
from dpveil.release.verification import Trusted, asked
from dpveil.release.verification import verify as verify_photo
from dpveil.release.verified import Verification
from dpveil.video.verification import is_clip, verify_clip

MANY = "it holds many releases, and none of them was checked: dpveil.verify_each checks each"


def verify(
    path: str | Path,
    *,
    max_pixels: int = MAX_PIXELS,
    at_least: str | None = None,
    trust: Trusted = None,
) -> Verification:
    """Return whether the photo or clip at `path`, which may also name its certificate, fits its certificate.

    Recomputes the file's hash, format and size, every guarantee from the method, its parameters and what it
    replaces, and their composition; what a fill covers in a photo must have its level. Only the two files
    are opened, whatever the certificate names, and neither may be a link. Problems of the files are never
    raised but listed in the result, at most 20, one printable line each. If `at_least` (strong, moderate or
    weak) is given, a release that is weaker or may not be published is `refused`. If `trust` names public
    keys, or their files, a release that none of them signed is `untrusted`. `max_pixels` is for photos. A
    file of many releases is "unchecked": `verify_each` checks them. Raises `InvalidParameter` and
    `UnknownName` for its arguments. Source: docs, "Certificate".
    """
    given = Path(check_path(path, "give the name of a released photo or clip"))
    if holds_many(_whole(given)):
        asked(at_least, trust)
        return Verification(_whole(given), "unchecked", (MANY,))
    if is_clip(given):
        return verify_clip(given, at_least=at_least, trust=trust)
    return verify_photo(given, max_pixels=max_pixels, at_least=at_least, trust=trust)


def verify_each(
    path: str | Path,
    *,
    max_pixels: int = MAX_PIXELS,
    at_least: str | None = None,
    trust: Trusted = None,
) -> Iterator[Verification]:
    """Yield the verification of each release in a shard, Parquet file or PDF, or of the one that a file is.

    There is always a result. All else is as in `verify`.

    >>> [(found.status, found.problems) for found in verify_each("absent.tar")]
    [('missing', ('the file does not exist',))]
    """
    given = Path(check_path(path, "give the name of a released file"))
    if holds_many(_whole(given)):
        yield from verify_inside(_whole(given), max_pixels=max_pixels, at_least=at_least, trust=trust)
    else:
        yield verify(given, max_pixels=max_pixels, at_least=at_least, trust=trust)


def _whole(path: Path) -> Path:
    """Return the PDF whose certificate `path` may name; any other path as it is."""
    named = image_path(path)
    return path if named is None or named.suffix.lower() != PDF else named
