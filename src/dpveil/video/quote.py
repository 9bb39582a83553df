"""What a method guarantees for a clip, and what stays in the clear, from data that a certificate can state.

Plans state it, and reading a certificate computes it again; neither reads a pixel. A clip costs one draw for
each person, from one frame: a budget for each frame would add up to nothing.

Throughout, neighbours are two clips that agree on everything in the clear: pixels outside the regions in
every frame, the number of frames and their times, the tracks as they show, and sound if it is kept. So they
have the same rasters and the same key frames (`key_frame`), and a clip's other choices follow from the plan.

**One person.** The raster of a person is R(c): the pixels of a clip c in the key frame, within the region
there. What is shown is g(M(R(c)), z) with the method M and everything in the clear z. *Proof.* z is the same
for neighbours, and so is g(·, z), which draws nothing more. Let a relation be one of photos, and c, c′
neighbours with R(c), R(c′) neighbours under it: then M's guarantee holds for what is shown, as it is post-
processing. Under any-image and latent-cell these are all neighbours; under m-pixels those whose rasters
differ in at most m positions, whatever else differs in other frames, as no pixel of those is read. ∎

**Several persons.** Each draw may read pixels of other regions, so the costs of all draws add.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, TypeVar

from dpveil.accounting import compose
from dpveil.accounting.meaning import NONE, strength
from dpveil.core.guarantee import Guarantee, Scope
from dpveil.core.notes import Note
from dpveil.core.rationals import Json
from dpveil.core.region import Box, RegionRecord
from dpveil.core.region_origin import BOX, FACE, OBJECT, WHOLE, Origin
from dpveil.errors import InvalidParameter, RegionError
from dpveil.faces.base import FaceMethod
from dpveil.faces.geometry.protection import PROTECT_FACE, PROTECT_HEAD
from dpveil.faces.head_placement import REPLACES, STAYS
from dpveil.faces.objects_beside_faces import GREY_FILL
from dpveil.mechanisms.method import Method, Size
from dpveil.regions.given_regions import asked_box
from dpveil.release.quote import about_all
from dpveil.release.words import CHOSEN, few_pixels_warning, pure_noise, total_warnings
from dpveil.video import words
from dpveil.video.facts import FIXED, Key, Track, TrackRecord
from dpveil.video.places import Scene

CROP: Final[Size] = {"height": 128, "width": 128, "channels": 3}
"""The size at which methods that draw faces are asked for their guarantee, which no size changes."""
CHANNELS: Final = 3


def draws_faces(method: Method) -> bool:
    """Whether a method draws faces, and covers all else."""
    return isinstance(method, FaceMethod)


def check_method(method: Method) -> None:
    """Raise `InvalidParameter` for a method that is for photos alone."""
    if getattr(method, "link", False):
        raise InvalidParameter("link", None, "is for photos", hint="a track has one face in any case")


T = TypeVar("T", Track, TrackRecord)


@dataclass(frozen=True)
class Draw:
    """What is drawn for one person, from `track` in the frame of `key`.

    `name` is "track 3", or "person 2" where a user says so. `method` replaces its regions. `raster` is the
    box whose pixels are read there; None for faces, of which a canonical crop is.
    """

    name: str
    tracks: tuple[Track, ...]
    track: Track
    key: Key
    method: Method
    raster: Box | None
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


def per_draw(method: Method, size: Size | None) -> tuple[Method, Guarantee]:
    """Return what is drawn of one person, and what that costs.

    `size` is that of the raster; None for the crop of a face, which a method that draws faces replaces. Such
    a method covers all else, whatever it shows.
    """
    own = GREY_FILL if size is not None and draws_faces(method) else method
    return own, own.guarantee(**(CROP if size is None else size))


def draws_of(scene: Scene) -> tuple[Draw, ...]:
    """Return the draws of a clip, one for each person that is replaced.

    Raises `RegionError` and `InvalidParameter` for what cannot be drawn.
    """
    check_method(scene.method)
    made = []
    for group in persons(scene.tracks):
        if len({scene.shows_face(track) for track in group}) > 1:
            problem = "links a track where a face is drawn and one that is covered"
            raise InvalidParameter("person", group[0].person, problem, hint="link faces with faces")
        track, key, box = key_frame(group, scene)
        drawn, cost = per_draw(scene.method, size_of(box))
        made.append(Draw(name_of(group), group, track, key, drawn, box, cost))
    return tuple(made)


def is_given(request: str) -> bool:
    """Whether a requested region is the whole picture or a user's box, which no pixel changes."""
    try:
        return request == WHOLE or asked_box(request) is not None
    except InvalidParameter:
        return False


def clip_shows(quote: ClipQuote) -> tuple[str, ...]:
    """Return what a release shows of the original, besides what its method and its draws show."""
    found = any(track.kind not in FIXED for track in quote.tracks)
    searched = found or not all(map(is_given, quote.request))
    replaced = [track for group in quote.persons for track in group]
    throughout = [t.kind == WHOLE and (t.first, t.last) == (0, quote.frames - 1) for t in replaced]
    always = any(throughout)
    if all(throughout) and len(replaced) == len(quote.tracks):
        beside: tuple[str, ...] = (words.NOTHING,) * searched
    elif searched:
        own = any(track.kind in (BOX, OBJECT) for track in replaced)
        places = (*(words.PLACES,) * found, *(words.NOT_ROUNDED,) * own)
        beside = (*places, words.COUNT, words.MOTION, words.MISSED)
    else:
        beside = (words.GIVEN, *(words.OUTSIDE,) * (not always))
    traces = () if always and not found else (words.TRACES,)
    seen = [words.VISIBLE.format(f"track {track.number}") for track in quote.tracks if track.visible]
    linked = [
        words.LINKED.format(" and ".join(str(track.number) for track in group))
        for group in quote.persons
        if len(group) > 1
    ]
    return (words.SIZE, *beside, *traces, *seen, *linked, *((words.SOUND,) * quote.audio))


