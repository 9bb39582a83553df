"""The whole comparison: from the user's data sets to a table and plots."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from pathlib import Path

from dpveil_research.ksame.background import background
from dpveil_research.ksame.faces import embedding, read_people, trained
from dpveil_research.ksame.figures import figures
from dpveil_research.ksame.one import Scene, one_release
from dpveil_research.ksame.plan import PLAN, Plan
from dpveil_research.ksame.two import two_releases
from dpveil_research.results import Row, to_csv


def make(
    data: Path, count: int | None = None, told: Callable[[str], None] = lambda done: None, plan: Plan = PLAN
) -> dict[str, bytes]:
    """Return results.csv and a plot for each question, by name; at most `count` people of each set.

    Uses UTKFace for training, LFW and AT&T for attacks. Raises `UsageError` if one is missing.
    """
    people = [
        read_people(one, data, plan.photos, min(count or plan.people, plan.people)) for one in plan.sets
    ]
    told("faces are aligned")
    codec, embed, found = trained(data, plan), embedding(), list[Row]()
    told("eigenfaces are trained")
    for those in people:
        scene = Scene(those, codec, embed, plan)
        tell = lambda what, name=those.name: told(f"{name}: {what}")  # noqa: E731
        found += chain(one_release(scene, tell), two_releases(scene, tell), background(scene, tell))
    return {"results.csv": to_csv(found)} | figures(found)
