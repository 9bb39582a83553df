"""What all photos of a run share: the folders that it writes to, and why no more of them are drawn."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from dpveil.batch.task import Task
from dpveil.errors import OutputError
from dpveil.io import make_folder
from dpveil.io.folders import identity
from dpveil.io.names import shown


class Around(Protocol):
    """The run around a photo, seen from the process that releases it."""

    def stopped(self, task: Task) -> str:
        """Return why the photo must not be drawn any more; an empty text if it may be, and then is."""

    def stop(self, reason: str) -> None:
        """Let no other photo be drawn."""

    def open(self, folder: Path) -> None:
        """Make the folder of the first output in it; raises `OutputError` if it was replaced since."""


@dataclass
class Shared:
    """The run itself. `made` has the identity of every output folder at its first use."""

    reason: str = ""
    made: dict[Path, object] = field(default_factory=dict)

    def stopped(self, task: Task) -> str:
        """Return why nothing is drawn any more, if so."""
        return self.reason

    def stop(self, reason: str) -> None:
        """Let no other photo be drawn; the first reason stays."""
        self.reason = self.reason or reason

    def open(self, folder: Path) -> None:
        """Make the folder of the first output; raises `OutputError` if it was replaced since, as by
        unmounting.
        """
        if folder not in self.made:
            make_folder(folder)
            self.made[folder] = identity(folder)
        elif self.made[folder] != identity(folder):
            raise OutputError(
                f"cannot write {shown(folder)}: it was removed or replaced since the run began",
                hint="check that its disk is still there, and run the same command again",
            )
