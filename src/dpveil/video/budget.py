"""What the draws of a clip cost: one draw for each person, from one input or divided over frames.

Throughout, neighbours are two clips that agree on everything in the clear: pixels outside the regions in
every frame, the number of frames and their times, the tracks as they show, and sound if it is kept. So they
have the same rasters and the same key frames (`key_frame`), and a clip's other choices follow from the plan.

**Once.** The raster of a person is R(c): the pixels of a clip c in the key frame, within the region there.
What is shown is g(M(R(c)), z) with the method M and everything in the clear z. *Proof.* z is the same for
neighbours, and so is g(·, z), which draws nothing more. Let a relation be one of photos, and c, c′ neighbours
with R(c), R(c′) neighbours under it: then M's guarantee holds for what is shown, as it is post-processing.
Under any-image and latent-cell these are all neighbours; under m-pixels those whose rasters differ in at most
m positions, whatever else differs in other frames, as no pixel of those is read. ∎

**Mean.** The raster is R(c)[p] = round(Σ_t c_t[p] / T) (`mean_of`), of a region that is the same in all of its T frames.
*Proof.* Levels of R(c) are 0..255. If c and c′ differ in at most m positions p, in whatever frames, then so
do R(c) and R(c′), and M's guarantee holds as above. ∎ Sums of frames are no measure: m counts positions.

**Split.** Each of a person's T frames is drawn by the same method at ε/T (or ρ/T), exactly. *Proof.* Frame t
is M_t(R_t(c)), with the raster R_t of that frame, and all M_t are independent. For c, c′ whose rasters are
neighbours in every frame (m-pixels: that differ in at most m positions of each), adaptive composition adds
the T guarantees, and T · ε/T = ε (Dwork & Roth 2014, theorem 3.16; for ρ Bun & Steinke 2016, lemma 1.7). ∎

**Several persons.** Each draw may read pixels of other regions, so the costs of all draws add.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Final, Protocol, TypeVar

import numpy as np
from jaxtyping import UInt8

from dpveil.accounting import compose
from dpveil.core.guarantee import Guarantee
from dpveil.core.origin import FACE, WHOLE
from dpveil.core.region import Box
from dpveil.errors import InvalidParameter, RegionError
from dpveil.mechanisms.method import Method
from dpveil.mechanisms.placement import Size
from dpveil.video.asked import FIXED, MEAN, SHARED, SPLIT, check_mode, draws_faces, method_for
from dpveil.video.facts import Facts
from dpveil.video.places import course_of_box
from dpveil.video.track import Key, Track

GRID: Final = 8
"""Boxes are rounded outward to multiples of so many pixels before their sizes are compared."""
YAW: Final = 20
"""Degrees between the classes of yaw by which key frames are chosen."""
UNTURNED: Final = 9
"""The class of an unknown yaw: beyond all others."""
CROP: Final[Size] = {"height": 128, "width": 128, "channels": 3}
"""The size at which methods that draw faces are asked for their guarantee, which no size changes."""
CHANNELS: Final = 3


@dataclass(frozen=True)
class Draw:
    """What is drawn for one person, from `track` in the frame of `key` where only one frame is read.

    `name` is "track 3", or "person 2" where a user says so. `method` replaces its regions; in a split it is
    the one of each frame, with its share of the budget. `raster` is the box whose pixels are read there; None
    for faces, of which a canonical crop is. `frames` are all frames with one of its `tracks`.
    """

    name: str
    tracks: tuple[Track, ...]
    track: Track
    key: Key
    method: Method
    raster: Box | None
    frames: int
    guarantee: Guarantee


class Seen(Protocol):
    """What grouping tracks by person reads of each."""

    @property
    def number(self) -> int:
        """As `Track.number`."""

    @property
    def kind(self) -> str:
        """As `Track.kind`."""

    @property
    def person(self) -> int | None:
        """As `Track.person`."""

    @property
    def visible(self) -> bool:
        """As `Track.visible`."""

    @property
    def first(self) -> int:
        """As `Track.first`."""

    @property
    def last(self) -> int:
        """As `Track.last`."""


T = TypeVar("T", bound=Seen)


def persons(tracks: Iterable[T]) -> list[tuple[T, ...]]:
    """Return the tracks that are replaced, those of one person together, in the order of their first tracks.

    Tracks without a person are persons of their own, so that each of them costs.
    """
    groups: dict[tuple[str, int], list[T]] = {}
    for track in tracks:
        if not track.visible:
            own = ("track", track.number) if track.person is None else ("person", track.person)
            groups.setdefault(own, []).append(track)
    return [tuple(group) for group in groups.values()]


def length(group: Sequence[Seen]) -> int:
    """Return the number of frames of one person's tracks, all of them together."""
    return sum(track.last - track.first + 1 for track in group)


def name_of(group: Sequence[Seen]) -> str:
    """Return what the draw of these tracks of one person is called."""
    first = group[0]
    return f"track {first.number}" if first.person is None else f"person {first.person}"


