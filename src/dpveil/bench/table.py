"""Tables of a run: a row for each cell, one for the strongest attacker of each setting, and the utility."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from dpveil.attacks.measures import by_person, ends, mean_of_draws
from dpveil.bench.bounds import up
from dpveil.bench.cells import Cell
from dpveil.bench.utility import UTILITIES
from dpveil.core.rationals import Json
from dpveil.errors import DataError

COLUMNS: Final = (
    "dataset",
    "method",
    "parameters",
    "kind",
    "relation",
    "covers",
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
STRONGEST: Final = "strongest"  # what the row is called of the attack that names most
DRAWS: Final = 2000
LEVEL: Final = 0.95
DIGITS: Final = 4
FALSE_ALARMS: Final = 0.005  # highest probability that a run reports a method that keeps its promise
TINY: Final = 1e-9  # slack for rounding


@dataclass(frozen=True)
class Row:
    """One row of results.csv; `cell` is None for the strongest attacker, whose `attack` says so.

    `above` says whether the success exceeds the bound for more than chance.
    """

    values: Mapping[str, str]
    success: float
    low: float
    high: float
    bound: float | None
    cell: Cell | None
    above: bool = False


def rows(cells: Sequence[Cell]) -> list[Row]:
    """Return a row for each cell, and after those of a setting one for its strongest attacker."""
    made: list[Row] = []
    for group in settings(cells):
        made += [_row(cell, cell.of["attack"], _rate(cell), cell) for cell in group]
        if len(group) > 1:
            made.append(_row(group[0], STRONGEST, strongest(group), None))
    tests = sum(row.bound is not None for row in made)

    def exceeds_bound(row: Row) -> bool:
        return row.bound is not None and exceeds(row.success, row.bound, int(row.values["releases"]), tests)

    return [replace(row, above=exceeds_bound(row)) for row in made]


def _rate(cell: Cell) -> tuple[float, float, float]:
    right, people = np.array(cell.right), [str(person) for person in cell.people]
    return float(right.mean()), *by_person(right, people, draws=DRAWS, level=LEVEL, seed=0)


def settings(cells: Sequence[Cell]) -> list[list[Cell]]:
    """Return the cells in groups of one data set and setting, in their order."""
    groups: dict[str, list[Cell]] = {}
    for cell in cells:
        names = ("data", "data_sha256", "method", "parameters", "seed")
        of = {name: cell.of.get(name) for name in names}
        groups.setdefault(json.dumps(of, sort_keys=True), []).append(cell)
    for group in groups.values():
        bounds = {cell.bound for cell in group} - {None}
        if len(bounds) > 1 or any(_common(cell) != _common(group[0]) for cell in group):
            raise DataError(f"the cells of {group[0].of['method']} do not fit together", hint="run it again")
    return list(groups.values())


def _common(cell: Cell) -> tuple[object, ...]:
    """What the cells of all attacks on the same releases have in common."""
    return cell.people, cell.chance, cell.guarantee, cell.covers, cell.utility


def exceeds(success: float, bound: float, releases: int, tests: int) -> bool:
    """Return whether a rate is above its bound for more than chance, in one of so many tests of a run.

    Each release is scored alone, and has noise of its own: given the photos and what the attacker learnt, the
    successes are independent and from 0 to 1, with a mean of at most `bound`. So a rate this high has at most
    the probability exp(-n·KL(success, bound)) (Hoeffding 1963, theorem 1); all tests share `FALSE_ALARMS`.
    """
    if success <= bound + TINY:
        return False
    if bound <= 0:
        return True
    ratio = success * math.log(success / bound)
    rest = 0.0 if success >= 1 else (1 - success) * math.log((1 - success) / (1 - bound))
    return releases * (ratio + rest) > math.log(max(1, tests) / FALSE_ALARMS)


def strongest(cells: Sequence[Cell]) -> tuple[float, float, float]:
    """Return the highest rate of several attacks, with an interval that holds for all of them together.

    The highest of several measured rates is above its expectation more often than not, for having been
    chosen. The lower end is therefore lowered by how far above its rate any attack comes in a bootstrap over
    people, and the upper one raised likewise (max-T, Westfall & Young 1993).
    """
    people = [str(person) for person in cells[0].people]
    right = np.array([cell.right for cell in cells], np.float64)
    rates, count = right.mean(axis=1), len(set(people))
    apart = mean_of_draws(right, people, draws=DRAWS, seed=0) - rates
    top, tail = float(rates.max()), (1 - LEVEL) / 2
    low = top - float(np.quantile(apart.max(axis=1), 1 - tail))
    high = top + float(np.quantile(-apart.min(axis=1), 1 - tail))
    exact = ends(np.array([top]), top, count, 1 - (1 - LEVEL) / len(cells))
    low, high = exact if top in (0.0, 1.0) else (low, high)
    return top, max(0.0, min(low, top)), min(1.0, max(high, top))


def _row(cell: Cell, attack: Json, rate: tuple[float, float, float], own: Cell | None) -> Row:
    success, low, high = rate
    guarantee = cell.guarantee or {}
    relation: Any = guarantee.get("relation") or {}
    m = f" {relation['m']}" if "m" in relation else ""
    texts = {
        "dataset": cell.of["data"],
        "method": cell.of["method"],
        "parameters": json.dumps(cell.of["parameters"], sort_keys=True),
        "kind": guarantee.get("kind", "none"),
        "relation": f"{relation.get('name', '')}{m}",
        "covers": cell.covers,
        **{name: guarantee.get(name) for name in ("epsilon", "delta", "rho")},
        "attack": attack,
        "success": _number(success),
        "low": _number(low),
        "high": _number(high),
        "chance": _number(cell.chance),
        "bound": None if cell.bound is None or own is None else up(cell.bound, DIGITS),
        "failures": None if own is None else sum(not said for said in own.answered),
        "releases": len(cell.people),
        "people": len(set(cell.people)),
        "near": None if own is None else _number(float(np.mean(own.near))),
        "equal_error": None if own is None else _number(own.equal_error),
        "tar_far_1e-2": None if own is None else _number_or_none(own.accepted_2),
        "tar_far_1e-3": None if own is None else _number_or_none(own.accepted_3),
    }
    told = {name: "" if value is None else str(value) for name, value in texts.items()}
    return Row(told, success, low, high, None if own is None else cell.bound, own)


def utility(cells: Sequence[Cell]) -> list[dict[str, str]]:
    """Return a row for each setting and measure: the mean over releases with an interval over people."""
    made = []
    for group in settings(cells):
        cell = group[0]
        own = {"dataset": cell.of["data"], "method": cell.of["method"]}
        own |= {"parameters": json.dumps(cell.of["parameters"], sort_keys=True)}
        known = [name for name in UTILITIES if name in cell.utility]
        for name in (*known, *sorted(cell.utility.keys() - known)):  # others are of other versions
            told = _measure(cell, name)
            if told is not None:
                made.append({key: str(value) for key, value in {**own, "measure": name, **told}.items()})
    return made


def _measure(cell: Cell, name: str) -> dict[str, Json] | None:
    """Return the mean of a measure, its interval, and of how many releases it is; None of none."""
    pairs = zip(cell.utility[name], cell.people, strict=True)
    there = [(value, person) for value, person in pairs if value is not None]
    if not there:
        return None
    values, people = np.array([value for value, _ in there]), [person for _, person in there]
    means = mean_of_draws(values[None], people, draws=DRAWS, seed=0)[:, 0]
    low, high = np.quantile(means, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    told = {"mean": _number(float(values.mean())), "low": _number(float(low)), "high": _number(float(high))}
    return {**told, "releases": len(there)}


def to_csv(columns: Sequence[str], table: Sequence[Mapping[str, str]]) -> str:
    out = io.StringIO()
    writer = csv.DictWriter(out, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(table)
    return out.getvalue()


def _number(value: float) -> str:
    return f"{value:.{DIGITS}f}"


def _number_or_none(value: float | None) -> str | None:
    return None if value is None else _number(value)
