"""What a method promises about one region of a photo, in numbers and words: stated by releases, checked again
by `verify`. Computed from public settings alone.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import fields, replace
from fractions import Fraction
from typing import Final

from dpveil.accounting import compose
from dpveil.accounting.meaning import NONE, strength
from dpveil.core.certificate import SEEDED, RegionRecord
from dpveil.core.guarantee import Guarantee, Scope
from dpveil.core.numbers import show
from dpveil.core.photo import ESCAPING
from dpveil.core.region import Box, first_overlap
from dpveil.faces import FaceMethod
from dpveil.mechanisms.method import Method
from dpveil.mechanisms.pixel.budget import BudgetedMethod, Size, different

ACCOUNTANT: Final = (
    "basic composition in exact rationals; disjoint regions under noise of one scale count as one release"
)
NO_ACCOUNTANT: Final = "none"
WEAK: Final = (
    "WEAK PROMISE: an observer may tell two neighbouring photos apart almost surely (see dpveil explain)"
)
HEURISTIC: Final = "NO FORMAL GUARANTEE: this method is heuristic and nothing is promised"
TRACES: Final = "traces of the region that lossy WebP spread over the rest of the photo"
SPREAD: Final = (
    "{}: lossy WebP leaves traces of a region anywhere in the photo, and those are released as they are;"
    " protect the whole photo, or start from its JPEG or PNG original"
)
SAME: Final = "which follow from the photo's pixels: the guarantee compares photos in which the same is found"
FACE_BOX: Final = f"position and size of the face box, {SAME}"
BY_LANDMARKS: Final = "position, size and angle of the face and the turn of its head, by its landmarks"
POSE: Final = {
    "landmarks": f"{BY_LANDMARKS}, and that these were sure, {SAME}",
    "auto": f"{BY_LANDMARKS}, or that these were not sure, {SAME}",
}
"""What the place of another face shows of the first one, by the rule that puts it there."""
ROAD: Final = "how long finding, aligning and drawing the face took, which depends a little on the photo"
"""Of every face-space method: a portrait takes the same steps whatever is found, but not the same time."""
PLACE: Final = f"position and size of the region, {SAME}"
SILHOUETTE: Final = f"the head's silhouette with its hair, {SAME}"
COUNT: Final = "how many regions were found, and that none was found elsewhere"
FACE_COUNT: Final = "how many faces were found, and that none was found elsewhere"
NO_OTHER_FACE: Final = "everything outside the region, with every face that was not found or not chosen"
NOTHING: Final = "that no region was found: the guarantee compares photos in which none is"
STORED: Final = "that the input was a {}, and its block grid"
OVERLAP: Final = "{} and {} overlap: each reads the original, so their costs add"
NONE_FOUND: Final = "whole photo, as no region was found"
"""The label of the region that `if_none` chose."""

LARGE_DELTA: Final = Fraction(1, 100)
"""A δ above which a certificate warns that it is one."""
MISSING: Final = "NOT FOUND: {}; what it would have protected is released as it is"
"""Warns that a choice found nothing while another did, and that `if_none` left it in the clear."""

PURE_NOISE: Final = 128
"""A noise scale in grey levels above which hardly anything of a region can be seen."""

SMALLER: Final = 256
"""The neighbourhood in pixels that a warning computes for comparison."""


def promise(method: Method, record: RegionRecord, *, width: int, height: int, channels: int) -> Guarantee:
    """Return what `method` promises about one region of a width × height × channels photo.

    >>> from dpveil.mechanisms.pixel import DPPix
    >>> face = RegionRecord("face", Box(40, 52, 88, 120))
    >>> promise(DPPix(epsilon=1), face, width=640, height=480, channels=3).scope.covers
    'face: 88×120 pixels at 40,52, 3 channels'
    """
    cost = method.guarantee(height=record.box.h, width=record.box.w, channels=channels)
    covers = f"{record.in_words()}, {channels} channel{'s' if channels > 1 else ''}"
    whole = record.masked is None and record.box == Box(0, 0, width, height)
    shown = cost.scope.in_the_clear + _in_the_clear(record, whole)
    if isinstance(method, FaceMethod):
        shown += (POSE[method.placing],) if record.found and method.placing in POSE else ()
        shown += (ROAD,)
    return replace(cost, scope=Scope(covers, shown))


def composition(
    method: Method, records: Sequence[RegionRecord], guarantees: Sequence[Guarantee], channels: int
) -> Guarantee:
    """Return what all regions cost the photo together: their sum, or less where no two boxes overlap.

    A neighbour changes m pixels in all, wherever they lie. So boxes without a common pixel, under noise of
    one scale, are one release of all their cells (docs: accounting, "Regions of one photo"). An (ε, δ) is
    taken over only where that release costs what one region alone does: nothing is calibrated here.
    """
    total = compose(guarantees)
    if len(records) < 2 or not isinstance(method, BudgetedMethod):
        return total
    if first_overlap([record.box for record in records])[0]:
        return total
    sizes = [Size(height=r.box.h, width=r.box.w, channels=channels) for r in records]
    account = method.account_of(sizes, total.relation.m)
    if account is None:
        return total
    if any(account == method.account(**size) for size in different(sizes)):
        return replace(total, epsilon=method.epsilon, delta=method.delta, rho=method.rho)
    if total.kind == "zcdp":
        return replace(total, rho=_least(account.rho, total.rho))
    return replace(total, epsilon=_least(account.pure, total.epsilon)) if total.kind == "pure" else total


def _least(*costs: Fraction | None) -> Fraction:
    return min(cost for cost in costs if cost is not None)


def is_face(record: RegionRecord) -> bool:
    """Return whether a face detector chose this region: then its place and number follow from the photo."""
    return record.found and record.label.startswith(("face ", "head of face "))


def _in_the_clear(record: RegionRecord, whole: bool) -> tuple[str, ...]:
    face = is_face(record)
    found = (FACE_BOX, FACE_COUNT) if face else (PLACE, COUNT) if record.found else ()
    grown = re.search(r", grown to the (\w+) blocks\Z", record.label)
    stored = () if grown is None else (STORED.format(grown[1]),)
    if whole:
        none = (NOTHING,) if record.label == NONE_FOUND else ()
        return ("the photo's size in pixels and its number of channels", *found, *none, *stored)
    outline = () if record.masked is None else ("the mask's silhouette",)
    outline = (SILHOUETTE,) if record.label.startswith("head of ") else outline
    traces = (TRACES,) if record.label.endswith(f"{ESCAPING} blocks") else ()
    place = found or ("position and size of the region",)
    rest = NO_OTHER_FACE if face else "everything outside the region"
    return (*place, *outline, *stored, *traces, rest)


def accountant(method: Method) -> str:
    """Return how the numbers of a certificate were arrived at."""
    chosen = f"; noise calibrated by {method.calibration}" if method.calibration else ""
    return ACCOUNTANT + chosen


def bit_cautions(bits: str) -> tuple[str, ...]:
    """Return the warning that belongs to a kind of bit source; secure bits need none."""
    if bits == "secure":
        return ()
    return (SEEDED if bits == "seeded" else f"NOT FOR PUBLICATION: nothing is known about {bits!r} bits",)


def cautions(
    method: Method,
    records: Sequence[RegionRecord],
    channels: int,
    total: Guarantee,
    *,
    sizes: int | None = None,
) -> tuple[str, ...]:
    """Return the warnings that follow from the method, the regions' sizes and what they cost together.

    Only regions of the first so many different `sizes` are told whether they are pure noise (None: all):
    each size is another calibration, which takes up to seconds.
    """
    notes = [*verdict(total)]
    pairs, (a, b) = first_overlap([record.box for record in records])
    more = f" ({pairs - 1} more pairs do)" if pairs > 1 else ""
    notes += [OVERLAP.format(records[a].label, records[b].label) + more] if pairs else []
    notes += [SPREAD.format(r.label) for r in records if r.label.endswith(f"{ESCAPING} blocks")]
    looked = list(dict.fromkeys((record.box.h, record.box.w) for record in records))[:sizes]
    noisy = {size: _pure_noise(method, *size, channels) for size in looked}
    told = ((record.label, noisy.get((record.box.h, record.box.w))) for record in records)
    return (*notes, *(f"{label}: {text}" for label, text in told if text))


def verdict(total: Guarantee) -> tuple[str, ...]:
    """Return the warnings that follow from what a photo costs alone."""
    said = HEURISTIC if not total.formal else WEAK if strength(total) == NONE else ""
    return tuple(text for text in (said, exposure(total)) if text)


def mislabelled(record: RegionRecord, *, width: int, height: int) -> str:
    """Return what is wrong with a region's label in a photo of this size, or nothing.

    >>> mislabelled(RegionRecord("whole photo", Box(0, 0, 1, 1)), width=640, height=480)
    'is not the whole photo'
    """
    if record.label.casefold().startswith("whole photo"):
        all_of_it = record.full and record.box == Box(0, 0, width, height)
        return "" if all_of_it else "is not the whole photo"
    numbers = re.match(r"(?:head of )?face ([0-9]{1,9}) of ([0-9]{1,9})\b", record.label)
    if numbers is None or (record.found and 1 <= int(numbers[1]) <= int(numbers[2])):
        return ""
    return "is no face that was found"


def share(records: Sequence[RegionRecord], width: int, height: int) -> str:
    """Return how many of a photo's pixels are protected, or nothing where one region is all of them.

    >>> share([RegionRecord("box", Box(40, 52, 10, 10))], width=640, height=480)
    '100 of 307,200 pixels'
    """
    if any(record.full and record.box == Box(0, 0, width, height) for record in records):
        return ""
    overlapping = first_overlap([record.box for record in records])[0] > 0
    each = (r.box.w * r.box.h if r.masked is None else r.masked for r in records)
    pixels = width * height
    return f"{'at most ' * overlapping}{min(sum(each), pixels):,} of {pixels:,} pixels"


def exposure(guarantee: Guarantee) -> str:
    """Return a clause that says how likely it is that nothing is promised, or nothing where δ is small.

    >>> from dpveil.core.guarantee import Relation
    >>> numbers = {"kind": "approximate", "epsilon": 0, "delta": 0.3}
    >>> exposure(Guarantee(**numbers, relation=Relation("any-image"), scope=Scope("a photo")))
    'WITH PROBABILITY 0.3 NOTHING IS PROMISED (delta)'
    """
    if guarantee.delta is None or guarantee.delta <= LARGE_DELTA:
        return ""
    return f"WITH PROBABILITY {show(guarantee.delta)} NOTHING IS PROMISED (delta)"


def _pure_noise(method: Method, height: int, width: int, channels: int) -> str:
    size = {"height": height, "width": width, "channels": channels}
    scale = method.noise_scale(**size)
    if scale is None or scale <= PURE_NOISE:
        return ""
    text = f"practically pure noise, of scale {scale:,.0f} grey levels where 255 is white"
    wide = getattr(method, "neighbourhood", SMALLER) or width * height
    if wide <= SMALLER or "neighbourhood" not in {field.name for field in fields(method)}:  # type: ignore[arg-type]
        return f"{text}; a smaller neighbourhood, or a larger block or epsilon, means less"
    smaller = replace(method, neighbourhood=SMALLER).noise_scale(**size)  # type: ignore[type-var]
    digits = 0 if (smaller or 0) >= 10 else 2
    return (
        f"{text}; a neighbourhood of {SMALLER} pixels would have {smaller or 0:,.{digits}f}, and promise less"
    )
