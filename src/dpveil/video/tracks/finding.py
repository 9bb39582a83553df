"""The tracks of a clip, in one pass over its frames."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

import numpy as np
from jaxtyping import UInt8

from dpveil.errors import NoRegion
from dpveil.regions.finder import Finder
from dpveil.video.beside import ahead, room_for
from dpveil.video.facts import Facts, Frame
from dpveil.video.track import Track
from dpveil.video.tracks.looking import Looker
from dpveil.video.tracks.lost import ANSWERS, shots_of
from dpveil.video.tracks.settings import TrackSettings
from dpveil.video.tracks.tracker import Tracker

NOTHING: Final = "give lower thresholds or boxes; {method} fill with {regions} whole hides all of the clip"
"""The remedy where nothing is found."""
ARGUMENTS: Final = {"method": "method", "regions": "regions"}
"""The arguments that NOTHING names."""


@dataclass(frozen=True, kw_only=True)
class Found:
    """The tracks of a clip, numbered from 1 in order of their first frames, and then of left and top there.

    `cuts` are the frames with which shots begin, but for the first, and `searched` is the number of frames in
    which finders looked. `thumbnails` are small originals by the numbers of tracks, for the clip's owner
    alone.
    """

    tracks: tuple[Track, ...]
    cuts: tuple[int, ...]
    frames: int
    searched: int
    thumbnails: Mapping[int, UInt8[np.ndarray, "h w 3"]] = field(default_factory=dict, repr=False)


def find_tracks(
    frames: Iterable[Frame],
    facts: Facts,
    finders: Sequence[Finder],
    settings: TrackSettings | None = None,
    progress: Callable[[int], None] | None = None,
) -> Found:
    """Return the tracks of everything that `finders` find in a clip, from all its frames in order.

    `progress` is called with the number of frames that are done. Boxes of faces have no margin, whatever that
    of the finder is; those of other finders have it. Memory does not grow with the length of the clip, but
    for the keys of tracks. Raises `NoRegion` if nothing is found; `RegionError` if a search fails, something
    is lost and has to be refused, or there are more than `tracker.MOST_TRACKS` tracks; and
    `InvalidParameter` for a finder that only fits photos.
    """
    settings = TrackSettings() if settings is None else settings
    looker, tracker, first, last = Looker(facts, finders, settings), Tracker(facts, settings), 0, -1
    room = room_for(facts)
    with closing(ahead(iter(frames), room)) as read, closing(ahead(map(looker.look, read), room)) as sights:
        for done, sight in enumerate(sights, start=1):
            first, last = (sight.frame.index if done == 1 else first), sight.frame.index
            tracker.take(sight)
            if progress is not None:
                progress(done)
    tracker.end()
    if not tracker.closed:
        raise NoRegion("nothing to protect was found in the clip", hint=NOTHING, arguments=ARGUMENTS)
    closed = sorted(tracker.closed, key=lambda one: (one.keys[0].frame, one.keys[0].x, one.keys[0].y))
    answered = ANSWERS[settings.on_lost](closed, shots_of(tracker.cuts, first, last), facts)
    return Found(
        tracks=tuple(
            Track(number=n, kind=one.kind, finder=one.finder, keys=one.keys, end=one.end, score=one.score)
            for n, one in enumerate(answered, start=1)
        ),
        cuts=tuple(tracker.cuts),
        frames=last - first + 1,
        searched=tracker.searched,
        thumbnails=MappingProxyType(
            {n: one.thumbnail for n, one in enumerate(answered, start=1) if one.thumbnail is not None}
        ),
    )
