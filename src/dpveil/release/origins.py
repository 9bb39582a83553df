"""Checks that the regions of a certificate are those that its requests give, by the rules of the finders."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from dpveil.core.certificate import Certificate, Output
from dpveil.core.origin import BOX, CODE, EYE, FACE, MASK, OBJECT, PLATE, TEXT, WHOLE
from dpveil.core.region import RegionRecord
from dpveil.errors import InvalidParameter
from dpveil.regions.boxes import asked_box
from dpveil.regions.finder import Selection
from dpveil.regions.tiling import growths, one_grid
from dpveil.release.crowd import BY_REQUEST, DETECTED

MASK_REQUEST: Final = re.compile(r"(?:.* )?mask sha256:[0-9a-f]{64}")
"""Requests of masks, and of regions with a mask."""
FACES: Final = "faces"
"""The first word of a request for faces, and the default regions of face-space methods."""
ASKED: Final = "as was asked for"
BOXES_ALONE: Final = "no face was looked for: every face outside the given boxes stays visible"
MOST_NAMED: Final = 8
"""Most faces that a sentence names."""


def kind_of(text: str) -> str:
    """Return the kind of region that a request asks for; empty for a finder's own.

    >>> kind_of("faces except=2"), kind_of("object:1,2,3,4"), kind_of("signs")
    ('face', 'object', '')
    """
    if text.partition(" ")[0] == FACES:
        return FACE
    if (word := text.partition(" ")[0]) in BY_REQUEST:
        return BY_REQUEST[word][0]
    if text == WHOLE:
        return WHOLE
    if MASK_REQUEST.fullmatch(text):
        return MASK
    try:
        return OBJECT if asked_box(text).object else BOX
    except InvalidParameter:
        return ""


def stays(request: Sequence[str], regions: Sequence[RegionRecord]) -> tuple[str, ...]:
    """Return a sentence for every request for faces of which some were to stay as they are.

    >>> from dpveil.core.origin import Origin
    >>> from dpveil.core.region import Box
    >>> one = RegionRecord(Box(0, 0, 9, 9), Origin("face", "faces except=2", number=1, found=True))
    >>> stays(["faces except=2"], [one])
    ('face 2 stays as it is, as was asked for',)
    """
    told = []
    for text in dict.fromkeys(record.origin.finder for record in regions):
        asked = Selection.of(text) if text in request else None
        if asked is not None and asked.exclude:
            are = "face {} stays as it is" if len(asked.exclude) == 1 else "faces {} stay as they are"
            told.append(f"{are.format(_numbers_text(asked.exclude))}, {ASKED}")
        elif asked is not None and asked.by_likeness:
            told.append(
                f"faces that are like those of reference photos, or unlike, stay as they are, {ASKED}"
            )
        elif asked is not None and asked.only:
            told.append(f"every face but {_numbers_text(asked.only)} stays as it is, {ASKED}")
    return tuple(told)


def _numbers_text(numbers: Sequence[int]) -> str:
    """Return "1", "1 and 2", and so on, with the number of those that are too many to name."""
    named = list(map(str, numbers[:MOST_NAMED]))
    named += [f"{len(numbers) - MOST_NAMED} more"] * (len(numbers) > MOST_NAMED)
    return " and ".join([", ".join(named[:-1]), named[-1]] if len(named) > 1 else named)


def origin_problems(certificate: Certificate, output: Output, *, heads: bool) -> Iterator[str]:
    """Yield the contradictions between requests and the origins of regions; `heads` take the place of faces.

    Each request for a box, a mask or the whole photo has one region, and one for faces those that it selects.
    """
    regions, request = certificate.regions, certificate.request
    grown = [record for record in regions if record.origin.grown_to is not None]
    formats = {str(record.origin.grown_to) for record in grown}
    apart = [[r.box for r in grown if (heads and not r.origin.faceless) == faces] for faces in (False, True)]
    size = output.width, output.height  # faces grow to the blocks of luma, and all else to those of chroma
    same = all(one_grid(boxes, codec, *size) for codec in formats for boxes in apart)
    if len(formats) > 1 or not same:
        yield "regions grew to the blocks of two grids, and a photo has one"
    if any(record.origin.fallback for record in regions):
        yield from _fallback_problems(certificate)
        return
    asked = Counter(request)
    of: dict[str, list[RegionRecord]] = {text: [] for text in asked}
    for record in regions:
        if record.origin.finder in of:
            of[record.origin.finder].append(record)
        else:
            yield f"the region {record.in_words()} was not asked for"
    for text, found in of.items():
        if text in certificate.missing:
            yield from (f"{text} is missing, and a region is of it",) * bool(found or kind_of(text) in SURE)
        else:
            yield from _found_problems(text, asked[text], found, output, heads=heads)
    if heads and WHOLE in asked and len(regions) > 1:
        yield "the whole photo is one face, and there are other regions"


SURE: Final = (WHOLE, BOX, MASK, OBJECT)
"""The kinds of regions that are not searched for."""
TAKEN: Final = (*SURE, FACE, TEXT, PLATE, CODE, EYE)
"""Kinds of regions that no detector of a user's gives."""


