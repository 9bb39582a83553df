"""What a worker tells the page beyond `/v1/plan`: outlines, kept faces, and sentences; of the same plan."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import cv2
import numpy as np

from dpveil.accounting.meaning import success_bound
from dpveil.core.guarantee import Guarantee, counted
from dpveil.core.numbers import Json
from dpveil.core.region import Region
from dpveil.errors import RegionError
from dpveil.release.explain import CANDIDATES, percent_above
from dpveil.release.plan import Plan, plan
from dpveil.release.planned import largest_region, plan_json
from dpveil.service.settings import Request

KEPT: Final = "except"
"""The setting that names the faces to be kept."""


def told(planned: Plan, settings: Mapping[str, Any], words: Mapping[str, str]) -> dict[str, Json]:
    """Return what the page shows of a plan: its JSON as `/v1/plan` has it, and what is seen and said.

    `kept` are the faces that `settings` except, as they would be replaced; `doubtful` are places that may be
    faces and stay in the clear. Outlines are polygons [[x, y], ...] in pixels of the oriented photo.
    """
    return {
        "plan": plan_json(planned, words),
        "size": [planned.photo.width, planned.photo.height],
        "outlines": [outlines(region) for region in planned.regions],
        "kept": [_face(region) for region in _kept(planned, settings)],
        "doubtful": [_box(region) for region in planned.doubtful],
        "said": _said(planned),
    }


def outlines(region: Region) -> list[Any]:
    """Return the polygons around the pixels that are replaced; the corners of the box without a mask.

    >>> from dpveil.core.region import Box
    >>> outlines(Region(Box(2, 3, 4, 5)))
    [[[2, 3], [6, 3], [6, 8], [2, 8]]]
    """
    box = region.box
    if region.mask is None:
        right, below = box.x + box.w, box.y + box.h
        return [[[box.x, box.y], [right, box.y], [right, below], [box.x, below]]]
    # Twice the size, so that the lines run along the edges of pixels and not through their middles.
    mask = np.pad(np.kron(region.mask, np.ones((2, 2), np.uint8)), 1)
    found, _ = cv2.findContours(mask, cv2.RETR_CCOMP, cv2.CHAIN_APPROX_SIMPLE)
    corner = np.array([box.x, box.y])
    return [((line[:, 0] // 2) + corner).tolist() for line in found]


def _kept(planned: Plan, settings: Mapping[str, Any]) -> tuple[Region, ...]:
    """Return the faces that are left as they are, placed as if they were replaced."""
    if not settings.get(KEPT):
        return ()
    rest = {name: value for name, value in settings.items() if name != KEPT}
    request = Request.of({**rest, "regions": "faces"})
    try:
        every = plan(planned.photo, request.method, regions=request.finders)
    except RegionError:
        return ()
    shown = {region.origin.number for region in planned.regions}
    return tuple(region for region in every.regions if region.origin.number not in shown)


def _face(region: Region) -> dict[str, Json]:
    return {"number": region.origin.number, "box": _box(region), "outline": outlines(region)}


def _box(region: Region) -> list[Json]:
    return [region.box.x, region.box.y, region.box.w, region.box.h]


def _said(planned: Plan) -> dict[str, Json]:
    """Return sentences and figures for people; percentages are rounded up, for they are bounds."""
    if planned.total is None:
        return {}
    total = planned.total
    sentence = largest_region(planned).sentence if len(planned.regions) == 1 else _together(planned, total)
    return {
        "total": str(total),
        "each": [str(guarantee) for guarantee in planned.guarantees],
        "cost": _cost(total, len(planned.regions)),
        "free": total.free,
        "sentence": sentence,
        "bounds": [[str(many), percent_above(success_bound(total, many))] for many in CANDIDATES],
    }


def _together(planned: Plan, total: Guarantee) -> str:
    """Return what the promise about all regions together means."""
    named = percent_above(success_bound(total, 2))
    return (
        f"Together: {planned.strength}. Of two candidates for all of them, equally likely before,"
        f" nobody names the true one with more than {named}."
    )


def _cost(total: Guarantee, regions: int) -> str:
    """Return how many regions are replaced, and what they cost.

    >>> from dpveil.core.guarantee import Relation, Scope
    >>> _cost(Guarantee(kind="pure", epsilon=2, relation=Relation("any-image"), scope=Scope("a box")), 2)
    '2 regions are replaced, and what they cost adds up.'
    """
    what = f"{counted(regions, 'region').capitalize()} {'is' if regions == 1 else 'are'} replaced"
    if total.free:
        return f"{what}. Nothing of {'it' if regions == 1 else 'them'} is kept: the release costs nothing."
    return f"{what}." if regions == 1 else f"{what}, and what they cost adds up."
