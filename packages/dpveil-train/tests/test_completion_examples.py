"""Examples of hair from training photos: needs torch and onnx, and is skipped without them."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

from completion_made import PLAN, drawn, heads, trainer
from dpveil.faces.geometry.hair import Hair, features
from dpveil.faces.geometry.layout import BACKGROUND, CLOTHES, HAIR, SKIN
from dpveil_train.completion.hair import GROUPS, colours, grouped, hair_of, ratio, usable
from dpveil_train.completion.scenes import STORED, Jitter, example_of
from dpveil_train.completion.trainer import Trainer


def test_hair_is_measured_darker_where_it_is_darker() -> None:
    """Constants alone, as all faces are alike: black hair beside grey faces."""
    frames = np.full((6, STORED, STORED, 4), 130, np.uint8)
    shown = np.full((6, STORED, STORED), SKIN, np.uint8)
    shown[:, :46] = HAIR
    frames[:, :46, :, :3] = 30
    wanted = np.log((30 + 8) / (130 + 8))
    assert ratio(frames[0], shown[0]) == pytest.approx(wanted, abs=0.01)
    assert ratio(frames[0], np.full_like(shown[0], SKIN)) is None
    assert colours(frames, shown)[:, -1] == pytest.approx(wanted, abs=0.01)


def test_an_example_tells_of_hair_and_skin_in_any_light_and_not_of_clothes_or_the_face() -> None:
    random = torch.Generator().manual_seed(0)
    levels, oval = 0.1 + 0.3 * torch.rand(1, 3, 8, 8, generator=random), torch.zeros(1, 1, 8, 8)
    layout = torch.zeros(1, 4, 8, 8)
    for column, one in enumerate((BACKGROUND, HAIR, SKIN, CLOTHES)):
        layout[:, one, :, 2 * column : 2 * column + 2] = 1
    oval[..., 4:6, 4:6] = 1
    example = example_of(levels, layout, oval)
    assert (example[:, 3:] == layout * (1 - oval)).all()
    assert not example[:, :3][(layout[:, HAIR] + layout[:, SKIN] == 0)[:, None].expand(-1, 3, -1, -1)].any()
    assert not example[..., 4:6, 4:6].any()
    lighter = example_of(2 * levels + 8 / 255, layout, oval)
    assert torch.allclose(lighter, example, atol=1e-5)
    changed = levels.clone()
    changed[..., 0, 2] *= 0.5
    assert ((example_of(changed, layout, oval) - example)[:, :3] < -0.1).any()


def test_the_example_of_another_photo_is_turned_alike() -> None:
    maker = trainer().maker
    for number in (1, 22, 42):
        for mirrored in (False, True):
            tries = np.array([2, 12, 21, 33, 41])
            found, at = maker._alike(number, Jitter(mirrored=mirrored), tries, [0.5] * 4)
            wanted = maker.yaws[number] * (-1 if mirrored else 1)
            way = -1 if at.mirrored else 1
            assert (
                abs(way * maker.yaws[found] - wanted)
                == np.abs(np.abs(maker.yaws[tries]) - np.abs(maker.yaws[number])).min()
            )
    scenes = maker.random(8, 0, 3)
    assert scenes.swapped.tolist() == 3 * [True] + 5 * [False]
    assert (scenes.other[3:] == scenes.layout[3:]).float().mean() > 0.5


def test_a_painter_is_missed_by_the_look_of_another_colour() -> None:
    """Where critics judge alone, the encoder has to find the look again that was to be painted."""
    made = trainer()
    scenes = made.maker.random(4, 0, 4)
    with torch.no_grad():
        look = made.looks(scenes.example).float()
        others = dataclasses.replace(scenes, layout=scenes.layout)
        missed = made._same(others, torch.rand_like(scenes.truth), scenes.layout, look)
        nothing = made._same(others, scenes.truth, scenes.layout, look)
        same = example_of((scenes.truth + 1) / 2, scenes.layout, scenes.oval)
        own = made._same(others, scenes.truth, scenes.layout, made.looks(same).float())
    assert float(own) < 0.02 < float(nothing)
    assert float(missed) > 0.02


def test_photos_that_show_a_whole_head_may_be_examples() -> None:
    frame, layout = drawn(False, other=False)
    frames = np.repeat(np.dstack([frame, np.full(layout.shape, 255, np.uint8)])[None], 6, axis=0)
    shown = np.repeat(layout[None], 6, axis=0)
    turns = np.zeros((6, 2), np.float32)
    frames[1, 100, 100, 3] = 128
    shown[2] = drawn(False)[1]
    turns[3, 1] = 25
    shown[4][shown[4] == HAIR] = SKIN
    frames[5, 100, 100, 3], turns[5, 0] = 128, 30
    assert usable(frames, shown, turns).tolist() == [True, False, False, False, False, True]


def test_groups_are_of_layouts_that_are_alike_and_suit_the_faces_that_wear_them() -> None:
    frames, shown = heads()
    hidden = drawn(False)[1]
    groups, likely = grouped(np.concatenate([frames, frames[:1]]), np.concatenate([shown, hidden[None]]))
    assert set(groups[:80:2]) & set(groups[1:80:2]) == set()
    assert groups[80] in groups[1:80:2], "short hair, though not all of it is known"
    for number in range(4):
        seen = features(np.asarray(frames[number, 6:186, 6:186, :3], np.float32))
        best = int((likely[:, :-1] @ seen + likely[:, -1]).argmax())
        assert best in groups[number % 2 : 80 : 2]
    assert likely.shape == (GROUPS, len(seen) + 1)


def test_examples_are_made_of_a_training() -> None:
    frames, shown = heads()
    turns = np.zeros((80, 2), np.float32)
    turns[60:, 0] = 30
    faces = np.empty((0, 128, 128, 3), np.uint8)
    made = Trainer(dataclasses.replace(PLAN, side=64), frames, np.arange(80), faces, shown, turns[:, 0])
    hair = hair_of(made, frames, shown, turns)
    assert (np.abs(hair.yaws) == 30).sum() == 11
    assert (hair.yaws == 0).sum() == 46
    assert len(set(hair.groups.tolist())) > 2
    again = Hair.of_arrays(hair.tensors())
    assert np.abs(again.looks - hair.looks).max() < 0.08
    beside = hair.styles[:, HAIR, 12, 5]
    assert beside.max() > 0.5 > -0.5 > beside.min()
