"""A plan as JSON, the same for the command line and the service; and sizes as users write them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from dpveil.core.notes import told
from dpveil.core.numbers import Json
from dpveil.errors import InvalidParameter, UsageError
from dpveil.release.explain import Explanation, explain_region
from dpveil.release.plan import Plan

MOST_PIXELS: Final = 2**31
"""Most pixels of a size that is explained."""


def largest_region(plan: Plan) -> Explanation:
    """Return what the guarantee of the plan's largest region means; raises `UsageError` for a copy."""
    if plan.quote is None:
        raise UsageError("a copy promises nothing that could be explained")
    areas = [region.box.w * region.box.h for region in plan.quote.regions]
    return explain_region(plan.quote, areas.index(max(areas)))


def plan_json(plan: Plan, options: Mapping[str, str]) -> dict[str, Json]:
    """Return a plan as JSON: regions, guarantees, total, strength, warnings, and what the largest one means.

    `options` are the words for arguments, as in `DPVeilError.told`. A copy has no total and no `largest`.
    """
    entries = zip(() if plan.quote is None else plan.quote.regions, plan.guarantees, strict=True)
    return {
        "regions": [{**region.to_json(), "guarantee": each.to_json()} for region, each in entries],
        "total": None if plan.total is None else plan.total.to_json(),
        "strength": plan.strength,
        "in_the_clear": list(plan.in_the_clear),
        "warnings": list(told(plan.warnings, options)),
        "largest": None if plan.quote is None else largest_region(plan).to_json(),
    }


def size_of(text: str | None) -> tuple[int, int]:
    """Return width and height in pixels of a size such as "128x128"; raises `InvalidParameter`.

    >>> size_of("128x96")
    (128, 96)
    """
    parts = re.fullmatch(r"\s*([0-9]{1,9})\s*[xX×]\s*([0-9]{1,9})\s*", text or "")
    if parts is None or "0" in (parts[1].lstrip("0") or "0", parts[2].lstrip("0") or "0"):
        problem = "is missing" if text is None else "is not a size"
        raise InvalidParameter("size", text, problem, hint="width x height in pixels, such as 128x128")
    width, height = int(parts[1]), int(parts[2])
    if width * height > MOST_PIXELS:
        hint = f"at most {MOST_PIXELS:,} pixels"
        raise InvalidParameter("size", text, "is larger than any photo", hint=hint)
    return width, height
