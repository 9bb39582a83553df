"""The first pass over a clip: its tracks are found, and a plan quotes what replacing them costs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any, Final

from dpveil.core.photo import Photo
from dpveil.core.region_origin import WHOLE
from dpveil.errors import ClipError, InvalidParameter, NoRegion
from dpveil.io.names import show_path
from dpveil.mechanisms.method import Method
from dpveil.postprocessing import Step, parse_all
from dpveil.regions import Finder, Spec, check_if_none
from dpveil.regions.faces import Faces
from dpveil.regions.finder import Selection
from dpveil.regions.given_regions import GivenMask, GivenRegion
from dpveil.regions.spec import last_of
from dpveil.release.plan import choose_method
from dpveil.video.decoding import MAX_PIXELS
from dpveil.video.facts import LONGEST_NAME, Facts, Key, Track, check_name
from dpveil.video.plan import VideoPlan
from dpveil.video.quote import check_method
from dpveil.video.reading import Clip, open_clip
from dpveil.video.tracks.frame_search import LONG_SIDE, TrackSettings
from dpveil.video.tracks.tracker import Found, find_tracks

ANALYZING: Final = "analyzing"
Progress = Callable[[str, int, int], None]
"""Called with a stage, how many of its frames are done, and how many there are."""


FOUND: Final[dict[object, Found]] = {}
"""What was found last, by clip and search, so that several plans of one clip search it once."""


def no_progress(stage: str, done: int, of: int) -> None:
    """Show no progress."""


def analyze(
    clip: str | Path,
    method: str | Method | None = None,
    *,
    regions: Spec | Sequence[Spec] | None = None,
    if_none: str | None = None,
    keep: Collection[int] = (),
    link: Sequence[Collection[int]] = (),
    every: object = None,
    post_processing: Sequence[str | Step] | str | Step = (),
    at_least: str | None = None,
    max_pixels: int = MAX_PIXELS,
    progress: Progress = no_progress,
    keep_audio: bool = False,
    **parameters: Any,
) -> VideoPlan:
    """Return how `method` will treat a clip: its tracks and guarantees. Draws and spends nothing.

    `method`, `parameters` and `regions` are as in `dpveil.plan`. Frames are searched at least `every` so many
    seconds. Tracks of `keep` stay as they are; those of each group in `link` are one person. What one choice
    of regions does not find is passed over where another finds something; with `if_none` "whole" or
    "others+whole", the whole clip is replaced if nothing is found. All else is as in `VideoPlan` and
    `TrackSettings`. Raises errors of `dpveil.errors`.
    """
    name = name_of(clip)
    made_by, finders = choose_method(method, regions, parameters)
    check_method(made_by)
    searched: dict[str, Any] = {} if every is None else {"every": every}
    settings = TrackSettings(**searched)
    opened = open_clip(clip, max_pixels=max_pixels)
    found = clip_tracks(opened, made_by, finders, settings, if_none, progress)
    keep = (*keep, *stay_by_request(finders[0].description, [track.number for track in found.tracks]))
    made = VideoPlan(
        clip=name,
        facts=opened.facts,
        method=made_by,
        tracks=arrange_tracks(found.tracks, keep, link),
        cuts=found.cuts,
        request=tuple(finder.description for finder in finders),
        keep_audio=keep_audio,
        post_processing=tuple(parse_all(post_processing)),
    )
    made.check_strength(at_least)
    return made


def stay_by_request(request: str, tracks: Sequence[int]) -> tuple[int, ...]:
    """Return the numbers of the tracks that stay, of all `tracks`, as a request for faces says.

    Raises `InvalidParameter` for a number that no track has.

    >>> stay_by_request("faces only=2", [1, 2, 3]), stay_by_request("faces except=2", [1, 2, 3])
    ((1, 3), (2,))
    """
    chosen = Selection.of(request)
    if chosen is None or not (named := chosen.only or chosen.exclude):
        return ()
    for number in named:
        if number not in tracks:
            hint = f"dpveil faces numbers 1 to {max(tracks, default=0)} in this clip"
            raise InvalidParameter("only" if chosen.only else "exclude", number, "is nobody", hint=hint)
    return tuple(number for number in tracks if (number in named) != bool(chosen.only))


def name_of(clip: str | Path) -> str:
    """Return a clip's name, without its folder, for a plan; raises `ClipError` if no plan can have it."""
    try:
        return check_name(Path(clip).name)
    except InvalidParameter as error:
        hint = f"rename it, to one of at most {LONGEST_NAME} printable characters without a backslash"
        raise ClipError(f"the name of {show_path(clip)} cannot be written into a plan", hint=hint) from error


