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

**Mean.** The raster is R(c)[p] = round(Σ_t c_t[p] / T), of a region that is the same in all of its T frames.
*Proof.* Levels of R(c) are 0..255. If c and c′ differ in at most m positions p, in whatever frames, then so
do R(c) and R(c′), and M's guarantee holds as above. ∎ Sums of frames are no measure: m counts positions.

**Split.** Each of a person's T frames is drawn by the same method at ε/T (or ρ/T), exactly. *Proof.* Frame t
is M_t(R_t(c)), with the raster R_t of that frame, and all M_t are independent. For c, c′ whose rasters are
neighbours in every frame (m-pixels: that differ in at most m positions of each), adaptive composition adds
the T guarantees, and T · ε/T = ε (Dwork & Roth 2014, theorem 3.16; for ρ Bun & Steinke 2016, lemma 1.7). ∎

**Several persons.** Each draw may read pixels of other regions, so the costs of all draws add.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import accumulate
from typing import Any, Final, TypeVar

from dpveil.accounting import compose
from dpveil.core.guarantee import Guarantee
from dpveil.core.origin import WHOLE
from dpveil.core.region import Box
from dpveil.errors import InvalidParameter, RegionError
from dpveil.faces.objects import COVER
from dpveil.mechanisms.method import Method
from dpveil.mechanisms.placement import Size
from dpveil.video.choices import FIXED, MEAN, SHARED, SPLIT, check_mode, draws_faces
from dpveil.video.facts import Key, Track, TrackRecord
from dpveil.video.places import Scene

CROP: Final[Size] = {"height": 128, "width": 128, "channels": 3}
"""The size at which methods that draw faces are asked for their guarantee, which no size changes."""
CHANNELS: Final = 3


T = TypeVar("T", Track, TrackRecord)


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


def length(group: Sequence[Track] | Sequence[TrackRecord]) -> int:
    """Return the number of frames of one person's tracks, all of them together."""
    return sum(track.last - track.first + 1 for track in group)


def frames_together(group: Sequence[Track] | Sequence[TrackRecord]) -> list[int]:
    """Return for each of a person's tracks the frames of all of them while it is seen, each counted.

    A split draws so often while a track is seen, and any of these draws may read its region: linked tracks
    may overlap.

    >>> from types import SimpleNamespace as Track
    >>> frames_together([Track(first=0, last=9), Track(first=5, last=14), Track(first=20, last=20)])
    [15, 15, 1]
    """
    starts, ends = sorted(track.first for track in group), sorted(track.last + 1 for track in group)
    begun, ended = [0, *accumulate(starts)], [0, *accumulate(ends)]

    def frames_before(frame: int) -> int:
        """Return the number of frames of all tracks before this one."""
        one, two = bisect_right(starts, frame), bisect_right(ends, frame)
        return (one * frame - begun[one]) - (two * frame - ended[two])

    return [frames_before(track.last + 1) - frames_before(track.first) for track in group]


def name_of(group: Sequence[Track] | Sequence[TrackRecord]) -> str:
    """Return what the draw of these tracks of one person is called."""
    first = group[0]
    return f"track {first.number}" if first.person is None else f"person {first.person}"


def key_frame(group: Sequence[Track], scene: Scene) -> tuple[Track, Key, Box | None]:
    """Return the track and the key at which a person is read, and the raster there, None for a crop.

    Of faces it is the key with the largest cell, then of them the one turned least, then the first; faces
    that reach beyond the picture come last. Of all else it is the frame in which the box that is shown is
    largest, then the first: not one of the keys, as the same boxes may be shown of other keys. No pixel is
    read, and of places only what is rounded: boxes as they show, and the cells of keys. So neighbours, which
    agree on that, are read in the same frame. Raises `RegionError` if the person is outside of the picture
    everywhere.
    """
    ranked = [each for track in group for each in _rank_keys(track, scene)]
    if not ranked:
        raise RegionError(f"{name_of(group)} is outside of the picture in every frame", hint="remove it")
    _, track, key, box = min(ranked, key=lambda each: (*each[0], each[1].number))
    return track, key, box


