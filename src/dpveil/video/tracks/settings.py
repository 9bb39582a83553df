"""How tracks are found: how often frames are searched, and what is protected before, between and after."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from dpveil.core.parameters import Between, Count
from dpveil.errors import InvalidParameter, UnknownName
from dpveil.regions.faces import LONG_SIDES

ON_LOST: Final = ("hold", "whole", "refuse")
"""What becomes of a track that ends and whose object neither left the picture nor was cut away."""
EVERY: Final = Fraction(1, 5)
BACKWARDS: Final = Fraction(1, 2)
MARGIN: Final = Fraction(1, 5)
GAP: Final = Fraction(2)
LONG_SIDE: Final = 1280
MOST_SECONDS: Final = 10
"""The longest time in any of these settings."""
SECONDS: Final = "a number of seconds"


@dataclass(frozen=True, kw_only=True)
class TrackSettings:
    """How tracks are found; times are in seconds.

    Frames are searched at least `every` so often (0: every frame), downscaled to `long_side` pixels. A new
    track is followed `backwards` for so long, at least to the search before and at most to the start of the
    shot. Before and after what is
    followed, its place is protected for a `margin`. An object that is not found for longer than `gap` is lost
    and `on_lost` says what then: "hold" its last place to the end of the shot or until it is found there
    again, "whole": replace the whole frame for that time, or "refuse" the clip. Raises `InvalidParameter` and
    `UnknownName`.

    >>> TrackSettings(every=0.12).every
    Fraction(3, 25)
    """

    every: Between = Between(0, MOST_SECONDS, hint=f"{SECONDS}, such as 0.2", default=EVERY)
    backwards: Between = Between(0, MOST_SECONDS, hint=f"{SECONDS}, such as 0.5", default=BACKWARDS)
    margin: Between = Between(0, MOST_SECONDS, hint=f"{SECONDS}, such as 0.2", default=MARGIN)
    gap: Between = Between(0, MOST_SECONDS, hint=f"{SECONDS}, such as 2", default=GAP)
    on_lost: str = ON_LOST[0]
    long_side: Count = Count(default=LONG_SIDE, low=LONG_SIDES[0], high=LONG_SIDES[-1])

    def __post_init__(self) -> None:
        if self.on_lost not in ON_LOST:
            raise UnknownName("answer to lost tracks", self.on_lost, ON_LOST)
        if self.gap < max(self.margin, self.every):
            raise InvalidParameter(
                "gap",
                str(float(self.gap)),
                "is shorter than {margin}, or than the time between two searches ({every})",
                hint=f"choose {float(max(self.margin, self.every))} or more",
                arguments={"margin": "margin", "every": "every"},
            )
