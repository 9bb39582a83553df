"""What a plan's owner is told to look at: tracks that were lost, and what is not moving."""

from __future__ import annotations

from typing import Any

from made import box, face, facts, plan, whole

from dpveil.mechanisms.pixel import DPPix
from dpveil.mechanisms.pixel.common_practice import Fill
from dpveil.video.facts import Key, Track
from dpveil.video.words import followed_span

PLAIN = (Key(0, 100, 100, 60, 80), Key(20, 180, 100, 60, 80), Key(40, 260, 100, 60, 80))
HELD = (*PLAIN, Key(90, 260, 100, 60, 80))
NOISE: Any = DPPix(epsilon=2, block=16, neighbourhood=16)


def doubts(*tracks: Track, **more: Any) -> tuple[str, ...]:
    return plan(Fill(), *tracks, **more).doubts


def test_where_tracks_are_lost_merged_or_unsure_is_told() -> None:
    lost, merged, low, stays = doubts(
        face(1, *HELD, end="lost"),
        face(2, Key(0, 300, 100, 60, 80), Key(9, 300, 100, 60, 80), end="merged"),
        face(3, *PLAIN, score=0.1),
        face(4, *HELD, end="lost", visible=True),
        face(5, Key(9, 300, 100, 60, 80), Key(99, 300, 100, 60, 80), visible=True),
    )
    assert "0:01.60 (track 1, held)" in lost
    assert "0:00.36 (track 2)" in merged
    assert "0:00.00 (track 3, 0.10)" in low
    assert stays.count("(track") == 2
    assert "0:01.60 (track 4)" in stays
    assert "0:00.36 (track 5)" in stays


def test_a_release_of_one_picture_is_told() -> None:
    still = plan(NOISE, whole(), request=("whole",))
    (text,) = still.doubts
    assert "one picture, shown for 3.96 s" in text
    assert text in still.warnings
    assert not plan(NOISE, whole(1), facts=facts(1), request=("whole",)).doubts


def test_where_a_track_is_followed_leaves_out_where_it_is_held() -> None:
    assert followed_span(face(1, *HELD, end="lost")) == (0, 40)
    assert followed_span(face(1, *HELD)) == (0, 90)
    assert followed_span(face(1, Key(0, *(20, 100, 60, 80)), Key(9, 20, 100, 60, 80), *PLAIN[1:])) == (9, 40)
    assert followed_span(box(1)) == (0, 99)