def clip_tracks(
    clip: Clip,
    method: Method,
    finders: Sequence[Finder],
    settings: TrackSettings,
    if_none: str | None,
    progress: Progress = no_progress,
) -> Found:
    """Return the tracks of a clip; raises `NoRegion` if there is none, unless `if_none` says whole."""
    facts = clip.facts
    if (last := last_of(check_if_none(if_none))) == "copy":
        hint = "write whole, or leave it out: a clip without a region is refused"
        raise InvalidParameter("if_none", if_none, "is not for clips", hint=hint)
    for finder in finders:
        if isinstance(finder, Faces) and (finder.only or finder.exclude) and len(finders) > 1:
            # Tracks of all kinds are numbered together.
            name, hint = "only" if finder.only else "exclude", "or dpveil video analyze --keep chooses tracks"
            raise InvalidParameter(name, None, "goes with faces alone in clips", hint=hint)
        ready = finder.region.mask if isinstance(finder, GivenRegion) else None
        if isinstance(finder, GivenMask) or ready is not None:
            hint = "give boxes, such as 40,52,112,112, or whole"
            raise InvalidParameter("regions", None, "are a mask, and masks are for photos", hint=hint)
        finder.prepare()

    def step(done: int) -> None:
        progress(ANALYZING, done, facts.frames)

    given, searching = _given_tracks(clip, finders), [finder for finder in finders if finder.data_dependent]
    if not searching:
        return Found(given)
    # who is to stay changes no track
    every = [replace(each, only=(), exclude=()) if isinstance(each, Faces) else each for each in searching]
    seen = (each.for_frames(facts.width, facts.height, LONG_SIDE).description for each in every)
    key = facts.sha256, facts.steps, settings, *seen
    try:
        if key not in FOUND:
            found = find_tracks(clip.frames(), facts, every, settings, step)
            FOUND.clear()
            FOUND[key] = found
        found = FOUND[key]
    except NoRegion:
        if last is None:
            raise
        keys = _keys_throughout(facts, (0, 0, facts.width, facts.height))
        whole = Track(number=1, kind=WHOLE, finder=WHOLE, keys=keys, end="end")
        return Found((whole,))
    more = len(given)
    tracks = (*given, *(replace(track, number=track.number + more) for track in found.tracks))
    return Found(tracks, found.cuts)


def _given_tracks(clip: Clip, finders: Sequence[Finder]) -> tuple[Track, ...]:
    # No pixel changes these: they are the same from the first frame to the last, whatever is cut, so that
    # each is drawn once.
    facts = clip.facts
    fixed = {finder.description: finder for finder in finders if not finder.data_dependent}.values()
    if not fixed:
        return ()
    (first,) = clip.frames(0, 1)
    photo, tracks = Photo(first.image), list[Track]()
    for finder in fixed:
        for one in finder.for_frames(facts.width, facts.height, LONG_SIDE).find_in_frame(photo):
            keys = _keys_throughout(facts, one.box)
            n, name = len(tracks) + 1, finder.description
            tracks.append(Track(number=n, kind=one.kind, finder=name, keys=keys, end="end"))
    return tuple(tracks)


def _keys_throughout(facts: Facts, box: Sequence[float]) -> tuple[Key, ...]:
    x, y, w, h = (round(side) for side in box)
    return tuple(Key(frame, x, y, w, h) for frame in dict.fromkeys((0, facts.frames - 1)))


def arrange_tracks(
    tracks: Sequence[Track], keep: Collection[int] = (), link: Sequence[Collection[int]] = ()
) -> tuple[Track, ...]:
    """Return tracks of which those to `keep` are visible, and those of each `link` one person's.

    Raises `InvalidParameter` for numbers that no track has, and for tracks that are linked twice.
    """
    known = {track.number: track for track in tracks}
    linked = [number for group in link for number in group]
    for name, given in (("keep", keep), ("link", linked)):
        for number in given:
            if number not in known:
                hint = f"there are tracks 1 to {max(known)}" if known else "there are no tracks"
                raise InvalidParameter(name, number, "is no track", hint=hint)
    if len(set(linked)) < len(linked):
        twice = next(number for number in linked if linked.count(number) > 1)
        hint = "name all tracks of one person together"
        raise InvalidParameter("link", twice, "is linked twice", hint=hint)
    used = max((track.person or 0 for track in tracks), default=0)
    for person, group in zip(count(used + 1), link, strict=False):
        people = {known[number].person for number in group} - {None}
        for number, track in known.items():
            if number in group or track.person in people:
                known[number] = replace(track, person=person)
    for number in keep:
        known[number] = replace(known[number], visible=True)
    return tuple(known.values())
