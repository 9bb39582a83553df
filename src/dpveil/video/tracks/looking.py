"""What each frame of a clip shows on its own: where shots begin, and what finders see in some frames."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from dpveil.core.origin import FACE
from dpveil.core.photo import Photo
from dpveil.regions.finder import Finder, Seen
from dpveil.video.facts import Facts, Frame
from dpveil.video.tracks.dark import lightened
from dpveil.video.tracks.memory import Moment
from dpveil.video.tracks.settings import TrackSettings
from dpveil.video.tracks.shots import Shots


@dataclass(frozen=True, eq=False)
class Sight:
    """One frame: whether a shot `begins` with it, and what finders see, by their descriptions.

    `seen` is None for a frame that is not searched.
    """

    frame: Frame
    now: Moment
    begins: bool
    seen: dict[str, list[Seen]] | None


class Looker:
    """Looks at the frames of a clip in order: where it searches depends on their times and shots alone.

    So it may be ahead of the `Tracker` that takes what it sees.
    """

    def __init__(self, facts: Facts, finders: Sequence[Finder], settings: TrackSettings) -> None:
        self.facts, self.every = facts, settings.every
        made = [finder.for_frames(facts.width, facts.height, settings.long_side) for finder in finders]
        self.finders = {finder.description: finder for finder in made}
        self._shots = Shots()
        self._due: Fraction | None = None
        self._before: Fraction | None = None
        self._last = facts.frames - 1

    def look(self, frame: Frame) -> Sight:
        """Return what the next frame shows; raises `RegionError` if a search fails."""
        now = Moment.of(frame, self.facts)
        begins, seen = self._shots.begins(now.grey), None
        if begins:
            self._due = self._before = None
        if self._is_due(now):
            seen = self._search(frame)
            self._due = now.seconds + self.every
        self._before = now.seconds
        return Sight(frame, now, begins, seen)

    def _search(self, frame: Frame) -> dict[str, list[Seen]]:
        """Return what every finder sees: of faces, in a brighter copy of a dark frame."""
        photo, light = Photo(frame.image), Photo(lightened(frame.image))
        return {
            name: finder.seen(light if finder.kind == FACE else photo)
            for name, finder in self.finders.items()
        }

    def _is_due(self, now: Moment) -> bool:
        """Whether the next search is nearer to this frame than to the next one, if that comes as soon.

        The first frame of a shot and the last one of the clip are searched in any case.
        """
        step = Fraction(0) if self._before is None else now.seconds - self._before
        return self._due is None or now.seconds + step / 2 >= self._due or now.frame == self._last
