"""Clips of textured patches that move, and finders that know where they are, but not always tell."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import cache

import numpy as np

from dpveil.regions.finder import Finder, Seen
from dpveil.video.facts import Facts, Frame
from dpveil.video.tracks.frame_search import TrackSettings
from dpveil.video.tracks.tracker import Found, find_tracks

WIDTH, HEIGHT, FPS = 240, 160, 25
Place = tuple[float, float, float, float]
Walk = Callable[[int], Place | None]
"""The box (left, top, width, height) of a patch in a frame; None if it is not there."""


@cache
def smooth(height, width, seed, cell=4):
    """Return a texture whose parts are told apart."""
    import cv2

    coarse = np.random.default_rng(seed).integers(
        0, 256, (height // cell + 2, width // cell + 2, 3), np.uint8
    )
    return cv2.resize(coarse, (width, height), interpolation=cv2.INTER_CUBIC)


def drawn(image, place, seed):
    """Paste a patch over an image in place, at whole pixels."""
    import cv2

    x, y, w, h = (round(side) for side in place)
    patch = cv2.resize(smooth(64, 64, seed, 8), (w, h), interpolation=cv2.INTER_AREA)
    left, top, right, bottom = max(0, x), max(0, y), min(WIDTH, x + w), min(HEIGHT, y + h)
    if left < right and top < bottom:
        image[top:bottom, left:right] = patch[top - y : bottom - y, left - x : right - x]


def clip(count: int, walks: Sequence[Walk], cuts: Sequence[int] = (), over=lambda n, image: None, times=None):
    """Yield frames whose first pixel tells their number; the background changes at `cuts`."""
    for n in range(count):
        image = smooth(HEIGHT, WIDTH, 1000 + sum(n >= cut for cut in cuts)).copy()
        for seed, walk in enumerate(walks):
            if (place := walk(n)) is not None:
                drawn(image, place, seed)
        over(n, image)
        image[0, 0] = n // 256, n % 256, 0
        image.flags.writeable = False
        yield Frame(n, n if times is None else times[n], image)


class Knowing(Finder):
    """Finds what `tells` returns for a frame: walks' boxes, with what a detector adds or misses."""

    kind = "object"

    def __init__(self, tells: Callable[[int], Iterator[Seen] | Sequence[Seen]], name: str = "knowing"):
        self.tells, self.name, self.asked = tells, name, []

    @property
    def description(self):
        return self.name

    def find_in_frame(self, photo):
        n = int(photo.image[0, 0, 0]) * 256 + int(photo.image[0, 0, 1])
        self.asked.append(n)
        return list(self.tells(n))

    def __call__(self, photo):
        raise NotImplementedError


def of(walks: Sequence[Walk], *, missing=(), score: float = 0.9, sure: bool = True, noise: float = 0.0):
    """Return what tells of all walks, but for frames that are `missing`, with noise relative to the box."""

    def tells(n):
        rng = np.random.default_rng(n)
        for walk in walks:
            place = walk(n)
            if place is not None and n not in missing:
                x, y, w, h = place
                dx, dy, dw, dh = noise * rng.standard_normal(4) * (w, h, w, h)
                yield Seen("object", (x + dx, y + dy, w + dw, h + dh), score, sure)

    return tells


def facts(count: int, steps=None, base=Fraction(1, FPS)) -> Facts:
    return Facts(
        sha256="",
        format="mp4",
        codec="h264",
        width=WIDTH,
        height=HEIGHT,
        time_base=base,
        start=0,
        steps=((1, count - 1),) if steps is None else steps,
        audio=False,
    )


def tracked(
    count, walks, tells=None, *, cuts=(), over=lambda n, image: None, none_lost=False, **settings
) -> Found:
    """Return the tracks of a clip of `walks`, of which `none_lost` may be."""
    finder = Knowing(of(walks) if tells is None else tells)
    frames = clip(count, walks, cuts, over)
    exact = {name: Fraction(str(value)) for name, value in settings.items()}
    found = find_tracks(frames, facts(count), [finder], TrackSettings(**exact))
    assert not none_lost or all(track.end != "lost" for track in found.tracks)
    return found


def box_at(track, frame):
    """Return left, top, width and height in a frame on the lines between keys; None outside of the track."""
    if not track.first <= frame <= track.last:
        return None
    frames = [key.frame for key in track.keys]
    return [np.interp(frame, frames, [getattr(key, side) for key in track.keys]) for side in "xywh"]


def uncut(track, frame, place) -> float:
    """Return the share of a place inside the picture that a track's box holds."""
    box, (x, y, w, h) = box_at(track, frame), place
    if box is None:
        return 0.0
    ends = [(max(0, x), min(WIDTH, x + w)), (max(0, y), min(HEIGHT, y + h))]
    area = np.prod([stop - start for start, stop in ends])
    both = [
        max(0, min(stop, box[n] + box[n + 2]) - max(start, box[n])) for n, (start, stop) in enumerate(ends)
    ]
    return float(np.prod(both) / area)
