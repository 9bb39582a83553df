"""What a plan's owner is told to look at: slips in a plan, tracks that were lost, and what is not moving."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from made import WIDTH, box, face, facts, plan, whole

from dpveil.mechanisms.pixel import DPPix
from dpveil.mechanisms.pixel.baselines import Fill
from dpveil.video import words
from dpveil.video.facts import Key, Track
from dpveil.video.plan import VideoPlan
from dpveil.video.words import followed_span

PLAIN = (Key(0, 100, 100, 60, 80), Key(20, 180, 100, 60, 80), Key(40, 260, 100, 60, 80))
HELD = (*PLAIN, Key(90, 260, 100, 60, 80))
NOISE: Any = DPPix(epsilon=2, block=16, neighbourhood=16)


def doubts(*tracks: Track, **more: Any) -> tuple[str, ...]:
    return plan(Fill(), *tracks, **more).doubts


def moved(x: int, frame: int = 20) -> Track:
    return face(1, *(replace(key, x=x) if key.frame == frame else key for key in PLAIN))


def test_a_plain_plan_has_none() -> None:
    assert doubts(face(1, *PLAIN), box(2), cuts=(60,), found=2) == ()
    assert doubts(replace(box(1), end="left"), cuts=(60,)) == ()  # boxes go on over cuts


def test_a_slip_out_of_the_picture_is_told_alone() -> None:
    (text,) = doubts(moved(1800))
    assert text.startswith("outside of the picture")
    assert "track 1 at 0:00.80 (frame 20), with x = 1800" in text
    assert doubts(moved(WIDTH, frame=40))[0].startswith("outside")
    assert not any("outside" in text for text in doubts(moved(WIDTH - 1)))
    assert doubts(moved(-60))[0].startswith("outside")


def test_tracks_over_a_cut_and_linked_ones_at_once_are_told() -> None:
    assert "track 1 at 0:00.40 (frame 10)" in doubts(face(1, *PLAIN), cuts=(10,))[0]
    assert not doubts(face(1, *PLAIN), cuts=(41,))
    pair = face(1, *PLAIN, person=1), face(2, *PLAIN, person=1)
    assert "tracks 1 and 2 from 0:00.00 on" in doubts(*pair)[0]
    after = face(2, Key(35, 100, 100, 60, 80), Key(90, 100, 100, 60, 80), person=1)
    assert not doubts(pair[0], after)  # together for 0.2 s
    assert not any("linked" in text for text in doubts(face(1, *HELD, end="lost", person=1), after))


def test_a_release_of_one_picture_is_told() -> None:
    def still(**more: Any) -> VideoPlan:
        return plan(NOISE, whole(), request=("whole",), **more)

    (text,) = still().doubts
    assert "one picture, shown for 3.96 s" in text
    assert 'over_time="split"' in text
    assert words.draws(still().quote) == 1
    assert not still(over_time="split").doubts
    assert words.draws(still(over_time="split").quote) == 100
    assert still().doubts[0] in still().warnings
    assert not plan(NOISE, whole(1), facts=facts(1), request=("whole",)).doubts


def test_where_a_track_is_followed_leaves_out_where_it_is_held() -> None:
    assert followed_span(face(1, *HELD, end="lost")) == (0, 40)
    assert followed_span(face(1, *HELD)) == (0, 90)
    assert followed_span(face(1, Key(0, *(20, 100, 60, 80)), Key(9, 20, 100, 60, 80), *PLAIN[1:])) == (9, 40)
    assert followed_span(box(1)) == (0, 99)
