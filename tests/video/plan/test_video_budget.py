"""What draws of clips cost, and which frame is read for each."""

from __future__ import annotations

import numpy as np
import pytest
from tests.video.plan.made import face, plan, whole

from dpveil.errors import InvalidParameter, RegionError
from dpveil.faces.attributes_method import Attributes
from dpveil.mechanisms.pixel import DPPix
from dpveil.video.facts import Key
from dpveil.video.quote import persons

FREE = Attributes()
NEAR = DPPix(epsilon=1, block=16, neighbourhood=16)


def test_linked_tracks_cost_once_and_others_add():
    tracks = [face(1), face(2, Key(50, 300, 100, 60, 80)), face(3, Key(60, 200, 200, 60, 80))]
    assert plan(NEAR, *tracks).total.epsilon == 3
    linked = [face(1, person=7), face(2, Key(50, 300, 100, 60, 80), person=7), tracks[2]]
    made = plan(NEAR, *linked)
    assert made.total.epsilon == 2
    assert [draw.name for draw in made.draws] == ["person 7", "track 3"]
    assert [len(group) for group in persons(made.tracks)] == [2, 1]


def test_a_face_is_not_linked_with_what_is_covered():
    signs = (face(1, kind="text", person=1), face(2, kind="text", finder="text", person=1))
    with pytest.raises(InvalidParameter, match="person = 1 links a track where a face is drawn"):
        plan(FREE, *signs)
    assert plan(NEAR, *signs).total.epsilon == 1


def test_visible_tracks_are_not_drawn_and_all_visible_are_refused():
    made = plan(NEAR, face(1), face(2, Key(50, 300, 100, 60, 80), visible=True))
    assert [draw.name for draw in made.draws] == ["track 1"]
    with pytest.raises(RegionError, match="no track is replaced"):
        plan(NEAR, face(1, visible=True))


def test_the_key_frame_of_pixels_is_the_largest_raster_then_the_first():
    track = face(1, Key(3, 100, 100, 60, 80), Key(9, 100, 100, 160, 180), Key(20, 100, 100, 160, 180, 0, 0))
    (draw,) = plan(NEAR, track).draws
    assert draw.key.frame == 9  # the yaw does not show, so it does not choose
    assert draw.raster == plan(NEAR, track).scene.raster(track, 9)


def test_keys_that_show_the_same_boxes_choose_the_same_frame():
    """Which frames are keys is private where it does not show: a key more on the line changes nothing."""
    rng = np.random.default_rng(5)
    for _ in range(60):
        ends = [
            Key(f, *map(int, rng.integers(0, 20, 2) * 16), *map(int, rng.integers(2, 9, 2) * 16))
            for f in (3, 35)
        ]
        few = face(1, *ends, kind="box", finder="box")
        half = [(a + b) // 2 for a, b in zip(place(ends[0]), place(ends[1]), strict=True)]
        more = face(1, ends[0], Key(19, *half), ends[1], kind="box", finder="box")
        one, other = (plan(NEAR, track) for track in (few, more))
        shown = [[made.scene.raster(made.tracks[0], f) for f in range(3, 36)] for made in (one, other)]
        assert shown[0] == shown[1]
        assert one.draws[0].key == other.draws[0].key
        areas = [box.w * box.h for box in shown[0]]
        assert one.draws[0].key.frame == 3 + areas.index(max(areas))


def place(key):
    return key.x, key.y, key.w, key.h


def test_the_key_frame_of_faces_is_the_largest_cell_then_the_least_turned_then_the_first():
    at = (200, 200, 60, 80)
    track = face(1, Key(1, *at, 0, 18), Key(5, *at, 0, 5), Key(8, *at, 0, 2), Key(30, 200, 200, 30, 40))
    (draw,) = plan(FREE, track).draws
    assert (draw.key.frame, draw.raster) == (5, None)  # 5° and 2° are of one class, and so the first
    larger = face(1, *track.keys, Key(40, 150, 150, 120, 160, 0, 60))
    assert plan(FREE, larger).draws[0].key.frame == 40
    beyond = face(1, *track.keys, Key(40, -60, 150, 120, 160, 0, 0))
    assert plan(FREE, beyond).draws[0].key.frame == 5


@pytest.mark.parametrize("method", [FREE, NEAR], ids=["faces", "pixels"])
def test_keys_within_their_cells_choose_the_same_frame(method):
    """The frame that is read is a function of what shows: neighbours agree on it."""
    rng = np.random.default_rng(3)
    at = ((1, 200, 200, 70, 90, 0, 9), (5, 210, 200, 71, 91, 0, -4), (9, 215, 220, 72, 92, 0, 3))
    chosen: dict[object, set[int]] = {}
    for moves in rng.integers(0, 3, (45, 3, 7)) * [0, 1, 1, 1, 1, 0, 2]:
        track = face(1, *(Key(*map(int, key)) for key in np.array(at) + moves))
        made = plan(method, track)
        if method is FREE:
            shown: object = made.scene.course(track).cells
        else:
            shown = tuple(str(made.scene.raster(track, key.frame)) for key in track.keys)
        chosen.setdefault(shown, set()).add(made.draws[0].key.frame)
    assert 3 <= len(chosen) <= 35
    assert all(len(frames) == 1 for frames in chosen.values())
    assert len(set.union(*chosen.values())) > 1


def test_a_person_outside_of_the_picture_is_refused():
    for method in (NEAR, FREE):
        with pytest.raises(RegionError, match="track 1 is outside of the picture"):
            plan(method, face(1, Key(0, 5000, 100, 60, 80)))


def test_methods_that_draw_faces_cover_all_else_at_no_cost():
    costly = Attributes.of({"attributes": "gender=4"})
    signs = face(2, kind="text", finder="text")
    made = plan(costly, face(1), signs, whole(number=3))
    assert [str(draw.guarantee.epsilon) for draw in made.draws] == ["4", "0", "0"]
    assert [draw.method.name for draw in made.draws] == ["attributes", "fill", "fill"]
    assert made.total.epsilon == 4
    assert [draw.raster is None for draw in made.draws] == [True, False, False]
    for draw in made.draws:
        assert made.scene.shows_face(draw.track) == (draw.raster is None)
