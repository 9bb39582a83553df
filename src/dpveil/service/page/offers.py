"""What the page offers: ways to replace a region, and attributes of a face that can be kept."""

from __future__ import annotations

from typing import Any, Final

from dpveil.assets.store import installed
from dpveil.catalogue import build
from dpveil.core.numbers import Json
from dpveil.errors import DPVeilError
from dpveil.faces.attribute_model import CAUTION, VALUES
from dpveil.mechanisms.choice.rank_choice import RandomisedResponse

BUDGETS: Final = ("0.5", "1", "2", "4")
"""Budgets of one attribute that the page offers; beyond 4 there is little to gain (docs, "attributes")."""
FACES: Final[dict[str, Any]] = {
    "name": "faces",
    "title": "A face of nobody",
    "words": "Looks like a photograph. Learned from UTKFace: for non-commercial research only.",
    "settings": {"method": "attributes"},
    "keeps": True,
}
DRAWN: Final[dict[str, Any]] = {
    "name": "drawn",
    "title": "A drawn head",
    "words": "Drawn by dpveil, and free for any use.",
    "settings": {"method": "attributes", "gallery": "drawn"},
    "keeps": True,
}
FILL: Final[dict[str, Any]] = {
    "name": "fill",
    "title": "A grey box",
    "words": "For faces, and for anything else that you frame.",
    "settings": {"method": "fill", "level": 128},
    "keeps": False,
}


def offers() -> dict[str, Json]:
    """Return the ways to replace a region, each with the attributes that it can keep and their budgets."""
    ways = [*([FACES] if installed("gallery") else []), DRAWN, FILL]
    return {"ways": [way | {"attributes": _attributes(way)} for way in ways], "caution": " ".join(CAUTION)}


def _attributes(way: dict[str, Any]) -> list[Json]:
    if not way["keeps"]:
        return []
    return [
        {
            "name": name,
            "values": list(values),
            "budgets": [{"epsilon": budget, "kept": _kept(budget, len(values))} for budget in BUDGETS],
            "missing": _missing(way, name),
        }
        for name, values in VALUES.items()
    ]


def _kept(budget: str, values: int) -> str:
    """Return how often the reading is what is shown, in percent.

    >>> _kept("1", 2)
    '73 %'
    """
    return f"{100 * float(RandomisedResponse(epsilon=budget, values=values).kept):.0f} %"


def _missing(way: dict[str, Any], name: str) -> str:
    """Return what is missing to read an attribute, empty if nothing is."""
    settings = {key: value for key, value in way["settings"].items() if key != "method"}
    try:
        build("attributes", settings | {"attributes": f"{name}=1"})
    except DPVeilError as error:
        return error.message
    return ""
