"""The whole comparison: from photos of LFW to tables and figures."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from dpveil_research.attributes_data import Say
from dpveil_research.croft_thesis_6.figures import figure
from dpveil_research.croft_thesis_6.measure import Measures, ahead
from dpveil_research.croft_thesis_6.plan import PLAN, PRIVATE, SAME, Plan
from dpveil_research.croft_thesis_6.scene import read_scene
from dpveil_research.results import to_csv


def make(
    data: Path, count: int | None = None, told: Say = lambda done: None, plan: Plan = PLAN
) -> dict[str, bytes]:
    """Return results.csv, ahead.csv and trade-off.png; with at most `count` people.

    Needs the default `gan`, the model of attributes and dlib. Raises `UsageError` if something is missing.
    """
    if count is not None:
        plan = replace(plan, people=min(count, plan.people))
    scene = read_scene(data, plan, told)
    measures, points = Measures(scene), []
    for released in scene.releases():
        points.append(measures.point(released))
        told(f"{released.method} {released.x}".strip())
    by_method = {name: [one for one in points if one.method == name] for name in (PRIVATE, SAME)}
    rows = [point.row() for point in points]
    more = ahead(by_method[PRIVATE], by_method[SAME])
    return {"results.csv": to_csv(rows), "ahead.csv": to_csv(more), "trade-off.png": figure(rows)}
