"""Units of the promise of a clip: one track, one person, or any event of a limited length."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from dpveil.core.numbers import Json, exact, to_json
from dpveil.core.parameters import check_count
from dpveil.errors import InvalidParameter
from dpveil.video.facts import Facts

AROUND: Final = 2
"""Frames that an event may change beside those within its time: the one before it and the one after."""
FIELDS: Final = 2
"""Frames more where fields are made whole, each from the frame before it and the one after as well."""
LONGEST: Final = Fraction(10**6)
"""The longest event, in seconds."""


@dataclass(frozen=True)
class Event:
    """Anything that happens at most `times` times in a clip, for at most so many `seconds` each time.

    `frames` is the largest number of frames that one of these times can change: `most_frames`.
    """

    seconds: Fraction
    times: int
    frames: int

    @classmethod
    def of(cls, seconds: object, times: object, facts: Facts) -> Event:
        """Return the event in a clip; raises `InvalidParameter` for lengths and counts out of range."""
        length = exact(seconds, "event_seconds")
        if not 0 < length <= LONGEST:
            hint = f"write seconds above 0 and up to {int(LONGEST):,}, such as 2.5"
            raise InvalidParameter("event_seconds", str(seconds), "is out of range", hint=hint)
        count = check_count(times, "event_times")
        return cls(length, count, most_frames(facts, length))

    def to_json(self) -> dict[str, Json]:
        """Return the JSON object of a certificate."""
        return {"seconds": to_json(self.seconds), "times": self.times, "frames": self.frames}

    def changed(self, frames: int) -> int:
        """Return how many of so many frames the event can change, all of its times together."""
        return min(frames, self.times * self.frames)


def most_frames(facts: Facts, seconds: Fraction) -> int:
    """Return the largest number of frames of a clip that something of so many seconds can change.

    The light of a frame is gathered around its time: later than the time of the frame before it, and before
    that of the next one, whatever the camera. So something within [s, s + ρ] is in no frame but those with a
    time in there, the last one before, and the first one after. That is exact arithmetic over all s: it is
    enough to begin at the time of a frame, as moving s up to the next such time loses no frame within. Frames
    made of fields read those beside them (`FIELDS`). What a codec, or whoever edited the clip, carried from
    frame to frame is not known here.

    >>> one = dict(sha256="", format="mp4", codec="h264", width=8, height=8, audio=False)
    >>> clip = Facts(**one, time_base=Fraction(1, 25), start=0, steps=((1, 1499),))
    >>> most_frames(clip, Fraction(1)), most_frames(clip, Fraction(1, 100)), most_frames(clip, Fraction(60))
    (28, 3, 1500)
    """
    span = math.floor(seconds / facts.time_base)
    behind, inside, most = facts.times, 0, 0
    first = next(behind)
    for time in facts.times:
        inside += 1
        while time - first > span:
            first = next(behind)
            inside -= 1
        most = max(most, inside)
    return min(facts.frames, most + AROUND + FIELDS * facts.fields)
