"""Training of the network that completes heads: needs torch and onnx, and is skipped without them."""

from __future__ import annotations

import copy
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs pip install 'dpveil[neural]'")
pytest.importorskip("onnx", reason="needs pip install 'dpveil[neural]'")

from dpveil.assets import Card  # noqa: E402
from dpveil.faces.geometry.head_frame import in_head, pixel_grid  # noqa: E402
from dpveil.training.completion.export import completion_of  # noqa: E402
from dpveil.training.completion.frames import wedges  # noqa: E402
from dpveil.training.completion.scenes import STORED, Jitter, Maker, in_blocks  # noqa: E402
from dpveil.training.completion.trainer import Plan, Trainer, keep, measured, run  # noqa: E402

PLAN = Plan(steps=4, batch=4, side=64, critic_from=0.5)


def photos(count: int = 44) -> np.ndarray:
    made = np.random.default_rng(0).integers(0, 256, (count, 12, 12, 4), np.uint8)
    large = np.kron(made, np.ones((1, 16, 16, 1), np.uint8))
    large[..., 3] = 255
    return large


def trainer(plan: Plan = PLAN) -> Trainer:
    faces = np.full((3, 128, 128, 3), (200, 150, 100), np.uint8)
    return Trainer(plan, photos(), np.arange(44), faces)


def test_a_training_that_was_taken_up_is_the_one_that_was_not_stopped(tmp_path: Path) -> None:
    first, other = trainer(), trainer()
    losses = [first.step() for _ in range(4)]
    assert "critic" in losses[-1]
    assert "critic" not in losses[0]
    for _ in range(2):
        other.step()
    keep(other, tmp_path)
    again = trainer()
    again.take_up(torch.load(tmp_path / "checkpoint.pt", weights_only=True))
    assert [again.step() for _ in range(2)] == losses[2:]
    for one, two in zip(first.mean.parameters(), again.mean.parameters(), strict=True):
        assert torch.equal(one, two)


def test_it_learns_to_paint_one_colour(tmp_path: Path) -> None:
    plan = Plan(steps=30, batch=4, side=64, critic_from=1.0, average=0.5)
    flat = np.full((24, STORED, STORED, 4), (180, 90, 60, 255), np.uint8)
    made = Trainer(plan, flat, np.arange(24), np.empty((0, 128, 128, 3), np.uint8))
    before = measured(made)
    lines: list[str] = []
    run(made, tmp_path, minutes=5, log=lines.append)
    after = measured(made)
    name = "mean error of what is painted, in levels"
    assert after[name] < 0.5 * before[name]
    assert lines
    assert (tmp_path / "checkpoint.pt").is_file()
    assert list(tmp_path.glob("sheet-*.png"))


def test_scenes_show_the_network_nothing_of_what_is_hidden() -> None:
    maker = trainer().maker
    scenes = maker.random(8, 4)
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
    maker = Maker(photos(2), np.arange(2), np.empty((0, 128, 128, 3), np.uint8), 64, torch.Generator())
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
    network = copy.deepcopy(made.mean)
    with torch.no_grad():
        for weights in network.parameters():
            weights.copy_(weights.half().float())
    completion = completion_of(network, 64, Card("completion", "made by a test", "any", 0))
    assert len(completion.network) < 6_000_000
    seen = torch.randn(1, 6, 64, 64, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        wanted = network(seen).numpy()
    assert np.abs(completion._run(seen.numpy()) - wanted).max() < 1e-4
