"""Training of the network that completes heads: needs torch and onnx, and is skipped without them."""

from __future__ import annotations

import copy
import dataclasses
from pathlib import Path

import numpy as np
import pytest
import torch
from hair_made import flat_hair

from completion_made import PLAN, drawn, layouts, photos, trainer, yaws
from dpveil.assets import Card
from dpveil.errors import ModelError
from dpveil.faces.geometry.completion import PLANES
from dpveil.faces.geometry.head_frame import in_head, pixel_grid
from dpveil.faces.geometry.layout import BACKGROUND, CLOTHES, HAIR, LOOK, SKIN
from dpveil_train.completion.__main__ import given, lost, measured, run
from dpveil_train.completion.frames import wedges
from dpveil_train.completion.layouts import layout_of
from dpveil_train.completion.network import UNKNOWN, laid_out, sharpened
from dpveil_train.completion.scenes import STORED, Jitter, Maker, cut, in_blocks, soft
from dpveil_train.completion.trainer import Plan, Trainer, completion_of
from dpveil_train.networks import exported, halved, read_checkpoint, write_checkpoint


def test_a_training_that_was_taken_up_is_the_one_that_was_not_stopped(tmp_path: Path) -> None:
    first, other = trainer(), trainer()
    losses = [first.step() for _ in range(4)]
    assert "critic" in losses[-1]
    assert "critic" not in losses[0]
    for _ in range(2):
        other.step()
    write_checkpoint(other, tmp_path / "checkpoint.pt", "key")
    again = trainer()
    read_checkpoint(again, tmp_path / "checkpoint.pt", "key")
    assert [again.step() for _ in range(2)] == losses[2:]
    for one, two in zip(first.mean.parameters(), again.mean.parameters(), strict=True):
        assert torch.equal(one, two)


def test_it_learns_to_paint_one_colour(tmp_path: Path) -> None:
    plan = Plan(steps=30, batch=4, side=64, critic_from=1.0, average=0.5)
    flat = np.full((24, STORED, STORED, 4), (180, 90, 60, 255), np.uint8)
    made = Trainer(plan, flat, np.arange(24), np.empty((0, 128, 128, 3), np.uint8), layouts(24), yaws(24))
    before = measured(made)
    lines: list[str] = []
    run(made, tmp_path, minutes=5, log=lines.append)
    after = measured(made)
    name = "mean error of what is painted, in levels"
    assert after[name] < 0.5 * before[name]
    assert lines
    assert (tmp_path / "checkpoint.pt").is_file()


def test_scenes_show_the_network_nothing_of_what_is_hidden() -> None:
    maker = trainer().maker
    scenes = maker.random(8, 4, 2)
    assert not (scenes.known * scenes.hidden).any()
    assert ((scenes.oval * scenes.hidden) == scenes.oval).all()
    nothing = (scenes.known == 0) & (scenes.oval == 0)
    assert (scenes.seen[:, :3][nothing.expand(-1, 3, -1, -1)] == 0).all()
    assert scenes.own.tolist() == 4 * [True] + 4 * [False]
    inside = (scenes.face * scenes.oval)[4:]
    assert (inside != (scenes.truth * scenes.oval)[4:]).any(), "others' faces are not the photo's own"


def test_people_who_are_held_out_are_in_no_scene() -> None:
    made = trainer()
    held = set(made.held_out.tolist())
    assert held == {0, 20, 40}
    assert not held & set(made.maker.rows.tolist())


def test_blocks_hold_the_shape_and_jitters_move_it() -> None:
    grid = pixel_grid(64)
    shape = in_head(grid)
    grown = in_blocks(shape, [0.1, 0.9, 0.3, 0.6])
    assert grown[shape].all()
    assert grown.sum() > shape.sum()
    assert in_blocks(shape, [0.95, 0.9, 0.3, 0.6]) is shape
    none, dice = np.empty((0, 128, 128, 3), np.uint8), torch.Generator()
    maker = Maker(photos(2), np.arange(2), none, 64, dice, layouts(2), yaws(2))
    moved = maker.hidden(Jitter(right=0.1), 0)
    columns = [np.flatnonzero(mask.any(axis=0)).mean() for mask in (shape, moved)]
    assert columns[1] - columns[0] == pytest.approx(6.4, abs=1)
    turned = maker.hidden(Jitter(), 2)
    assert turned[maker.hidden(Jitter(), 0)].all()
    assert turned[:, :32].sum() > 1.4 * turned[:, 32:].sum(), "the back of a head that looks right is left"
    assert (maker.hidden(Jitter(mirrored=True), 2) == turned[:, ::-1]).all()


def test_wedges_are_black_and_hang_together_with_the_edge() -> None:
    image = np.full((60, 60, 3), 90, np.uint8)
    image[:15, :15] = 1
    image[30:40, 30:40] = 0
    found = wedges(image)
    assert found[:15, :15].all()
    assert not found[25:45, 25:45].any()