def rounded(key: Key, kind: str, facts: Facts) -> Box | None:
    """Return the box of a key rounded outward to the grid, by which keys are compared; None if none of it is
    in the picture.
    """
    if kind == WHOLE:
        return Box(0, 0, facts.width, facts.height)
    left, top = max(0, key.x // GRID * GRID), max(0, key.y // GRID * GRID)
    right = min(facts.width, -(-(key.x + key.w) // GRID) * GRID)
    bottom = min(facts.height, -(-(key.y + key.h) // GRID) * GRID)
    return Box(left, top, right - left, bottom - top) if left < right and top < bottom else None


def key_frame(group: Sequence[Track], facts: Facts, *, faces: bool) -> tuple[Track, Key]:
    """Return the key at which a person is read: of the largest size, then the least turned, then the first.

    Sizes and yaws count as classes of a public grid, and yaws for `faces` alone. No pixel is read: it is a
    function of the keys. Where a guarantee is about few pixels, it is one of rasters alone, which show.
    Raises `RegionError` if the person is outside of the picture at every key.
    """
    best: tuple[tuple[int, int, int, int], Track, Key] | None = None
    for track in group:
        for key in track.keys:
            box = rounded(key, track.kind, facts)
            if box is None:
                continue
            size = _size_class(box.w * box.h) if faces else box.w * box.h
            turned = _turned(key.yaw) if faces else 0
            rank = (-size, turned, key.frame, track.number)
            if best is None or rank < best[0]:
                best = (rank, track, key)
    if best is None:
        raise RegionError(f"{name_of(group)} is outside of the picture in every frame", hint="remove it")
    return best[1], best[2]


@lru_cache(maxsize=4096)
def _size_class(area: int) -> int:
    """Return the largest k with 1.25^(2k) ≤ `area`, exactly."""
    k = 0
    while 25 ** (k + 1) <= area * 16 ** (k + 1):
        k += 1
    return k


def _turned(yaw: int | None) -> int:
    return UNTURNED if yaw is None else (abs(yaw) + YAW // 2) // YAW


def mean_of(frames: Iterable[UInt8[np.ndarray, "h w 3"]]) -> UInt8[np.ndarray, "h w 3"]:
    """Return the mean of the same region in all frames, rounded to levels 0..255, halves upward.

    Sums are exact, and one frame is held at a time. Raises `RegionError` without a frame.
    """
    total, count = np.zeros(1, np.int64), 0
    for frame in frames:
        total, count = total + frame, count + 1
    if not count:
        raise RegionError("there is no frame to take the mean of", hint="the clip has none there")
    return ((2 * total + count) // (2 * count)).astype(np.uint8)


def size_of(box: Box | None) -> Size:
    """Return the size of a raster, or `CROP` for a face's canonical crop."""
    return CROP if box is None else {"height": box.h, "width": box.w, "channels": CHANNELS}


def share(method: Method, frames: int) -> Method:
    """Return the method that may be drawn `frames` times for the cost of one draw of this one, exactly.

    Raises `InvalidParameter` for methods whose budget does not divide (`check_mode`).

    >>> from dpveil.mechanisms.pixel import DPPix
    >>> share(DPPix(epsilon=1), 1500).epsilon
    Fraction(1, 1500)
    """
    check_mode(method, SPLIT)
    name = SHARED[method.kind]
    return method.with_budget(**{name: getattr(method, name) / frames})


def times(guarantee: Guarantee, count: int) -> Guarantee:
    """Return the cost of `count` releases with this guarantee, as `compose` adds them.

    >>> from dpveil.mechanisms.pixel import DPPix
    >>> str(times(DPPix(epsilon=1).guarantee(height=8, width=8, channels=3), 1500))
    '1500-DP, any-image'
    """
    if not guarantee.formal:
        return guarantee
    more = {n: None if (each := getattr(guarantee, n)) is None else each * count for n in ("epsilon", "rho")}
    delta = None if guarantee.delta is None else min(Fraction(1), guarantee.delta * count)
    return replace(guarantee, **more, delta=delta)


def per_draw(method: Method, kind: str, size: Size, frames: int, over_time: str) -> tuple[Method, Guarantee]:
    """Return what is drawn for regions of a kind, and what all draws of one person cost together."""
    own = method_for(method, kind)
    alone = own.guarantee(**size)
    if over_time != SPLIT or alone.free:
        return own, alone
    each = share(own, frames)
    return each, times(each.guarantee(**size), frames)


def total_of(guarantees: Sequence[Guarantee]) -> Guarantee:
    """Return the sum of the costs of draws.

    Those that are independent of what they protect add nothing to others, whatever the others' kind.
    """
    paid = [guarantee for guarantee in guarantees if not guarantee.free]
    return compose(paid or guarantees[:1])


def check_fixed(group: Sequence[Track], facts: Facts) -> None:
    """Raise `InvalidParameter` unless one person's region is the same in all frames, as a mean needs.

    Its place must be given by a user, and not by pixels: a region that moves has no mean.
    """
    boxes = {(key.x, key.y, key.w, key.h) for track in group for key in track.keys}
    if len(group) == len(boxes) == 1 and group[0].kind in FIXED:
        return
    problem = f"is for regions that stay in one place, and {name_of(group)} is none"
    hint = "take once, or whole or a box as regions"
    raise InvalidParameter("over_time", MEAN, problem, hint=hint)


def raster(key: Key, kind: str, facts: Facts, pose: str) -> Box | None:
    """Return the box that is read and replaced at a key, as `places.Scene` replaces it."""
    if kind == WHOLE:
        return Box(0, 0, facts.width, facts.height)
    return course_of_box([key], kind, pose=pose).box(key.frame, facts.width, facts.height)


def draws_of(
    tracks: Sequence[Track], method: Method, over_time: str, facts: Facts, pose: str
) -> tuple[Draw, ...]:
    """Return the draws of a clip, one for each person that is replaced; raises `RegionError`."""
    made = []
    for group in persons(tracks):
        kind, frames = group[0].kind, length(group)
        if over_time == MEAN:
            check_fixed(group, facts)
        faces = kind == FACE and draws_faces(method)
        track, key = key_frame(group, facts, faces=faces)
        box = None if faces else raster(key, track.kind, facts, pose)
        drawn, cost = per_draw(method, kind, size_of(box), frames, over_time)
        made.append(Draw(name_of(group), group, track, key, drawn, box, frames, cost))
    return tuple(made)
