"""The whole experiment: from photos of both data sets to tables and figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from dpveil.assets.store import default_path
from dpveil.codecs import GAN, load
from dpveil.errors import UsageError
from dpveil_research.attributes_data import Say
from dpveil_research.croft_thesis_6_aam.claims import claims
from dpveil_research.croft_thesis_6_aam.figures import figure
from dpveil_research.croft_thesis_6_aam.measure import Attacked, Point
from dpveil_research.croft_thesis_6_aam.plan import PLAN, Plan
from dpveil_research.croft_thesis_6_aam.scene import Scene, trained
from dpveil_research.ksame.faces import embedding, read_people
from dpveil_research.results import to_csv


def make(
    data: Path, count: int | None = None, told: Say = lambda done: None, plan: Plan = PLAN
) -> dict[str, bytes]:
    """Return results.csv, verdicts.csv and a figure of each data set; with at most `count` people of each.

    Needs UTKFace, LFW and AT&T, the default `gan`, dlib, and its 68 landmarks. Raises `UsageError` if
    something is missing.
    """
    people = min(count or plan.people, plan.people)
    sets = [read_people(one, data, plan.known + 1, people) for one in plan.sets]
    told("faces aligned")
    model, generator, embed = trained(data, plan), load(default_path("gan")), embedding()
    if not isinstance(generator, GAN):
        raise UsageError("the default gan is another codec", hint="dpveil install faces")
    told("model trained")
    found: dict[str, list[Point]] = {}
    for one in sets:
        found[one.name] = []
        for point in Attacked(Scene(one, model, generator, plan), embed).points():
            found[one.name].append(point)
            told(f"{one.name}: {point.look} {point.method} {point.x}".rstrip())
    return tables(found)


def tables(found: Mapping[str, Sequence[Point]]) -> dict[str, bytes]:
    """Return the files of measured points of each data set, by name."""
    rows = [point.row(name) for name, points in found.items() for point in points]
    said = [claim.row() for name, points in found.items() for claim in claims(name, points)]
    drawn = {f"figure-6-7-{name.replace('&', '').lower()}.png": figure(name, rows) for name in found}
    return {"results.csv": to_csv(rows), "verdicts.csv": to_csv(said)} | drawn
