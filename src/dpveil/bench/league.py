"""The league table: methods ranked within one kind of promise about one relation."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from dpveil.bench.cells import WHOLE
from dpveil.bench.setting import NOTHING
from dpveil.bench.table import STRONGEST, Row
from dpveil.core.guarantee import Relation

PROMISES: Final = {
    "pure": "ε-differential privacy",
    "approximate": "(ε, δ)-differential privacy",
    "zcdp": "ρ-zero-concentrated differential privacy",
    "metric": "metric privacy: ε times the distance of two codes",
    "heuristic": "no promise",
    "none": "photos as they are",
}
"""What each kind of guarantee is called."""
ABOUT: Final = {
    "heuristic": "Blur, mosaics and the like promise nothing: the next attacker may name everybody.",
    "none": "Nothing is hidden: how much the attackers know at best.",
}
PARTLY: Final = (
    ", and covers the regions that are replaced. It does not cover where they are and what lies around them,"
    " so that no bound on naming people follows."
)
"""What to know of a promise about regions."""

FEW: Final = 10  # with fewer people a ranking is chance: even if all are named, the interval begins below 0.7
SSIM: Final = "ssim"
SHOWN: Final = {SSIM: "SSIM", "face-found": "face found", "gender": "gender kept"}
"""The measures by which a reader chooses, and their headers."""


@dataclass(frozen=True)
class Place:
    """One setting in a league: risk by the strongest attack, called `by`, and the means of `kept`.

    `best` names those of `SHOWN` of which no setting that is no riskier than the first keeps more.
    """

    method: str
    settings: str
    kind: str
    risk: float
    low: float
    high: float
    by: str
    kept: Mapping[str, float]
    bound: float | None
    best: frozenset[str] = frozenset()

    @property
    def ssim(self) -> float:
        """The mean SSIM, not a number if it was not measured."""
        return self.kept.get(SSIM, math.nan)


@dataclass(frozen=True)
class League:
    """The settings on one data set with one kind of promise, relation and coverage, the lowest risk first.

    `unranked` says why they cannot be told apart: then they stand in the order of the run.
    """

    dataset: str
    title: str
    promise: str
    places: tuple[Place, ...]
    unranked: str = ""


def leagues(table: Sequence[Row], measures: Sequence[Mapping[str, str]]) -> list[League]:
    order = list(PROMISES)
    groups: dict[tuple[str, int, str, bool], list[Place]] = {}
    for rows in _settings(table):
        values = rows[0].values
        promised = values["kind"] not in ABOUT
        relation, parts = values["relation"] if promised else "", promised and values["covers"] != WHOLE
        key = values["dataset"], order.index(values["kind"]), relation, parts
        groups.setdefault(key, []).append(_place(rows, measures))
    made, doubts = [], dict(_doubts(table))
    for (dataset, kind, relation, parts), places in sorted(groups.items()):
        title, promise = _titles(order[kind], relation, parts=parts)
        why, tied = doubts.get(dataset, ""), max(p.low for p in places) <= min(p.high for p in places)
        if tied and not why:
            why = "the intervals of all overlap, so that the run is too small to tell them apart"
        if len(places) == 1:
            why = ""
        ranked = tuple(places) if why else _rank_places(places)
        made.append(League(dataset, title, promise, ranked, why))
    return made


def cautions(table: Sequence[Row]) -> list[str]:
    """Return a line for each data set whose rows cannot be told apart: few people, or attackers that hardly
    name anybody in clean photos, or fewer than where something is hidden.
    """
    return [f"{name}: {why}; take no order of methods from this run" for name, why in _doubts(table)]


def _doubts(table: Sequence[Row]) -> list[tuple[str, str]]:
    """Return the data sets of `cautions`, each with the reason."""
    by_set: dict[str, list[Place]] = {}
    people: dict[str, int] = {}
    chance: dict[str, float] = {}
    for rows in _settings(table):
        values = rows[0].values
        by_set.setdefault(values["dataset"], []).append(_place(rows, ()))
        people[values["dataset"]] = int(values["people"])
        chance[values["dataset"]] = float(values["chance"])
    found = [(name, _why_indistinct(all_, people[name], chance[name])) for name, all_ in by_set.items()]
    return [(name, why) for name, why in found if why]


def _why_indistinct(places: Sequence[Place], people: int, chance: float) -> str:
    """Return why the places of a data set cannot be told apart, or an empty string."""
    if people < FEW:
        return f"{people} people are too few, as intervals over people are wide"
    clean = next((place for place in places if place.kind == "none"), None)
    if clean is None:
        return ""
    if clean.low <= chance:
        return f"attackers name {clean.risk:.2f} in photos as they are, no more than a guess, by its interval"
    most = max(places, key=lambda place: place.risk)
    if most.risk > clean.risk:
        told = f"{clean.risk:.2f} in photos as they are, fewer than by {most.method} ({most.risk:.2f})"
        return f"attackers name {told}"
    return ""


def settings_in_words(values: Mapping[str, str]) -> str:
    """Return the parameters of a row of results in words, without those that are not set.

    >>> settings_in_words({"parameters": '{"block": 8, "epsilon": 1, "rho": null}'})
    'block 8, epsilon 1'
    """
    given = json.loads(values["parameters"])
    told = {name: value for name, value in given.items() if value not in (None, False, "")}
    words = [
        name if value is True else f"{name} {value}"
        for name, value in told.items()
        if "sha256:" not in str(value)
    ]
    return ", ".join(word.replace("_", " ") for word in words)


def _settings(table: Sequence[Row]) -> list[list[Row]]:
    groups: dict[tuple[str, str, str], list[Row]] = {}
    for row in table:
        key = row.values["dataset"], row.values["method"], row.values["parameters"]
        groups.setdefault(key, []).append(row)
    return list(groups.values())


def _place(rows: Sequence[Row], measures: Sequence[Mapping[str, str]]) -> Place:
    values = rows[0].values
    own = [row for row in rows if row.cell is not None]
    top = max(own, key=lambda row: row.success)
    risk = next((row for row in rows if row.values["attack"] == STRONGEST), top)
    same = ("dataset", "method", "parameters")
    own_measures = [one for one in measures if all(one[name] == values[name] for name in same)]
    bounds = [row.bound for row in own if row.bound is not None]
    return Place(
        method="nothing hidden" if values["method"] == NOTHING else values["method"],
        settings=settings_in_words(values),
        kind=values["kind"],
        risk=risk.success,
        low=risk.low,
        high=risk.high,
        by=top.values["attack"],
        kept={one["measure"]: float(one["mean"]) for one in own_measures},
        bound=min(bounds, default=None),
    )


def _rank_places(places: Sequence[Place]) -> tuple[Place, ...]:
    """Return places by risk; what keeps most among those no riskier than the first is best."""
    ranked = sorted(places, key=lambda place: (place.risk, -place.kept.get(SSIM, -1.0)))
    safe = [place for place in ranked if place.risk <= ranked[0].high]
    most = {
        name: max(safe, key=lambda place: place.kept.get(name, -1.0))
        for name in SHOWN
        if len({place.kept[name] for place in safe if name in place.kept}) > 1
    }
    return tuple(
        replace(place, best=frozenset(name for name, one in most.items() if one is place)) for place in ranked
    )


def _titles(kind: str, relation: str, *, parts: bool) -> tuple[str, str]:
    if kind in ABOUT:
        return PROMISES[kind], ABOUT[kind]
    name, _, m = relation.partition(" ")
    about = Relation(name, int(m) if m else None)
    if not parts:
        return f"{PROMISES[kind]}, {about}", f"It is about {about.in_words()}."
    return f"{PROMISES[kind]}, {about}, regions only", f"It is about {about.in_words()}{PARTLY}"
