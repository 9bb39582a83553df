"""Training of the codec `upconv`."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from network_made import trainer

from dpveil.assets.model_cards import Card
from dpveil_train.upconv import FULL, TINY, Generator, expression


@pytest.mark.parametrize("expressive", [True, False])
def test_losses_are_finite_and_without_landmarks_no_expression_counts(expressive: bool) -> None:
    made = trainer("upconv", expressive=expressive)
    losses = [made.step() for _ in range(4)]
    assert all(np.isfinite(list(each.values())).all() for each in losses)
    assert made._sample_conditions()[:, 1].sum() == 0 or expressive
    assert (made._reconstruction_conditions(torch.ones(50, 2))[:, 1] == float(expressive)).all()
    assert 0 < made._reconstruction_conditions(torch.ones(50, 2))[:, 0].sum() < 50
    assert set(made._sample_conditions()[:, 0].tolist()) <= {-1.0, 0.0, 1.0}


def test_rows_of_people_are_learned_and_held_out_faces_are_nobodys() -> None:
    made = trainer("upconv")
    start = made.identities.rows.detach().clone()
    assert not set(made.faces.held_out) & set(made.faces.people)
    assert len(made.faces.people) == TINY.people == len(made.faces.gallery)
    assert start.std() == pytest.approx(1, abs=0.2)
    for _ in range(4):
        made.step()
    assert (made.identities.rows - start).abs().max() > 1e-6
    long = trainer("upconv", rate=1e-2, steps=40)
    levels = [long.step()["levels"] for _ in range(40)]
    assert np.mean(levels[-5:]) < 0.9 * levels[0]


def test_a_picture_is_a_function_of_identity_gender_and_expression() -> None:
    torch.manual_seed(0)
    generator, given = Generator(TINY), torch.randn(2, TINY.length + 2)
    given[:, -2:] = 0
    with torch.no_grad():
        plain = generator(given)
        for column in (0, -2, -1):
            changed = given.clone()
            changed[:, column] += 1
            assert (generator(changed) - plain).abs().max() > 1e-4


def test_the_exported_codec_is_the_averaged_network() -> None:
    made = trainer("upconv", rate=1.0)
    for _ in range(4):
        made.step()
    codec = made.model(Card("upconv", "made by a test", "any", 0))
    rows = made.mean[0].rows
    with torch.no_grad():
        codes = made.mean[0](rows)
        for gender, smile in ((0.0, 0.0), (1.0, 1.0), (-1.0, 0.0)):
            asked = torch.tensor([[gender, smile]]).expand(len(rows), 2)
            wanted = made.mean[1](torch.cat([codes, asked], dim=1)) * made.faces.mask
            levels = ((wanted + 1) * 127.5).round().clamp(0, 255).permute(0, 2, 3, 1).numpy()
            seen = codec.render(codes.double().numpy(), gender=gender, expression=smile)
            assert np.abs(seen.astype(int) - levels).max() <= 2
    own = codec.encode(made.faces.crops[made.faces.people])
    assert np.abs(own - codes.numpy()).max() < 1e-3
    assert codec.length == TINY.length


def test_the_papers_sizes_are_those_of_its_network() -> None:
    """DeconvFaces: 512 for identity and each condition, 1024 behind, and kernels of 5 and 3."""
    with torch.device("meta"):
        generator = Generator(FULL)
    shapes = [tuple(m.weight.shape) for m in generator.modules() if isinstance(m, torch.nn.Conv2d)]
    assert shapes == [
        (128, 128, 5, 5), (128, 128, 3, 3), (128, 128, 5, 5), (128, 128, 3, 3), (96, 128, 5, 5),
        (96, 96, 3, 3), (96, 96, 5, 5), (96, 96, 3, 3), (32, 96, 5, 5), (32, 32, 3, 3), (3, 32, 3, 3),
    ]  # fmt: skip
    assert tuple(generator.hidden.weight.shape) == (1024, 3 * 512)
    assert generator.small == 4


class Found:
    """A finder of landmarks of which the mouth, in distances between the eyes, is `wide`, its lips `gap`."""

    def __init__(self, wide: float, gap: float) -> None:
        self.points = np.zeros((68, 2))
        self.points[36:42], self.points[42:48] = (-0.5, 0), (0.5, 0)
        self.points[48], self.points[54] = (-wide / 2, 1), (wide / 2, 1)
        self.points[62], self.points[66] = (0, 1), (0, 1 + gap)

    def marks(self, crop: np.ndarray) -> np.ndarray | None:
        return self.points if crop.any() else None


def test_a_smile_is_a_wide_mouth_that_is_open() -> None:
    crop = np.ones((4, 4, 3), np.uint8)
    assert expression(Found(1.0, 0.1), crop) == (1.0,)  # type: ignore[arg-type]
    assert expression(Found(1.0, 0.0), crop) == (0.0,)  # type: ignore[arg-type]
    assert np.isnan(expression(Found(1.0, 0.1), 0 * crop)).all()  # type: ignore[arg-type]
    assert np.isnan(expression(None, crop)).all()
