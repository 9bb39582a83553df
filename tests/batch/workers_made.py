"""What the workers of a run under test are given: finders, steps and onlookers that can end their process."""

from __future__ import annotations

import os
import resource
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpveil.core.photo import Photo
from dpveil.core.region import Region
from dpveil.errors import NoRegion
from dpveil.postprocessing import Step
from dpveil.regions import Finder, parse

LINK = os.link


def end(times: Path) -> None:
    """Kill this process, as often as the file `times` has bytes; each takes one."""
    left = times.read_bytes() if times.exists() else b""
    if left:
        times.write_bytes(left[1:])
        os.kill(os.getpid(), signal.SIGKILL)


@dataclass(frozen=True)
class Everything(Finder):
    """Finds the whole photo, but nobody in photos `empty` pixels wide, and dies of those `deadly` wide."""

    times: Path
    empty: int = 0
    deadly: int = 0

    description = "whole"
    data_dependent = False

    def __call__(self, photo: Photo) -> list[Region]:
        if photo.width == self.empty:
            raise NoRegion("there is nobody in this photo", hint="choose another")
        if photo.width == self.deadly:
            end(self.times)
        return parse("whole")(photo)


@dataclass(frozen=True)
class Deadly(Step):
    """Does nothing, once the photo is drawn, but to end the process at those `deadly` wide: at once, or if
    `naming` when its certificate has got its name, and the image has not.
    """

    times: Path
    deadly: int
    naming: bool = False

    name = "deadly"
    usual = "1"
    summary = "ends the process"

    def __call__(self, image: Any) -> Any:
        if image.shape[1] == self.deadly and self.naming:
            os.link = self._link
        elif image.shape[1] == self.deadly:
            end(self.times)
        return image

    def _link(self, source: Path, target: Path, **more: Any) -> None:
        if target.suffix == ".png" and Path(f"{target}.certificate.json").exists():
            end(self.times)
        LINK(source, target, **more)

    @property
    def description(self) -> str:
        """That of a step that `verify` knows: what was written is found by the settings that it states."""
        return "median:3"


@dataclass(frozen=True)
class Onlooker:
    """Ends the process once the photo `deadly` wide is written, before the run is told of it."""

    times: Path
    deadly: int = 0

    def __call__(self, task: Any, plan: Any, release: Any) -> tuple[str, int]:
        if release is not None and plan.photo.width == self.deadly:
            end(self.times)
        return task.name, os.getpid()


def held(task: Any, plan: Any, release: Any) -> tuple[int, int]:
    """Return the process, and the most memory that it has had so far, in kilobytes."""
    return os.getpid(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
