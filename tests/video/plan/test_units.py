"""Units of the promise: a track, a person, an event, and how many frames an event can change."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from tests.video.plan.made import box, face, facts, plan, whole

from dpveil.errors import InvalidParameter, NoiseError
from dpveil.faces.attributes import Attributes
from dpveil.mechanisms.pixel import DPSVD, DPPix, Fill
from dpveil.video.facts import Event, Key, most_frames

NEAR = DPPix(epsilon=1, block=16, neighbourhood=16)
ALL = DPPix(epsilon=1, block=16)


def by_hand(times: list[Fraction], seconds: Fraction) -> int:
    """Return the most frames whose light can be of one interval of so many seconds, for many of them.

    The light of a frame is of the time from the frame before it to the one after it.
    """
    ends = [*times, *(time - seconds for time in times)]
    starts = {t + d for t in ends for d in (Fraction(-1, 10**6), Fraction(0), Fraction(1, 10**6))}
    before, after = [times[0] - 10**6, *times[:-1]], [*times[1:], times[-1] + 10**6]
    return max(sum(a <= s + seconds and b >= s for a, b in zip(before, after, strict=True)) for s in starts)


@pytest.mark.parametrize("seconds", ["1/100", "1/25", "1", "2.51"])
def test_an_event_changes_no_more_frames_than_stated_at_any_rate(seconds):
    rng = np.random.default_rng(11)
    steps = tuple((int(step), int(count)) for step, count in rng.integers(1, 7, (9, 2)))
    for changed in ({}, {"steps": steps, "time_base": Fraction(1, 60), "start": -7}):
        clip = facts(40, **changed)
        times = [Fraction(time) * clip.time_base for time in clip.times]
        length = Fraction(seconds)
        # an event that includes an end of the clip has no frame before or after it
        assert 0 <= most_frames(clip, length) - by_hand(times, length) <= 2


def test_frames_around_an_event_count():
    clip = facts(1500)
    assert most_frames(clip, Fraction(1)) == 26 + 2  # both ends of a second, and the light before and after
    assert most_frames(clip, Fraction(999, 1000)) == 25 + 2
    assert most_frames(clip, Fraction(1, 1000)) == 1 + 2
    assert most_frames(clip, Fraction(1000)) == 1500
    slow = facts(2, steps=((90_000 * 3600, 1),), time_base=Fraction(1, 90_000))
    assert most_frames(slow, Fraction(1)) == 2
    assert most_frames(facts(1), Fraction(1)) == 1


def test_an_event_costs_its_share_of_a_split():
    minute = facts(1500)
    asked = {"facts": minute, "request": ("whole",), "event_seconds": Fraction(1)}
    split = plan(ALL, whole(1500), over_time="split", **asked)
    assert split.quote.about_event.epsilon == Fraction(28, 1500)
    twice = plan(ALL, whole(1500), over_time="split", event_times=2, **asked)
    assert twice.quote.about_event.epsilon == Fraction(56, 1500)
    often = plan(ALL, whole(1500), over_time="split", event_times=100, **asked)
    assert often.quote.about_event.epsilon == often.total.epsilon == 1
    assert "up to 100 times and changes at most 1,500" in often.quote.about_event.scope.covers
    for mode in ("once", "mean"):
        assert plan(ALL, whole(1500), over_time=mode, **asked).quote.about_event.epsilon == 1


def test_an_event_in_two_boxes_costs_in_both():
    boxes = [box(1), box(2, x=200)]
    asked = {"request": ("32,40,64,48", "200,40,64,48"), "event_seconds": Fraction(1, 25)}
    split = plan(ALL, *boxes, over_time="split", **asked)
    assert split.quote.about_event.epsilon == 2 * Fraction(4, 100)
    assert split.units["event"]["guarantee"]["epsilon"] == 0.08
    assert split.units["event"]["frames"] == 4


def test_an_event_changes_linked_boxes_at_the_same_time():
    boxes = [box(1, person=1), box(2, x=200, person=1)]
    asked = {"request": ("32,40,64,48", "object:200,40,64,48"), "event_seconds": Fraction(1, 25)}
    split = plan(ALL, *boxes, over_time="split", **asked)
    assert split.draws[0].frames == 200
    assert split.quote.about_event.epsilon == Fraction(2 * 4, 200)
    assert split.quote.about_track.epsilon == 1  # certificates have no places: both may read one place
    long = plan(ALL, *boxes, over_time="split", **{**asked, "event_seconds": 60})
    assert long.quote.about_event.epsilon == 1


@pytest.mark.parametrize(
    ("tracks", "request_", "reason"),
    [
        ((face(1),), ("faces",), "follow from what was found"),
        ((whole(),), ("faces",), "follow from what was found"),
        ((whole(), face(2)), ("whole",), "follow from what was found"),
        ((box(), box(2, x=200, visible=True)), ("32,40,64,48",), "stays visible"),
        ((whole(60),), ("whole",), "does not last"),
    ],
)
def test_events_are_only_of_regions_that_no_pixel_chose(tracks, request_, reason):
    made = plan(ALL, *tracks, request=request_, event_seconds=Fraction(1))
    assert made.quote.about_event is None
    assert made.units["event"] is None
    assert reason in made.units["no_event"]


@pytest.mark.parametrize(
    "method", [NEAR, DPPix(epsilon=1, block=16, neighbourhood=1), DPSVD(epsilon=1, rank=2)]
)
def test_events_are_not_of_methods_that_promise_about_few_pixels(method):
    """An event changes any pixels of the regions, whatever the relation of the promise is."""
    made = plan(method, whole(), request=("whole",), event_seconds=1)
    assert made.units["event"] is None
    assert "few pixels" in made.units["no_event"]
    assert made.total.relation.name != "any-image"
    for free in (Fill(), Attributes()):
        assert plan(free, whole(), request=("whole",), event_seconds=1).units["event"] is not None


@pytest.mark.parametrize(
    ("key", "request_"),
    [
        (Key(99, 33, 40, 64, 48), ("32,40,64,48",)),
        (Key(99, 32, 40, 64, 50), ("32,40,64,48",)),
        (Key(99, 32, 40, 64, 48), ("32,40,64,50", "whole")),
        (Key(99, 32, 40, 64, 48), ("whole",)),
    ],
)
def test_events_are_only_of_boxes_that_stay_where_they_were_named(key, request_):
    """A box that was moved may follow what the clip shows, as one that flow moved did."""
    track = face(2, Key(0, 32, 40, 64, 48), key, kind="box", finder="32,40,64,48")
    with pytest.raises(InvalidParameter, match=r"event_seconds is for boxes that stay .* track 2 is none"):
        plan(ALL, whole(), track, request=request_, event_seconds=1)
    assert plan(ALL, whole(), track, request=request_).units["event"] is None


def test_a_track_costs_its_frames_of_a_split_and_a_person_all_of_them():
    one = face(1, Key(0, 100, 100, 60, 80), Key(29, 100, 100, 60, 80), person=4)
    two = face(2, Key(50, 100, 100, 60, 80), Key(59, 100, 100, 60, 80), person=4)
    other = face(3, Key(0, 300, 100, 60, 80))
    split = plan(NEAR, one, two, other, over_time="split").quote
    assert split.about_track.epsilon == 1  # that of one frame has all of its person's budget
    alone = plan(NEAR, one, two, over_time="split").quote
    assert alone.about_track.epsilon == Fraction(30, 40)
    assert alone.about_person.epsilon == 1
    assert split.about_person.epsilon == 1
    assert split.total.epsilon == 2
    once = plan(NEAR, one, two, other).quote
    assert (once.about_track.epsilon, once.about_person.epsilon, once.total.epsilon) == (1, 1, 2)


def test_faces_of_nobody_cost_nothing_and_say_what_is_in_the_clear():
    tracks = [face(1, person=1), face(2, Key(9, 300, 100, 60, 80), person=1), face(3, visible=True)]
    made = plan(Attributes(), *tracks, keep_audio=True)
    assert made.total.free
    assert made.per_frame.free
    assert made.remark == ""
    assert made.strength == "strong"
    told = " | ".join(made.in_the_clear)
    for part in (
        "where each region is in every frame, rounded to a public grid",
        "motion",
        "how many tracks there are",
        "in which it was missed",
        "every voice",
        "track 3 as it is",
        "tracks 1 and 2 show one person, as the user says",
        "tilted and turned",
        "lossy video format",
        "fields of interlaced video",
        "begins and ends, and why",
    ):
        assert part in told
    assert any("VOICES" in text for text in made.warnings)
    coarse = plan(Attributes(), face(1), pose="coarse")
    assert "tilted and turned" not in " | ".join(coarse.in_the_clear)
    assert "voice" not in " | ".join((*coarse.in_the_clear, *coarse.warnings))
    assert "photo" not in told


def test_what_was_looked_for_is_in_the_clear_whatever_was_removed_by_hand():
    """A face was found, and its track removed, or called a box: it is not true that nothing was found."""
    for track in (box(2), face(1, Key(0, 32, 40, 64, 48), Key(99, 300, 40, 61, 45), kind="box")):
        told = " | ".join(plan(NEAR, track, request=("faces",)).in_the_clear)
        assert "nothing was found" not in told
        for part in ("not rounded", "how many tracks there are", "motion", "in which it was missed"):
            assert part in told
    assert "missed" in " | ".join(plan(NEAR, whole(), face(2, visible=True)).in_the_clear)


def test_linked_tracks_that_overlap_draw_more_often_in_one_place():
    """Each of two linked tracks at one place is read by the draws of both: half would be false."""
    keys = Key(0, 100, 100, 60, 80), Key(99, 100, 100, 60, 80)
    both = plan(NEAR, face(1, *keys, person=1), face(2, *keys, person=1), over_time="split").quote
    assert both.about_track.epsilon == both.about_person.epsilon == both.total.epsilon == 1
    late = face(2, Key(75, 100, 100, 60, 80), Key(124, 100, 100, 60, 80), person=1)
    part = plan(NEAR, face(1, *keys, person=1), late, over_time="split", facts=facts(200)).quote
    assert part.about_track.epsilon == Fraction(125, 150)


@pytest.mark.parametrize(
    ("seconds", "times"), [(0, 1), (-1, 1), ("x", 1), (float("inf"), 1), (10**7, 1), (1, 0), (1, 1.5)]
)
def test_impossible_events_are_refused(seconds, times):
    with pytest.raises(InvalidParameter, match=r"event_|number"):
        Event.of(seconds, times, facts())


def test_what_cannot_be_drawn_is_raised_before_anything_is_paid():
    made = plan(DPPix(epsilon=Fraction(1, 10**12)), whole())
    with pytest.raises(NoiseError):
        made.prepare()
    plan(NEAR, face(1), whole(number=2)).prepare()