Ranked = tuple[tuple[int, ...], Track, Key, Box | None]


def _rank_keys(track: Track, scene: Scene) -> Iterator[Ranked]:
    """Yield the keys at which a track may be read, each with its rank; none outside of the picture."""
    if scene.shows_face(track):
        for key, cell in zip(track.keys, scene.course(track).cells, strict=True):
            x, y, w, h = cell.around
            if x < scene.width and y < scene.height and x + w > 0 and y + h > 0:
                beyond = x < 0 or y < 0 or x + w > scene.width or y + h > scene.height
                yield (beyond, -cell.scale, abs(cell.yaw or 0), key.frame), track, key, None
        return
    frame = track.first
    if track.kind != WHOLE:
        size = scene.width, scene.height
        largest = scene.box_course(track).largest(track.first, track.last, *size)
        if largest is None:
            return
        frame = largest
    box = scene.raster(track, frame)
    yield (-box.w * box.h, frame), track, Key(frame, box.x, box.y, box.w, box.h), box


def size_of(box: Box | None) -> Size | None:
    """Return the size of a raster; None for a face's canonical crop."""
    return None if box is None else {"height": box.h, "width": box.w, "channels": CHANNELS}


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
    held = {"epsilon": guarantee.epsilon, "rho": guarantee.rho}
    more: dict[str, Any] = {n: None if number is None else number * count for n, number in held.items()}
    delta = None if guarantee.delta is None else min(Fraction(1), guarantee.delta * count)
    return replace(guarantee, **more, delta=delta)


def per_draw(method: Method, size: Size | None, frames: int, over_time: str) -> tuple[Method, Guarantee]:
    """Return what is drawn of one person, and what all of its draws cost together.

    `size` is that of the raster; None for the crop of a face, which a method that draws faces replaces. Such
    a method covers all else, whatever it shows.
    """
    own = COVER if size is not None and draws_faces(method) else method
    stated = CROP if size is None else size
    alone = own.guarantee(**stated)
    if over_time != SPLIT or alone.free:
        return own, alone
    each = share(own, frames)
    return each, times(each.guarantee(**stated), frames)


def total_of(guarantees: Sequence[Guarantee]) -> Guarantee:
    """Return the sum of the costs of draws.

    Those that are independent of what they protect add nothing to others, whatever the others' kind.
    """
    paid = [guarantee for guarantee in guarantees if not guarantee.free]
    return compose(paid or guarantees[:1])


def check_fixed(group: Sequence[Track], scene: Scene) -> None:
    """Raise `InvalidParameter` unless one person's region is the same in all frames, as a mean needs.

    Its place must be given by a user, and not by pixels: a region that moves has no mean.
    """
    track = group[0]
    still = track.kind == WHOLE or (track.kind in FIXED and scene.box_course(track).still)
    if len(group) == 1 and still:
        return
    problem = f"is for regions that stay in one place, and {name_of(group)} is none"
    hint = "take once, or whole or a box as regions"
    raise InvalidParameter("over_time", MEAN, problem, hint=hint)


def draws_of(scene: Scene, over_time: str) -> tuple[Draw, ...]:
    """Return the draws of a clip, one for each person that is replaced.

    Raises `RegionError` and `InvalidParameter` for what cannot be drawn.
    """
    check_mode(scene.method, over_time)
    made = []
    for group in persons(scene.tracks):
        if over_time == MEAN:
            check_fixed(group, scene)
        if len({scene.shows_face(track) for track in group}) > 1:
            problem = "links a track where a face is drawn and one that is covered"
            raise InvalidParameter("person", group[0].person, problem, hint="link faces with faces")
        frames = length(group)
        track, key, box = key_frame(group, scene)
        drawn, cost = per_draw(scene.method, size_of(box), frames, over_time)
        made.append(Draw(name_of(group), group, track, key, drawn, box, frames, cost))
    return tuple(made)
