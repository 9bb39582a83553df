"""Verifies whatever dpveil releases: a photo, a clip, a data set, or each release in a file of many."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from dpveil.io.folders import DATA_SET, PACKED_SUFFIXES, PDF, is_data_set, is_folder
from dpveil.io.names import check_path
from dpveil.io.reading import MAX_PIXELS
from dpveil.io.untrusted_files import is_present, read_untrusted
from dpveil.release.saving import certificate_from, certificate_path, image_path, is_clip
from dpveil.release.verification import Trusted, Verification, check_requirements, examine, judge
from dpveil.release.verification import verify as verify_photo

if TYPE_CHECKING:
    from dpveil.synthesis.saving import SetCertificate


def verify(
    path: str | Path, *, max_pixels: int = MAX_PIXELS, at_least: str | None = None, trust: Trusted = None
) -> Verification:
    """Return whether the photo, clip or data set at `path`, or named by its certificate, fits its
    certificate.

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
    wanted, document = check_requirements(at_least, trust), _document_of(given)
    folder = given.parent if given.name == DATA_SET else given
    if is_data_set(folder):
        from dpveil.synthesis.saving import SetCertificate, set_problems

        stated = partial(certificate_from, partial(read_untrusted, folder / DATA_SET), SetCertificate)
        return judge(examine(SetVerification, folder, stated, partial(set_problems, folder)), *wanted)
    if is_folder(given) and not is_present(certificate_path(given)):
        why = "it is a folder: give each file in it, or use the command dpveil verify"
        return Verification(given, "unchecked", (why,))
    if document.suffix.lower() in PACKED_SUFFIXES:
        why = "it holds many releases, and none of them was checked: dpveil.verify_each checks each"
        return Verification(document, "unchecked", (why,))
    if is_clip(given):
        from dpveil.video.verification import verify_clip

        return verify_clip(given, at_least=at_least, trust=trust)
    return verify_photo(given, max_pixels=max_pixels, at_least=at_least, trust=trust)


def verify_each(
    path: str | Path, *, max_pixels: int = MAX_PIXELS, at_least: str | None = None, trust: Trusted = None
) -> Iterator[Verification]:
    """Yield the verification of each release in a shard, Parquet file or PDF, or of the one that a file is.

    There is always a result. All else is as in `verify`.

    >>> [(found.status, found.problems) for found in verify_each("absent.tar")]
    [('missing', ('the file does not exist',))]
    """
    given = Path(check_path(path, "give the name of a released file"))
    if _document_of(given).suffix.lower() in PACKED_SUFFIXES:
        from dpveil.batch.released_pdf import verify_inside

        yield from verify_inside(_document_of(given), max_pixels=max_pixels, at_least=at_least, trust=trust)
    else:
        yield verify(given, max_pixels=max_pixels, at_least=at_least, trust=trust)


@dataclass(frozen=True, repr=False)
class SetVerification(Verification):
    """The result of verifying a data set: as that of a photo, about a certificate of a set."""

    certificate: SetCertificate | None = None  # type: ignore[assignment]

    @property
    def sha256(self) -> str:
        """The SHA-256 of the certificate, by which a ledger knows the set; empty unless it is consistent."""
        return "" if self.certificate is None or self.status != "consistent" else self.certificate.sha256

    @property
    def notes(self) -> tuple[str, ...]:
        if self.status != "consistent" or self.certificate is None:
            return ()
        pictures = f"a data set of {self.certificate.plan.pictures:,} pictures"
        return (pictures, *self.certificate.warnings, *self.signature)


def _document_of(path: Path) -> Path:
    named = image_path(path)
    return path if named is None or named.suffix.lower() != PDF else named
