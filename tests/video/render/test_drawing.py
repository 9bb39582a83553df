"""Draws of a clip: one for each subject, kept as bytes, and never again."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from render_made import drawn_heads, image, moving, scene_of

from dpveil.core.region import Box
from dpveil.errors import RegionError
from dpveil.faces.geometry.align import Frame
from dpveil.faces.released import CropFace, HeadFace
from dpveil.mechanisms.pixel import DPPix
from dpveil.noise.bits import SeededBits
from dpveil.postprocessing import parse_all
from dpveil.video.drawing import Drawn, Mean, cover_draw, draw, draw_mean, read_draws, write_draws
from dpveil.video.facts import Key, Track
from dpveil.video.places import Subject

NOISY = DPPix(epsilon=1, block=8)


def object_of(number: int = 1, kind: str = "plate") -> Track:
    keys = (Key(0, 10, 20, 40, 24), Key(10, 50, 30, 40, 24))
    return Track(number=number, kind=kind, finder="plates", keys=keys, end="end")


def test_a_raster_is_drawn_from_its_key_alone() -> None:
    scene, track = scene_of([object_of()], NOISY), object_of()
    subject = Subject(1, (track,), track, track.keys[1])
    box = scene.raster(track, 10)
    first = draw(scene, subject, image(10), SeededBits(1))
    other = image(10).copy()
    outside = np.ones(other.shape[:2], bool)
    outside[box.slices] = False
    other[outside] = 7
    again = draw(scene, subject, other, SeededBits(1))
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
    one, two = (
        draw(s, Subject(1, (track,), track, track.keys[0]), image(0), SeededBits(1)).raster
        for s in (plain, after)
    )
    assert one is not None
    assert two is not None
    assert (two == parse_all(("median:5",))[0](one)).all()
    assert (one != two).any()


def test_face_methods_cover_objects_and_draw_nothing_for_them() -> None:
    track = object_of()
    scene = scene_of([track], drawn_heads())
    bits = SeededBits(1)
    made = draw(scene, Subject(1, (track,), track, track.keys[0]), image(0), bits)
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
    subject, light, dark = Subject(1, (face,), face, face.keys[0]), image(0).copy(), image(0).copy()
    light[30:90, 50:110], dark[30:90, 50:110] = 250, 3
    first, second = (draw(scene, subject, one, SeededBits(1)).face for one in (light, dark))
    assert isinstance(first, HeadFace)
    assert isinstance(second, HeadFace)
    assert first.number == second.number
    assert first.persons.tolist() == second.persons.tolist()


def test_nothing_is_drawn_of_a_track_outside_the_picture() -> None:
    track = Track(number=4, kind="text", finder="text", keys=(Key(0, 500, 20, 40, 24),), end="end")
    with pytest.raises(RegionError, match="track 4 is outside the picture in frame 0"):
        draw(scene_of([track], NOISY), Subject(1, (track,), track, track.keys[0]), image(0), SeededBits(1))


def test_means_are_exact_and_round_halves_upwards() -> None:
    rng = np.random.default_rng(6)
    stack = rng.integers(0, 256, (7, 12, 16, 3)).astype(np.uint8)
    mean = Mean(Box(3, 2, 5, 6))
    for one in stack:
        mean.add(one)
    exact = [
        [Fraction(int(v), 7) for v in row] for row in stack[:, 2:8, 3:8].sum(axis=0, dtype=int).reshape(-1, 3)
    ]
    assert mean.raster.reshape(-1, 3).tolist() == [[int(v + Fraction(1, 2)) for v in row] for row in exact]
    half = Mean(Box(0, 0, 1, 1))
    for level in (4, 5):
        half.add(np.full((1, 1, 3), level, np.uint8))
    assert half.raster.tolist() == [[[5, 5, 5]]]
    with pytest.raises(RegionError, match="no frame"):
        _ = Mean(Box(0, 0, 1, 1)).raster


def test_a_mean_changes_where_frames_do_and_nowhere_else() -> None:
    one, other = Mean(Box(0, 0, 9, 9)), Mean(Box(0, 0, 9, 9))
    for frame in range(5):
        first, second = image(frame)[:9, :9], image(frame)[:9, :9].copy()
        second[4, frame % 2] = 0
        one.add(first)
        other.add(second)
    differ = np.argwhere((one.raster != other.raster).any(axis=2))
    assert {tuple(at) for at in differ.tolist()} <= {(4, 0), (4, 1)}
    track = object_of()
    drawn = draw_mean(scene_of([track], NOISY), one, SeededBits(1)).raster
    assert drawn is not None
    assert (drawn == NOISY.release(one.raster, bits=SeededBits(1))).all()


def draws() -> dict[int, Drawn]:
    crop = np.arange(128 * 128 * 3, dtype=np.uint32).astype(np.uint8).reshape(128, 128, 3)
    heads = drawn_heads().gallery.held
    return {
        1: Drawn(face=CropFace(crop, Frame(128))),
        2: Drawn(face=HeadFace(heads, np.arange(3), 2**64 - 1)),
        5: Drawn(face=HeadFace(heads, np.array([4]), 7, -20)),
        7: Drawn(raster=crop[:9, :7].copy()),
        8: cover_draw(),
    }


def test_what_was_drawn_is_kept_in_a_file(tmp_path: Path) -> None:
    steps = tuple(parse_all(("median:3",)))
    for there in (draws(), {}):
        with (tmp_path / "draws").open("wb") as file:
            write_draws(file, there)
        found = read_draws(tmp_path / "draws", drawn_heads(), steps)
        assert {*found} == {*there}
    with (tmp_path / "draws").open("wb") as file:
        write_draws(file, draws())
    found = read_draws(tmp_path / "draws", drawn_heads(), steps)
    crop, head, turned, raster, plain = found.values()
    assert (crop.face.picture == draws()[1].face.picture).all()
    for one, number in ((head.face, 2), (turned.face, 5)):
        own = draws()[number].face
        assert (one.number, one.own_yaw, one.steps) == (own.number, own.own_yaw, steps)
        assert one.persons.tolist() == own.persons.tolist()
    assert (raster.raster == draws()[7].raster).all()
    assert (plain.raster == cover_draw().raster).all()
