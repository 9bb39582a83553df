"""What a method guarantees for a clip, and what stays in the clear, from data that a certificate can state.

Plans state it, and reading a certificate computes it again; neither reads a pixel.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

from dpveil.accounting.meaning import NONE, strength
from dpveil.core.guarantee import Guarantee, Relation, Scope
from dpveil.core.numbers import Json, to_json
from dpveil.core.origin import BOX, FACE, OBJECT, WHOLE, Origin
from dpveil.core.region import Box, RegionRecord
from dpveil.errors import InvalidParameter
from dpveil.mechanisms.method import Method
from dpveil.mechanisms.placement import Size
from dpveil.regions.boxes import asked_box
from dpveil.release.crowd import about_all
from dpveil.release.words import CHOSEN, few_only, pure_noise, verdict
from dpveil.video import words
from dpveil.video.budget import (
    CHANNELS,
    CROP,
    frames_together,
    length,
    name_of,
    per_draw,
    persons,
    size_of,
    times,
    total_of,
)
from dpveil.video.choices import FIXED, ONCE, SPLIT, check_mode
from dpveil.video.facts import LOST, Event, TrackRecord
from dpveil.video.places import FINE
from dpveil.video.plan_checks import check_lost


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
    seen = words.visible(track.number for track in quote.tracks if track.visible)
    linked = words.link_sentences([t.number for t in group] for group in quote.persons if len(group) > 1)
    return (words.SIZE, *beside, *traces, *seen, *linked, *((words.SOUND,) * quote.audio))


MOST_NAMED: Final = 20
"""Most draws that the scope of a total names."""
MOST_SIZES: Final = 2
"""Most sizes of rasters for which the warning of pure noise is computed, as each may take seconds."""
ANY: Final = Relation("any-image")
"""The relation of promises about events, which change any number of pixels."""
HEAD: Final = RegionRecord(Box(0, 0, 1, 1), Origin(FACE, "faces", number=1, found=True, cell=(0, 0, 0, 0)))
"""A face, of which a method is asked what its place shows."""


@dataclass(frozen=True, kw_only=True)
class ClipQuote:
    """The guarantee of a clip of width × height pixels, and what of it stays in the clear.

    `sizes` are width and height of the raster of each person that is replaced, None for canonical crops.
    `audio` says that sound is kept, `event` which one the promise is stated for, if it can be.
    """

    method: Method
    tracks: tuple[TrackRecord, ...]
    sizes: tuple[tuple[int, int] | None, ...]
    request: tuple[str, ...]
    post_processing: tuple[str, ...]
    over_time: str
    pose: str
    on_lost: str
    audio: bool
    width: int
    height: int
    frames: int
    event: Event | None = None

    def __post_init__(self) -> None:
        check_mode(self.method, self.over_time)
        if len(self.sizes) != len(self.persons):
            raise InvalidParameter("draws", len(self.sizes), "are not one for each person that is replaced")
        check_lost(self.on_lost, [t.number for group in self.persons for t in group if t.end == LOST])

    @cached_property
    def persons(self) -> list[tuple[TrackRecord, ...]]:
        """The tracks that are replaced, by person: one draw each."""
        return persons(self.tracks)

    @cached_property
    def costs_per_person(self) -> list[tuple[Method, Guarantee]]:
        """What is drawn for each person, in each frame if that is a split, and what it costs in all."""
        return [
            per_draw(self.method, size, length(group), self.over_time)
            for group, size in zip(self.persons, self._sizes, strict=True)
        ]

    @cached_property
    def guarantees(self) -> tuple[Guarantee, ...]:
        """The guarantee of each draw."""
        parts = zip(self.persons, self.sizes, self.costs_per_person, strict=True)
        return tuple(self._guarantee_for(group, size, *drawn) for group, size, drawn in parts)

    @cached_property
    def total(self) -> Guarantee:
        """The composed guarantee of the clip: the sum over its draws."""
        shown = dict.fromkeys(text for each in self.guarantees for text in each.scope.in_the_clear)
        covered = "; ".join(each.scope.covers for each in self.guarantees[:MOST_NAMED])
        more = len(self.guarantees) - MOST_NAMED
        covered += f"; and {more:,} more" if more > 0 else ""
        return replace(total_of(self.guarantees), scope=Scope(covered, (*clip_shows(self), *shown)))

    @property
    def strength(self) -> str:
        """The strength of the total."""
        return strength(self.total)

    @cached_property
    def per_frame(self) -> Guarantee:
        """What the clip would cost if each frame were drawn on its own at the price of one draw."""
        costs = []
        for group, size in zip(self.persons, self._sizes, strict=True):
            _, alone = per_draw(self.method, size, 1, ONCE)
            costs.append(times(alone, length(group)))
        return replace(total_of(costs), scope=self.total.scope)

    @property
    def in_the_clear(self) -> tuple[str, ...]:
        """What the release reveals of the original, each item once."""
        return self.total.scope.in_the_clear

    @property
    def accountant(self) -> str:
        """The rules by which the numbers were computed, in words."""
        chosen = self.method.calibration
        return f"{words.ACCOUNTANT}; noise calibrated by {chosen}" if chosen else words.ACCOUNTANT

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """What whoever uses the clip has to know, besides the kind of bits."""
        few = (few_only(self.total),) if self._few_only else ()
        voices = (words.VOICES,) * self.audio
        noisy: dict[tuple[int, int], str] = {}
        for (method, _), size in zip(self.costs_per_person, self.sizes, strict=True):
            if size is not None and size not in noisy and len(noisy) < MOST_SIZES:
                noisy[size] = pure_noise(method, size[1], size[0], CHANNELS)
        loud = tuple(f"{width}×{height} pixels: {text}" for (width, height), text in noisy.items() if text)
        return (*few, *map(words.of_clip, verdict(self.total)), *voices, *loud)

    @property
    def units(self) -> dict[str, Json]:
        """The promise in each unit, with sentences for who is shown it."""
        event, why = self.about_event, self.no_event
        told: Json = None
        if event is not None and self.event is not None:
            told = self.event.to_json() | {"guarantee": event.to_json()}
        return {
            "track": self.about_track.to_json(),
            "person": self.about_person.to_json(),
            "event": told,
            "no_event": why or None,
        }

    @property
    def unit_numbers(self) -> dict[str, Json]:
        """The promise in each unit, as certificates state it; None for an event without one."""
        event = None if self.about_event is None else self.about_event.numbers()
        return {"track": self.about_track.numbers(), "person": self.about_person.numbers(), "event": event}

    @cached_property
    def about_track(self) -> Guarantee:
        """The most that any one track costs: all shares that are drawn while it is seen in a split, else its
        person's draw.
        """
        costs = [
            self._for_frames(index, frames)
            for index, group in enumerate(self.persons)
            for frames in {*frames_together(group)}
        ]
        return replace(_largest(costs, self.total), scope=Scope(words.ONE_TRACK))

    @cached_property
    def about_person(self) -> Guarantee:
        """The most that the linked tracks of any one person cost together."""
        return replace(_largest(self.guarantees, self.total), scope=Scope(words.ONE_PERSON))

    @cached_property
    def about_event(self) -> Guarantee | None:
        """What the event costs; None where regions follow from pixels, or nobody asked for one.

        An event changes so many frames, in the regions of all tracks; if it changes more, the total holds. In
        a split every track adds its share for each of these frames, also linked ones; a single draw costs all
        of it, however few of its frames are changed.
        """
        if self.event is None or self.no_event:
            return None
        changed = self.event.changed_frames(self.frames)
        costs = [self._for_frames(at, changed * len(group)) for at, group in enumerate(self.persons)]
        often = "once" if self.event.times == 1 else f"up to {self.event.times:,} times"
        seconds = to_json(self.event.seconds)
        covered = words.EVENT.format(times=often, seconds=seconds, frames=f"{changed:,}")
        return replace(total_of(costs), scope=Scope(covered))

    @property
    def no_event(self) -> str:
        """Why there is no promise about events; empty if there is one."""
        if self.event is None:
            return words.NOT_ASKED
        if not all(map(is_given, self.request)) or any(track.kind not in FIXED for track in self.tracks):
            return words.BY_PIXELS
        if not self.total.relation.implies(ANY):
            return words.FEW
        always = all(not t.visible and (t.first, t.last) == (0, self.frames - 1) for t in self.tracks)
        if not always:
            return words.NOT_ALWAYS
        boxes = [asked_box(each).box for each in self.request if each != WHOLE]
        named = {(box.w, box.h) for box in boxes} | ({None} if boxes else set())
        parts = zip(self.persons, self.sizes, strict=True)
        return "" if all(g[0].kind == WHOLE or size in named for g, size in parts) else words.NOT_NAMED

    @property
    def _sizes(self) -> list[Size | None]:
        return [None if size is None else size_of(Box(0, 0, *size)) for size in self.sizes]

    def _for_frames(self, index: int, frames: int) -> Guarantee:
        """Return what a draw costs if at most so many of its frames are changed."""
        method, cost = self.costs_per_person[index]
        if self.over_time != SPLIT or cost.free:
            return cost
        own = length(self.persons[index])
        size = self._sizes[index] or CROP
        return times(method.guarantee(**size), min(frames, own))

    def _guarantee_for(
        self, group: Sequence[TrackRecord], size: tuple[int, int] | None, method: Method, cost: Guarantee
    ) -> Guarantee:
        shown = list(cost.scope.in_the_clear)
        if size is None:
            shown += map(words.of_clip, method.shown_by_place(HEAD))
            shown += [words.TURNS] * (self.pose == FINE)
        if chosen := ", ".join(method.set_by_user):
            shown.append(CHOSEN.format(chosen))
        covered = words.covers(name_of(group), group[0].kind, length(group), size, self.over_time)
        return replace(cost, scope=Scope(covered, tuple(shown)))

    @cached_property
    def _few_only(self) -> bool:
        """Whether the guarantee is for few pixels, and practically none for all pixels of a region."""
        if self.total.relation.m is None or self.strength == NONE:
            return False
        parts = list(zip(self.costs_per_person, self._sizes, self.persons, strict=True))
        rasters = [(method, size, group) for (method, _), size, group in parts if size is not None]
        if not rasters:
            return False
        method, size, group = max(rasters, key=lambda part: part[1]["height"] * part[1]["width"])
        about = about_all(method, method.guarantee(**size), size)
        frames = length(group) if self.over_time == SPLIT else 1
        return about is not None and strength(times(about, frames)) == NONE


def _largest(costs: Sequence[Guarantee], total: Guarantee) -> Guarantee:
    """Return the guarantee with the largest numbers; the total where there are several kinds of them."""
    paid = [cost for cost in costs if not cost.free]
    if not paid:
        return costs[0]
    if len({(cost.kind, cost.relation, cost.metric) for cost in paid}) > 1:
        return total
    numbers: Any = ("epsilon", "delta", "rho", "diameter")
    return max(paid, key=lambda cost: tuple(getattr(cost, name) or 0 for name in numbers))