def _fallback_problems(certificate: Certificate) -> Iterator[str]:
    """Yield why the whole photo cannot be replaced because nothing was found."""
    if len(certificate.regions) > 1 or certificate.missing:
        yield "the whole photo is replaced instead of what was not found, and there is more"
    if certificate.regions[0].origin.finder or all(kind_of(text) in SURE for text in certificate.request):
        yield "the whole photo is replaced instead of what was not found, and nothing was looked for"


def _found_problems(
    text: str, times: int, found: Sequence[RegionRecord], output: Output, *, heads: bool
) -> Iterator[str]:
    """Yield what is wrong with the regions of a request that comes so many times.

    Of the places of `heads` the method knows the rules.
    """
    kind = kind_of(text)
    if kind in SURE and found and len(found) != times:
        yield f"{text} is requested {times} times, and has {len(found)} regions"
    if kind == MASK and heads:
        yield f"{text} is a mask, and the method replaces faces"
    if kind == FACE:
        yield from _selection_problems(text, times, found)
    if text.partition(" ")[0] in (*BY_REQUEST, DETECTED):
        numbers = Counter((r.origin.kind, r.origin.number or 0) for r in found)
        counts = Counter(kind for kind, _ in numbers)
        due = {(kind, n): times for kind, count in counts.items() for n in range(1, count + 1)}
        yield from (f"the numbers of what {text} found are not counted from 1",) * (dict(numbers) != due)
    for record in found:
        if problem := _problem(record, kind, output, heads=heads):
            yield f"the region {record.in_words()} {problem}"


def _selection_problems(text: str, times: int, found: Sequence[RegionRecord]) -> Iterator[str]:
    """Yield it if the numbers of faces are not those that the request selects."""
    numbers = Counter(record.origin.number or 0 for record in found)
    selection = Selection.of(text)
    if selection is None:
        yield f"{text} is not written as dpveil writes requests for faces"
    elif found and (set(numbers.values()) != {times} or not selection.gives([*numbers])):
        yield f"the numbers of the faces are not those that {text} selects"


def _problem(record: RegionRecord, kind: str, output: Output, *, heads: bool) -> str:
    """Return why a region is not of a request of this kind; empty if it may be."""
    origin = record.origin
    if kind == FACE and origin.kind != FACE:
        return "is no face, and the finder of faces found it"
    if origin.finder.partition(" ")[0] in (*BY_REQUEST, DETECTED):
        return _found_problem(record, kind)
    if kind in SURE and not heads and origin.kind not in SURE:
        return f"is not the {kind} that was asked for"
    if kind in (WHOLE, OBJECT) and origin.kind != kind:
        return f"is not the {kind} that was asked for"
    if kind == MASK and record.masked is None:
        return "has no mask, and one was asked for"
    box = origin.finder.partition(" ")[0]  # of a region with a mask, beside the mask
    if kind_of(box) not in (BOX, OBJECT) or (heads and origin.kind != OBJECT):
        return ""
    size = output.width, output.height
    fits = growths(asked_box(box).box, record.box, origin.grown_to, *size)
    return "" if fits else "is not what was asked for, nor that grown to blocks"


def _found_problem(record: RegionRecord, kind: str) -> str:
    """Return why a region is not what a finder of text or the like found; `kind` is empty for any."""
    origin = record.origin
    if origin.kind != (kind or origin.kind) or origin.kind in (() if kind else TAKEN):
        return f"is no {kind or 'thing'}, and a finder of those found it"
    if not origin.found or origin.number is None:
        return "does not say that it was found"
    return "" if record.masked is None else "has a mask, and its finder gives boxes"
