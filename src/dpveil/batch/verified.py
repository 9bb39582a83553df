"""Verifies what a shard, Parquet file or document holds, each release as if it were a file of its own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

from dpveil.accounting.meaning import check_strength_name
from dpveil.batch.archives import ARCHIVES, Archive, archive_of
from dpveil.batch.document import verify_document
from dpveil.batch.held import Held
from dpveil.errors import UnknownName
from dpveil.io import MAX_PIXELS, is_present
from dpveil.io.document import PDF
from dpveil.io.folders import is_link
from dpveil.io.received import opened
from dpveil.io.refused import COPY, LINK, Refused, Unread
from dpveil.release.keys import trusted_keys
from dpveil.release.pair import Pair
from dpveil.release.verification import Trusted, Verification, verify_pair

ABSENT: Final = "the file does not exist"
BARE: Final = "it has no certificate"
IMAGE: Final = "the image is missing"
NOTHING: Final = "it holds no release"
REST: Final = "what follows in it was not verified"


def verify_inside(
    path: Path, *, max_pixels: int = MAX_PIXELS, at_least: str | None = None, trust: Trusted = None
) -> Iterator[Verification]:
    """Yield the verification of everything in a file of many photos, about in its order.

    Each release is checked as by `verify`. Whatever has no certificate is "missing", also if it is no image,
    so that nothing in the file goes unseen. The file itself is "inconsistent" if it cannot be read, or from
    some part on, "unchecked" if what reads it is not installed, and "missing" if it holds nothing: there is
    always a result. Problems are never raised. Raises `UnknownName` for a file that is none of many photos by
    its suffix, and for a strength, and `InvalidParameter` for keys.
    """
    if path.suffix.lower() == PDF:
        yield from verify_document(path, max_pixels=max_pixels, at_least=at_least, trust=trust)
        return
    kind = archive_of(path)
    if kind is None:
        raise UnknownName("kind of file with many photos", path.suffix, ARCHIVES)
    least = None if at_least is None else check_strength_name(at_least)
    trusted, found = trusted_keys(trust), False
    try:
        for held in _held(path, kind):
            found = True
            if held.problem or held.image is None or held.certificate is None:
                yield _unpaired(path, held)
                continue
            pair = Pair(Path(f"{path}/{held.name}"), held.image, held.certificate)
            result = verify_pair(pair, max_pixels=max_pixels, at_least=least, trust=trusted)
            yield replace(result, inside=path)
    except Refused as refusal:
        why = f"it {refusal.problem}" + (f", and {REST}" if found else "")
        remedy = f": {refusal.remedy}" if refusal.remedy else ""
        status = "unchecked" if isinstance(refusal, Unread) else "inconsistent"
        yield Verification(path, status, (f"{why}{remedy}",), inside=path)
        return
    if not found:
        yield Verification(path, "missing", (NOTHING if is_present(path) else ABSENT,), inside=path)


def holds_many(path: Path) -> bool:
    """Whether a file, by its suffix, is one of many releases, which `verify_inside` verifies."""
    return archive_of(path) is not None or path.suffix.lower() == PDF


def _held(path: Path, kind: Archive) -> Iterator[Held]:
    if is_link(path):
        raise Refused(LINK, COPY)
    if not is_present(path):
        return
    with opened(path) as (file, status):
        yield from kind.held(file, status.st_size)


def _unpaired(path: Path, held: Held) -> Verification:
    """Return the result for what is no release."""
    place = Path(f"{path}/{held.name}")
    if held.problem:
        return Verification(place, "inconsistent", (f"it {held.problem}",), inside=path)
    if held.image is None and held.certificate is not None:
        return Verification(place, "inconsistent", (IMAGE,), inside=path)
    return Verification(place, "missing", (BARE,), inside=path)
