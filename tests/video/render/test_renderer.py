"""Rendered frames: functions of what is in the clear, of cells, and of what was drawn."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from render_made import HEIGHT, WIDTH, drawn_heads, frames, image, moving, rendered, scene_of

from dpveil.assets.defaults import installed
from dpveil.core.region import Box, Region
from dpveil.errors import InvalidParameter
from dpveil.faces.attributes import Attributes
from dpveil.faces.geometry.align import Similarity
from dpveil.mechanisms.pixel import DPPix, Fill
from dpveil.noise.bits import SeededBits
from dpveil.video.budget import share
from dpveil.video.drawing import draw_frame
from dpveil.video.facts import Frame, Key, Track
from dpveil.video.painting import FREE, STEADY, Layer, Light, lit, paint
from dpveil.video.places import Scene, Subject
from dpveil.video.renderer import (
    Renderer,
    Shown,
    Surroundings,
    behind,
    enlarged,
    halvings_to,
    in_smaller,
    show,
    within,
)

needs_faces = pytest.mark.skipif(not installed("gallery"), reason="dpveil-faces is not installed")


def covered(scene: Scene, frame: Frame, seed: int) -> Frame:
    """Return a frame with other pixels wherever it is replaced."""
    hidden = scene.hidden(scene.spots(frame.index))
    noise = np.random.default_rng([seed, frame.index]).integers(0, 256, frame.image.shape)
    return replace(frame, image=np.where(hidden[..., None], noise.astype(np.uint8), frame.image))


def two() -> list[Track]:
    """Two faces that overlap, and text."""
    text = Track(
        number=3, kind="text", finder="text", keys=(Key(0, 8, 90, 60, 20), Key(20, 70, 80, 60, 20)), end="end"
    )
    return [moving(1, yaw=3), moving(2, at=(30, 30), yaw=30), text]


@pytest.mark.parametrize("protect", ["head", "box"])
def test_no_pixel_that_is_replaced_shows_in_any_frame(protect: str) -> None:
    """Also not in frames that heads are drawn and painted from: nothing is kept of them."""
    scene = scene_of(two(), drawn_heads(protect=protect))
    first = rendered(scene)
    subjects = [Subject(n, (track,), track, track.keys[0]) for n, track in enumerate(scene.tracks, 1)]
    painted = {
        t.number: paint(
            scene, first.draws[t.number], t, covered(scene, Frame(k.frame, 0, image(k.frame)), 3).image
        )
        for t in scene.tracks
        if scene.shows_face(t)
        for k in [scene.painted_at(t)]
    }
    second = Renderer(scene, subjects, first.draws, painted)
    for frame in frames(21):
        shown = first.frame(frame)
        assert (shown == second.frame(covered(scene, frame, 9))).all()
        hidden = scene.hidden(scene.spots(frame.index))
        assert (shown[~hidden] == frame.image[~hidden]).all()
        assert (shown[hidden] != frame.image[hidden]).any(axis=1).mean() > 0.9


def test_frames_are_never_written_to() -> None:
    scene = scene_of(two())
    renderer, frame = rendered(scene), frames(1)[0]
    before = frame.image.copy()
    shown = renderer.frame(Frame(0, 0, before))
    assert (before == frame.image).all()
    assert not np.shares_memory(before, shown)
    empty = Frame(50, 0, image(50))
    assert (renderer.frame(empty) == empty.image).all()
    assert not np.shares_memory(renderer.frame(empty), empty.image)


def test_a_renderer_that_begins_later_shows_the_same() -> None:
    scene = scene_of(two())
    whole, clip = (
        rendered(scene),
        [replace(f, image=(f.image * (1 - f.index / 30)).astype(np.uint8)) for f in frames(21)],
    )
    shown = [whole.frame(frame) for frame in clip]
    start, draws, layers = 14, whole.draws, whole.layers
    later = Renderer(scene, [*whole._subjects.values()], draws, layers)
    for frame in clip[start - later.memory : start]:
        later.look(frame)
    for frame in clip[start:]:
        assert (later.frame(frame) == shown[frame.index]).all()
    careless = Renderer(scene, [*whole._subjects.values()], draws, layers)
    assert any((careless.frame(frame) != shown[frame.index]).any() for frame in clip[start:])


def test_a_frame_rendered_twice_is_the_same() -> None:
    renderer = rendered(scene_of(two()))
    assert (renderer.frame(frames(1)[0]) == renderer.frame(frames(1)[0])).all()


def test_fill_reads_nothing_and_noise_is_drawn_once() -> None:
    tracks = [moving(1), two()[2]]
    filled = rendered(scene_of(tracks, Fill(level=9)))
    noisy = rendered(
        scene_of(
            [replace(two()[2], keys=(Key(0, 8, 80, 64, 32), Key(20, 8, 80, 64, 32)))],
            DPPix(epsilon=1, block=8),
        )
    )
    shown = []
    for frame in frames(21):
        out = filled.frame(frame)
        assert (out[filled.scene.hidden(filled.scene.spots(frame.index))] == 9).all()
        shown.append(noisy.frame(frame)[80:112, 8:72])
    assert all((one == shown[0]).all() for one in shown)
    assert (shown[0] == noisy.draws[1].raster).all()


def test_each_frame_is_drawn_where_the_budget_is_split() -> None:
    track = two()[2]
    part = share(DPPix(epsilon=21, block=4), 21)
    scene, asked = scene_of([track], DPPix(epsilon=21, block=4)), []

    def own(subject: Subject, track: Track, frame: Frame) -> np.ndarray:
        asked.append((subject.number, track.number, frame.index))
        return draw_frame(scene, part, track, frame.index, frame.image, SeededBits(frame.index))

    renderer = rendered(scene, own=own)
    for frame in frames(21):
        box = scene.raster(track, frame.index)
        expected = part.release(np.ascontiguousarray(frame.image[box.slices]), bits=SeededBits(frame.index))
        assert (renderer.frame(frame)[box.slices] == expected).all()
    assert asked == [(1, 3, index) for index in range(21)]


def test_the_whole_frame_is_replaced_where_a_track_says_so() -> None:
    lost = Track(
        number=2,
        kind="whole",
        finder="faces",
        keys=(Key(5, 0, 0, WIDTH, HEIGHT), Key(9, 0, 0, WIDTH, HEIGHT)),
        end="end",
    )
    renderer = rendered(scene_of([moving(1), lost]))
    for index in (5, 9):
        out = renderer.frame(Frame(index, 0, image(index)))
        assert not (out == image(index)).all(axis=2).mean() > 0.05
    assert (renderer.frame(Frame(10, 0, image(10)))[:20] == image(10)[:20]).all()


def test_what_is_missing_or_does_not_fit_is_refused() -> None:
    scene = scene_of([moving(1)])
    good = rendered(scene)
    subjects = [*good._subjects.values()]
    for draws, layers, word in (({}, good.layers, "draws"), (good.draws, {}, "layers")):
        with pytest.raises(InvalidParameter, match=f"{word} = 'track 1' is missing"):
            Renderer(scene, subjects, draws, layers)
    with pytest.raises(InvalidParameter, match="draws = 'track 1' is missing"):
        Renderer(scene, [], good.draws, good.layers)
    for wrong in (image(0)[:9], image(0).astype(np.float32), image(0)[..., :1]):
        with pytest.raises(InvalidParameter, match="is not uint8 120 × 160 × 3"):
            good.frame(Frame(0, 0, wrong))
    with pytest.raises(InvalidParameter, match="is no face"):
        paint(scene, replace(good.draws[1], face=None), scene.tracks[0], image(0))


@cache
def of_nobody() -> tuple[Renderer, Renderer]:
    """Renderers of a face of nobody that a network completes, and that turns: with and without a network."""
    tracks = [
        Track(
            number=1,
            kind="face",
            finder="faces",
            keys=tuple(Key(f, 60, 35, 30, 40, 0, -4 * f) for f in (0, 1, 10, 11)),
            end="end",
        )
    ]
    made = [Attributes(placing="box", inpainting=kind) for kind in ("default", "telea")]
    return rendered(scene_of(tracks, made[0])), rendered(scene_of(tracks, made[1]))


@pytest.mark.slow
@needs_faces
def test_a_face_of_nobody_is_completed_once_for_each_turn_and_shown_like_a_photos() -> None:
    for renderer in of_nobody():
        assert {*renderer.layers[1]} == {0, -2}
        shown = [renderer.frame(frame) for frame in frames(12)]
        track = renderer.scene.tracks[0]
        head = renderer.scene.course(track).shown(0)
        x, y = np.rint(head.back(np.array([[0.0, 0.03]]))[0]).astype(int)
        skin = shown[0][y - 4 : y + 4, x - 4 : x + 4].reshape(-1, 3).mean(axis=0)
        assert skin[0] > skin[1] > skin[2]
        for one, other, frame in zip(shown, shown[1:], range(11), strict=False):
            hidden = renderer.scene.hidden(renderer.scene.spots(frame))
            assert np.abs(one.astype(int) - other)[hidden].mean() < 20


@needs_faces
@pytest.mark.parametrize("protect", ["face", "head"])
def test_a_face_of_nobody_reads_no_pixel_that_is_replaced(protect: str) -> None:
    scene = scene_of([moving(1)], Attributes(placing="box", protect=protect))
    one = rendered(scene)
    key = scene.painted_at(scene.tracks[0])
    other = covered(scene, Frame(key.frame, 0, image(key.frame)), 3)
    painted = paint(scene, one.draws[1], scene.tracks[0], other.image)
    assert all((painted[yaw].picture == layer.picture).all() for yaw, layer in one.layers[1].items())


def test_surroundings_are_the_same_whatever_is_hidden() -> None:
    box = Box(40, 30, 50, 60)
    region = Region(box, np.random.default_rng(8).random((60, 50)) < 0.7)
    other = image(0).copy()
    other[box.slices][region.mask] = 255
    first, second = Surroundings(image(0), [region]), Surroundings(other, [region])
    for halvings in range(5):
        for one, two_ in zip(first.smaller(halvings), second.smaller(halvings), strict=True):
            assert (one == two_).all()
    assert (behind(first, box) == behind(second, box)).all()


def test_what_is_behind_goes_on_smoothly_and_is_grey_where_nothing_is_seen() -> None:
    ramp = np.broadcast_to(np.arange(WIDTH, dtype=np.uint8)[:, None], (HEIGHT, WIDTH, 3))
    box = Box(50, 30, 60, 60)
    filled = behind(Surroundings(ramp, [Region(box)]), box)
    assert np.abs(filled.astype(int) - ramp[box.slices]).max() < 14
    everything = Box(0, 0, WIDTH, HEIGHT)
    assert (behind(Surroundings(ramp, [Region(everything)]), everything) == 128).all()


def test_smaller_frames_lie_where_the_frame_does() -> None:
    part = within(Box(33, 17, 50, 40), 2, 1, (HEIGHT // 4, WIDTH // 4))
    y, x = np.mgrid[: HEIGHT // 4, : WIDTH // 4].astype(np.float32) * 4 + 1.5
    large = enlarged(np.dstack([x, y])[part.slices], part, 2, Box(33, 17, 50, 40))
    assert np.abs(large - np.stack(np.meshgrid(np.arange(33, 83), np.arange(17, 57)), axis=-1)).max() < 1e-3
    pose = Similarity(0.01, 0.3, -1.0, 0.5)
    at = np.array([[40.0, 60.0]])
    assert in_smaller(pose, 2).to((at - 1.5) / 4) == pytest.approx(pose.to(at))
    assert [halvings_to(length, 64) for length in (10, 64, 130, 700, 1e5)] == [0, 0, 1, 3, 4]


def test_light_follows_what_is_worn_and_a_fading_picture() -> None:
    bright, dim = Light(100.0, 100.0), Light(50.0, 60.0)
    assert bright.change(bright) == 0
    assert bright.change(dim) == pytest.approx(np.log(58 / 108) + STEADY)
    assert bright.change(Light(104.0, 100.0)) == 0
    assert Light(None, 100.0).change(Light(50.0, 70.0)) == 0
    assert Light(None, 100.0).change(Light(None, 10.0)) == pytest.approx(np.log(18 / 108) + FREE)
    assert Light(1.0, 1.0).change(Light(255.0, 255.0)) == pytest.approx(0.35)
    levels = np.arange(256, dtype=np.uint8).reshape(16, 16, 1)
    assert lit(levels, 0.0) is levels
    assert (lit(levels, -0.5) <= levels).all()
    assert (np.diff(lit(levels, -0.5).ravel().astype(int)) >= 0).all()


def test_heads_end_at_the_edge_of_a_region_and_not_at_that_of_the_picture() -> None:
    """A layer that is opaque everywhere: its share falls to 0 within the region, but not at the left edge."""
    layer = Layer(np.full((64, 64, 4), 255, np.uint8), 64, 0, Light(None, 90.0))
    head = Similarity(1 / 100, 0.0, -0.3, -0.5)
    region = Region(Box(0, 20, 60, 60))
    dark = Surroundings(np.zeros((HEIGHT, WIDTH, 3), np.uint8), [region])
    out = dark.levels.copy()
    show(out, dark, [Shown(region, head, [(layer, 1.0, 0.0)])])
    assert out[30:70, 0].min() == out[50, 30].max()
    assert out[50, 59].max() < out[50, 0].min()
    assert (out[:20] == 0).all()
    assert (out[80:] == 0).all()
    assert (out[:, 60:] == 0).all()


def test_all_of_a_users_box_is_replaced() -> None:
    track = Track(number=1, kind="box", finder="10,40,100,16", keys=(Key(0, 10, 40, 100, 16),), end="end")
    scene = scene_of([track])
    assert scene.hidden(scene.spots(0))[40:56, 10:110].all()
