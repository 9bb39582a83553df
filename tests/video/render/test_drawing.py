"""Draws of a clip: one for each person or object."""

from __future__ import annotations

import numpy as np
import pytest
from render_made import drawn_heads, image, moving, scene_of

from dpveil.errors import RegionError
from dpveil.faces.drawn_face import HeadFace
from dpveil.mechanisms.pixel import DPPix
from dpveil.noise.bits import SeededBits
from dpveil.postprocessing import parse_all
from dpveil.video.facts import Key, Track
from dpveil.video.track_draws import draw

NOISY = DPPix(epsilon=1, block=8)


def object_of(number: int = 1, kind: str = "plate") -> Track:
    keys = (Key(0, 10, 20, 40, 24), Key(10, 50, 30, 40, 24))
    return Track(number=number, kind=kind, finder="plates", keys=keys, end="end")


def test_a_raster_is_drawn_from_its_key_alone() -> None:
    scene, track = scene_of([object_of()], NOISY), object_of()
    box = scene.raster(track, 10)
    first = draw(scene, track, track.keys[1], image(10), SeededBits(1))
    other = image(10).copy()
    outside = np.ones(other.shape[:2], bool)
    outside[box.slices] = False
    other[outside] = 7
    again = draw(scene, track, track.keys[1], other, SeededBits(1))
    assert first.raster is not None
    assert again.raster is not None
    assert first.raster.shape == (box.h, box.w, 3)
    assert (first.raster == again.raster).all()
    assert (
        first.raster == NOISY.release(np.ascontiguousarray(image(10)[box.slices]), bits=SeededBits(1))
    ).all()


def test_steps_follow_a_draw() -> None:
    track = object_of()
    plain, after = (scene_of([track], NOISY, steps=tuple(parse_all(steps))) for steps in ((), ("median:5",)))
    one, two = (draw(s, track, track.keys[0], image(0), SeededBits(1)).raster for s in (plain, after))
    assert one is not None
    assert two is not None
    assert (two == parse_all(("median:5",))[0](one)).all()
    assert (one != two).any()


def test_face_methods_cover_objects_and_draw_nothing_for_them() -> None:
    track = object_of()
    scene = scene_of([track], drawn_heads())
    bits = SeededBits(1)
    made = draw(scene, track, track.keys[0], image(0), bits)
    assert made.raster is not None
    assert (made.raster == 128).all()
    assert bits.words(1) == SeededBits(1).words(1)


def test_an_object_over_a_face_is_not_read_by_its_draw() -> None:
    """The tone is read: what lies under the object must not count."""
    face, plate = (
        moving(),
        Track(number=2, kind="plate", finder="plates", keys=(Key(0, 50, 30, 60, 60),), end="end"),
    )
    scene = scene_of([face, plate], drawn_heads(attributes="tone=100", model="none"))
    light, dark = image(0).copy(), image(0).copy()
    light[30:90, 50:110], dark[30:90, 50:110] = 250, 3
    first, second = (draw(scene, face, face.keys[0], one, SeededBits(1)).face for one in (light, dark))
    assert isinstance(first, HeadFace)
    assert isinstance(second, HeadFace)
    assert first.number == second.number
    assert first.persons.tolist() == second.persons.tolist()


def test_nothing_is_drawn_of_a_track_outside_the_picture() -> None:
    track = Track(number=4, kind="text", finder="text", keys=(Key(0, 500, 20, 40, 24),), end="end")
    with pytest.raises(RegionError, match="track 4 is outside the picture in frame 0"):
        draw(scene_of([track], NOISY), track, track.keys[0], image(0), SeededBits(1))
