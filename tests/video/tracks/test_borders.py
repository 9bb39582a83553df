"""Objects that the border cuts, and tracks of one object: none has two, and none is dropped."""

import numpy as np
import pytest
from moving_world import HEIGHT, WIDTH, box_at, of, tracked, uncut

from dpveil.regions.finder import Seen
from dpveil.video.tracks.box_flow import complete_box, continuations


def narrow(walk, *, least=0.3, score=0.9):
    """Return what tells the visible part of an object, once enough of it is in the picture."""

    def tells(n):
        if (place := walk(n)) is None:
            return
        x, y, w, h = place
        left, top, right, bottom = max(0, x), max(0, y), min(WIDTH, x + w), min(HEIGHT, y + h)
        if right > left and bottom > top and (right - left) * (bottom - top) >= least * w * h:
            yield Seen("object", (left, top, right - left, bottom - top), score)

    return tells


WALKS = {
    "left": lambda n: (-44 + 5 * n, 60, 40, 50),
    "right": lambda n: (244 - 5 * n, 60, 40, 50),
    "top": lambda n: (100, -54 + 5 * n, 40, 50),
    "bottom": lambda n: (100, 164 - 5 * n, 40, 50),
}


@pytest.mark.parametrize("walk", WALKS.values(), ids=WALKS)
def test_what_comes_in_over_the_border_is_one_track(walk):
    found = tracked(25, [walk], narrow(walk), every=0.2, none_lost=True)
    (track,) = found.tracks
    assert min(uncut(track, n, walk(n)) for n in range(4, 25)) > 0.88
    assert max(key.w * key.h for key in track.keys) < 1.6 * 40 * 50
    assert box_at(track, 6)[2] * box_at(track, 6)[3] > 0.8 * 40 * 50


@pytest.mark.parametrize("walk", WALKS.values(), ids=WALKS)
def test_what_goes_out_over_the_border_is_one_track_that_leaves(walk):
    def back(n):
        return walk(20 - n)

    (track,) = tracked(80, [back], narrow(back), every=0.2, gap=1, none_lost=True).tracks
    assert track.end == "left"
    assert min(uncut(track, n, back(n)) for n in range(18)) > 0.88
    assert track.last < 30
    assert track.keys[-1].w * track.keys[-1].h > 0.8 * 40 * 50


def test_what_stands_half_visible_at_the_border_and_is_found_no_more_is_held():
    def walk(n):
        return min(160 + 2 * n, 220), 60, 40, 50

    def tells(n):
        return narrow(walk)(n) if n < 46 else []

    (track,) = tracked(150, [walk], tells, every=0.2, gap=1).tracks
    assert (track.end, track.last) == ("lost", 149)


def test_two_at_the_border_keep_their_own_tracks():
    def two(n):
        return WALKS["left"](n), (-50 + 5 * n, 105, 40, 50)

    walks = [lambda n: two(n)[0], lambda n: two(n)[1]]
    found = tracked(25, walks, lambda n: [*narrow(walks[0])(n), *narrow(walks[1])(n)], every=0.2)
    assert len(found.tracks) == 2
    for walk in walks:
        assert min(max(uncut(track, n, walk(n)) for track in found.tracks) for n in range(7, 25)) > 0.88


def test_only_the_side_that_the_border_cuts_may_change():
    size, lost = (WIDTH, HEIGHT), np.array([False])

    def right(boxes, by):
        return boxes + np.array([by, 0, by, 0])

    cut, whole = np.array([[0.0, 50, 12, 90]]), np.array([[2.0, 50, 40, 92]])
    assert continuations(cut, cut, whole, lost, *size) == [(0, 0)]
    assert continuations(right(cut, 60), cut, right(whole, 58), lost, *size) == [(0, 0)]
    assert continuations(whole, whole, cut, lost, *size) == [(0, 0)]
    inner = right(cut, 60)
    assert continuations(inner, inner, right(whole, 58), lost, *size) == []
    assert continuations(inner, inner, right(inner, 6), lost, *size) == []
    assert continuations(cut, cut, np.array([[2.0, 50, 40, 130]]), lost, *size) == []
    assert continuations(cut, cut, right(whole, 9), lost, *size) == []
    assert continuations(right(whole, 60), whole, right(cut, 62), lost, *size) == []
    assert continuations(whole[:0], whole[:0], cut, lost[:0], *size) == []
    assert continuations(cut, cut, whole[:0], lost, *size) == []


def test_boxes_are_completed_outside_of_the_picture_only():
    known = np.array([100.0, 40, 140, 90])
    corner = complete_box(np.array([220.0, 0, 240, 30]), known, WIDTH, HEIGHT)
    assert corner.tolist() == [220, -20, 260, 30]
    half = complete_box(np.array([220.0, 60, 240, 85]), known, WIDTH, HEIGHT)
    assert half.tolist() == [220, 60, 240, 85]
    across = np.array([0.0, 60, 240, 85])
    assert complete_box(across, np.array([-30.0, 60, 240, 85]), WIDTH, HEIGHT).tolist() == across.tolist()
    inner = np.array([100.0, 60, 110, 85])
    assert complete_box(inner, known, WIDTH, HEIGHT).tolist() == inner.tolist()


def inside_of(walk, share=0.4):
    def part(n):
        x, y, w, h = walk(n)
        return x + 0.3 * w, y + 0.2 * h, share * w, 0.7 * h

    return part


def slow(n):
    return 30 + 1.2 * n, 50 + 0.3 * n, 44, 50


def test_a_track_that_another_one_holds_for_long_is_the_same_object():
    def tells(n):
        return of([inside_of(slow)] if n < 6 else [slow])(n)

    found = tracked(100, [slow], tells, every=0.2, none_lost=True)
    assert {track.end: track.last < 35 for track in found.tracks} == {"merged": True, "end": False}


def test_what_is_hidden_by_another_object_stays_protected():
    def still(n):
        return 100, 60, 30, 40

    def passes(n):
        return (min(-60 + 6 * n, 92), 52, 46, 56) if n < 60 else (92 + 4 * (n - 60), 52, 46, 56)

    def tells(n):
        return of([still] if n < 16 else [passes])(n)

    found = tracked(100, [still, passes], tells, every=0.2, gap=1.2)
    kept = [track for track in found.tracks if uncut(track, 0, still(0)) > 0.9]
    assert [track.last for track in kept] == [99]