MOST_NAMED: Final = 20  # most draws that the scope of a total names
MOST_SIZES: Final = 2
"""Most sizes of rasters for which the warning of pure noise is computed, as each may take seconds."""
A_FACE: Final = RegionRecord(Box(0, 0, 1, 1), Origin(FACE, "faces", number=1, found=True, cell=(0, 0, 0, 0)))
"""A face, of which a method is asked what its place shows."""


@dataclass(frozen=True, kw_only=True)
class ClipQuote:
    """The guarantee of a clip of width × height pixels, and what of it stays in the clear.

    `sizes` are width and height of the raster of each person that is replaced, None for canonical crops.
    `audio` says that sound is kept.
    """

    method: Method
    tracks: tuple[TrackRecord, ...]
    sizes: tuple[tuple[int, int] | None, ...]
    request: tuple[str, ...]
    post_processing: tuple[str, ...]
    audio: bool
    width: int
    height: int
    frames: int

    def __post_init__(self) -> None:
        check_method(self.method)
        if len(self.sizes) != len(self.persons):
            raise InvalidParameter("draws", len(self.sizes), "are not one for each person that is replaced")

    @cached_property
    def persons(self) -> list[tuple[TrackRecord, ...]]:
        """The tracks that are replaced, by person: one draw each."""
        return persons(self.tracks)

    @cached_property
    def costs_per_person(self) -> list[tuple[Method, Guarantee]]:
        """What is drawn for each person, and what it costs."""
        return [per_draw(self.method, size) for size in self._sizes]

    @cached_property
    def guarantees(self) -> tuple[Guarantee, ...]:
        parts = zip(self.persons, self.sizes, self.costs_per_person, strict=True)
        return tuple(self._guarantee_for(group, size, *drawn) for group, size, drawn in parts)

    @cached_property
    def total(self) -> Guarantee:
        shown = dict.fromkeys(text for each in self.guarantees for text in each.scope.in_the_clear)
        covered = "; ".join(each.scope.covers for each in self.guarantees[:MOST_NAMED])
        more = len(self.guarantees) - MOST_NAMED
        covered += f"; and {more:,} more" if more > 0 else ""
        # draws that are independent of what they protect add nothing to others, whatever the others' kind
        paid = [guarantee for guarantee in self.guarantees if not guarantee.free]
        scope = Scope(covered, (*clip_shows(self), *shown))
        return replace(compose(paid or self.guarantees[:1]), scope=scope)

    @property
    def strength(self) -> str:
        return strength(self.total)

    @property
    def in_the_clear(self) -> tuple[str, ...]:
        """What the release reveals of the original, each item once."""
        return self.total.scope.in_the_clear

    @property
    def settings(self) -> dict[str, Json]:
        return {
            "method": self.method.name,
            "parameters": self.method.parameters(),
            "request": list(self.request),
            "post_processing": list(self.post_processing),
            "keep_audio": self.audio,
        }

    @property
    def accountant(self) -> str:
        """The rules by which the numbers were computed, in words."""
        chosen = self.method.calibration
        return f"{words.ACCOUNTANT}; noise calibrated by {chosen}" if chosen else words.ACCOUNTANT

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """What whoever uses the clip has to know, besides the kind of bits."""
        few = (few_pixels_warning(self.total),) if self._few_only else ()
        voices = (words.VOICES,) * self.audio
        noisy: dict[tuple[int, int], str] = {}
        for (method, _), size in zip(self.costs_per_person, self.sizes, strict=True):
            if size is not None and size not in noisy and len(noisy) < MOST_SIZES:
                noisy[size] = pure_noise(method, size[1], size[0], CHANNELS)
        loud = tuple(f"{width}×{height} pixels: {text}" for (width, height), text in noisy.items() if text)
        protects = {getattr(method, "protect", None) for method, _ in self.costs_per_person}
        stays = (Note(STAYS + REPLACES, protect=PROTECT_HEAD),) * (PROTECT_FACE in protects)
        return (*few, *map(words.of_clip, total_warnings(self.total)), *stays, *voices, *loud)

    @property
    def _sizes(self) -> list[Size | None]:
        return [None if size is None else size_of(Box(0, 0, *size)) for size in self.sizes]

    def _guarantee_for(
        self, group: Sequence[TrackRecord], size: tuple[int, int] | None, method: Method, cost: Guarantee
    ) -> Guarantee:
        shown = list(cost.scope.in_the_clear)
        if size is None:
            shown += map(words.of_clip, method.shown_by_place(A_FACE))
            shown.append(words.TURNS)
        if chosen := ", ".join(method.set_by_user):
            shown.append(CHOSEN.format(chosen))
        covered = words.covers(name_of(group), group[0].kind, length(group), size)
        return replace(cost, scope=Scope(covered, tuple(shown)))

    @cached_property
    def _few_only(self) -> bool:
        """Whether the guarantee is for few pixels, and practically none for all pixels of a region."""
        if self.total.relation.m is None or self.strength == NONE:
            return False
        parts = zip(self.costs_per_person, self._sizes, strict=True)
        rasters = [(method, size) for (method, _), size in parts if size is not None]
        if not rasters:
            return False
        method, size = max(rasters, key=lambda part: part[1]["height"] * part[1]["width"])
        about = about_all(method, method.guarantee(**size), size)
        return about is not None and strength(about) == NONE
