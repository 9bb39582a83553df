"""Rendered frames: functions of what is in the clear, of cells, and of what was drawn."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from render_made import HEIGHT, WIDTH, drawn_heads, frames, image, moving, rendered, scene_of

from dpveil.assets.trained_files import installed_path
from dpveil.core.region import Box, Region
from dpveil.faces.attributes_method import Attributes
from dpveil.faces.geometry.align import Similarity
from dpveil.mechanisms.pixel import DPPix, Fill
from dpveil.video.facts import Frame, Key, Track
from dpveil.video.frame_renderer import Renderer, Shown, Surroundings, _groups, continue_background, show
from dpveil.video.places import Scene
from dpveil.video.track_draws import Layer, Light, light_change, paint

needs_faces = pytest.mark.skipif(not installed_path("gallery"), reason="dpveil-faces is not installed")


def covered(scene: Scene, frame: Frame, seed: int) -> Frame:
    """Return a frame with other pixels wherever it is replaced."""
    hidden = scene.hidden_mask(frame.index)
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
    painted = {
        t.number: paint(
            scene, first.draws[t.number], t, covered(scene, Frame(k.frame, 0, image(k.frame)), 3).image
        )
        for t in scene.tracks
        if scene.shows_face(t)
        for k in [scene.painted_at(t)]
    }
    second = Renderer(scene, first.draws, painted)
    for frame in frames(21):
        shown = first.frame(frame)
        assert (shown == second.frame(covered(scene, frame, 9))).all()
        hidden = scene.hidden_mask(frame.index)
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
        assert (out[filled.scene.hidden_mask(frame.index)] == 9).all()
        shown.append(noisy.frame(frame)[80:112, 8:72])
    assert all((one == shown[0]).all() for one in shown)
    assert (shown[0] == noisy.draws[3].raster).all()


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
    assert (renderer.frame(Frame(10, 0, image(10)))[:10] == image(10)[:10]).all()


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
    assert (continue_background(first, box) == continue_background(second, box)).all()


def test_all_of_a_users_box_is_replaced() -> None:
    track = Track(number=1, kind="box", finder="10,40,100,16", keys=(Key(0, 10, 40, 100, 16),), end="end")
    scene = scene_of([track])
    assert scene.hidden_mask(0)[40:56, 10:110].all()


# Heads whose boxes overlap are shown together, before one background.


LEFT, MIDDLE, RIGHT, FAR = Box(0, 0, 20, 20), Box(15, 5, 20, 20), Box(30, 0, 20, 20), Box(70, 0, 9, 9)


def head(box: Box, side: float) -> Shown:
    return Shown(Region(box), Similarity(1 / side, 0.0, 0.0, 0.0), [])


def test_heads_are_in_one_group_if_others_join_them_in_any_order() -> None:
    heads = [head(LEFT, 30), head(MIDDLE, 20), head(RIGHT, 40), head(FAR, 10)]
    for order in permutations(heads):
        groups = {tuple(one.region.box for one in group) for group in _groups(order)}
        assert groups == {(MIDDLE, LEFT, RIGHT), (FAR,)}
    assert _groups([]) == []


@pytest.mark.parametrize("turned", [False, True])
def test_no_head_is_hidden_by_what_is_behind_another(turned: bool) -> None:
    """Alone, each is shown before a background of its own, which would hide the other."""
    tracks = [moving(1, at=(40, 40)), moving(2, at=(62, 44))]
    renderer = rendered(scene_of(tracks[::-1] if turned else tracks))
    frame = frames(1)[0]
    shown = renderer.frame(frame)
    spots = renderer.scene.spots(0)
    around = Surroundings(frame.image, [spot.region for spot in spots])
    heads = [renderer._place_head(s, s.region, s.head, 0) for s in spots if s.region and s.head]
    assert len(heads) == 2
    assert heads[0].region.box.overlaps(heads[1].region.box)
    together, apart = around.levels.copy(), around.levels.copy()
    show(together, around, sorted(heads, key=lambda one: (one.unit, one.region.box.y)))
    for one in heads:
        show(apart, around, [one])
    assert (shown == together).all()
    assert np.abs(shown.astype(int) - apart).max() > 20


# Painted heads: shown where the head is, and held while it is there.


@pytest.mark.parametrize("side", [32.0, 64.0, 300.0])
def test_a_layer_is_shown_where_its_head_is_at_every_size(side: float) -> None:
    picture = np.zeros((256, 256, 4), np.uint8)
    picture[96:112, 160:176] = 255
    layer = Layer(picture, 256, Light(None, 90.0))
    shown = layer.on(Similarity(1 / side, 0.0, -0.7, -0.6), Box(0, 0, 400, 400))[..., 3].astype(float)
    x, y = (float((shown.sum(axis=axis) * np.arange(400)).sum() / shown.sum()) for axis in (0, 1))
    assert x == pytest.approx(side * (168 / 256 - 0.5 + 0.7), abs=0.6)
    assert y == pytest.approx(side * (104 / 256 - 0.5 + 0.6), abs=0.6)


def test_heads_are_held_while_their_tracks_are_present() -> None:
    later = replace(moving(2), keys=tuple(Key(f, 60, 40, 30, 40) for f in range(12, 20)))
    renderer = rendered(scene_of([moving(1, last=8), later]))
    held = []
    for frame in frames(24):
        renderer.frame(frame)
        held.append({*renderer._held})
    assert [one for n, one in enumerate(held) if n == 0 or one != held[n - 1]] == [{1}, set(), {2}, set()]
    assert [n for n, one in enumerate(held) if one] == [n for n in range(24) if renderer.scene.spots(n)]


def test_where_somebody_is_lost_his_place_is_replaced_and_no_face_is_shown() -> None:
    """After a fade: whoever is drawn, the frames are the same there."""
    track = moving(1, last=10)
    held = Key(20, *(getattr(track.keys[-1], name) for name in "xywh"))
    scene = scene_of([replace(track, keys=(*track.keys, held), end="lost")])
    others = [rendered(scene, seed=seed) for seed in (1, 2)]
    alike = [np.array_equal(*(other.frame(frame) for other in others)) for frame in frames(21)]
    assert alike == [frame >= 12 for frame in range(21)]
    hidden = scene.hidden_mask(20)
    assert (others[0].frame(frames(21)[20]) != image(20))[hidden].any(axis=1).mean() > 0.9


def test_a_head_gets_lighter_with_what_is_below_it_and_darker_with_the_picture() -> None:
    dim, bright = (Light(picture=level, below=level) for level in (100.0, 170.0))
    assert light_change(dim, bright) > 0 > light_change(bright, dim)
    dim, bright = (Light(picture=level, below=None) for level in (40.0, 160.0))
    assert (light_change(dim, bright), light_change(bright, dim) < 0) == (0, True)
