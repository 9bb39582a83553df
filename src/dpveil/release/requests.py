"""Checks that a certificate protects everything that it says was requested."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import numpy as np
from jaxtyping import Int64

from dpveil.core.certificate import Certificate, Output
from dpveil.core.origin import EXCEPT, FACE, WHOLE
from dpveil.core.region import Box, RegionRecord
from dpveil.core.registry import METHODS
from dpveil.errors import InvalidParameter
from dpveil.mechanisms.method import Method
from dpveil.regions.boxes import asked_box
from dpveil.release.origins import FACES, origin_problems

NUMBERS: Final = re.compile(r"[-+,.\s0-9]+")
"""Requests of numbers only, which have to be boxes."""
MOST_LOOKED: Final = 4
"""Of how many pixels, in sizes of the photo, the masks of heads are compared."""
LEAST_LEFT: Final = 100
"""A face that is cut at others keeps at least one in this many pixels of its box: its inner face, from the
brows to the chin, is never cut."""


def request_problems(certificate: Certificate, output: Output) -> Iterator[str]:
    """Yield every contradiction between a certificate's requests, its missing ones, and its regions.

    A requested box must lie in one region that is fully replaced, as regions only grow; the head that a
    face-space method puts in place of a face may be narrower than its box. Requests of a user's own finder
    may be any text.
    """
    fallback = any(record.origin.fallback for record in certificate.regions)
    missing, request = frozenset(certificate.missing), frozenset(certificate.request)
    if not request:
        yield "nothing was asked for"
    yield from (f"{text} is missing and was not asked for" for text in missing - request)
    name = certificate.method or ""
    heads = name in METHODS and METHODS[name].regions == FACES
    yield from origin_problems(certificate, output, heads=heads)
    full = [r for r in certificate.regions if _all(r, heads)]
    whole = any(r.full and r.box == Box(0, 0, output.width, output.height) for r in full)
    boxes = np.array([(r.box.x, r.box.y, r.box.w, r.box.h) for r in full], np.int64).reshape(-1, 4)
    finders = frozenset(r.origin.finder for r in certificate.regions)
    partly = {r.origin.finder for r in certificate.regions if r.origin.kind == FACE and not _all(r, heads)}
    kinds = frozenset(r.origin.kind for r in full)
    cut = frozenset(r.origin.kind for r in certificate.regions)
    hardly = {r.origin.finder for r in certificate.regions if _hardly(r)}
    for text in certificate.request:
        wanted = _requested_box(text, output)
        if fallback or (wanted is None and text in missing):
            continue
        if text.partition(" ")[0] == FACES and FACE not in (cut if EXCEPT.search(text) else kinds):
            yield "faces were requested, and no protected region is one"
        elif text in hardly and EXCEPT.search(text):
            yield "faces were requested, and of one hardly a pixel is protected"
        elif text in partly and not EXCEPT.search(text):
            yield "faces were requested, and one is protected in part alone"
        elif text not in finders:
            yield f"the requested region {text} is in no protected region"
        elif wanted is None and NUMBERS.fullmatch(text):
            yield f"the requested region {text} is not a box"
        elif wanted is not None and not (whole if text == WHOLE else _within(wanted, boxes)):
            yield f"the requested region {text} is in no protected region"


def passing_problems(certificate: Certificate) -> Iterator[str]:
    """Yield why what was not found cannot have been passed over, if the certificate says that it was.

    Something has to be missing, and something else to be replaced.
    """
    if certificate.if_none is None:
        return
    if not certificate.missing:
        yield "something is passed over, and nothing is missing"
    if all(record.origin.fallback for record in certificate.regions):
        yield "something is passed over, and nothing else is replaced"


def _all(record: RegionRecord, heads: bool) -> bool:
    """Whether all of a region is replaced, or with `heads` as much of it as holds a head."""
    return record.full or (heads and _holds_head(record))


def _holds_head(record: RegionRecord) -> bool:
    """Whether a mask can be that of a head: of a cell of the grid, else at least a third of its box.

    The public head shape fills more than half of its box, and less where the photo's edge cuts it off. That
    of a cell is known, and `Method.misplaced` compares it.
    """
    cell = record.origin.cell is not None
    return record.masked is not None and (cell or record.masked * 3 >= record.box.w * record.box.h)


def _hardly(record: RegionRecord) -> bool:
    """Whether a mask protects less of its box than any cut would leave."""
    return record.masked is not None and record.masked * LEAST_LEFT < record.box.w * record.box.h


def place_problems(certificate: Certificate, output: Output, method: Method) -> Iterator[str]:
    """Yield the regions that the method does not replace in such a photo."""
    size, looked = {"width": output.width, "height": output.height}, 0
    for record in certificate.regions:
        looked += record.box.w * record.box.h
        counted = looked <= MOST_LOOKED * output.width * output.height
        if problem := method.of_region(record).misplaced(record, **size, counted=counted):
            yield f"the region {record.in_words()} {problem}"


def _requested_box(text: str, output: Output) -> Box | None:
    try:
        return Box(0, 0, output.width, output.height) if text == WHOLE else asked_box(text).box
    except InvalidParameter:
        return None


def _within(inner: Box, boxes: Int64[np.ndarray, "n 4"]) -> bool:
    x, y, w, h = boxes.T
    across = (x <= inner.x) & (inner.x + inner.w <= x + w)
    return bool((across & (y <= inner.y) & (inner.y + inner.h <= y + h)).any())
