"""Draws of a clip: one for each subject, kept as bytes, and never again."""

from __future__ import annotations

import json
import tracemalloc
import zlib
from fractions import Fraction
from io import BytesIO
from typing import Any

import numpy as np
import pytest
from render_made import drawn_heads, image, moving, scene_of

from dpveil.core.region import Box
from dpveil.errors import DataError, InvalidParameter, RegionError
from dpveil.faces.drawn.figure import DrawnHead
from dpveil.faces.drawn.traits import drawn as person_of
from dpveil.faces.geometry.dressed import Dressed
from dpveil.mechanisms.pixel import DPPix, DPPixGaussian, Fill, MSEExponential
from dpveil.noise.bits import SeededBits
from dpveil.postprocessing import parse_all
from dpveil.video.drawing import Drawn, Mean, covered, divided, draw, draw_frame, draw_mean
from dpveil.video.drawing_file import Heads, get, read, write
from dpveil.video.layer import Layer
from dpveil.video.light import Light
from dpveil.video.places import Subject
from dpveil.video.track import Key, Track

SIZE = {"height": 64, "width": 64, "channels": 3}
NOISY = DPPix(epsilon=1, block=8)


def object_of(number: int = 1, kind: str = "plate") -> Track:
    keys = (Key(0, 10, 20, 40, 24), Key(10, 50, 30, 40, 24))
    return Track(number=number, kind=kind, finder="plates", keys=keys, end="end")


def layer() -> Layer:
    return Layer(np.arange(64 * 64 * 4, dtype=np.uint8).reshape(64, 64, 4), 64, 0, Light(None, 90.0))


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
    assert first == second


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


def test_budgets_divide_over_frames_exactly() -> None:
    part = divided(DPPix(epsilon="1/3", block=8), 7)
    assert part.guarantee(**SIZE).epsilon * 7 == Fraction(1, 3)
    rho = divided(DPPixGaussian(rho=1, block=8), 30)
    assert rho.guarantee(**SIZE).rho * 30 == 1
    for method in (Fill(), drawn_heads(), DPPixGaussian(epsilon=1, delta="1e-6", block=8)):
        with pytest.raises(InvalidParameter, match="divides exactly"):
            divided(method, 3)
    frame = draw_frame(scene_of([object_of()], NOISY), part, object_of(), 5, image(5), SeededBits(3))
    box = scene_of([object_of()], NOISY).raster(object_of(), 5)
    assert (frame == part.release(np.ascontiguousarray(image(5)[box.slices]), bits=SeededBits(3))).all()
    assert divided(MSEExponential(epsilon=2, block=8), 4).guarantee(**SIZE).epsilon == Fraction(1, 2)


def draws() -> dict[int, Drawn]:
    crop = np.arange(128 * 128 * 3, dtype=np.uint32).astype(np.uint8).reshape(128, 128, 3)
    return {
        1: Drawn(face=crop),
        2: Drawn(face=Dressed(crop[::-1].copy(), "round")),
        5: Drawn(face=DrawnHead(person_of(SeededBits(4), {}))),
        7: Drawn(raster=crop[:9, :7].copy()),
        8: covered(),
    }


def written(draws: dict[int, Drawn], heads: dict[int, Heads]) -> BytesIO:
    file = BytesIO()
    write(file, draws, heads.items())
    return file


def read_all(data: bytes) -> None:
    _, layers = read(BytesIO(data))
    for own in layers.values():
        _ = [*own.values()]


def test_what_was_drawn_is_kept_in_a_file() -> None:
    steps = tuple(parse_all(("median:3",)))
    file = written(draws(), {3: {None: layer()}, 4: {0: layer(), -2: layer()}})
    found, layers = read(file, steps)
    assert written(found, layers).getvalue() == file.getvalue()
    assert {*found} == {1, 2, 5, 7, 8}
    head = found[5].face
    assert isinstance(head, DrawnHead)
    assert head.steps == steps
    assert head.person == draws()[5].face.person
    assert isinstance(found[2].face, Dressed)
    assert found[2].face.style == "round"
    assert {*layers[4]} == {0, -2}
    assert (None in layers[3], 0 in layers[3]) == (True, False)
    assert (layers[4][-2].picture == layer().picture).all()
    assert layers[3][None].light == Light(None, 90.0)


def test_every_person_that_can_be_drawn_comes_back() -> None:
    for seed in range(200):
        one = (
            {1: Drawn(face=DrawnHead(person_of(SeededBits(seed), {"glasses": "yes"})))}
            if seed % 2
            else {1: Drawn(face=DrawnHead(person_of(SeededBits(seed), {"beard": "yes", "age": "75+"})))}
        )
        file = written(one, {})
        assert written(read(file)[0], {}).getvalue() == file.getvalue()


def test_damaged_draws_are_refused_in_one_line() -> None:
    data, rng = written(draws(), {3: {None: layer()}}).getvalue(), np.random.default_rng(7)
    size = int.from_bytes(data[-8:], "big")
    refused = 0
    for _ in range(400):
        wrong = bytearray(data)
        wrong[-1 - int(rng.integers(0, size + 8))] ^= 1 << int(rng.integers(0, 8))
        try:
            read_all(bytes(wrong))
        except DataError:
            refused += 1
    assert refused > 200
    nobody = data.replace(b'"male"', b'"mule"').replace(b'"female"', b'"femule"')
    assert nobody != data
    for wrong in (b"", nobody, data[:40], data[:-1], data + b"x", data.replace(b'"round"', b'"../x"')):
        with pytest.raises(DataError, match="damaged"):
            read_all(wrong)


@pytest.mark.parametrize(
    "change",
    [
        lambda at, size, h, w, c: [at, size, 99999999999, w, c],
        lambda at, size, h, w, c: [at, size, h + 1, w, c],
        lambda at, size, h, w, c: [at, size, h - 1, w, c],
        lambda at, size, h, w, c: [at, size - 1, h, w, c],
        lambda at, size, h, w, c: [at, size + 1, h, w, c],
        lambda at, size, h, w, c: [at, -1, h, w, c],
        lambda at, size, h, w, c: [-1, size, h, w, c],
        lambda at, size, h, w, c: [at, 1 << 62, h, w, c],
        lambda at, size, h, w, c: [1 << 62, size, h, w, c],
        lambda at, size, h, w, c: [at, size, h, w, 2],
        lambda at, size, h, w, c: [at, size, h, w],
        lambda at, size, h, w, c: [at, size, h, w, 3],
        lambda at, size, h, w, c: "picture",
    ],
)
def test_a_picture_is_read_where_it_lies_and_whole_or_not_at_all(change: Any) -> None:
    data = written({}, {3: {None: layer()}}).getvalue()
    size = int.from_bytes(data[-8:], "big")
    facts = json.loads(data[-8 - size : -8])
    facts["heads"][0]["picture"] = change(*facts["heads"][0]["picture"])
    text = json.dumps(facts).encode()
    with pytest.raises(DataError, match="damaged"):
        read_all(data[: -8 - size] + text + len(text).to_bytes(8, "big"))


def test_a_picture_that_inflates_without_end_is_not_made() -> None:
    bomb = BytesIO(zlib.compress(bytes(1 << 28), 9))
    tracemalloc.start()
    with pytest.raises(ValueError, match="data"):
        get([0, len(bomb.getvalue()), 64, 64, 4], bomb)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1 << 22
