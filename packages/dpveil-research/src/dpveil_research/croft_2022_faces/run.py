"""The whole experiment: from photos of LFW to tables and figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from dpveil.errors import UsageError
from dpveil_research.attributes_data import Say
from dpveil_research.croft_2022_faces.claims import claims
from dpveil_research.croft_2022_faces.figures import figures
from dpveil_research.croft_2022_faces.measure import MEASURES, Attacked, Point
from dpveil_research.croft_2022_faces.plan import PLAN, Plan
from dpveil_research.croft_thesis_6 import PLAN as SCENE
from dpveil_research.croft_thesis_6.scene import read_scene
from dpveil_research.intervals import clustered_share
from dpveil_research.results import Row, columns, estimate, to_csv


def make(
    data: Path, count: int | None = None, told: Say = lambda done: None, plan: Plan = PLAN
) -> dict[str, bytes]:
    """Return results.csv, verdicts.csv and four figures; with at most `count` people.

    Needs the default `gan`, the model of attributes and dlib. Raises `UsageError` if something is missing, or
    there are too few people for the largest groups.
    """
    people, fewest = plan.people if count is None else min(count, plan.people), 2 * max(plan.groups)
    if people < fewest:  # each gender has groups of its own
        raise UsageError(
            f"{people} people are too few", hint=f"--count {fewest} or more, for groups of men and of women"
        )
    scene = read_scene(data, replace(SCENE, people=people, photos=plan.known + 1), told)
    points = []
    for point in Attacked(scene, plan).points():
        points.append(point)
        told(f"{point.method} {point.model} {point.x}".strip())
    return tables(points)


def tables(points: Sequence[Point]) -> dict[str, bytes]:
    """Return the files of measured points, by name."""
    found, said = [_row(point) for point in points], [claim.row() for claim in claims(points)]
    return {"results.csv": to_csv(found), "verdicts.csv": to_csv(said)} | figures(found, said)


def _row(point: Point) -> Row:
    row: Row = {"method": point.method, "model": point.model, "x": point.x}
    for name in MEASURES:
        values = point.by_person.get(name)
        if values is None:
            row |= dict.fromkeys(columns(name), "")
            continue
        own = values[~np.isnan(values)]
        row |= estimate(name, clustered_share(own, [str(i) for i in range(len(own))]), ".4f")
    return row | {"people": str(len(point.by_person["named"]))}
