"""What is to be told of releases, gathered where they are made, which may be another process."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dpveil.cli.review import Review
from dpveil.cli.usual import Doubts
from dpveil.io.names import shown

if TYPE_CHECKING:
    from dpveil.batch import Task
    from dpveil.release.plan import Plan
    from dpveil.release.saving import Release


@dataclass
class Seen:
    """What the detector was not sure of, and the parts of a review page, of one release or of many."""

    doubts: Doubts = field(default_factory=Doubts)
    pages: Review = field(default_factory=Review)

    def add(self, other: Seen) -> None:
        """Add what was seen of others."""
        self.doubts.join(other.doubts)
        self.pages.join(other.pages)


def see(task: Task, plan: Plan, release: Release | None) -> Seen:
    """Return what the detector was not sure of in one photo, which may only be planned."""
    seen = Seen()
    seen.doubts.add(shown(task.source), plan, packed=task.inside is not None)
    return seen


def see_closely(task: Task, plan: Plan, release: Release | None) -> Seen:
    """Return the same with the photo's part of a review page, if it is released."""
    seen = see(task, plan, release)
    if release is not None:
        seen.pages.add(task, plan, release)
    return seen
