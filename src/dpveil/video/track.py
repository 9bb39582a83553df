"""Tracks: where one object is in the frames of a clip, as data that people can edit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

LOST: Final = "lost"
MERGED: Final = "merged"
ENDS: Final = ("left", "cut", "end", MERGED, LOST)
"""How a track ends: its object left the picture, the shot ended, the clip ended, another track goes on in its
place, or nothing of that."""


@dataclass(frozen=True)
class Key:
    """Where an object is in one frame: a box in whole pixels, which may reach beyond the picture.

    Of a face, the box goes from the forehead to the chin. `roll` is in whole degrees, clockwise, and `yaw`
    too, positive towards the right of the picture; None if it is not known.
    """

    frame: int
    x: int
    y: int
    w: int
    h: int
    roll: int = 0
    yaw: int | None = None


@dataclass(frozen=True, kw_only=True)
class Track:
    """One object from its first key to its last: on straight lines between `keys`, in order of frames.

    `number` counts from 1. `kind` and `finder` are as in `core.Origin`. Tracks with the same `person` are one
    person's, as a user says; None is a person of their own. One that is `visible` stays as it is, as a user
    says. `end` is one of `ENDS`.
    """

    number: int
    kind: str
    finder: str
    keys: tuple[Key, ...]
    end: str
    score: float | None = None
    person: int | None = None
    visible: bool = False

    @property
    def first(self) -> int:
        """The first frame with the object."""
        return self.keys[0].frame

    @property
    def last(self) -> int:
        """The last frame with the object."""
        return self.keys[-1].frame