def test_the_exported_network_gives_in_opencv_what_it_gives_in_torch() -> None:
    """To what 16 bits of the weights allow."""
    made = trainer()
    made.step()
    network = copy.deepcopy(made.mean[0])
    with torch.no_grad():
        for weights in network.parameters():
            weights.copy_(weights.half().float())
    completion = completion_of(network, 64, Card("completion", "made by a test", "any", 0), flat_hair())
    assert len(completion.network) < 9_000_000
    seen = torch.randn(1, PLANES, 64, 64, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        wanted = network(seen).numpy()
    assert np.abs(completion._run(seen.numpy()) - wanted).max() < 1e-4


def test_in_8_bits_the_network_paints_nearly_the_same_and_can_be_trained_on() -> None:
    made = trainer()
    made.step()
    inputs = given(made, flat_hair(), held_out=False, most=4)
    whole, small = (
        completion_of(made.shipped(), made.plan.side, Card("completion", "test", "any", 0), flat_hair(), some)
        for some in ([], inputs)
    )
    assert len(small.network) < 0.6 * len(whole.network)
    exact, rounded = ([one._run(planes)[:, :3] for planes in inputs] for one in (whole, small))
    assert np.std(exact) > 0.1
    assert 0 < np.abs(np.subtract(exact, rounded)).mean() < 0.05
    assert lost(made, small) < 0.05 * 127.5
    other = trainer()
    other.begin(small.network)
    for kept, own in zip(made.shipped().parameters(), other.net.parameters(), strict=True):
        assert (own - kept).abs().max() < 0.02 * kept.abs().max() + 1e-3


@pytest.mark.parametrize("long", [False, True])
def test_a_layout_has_the_parts_of_a_drawn_head(*, long: bool) -> None:
    frame, wanted = drawn(long)
    found = layout_of(frame, wanted != BACKGROUND)
    for one in (BACKGROUND, HAIR, SKIN, CLOTHES, UNKNOWN):
        both, either = ((found == one) & (wanted == one)).sum(), ((found == one) | (wanted == one)).sum()
        assert both > 0.85 * either, (one, both, either)


def test_an_unknown_layout_is_of_no_class_and_costs_nothing() -> None:
    layout = np.array([[[BACKGROUND] * 4, [HAIR] * 4, [UNKNOWN] * 4, [UNKNOWN] * 4]], np.uint8)
    made = soft(layout)
    assert made[0, :, 3].abs().sum() == 0
    assert made[0, HAIR, 1].tolist() == pytest.approx([1 / 3] * 4)
    maker = trainer().maker
    scenes = maker.plain([1, 2], None, None)
    right = 20 * scenes.layout
    assert float(laid_out(scenes, right)) < 0.2
    assert float(laid_out(scenes, -right)) > 5
    nothing = dataclasses.replace(scenes, layout=torch.zeros_like(scenes.layout))
    assert float(laid_out(nothing, -right)) == 0
    sharp = sharpened(right)
    assert sharp.sum(dim=1).allclose(torch.ones(()))


def test_a_training_begins_from_an_exported_network() -> None:
    own, other = trainer(), trainer(dataclasses.replace(PLAN, seed=2))
    size = other.plan.side
    takes = (1, PLANES, size, size)
    bits = torch.Generator().manual_seed(0)
    with torch.no_grad():  # no normalisation as it was made, nor two alike
        for parameter in other.net.parameters():
            parameter += 0.1 * torch.randn(parameter.shape, generator=bits)
    own.begin(halved(exported(other.net, takes)))
    given = torch.rand(takes, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        wanted, made = other.net.eval()(given), own.net.eval()(given)
        assert (wanted - made).abs().max() < 0.02 * wanted.abs().max()
        assert (own.mean[0].eval()(given) == made).all()
        assert (own.before[0].eval()(given) == made).all()
    with pytest.raises(ModelError, match="other layers"):
        own.begin(halved(exported(other.net.painter.last, (1, 12 + 6 + 4, 8, 8))))


def test_guessed_layouts_have_necks() -> None:
    guessed = trainer().guess(torch.zeros(1, 4, 64, 64))[0, SKIN]
    assert guessed[46, 32] > 0.9 > 0.3 > guessed[46, 2]


def test_a_side_of_some_faces_is_hidden_as_of_turned_ones() -> None:
    at = Jitter(right=0.01)
    moved = np.array([cut(at, u).right for u in np.linspace(0, 0.999, 1000)])
    share = (moved != at.right).mean()
    assert share == pytest.approx(0.35, abs=0.01)
    assert 0.03 < np.abs(moved - at.right).max() < 0.05
    assert moved.min() < at.right < moved.max()


def test_a_painter_follows_its_layout() -> None:
    """Where two layouts of one scene differ, a painter that was trained a little paints other colours."""
    plan = Plan(steps=40, batch=4, side=64, critic_from=1.0, average=0.5)
    colours = np.array([(30, 30, 30), (220, 40, 40), (40, 220, 40), (40, 40, 220)], np.uint8)
    shown = layouts(24)
    frames = np.concatenate([colours[shown], np.full((*shown.shape, 1), 255, np.uint8)], axis=-1)
    made = Trainer(plan, frames, np.arange(24), np.empty((0, 128, 128, 3), np.uint8), shown, yaws(24))
    for _ in range(40):
        made.step()
    scenes = made.maker.plain([1], None, None)
    with torch.no_grad():
        look = torch.zeros(1, LOOK, 64, 64)
        ways = (scenes.layout, scenes.layout.roll(1, 1))
        one, two = (made.mean[0].painter(scenes.seen, x, look) for x in ways)
    apart = ((one - two).abs() * scenes.hidden).sum() / scenes.hidden.sum()
    assert apart > 0.2


def test_a_quarter_of_the_network_kept_is_that_before_the_critics() -> None:
    made = trainer()
    for _ in range(2):
        made.step()
    before = [weights.clone() for weights in made.mean[0].painter.parameters()]
    for _ in range(2):
        made.step()
    kept = made.shipped()
    after = list(made.mean[0].painter.parameters())
    for own, old, new in zip(kept.painter.parameters(), before, after, strict=True):
        assert torch.allclose(own, old / 4 + 3 * new / 4, atol=1e-6)
    assert any(not torch.equal(old, new) for old, new in zip(before, after, strict=True))
    for own, new in zip(kept.layout.parameters(), made.mean[0].layout.parameters(), strict=True):
        assert torch.equal(own, new)
