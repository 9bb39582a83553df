"""Tables of a run: a row for each cell, one for the strongest attacker of each setting, and the utility."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from jaxtyping import Float64

from dpveil.attacks.resampling import by_person, drawn_people
from dpveil.bench.cells import Cell
from dpveil.bench.utility import UTILITIES
from dpveil.core.numbers import Json

COLUMNS: Final = (
    "dataset",
    "method",
    "parameters",
    "kind",
    "relation",
    "epsilon",
    "delta",
    "rho",
    "attack",
    "success",
    "low",
    "high",
    "chance",
    "bound",
    "failures",
    "releases",
    "people",
    "near",
    "equal_error",
    "tar_far_1e-2",
    "tar_far_1e-3",
)
UTILITY: Final = ("dataset", "method", "parameters", "measure", "mean", "low", "high", "releases")
STRONGEST: Final = "strongest"
"""What the row is called of the attack that names most."""
DRAWS: Final = 2000
LEVEL: Final = 0.95
DIGITS: Final = 4


@dataclass(frozen=True)
class Row:
    """One row of results.csv; `cell` is None for the strongest attacker, whose `attack` says so."""

    values: Mapping[str, str]
    success: float
    low: float
    high: float
    bound: float | None
    cell: Cell | None

    @property
    def above(self) -> bool:
        """Whether the measured success is above the bound, beyond its interval."""
        return self.bound is not None and self.low > self.bound


def rows(cells: Sequence[Cell]) -> list[Row]:
    """Return a row for each cell, and after those of a setting one for its strongest attacker."""
    made: list[Row] = []
    for group in settings(cells):
        made += [_row(cell, cell.of["attack"], np.array(cell.right), cell) for cell in group]
        if len(group) > 1:
            made.append(_row(group[0], STRONGEST, strongest(group), None))
    return made


def settings(cells: Sequence[Cell]) -> list[list[Cell]]:
    """Return the cells in groups of one data set and setting, in their order."""
    groups: dict[str, list[Cell]] = {}
    for cell in cells:
        of = {name: cell.of[name] for name in ("data", "data_sha256", "method", "parameters", "seed")}
        groups.setdefault(json.dumps(of, sort_keys=True), []).append(cell)
    return list(groups.values())


def strongest(cells: Sequence[Cell]) -> Float64[np.ndarray, " n"]:
    """Return how often the strongest attack is right about each release.

    It is chosen on one half of the people and counted on the other, and the other way round: else the highest
    of several rates would be too high, for having been chosen. Of equals, that which more often has the
    person among the five likeliest is chosen.
    """
    people = np.array(cells[0].people)
    right, near = (np.array([getattr(cell, name) for cell in cells]) for name in ("right", "near"))
    out = np.empty(len(people))
    for half in (people % 2 == 0, people % 2 == 1):
        rates = [
            one[:, ~half].mean(axis=1) if (~half).any() else np.zeros(len(cells)) for one in (near, right)
        ]
        out[half] = right[np.lexsort(rates)[-1], half]
    return out


def _row(cell: Cell, attack: Json, right: Float64[np.ndarray, " n"], own: Cell | None) -> Row:
    people = [str(person) for person in cell.people]
    low, high = by_person(right, people, draws=DRAWS, level=LEVEL, seed=0)
    success, guarantee = float(right.mean()), cell.guarantee or {}
    relation: Any = guarantee.get("relation") or {}
    m = f" {relation['m']}" if "m" in relation else ""
    texts = {
        "dataset": cell.of["data"],
        "method": cell.of["method"],
        "parameters": json.dumps(cell.of["parameters"], sort_keys=True),
        "kind": guarantee.get("kind", "none"),
        "relation": f"{relation.get('name', '')}{m}",
        **{name: guarantee.get(name) for name in ("epsilon", "delta", "rho")},
        "attack": attack,
        "success": _number(success),
        "low": _number(low),
        "high": _number(high),
        "chance": _number(cell.chance),
        "bound": None if cell.bound is None or own is None else _number(cell.bound),
        "failures": None if own is None else sum(not said for said in own.answered),
        "releases": len(people),
        "people": len(set(people)),
        "near": None if own is None else _number(float(np.mean(own.near))),
        "equal_error": None if own is None else _number(own.equal_error),
        "tar_far_1e-2": None if own is None else _number(own.accepted_2),
        "tar_far_1e-3": None if own is None else _number(own.accepted_3),
    }
    told = {name: "" if value is None else str(value) for name, value in texts.items()}
    return Row(told, success, low, high, None if own is None else cell.bound, own)


def utility(cells: Sequence[Cell]) -> list[dict[str, str]]:
    """Return a row for each setting and measure: the mean over releases with an interval over people, or the
    measure of all releases together, which has none.
    """
    made = []
    for group in settings(cells):
        cell = group[0]
        own = {"dataset": cell.of["data"], "method": cell.of["method"]}
        own |= {"parameters": json.dumps(cell.of["parameters"], sort_keys=True)}
        for name in sorted((*cell.utility, *cell.together), key=_order):
            told = _measure(cell, name)
            if told is not None:
                made.append({key: str(value) for key, value in {**own, "measure": name, **told}.items()})
    return made


def _order(name: str) -> tuple[int, str]:
    """The place of a measure in tables; those that this version does not know come last."""
    return (list(UTILITIES).index(name) if name in UTILITIES else len(UTILITIES)), name


def _measure(cell: Cell, name: str) -> dict[str, Json] | None:
    """Return the mean of a measure, its interval, and of how many releases it is; None of none."""
    if name in cell.together:
        value, count = cell.together[name], cell.released
        return None if value is None else {"mean": _number(value), "low": "", "high": "", "releases": count}
    pairs = zip(cell.utility[name], cell.people, strict=True)
    there = [(value, person) for value, person in pairs if value is not None]
    if not there:
        return None
    mean, low, high = _mean(*(np.array(column) for column in zip(*there, strict=True)))
    told = {"mean": _number(mean), "low": _number(low), "high": _number(high)}
    return {**told, "releases": len(there)}


def _mean(values: np.ndarray, people: np.ndarray) -> tuple[float, float, float]:
    """Return a mean and its bootstrap interval over people."""
    _, person = np.unique(people, return_inverse=True)
    count = int(person.max()) + 1
    times = drawn_people(count, DRAWS, 0)
    sums = times @ np.bincount(person, weights=values, minlength=count)
    means = sums / (times @ np.bincount(person, minlength=count))
    low, high = np.quantile(means, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(values.mean()), float(low), float(high)


def to_csv(columns: Sequence[str], table: Sequence[Mapping[str, str]]) -> str:
    """Return a table as CSV, with a header and one line for each row."""
    out = io.StringIO()
    writer = csv.DictWriter(out, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(table)
    return out.getvalue()


def _number(value: float) -> str:
    return f"{value:.{DIGITS}f}"
