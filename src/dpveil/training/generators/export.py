"""A trained encoder and decoder as a codec: principal components of the codes, and their statistics."""

from __future__ import annotations

from typing import Final

import numpy as np
import torch
from jaxtyping import Float64
from torch import Tensor, nn

from dpveil.assets.cards import Card
from dpveil.assets.network import Network
from dpveil.codecs import GAN, Statistics
from dpveil.codecs.gan import CONDITIONS
from dpveil.training.generators.noise import Basis
from dpveil.training.generators.trainer import Trainer
from dpveil.training.onnx_export import exported, halved

MOST: Final = 20_000
"""Training codes of which the statistics are computed."""
STEP: Final = 0.5
"""Half of the difference by which energies are computed, in deviations of a component."""


class Joined(nn.Module):  # type: ignore[misc,unused-ignore]
    """A decoder with one input, the code followed by the conditions."""

    def __init__(self, decoder: nn.Module) -> None:
        super().__init__()
        self.decoder = decoder

    def forward(self, given: Tensor) -> Tensor:
        """Return the pictures."""
        out: Tensor = self.decoder(given[:, : -len(CONDITIONS)], given[:, -len(CONDITIONS) :])
        return out


def codec_of(trainer: Trainer, card: Card) -> GAN:
    """Return the codec of a training's averaged networks, with weights of 16 bits."""
    side, count = trainer.plan.side, trainer.plan.length
    parts = []
    for network, shape in (
        (trainer.mean[0], (1, 3, side, side)),
        (Joined(trainer.mean[1]), (1, count + len(CONDITIONS))),
    ):
        parts.append(np.frombuffer(halved(exported(network, shape)), np.uint8))
    encoder, decoder = GAN.networks(parts[0], parts[1], side, count)
    rows = trainer.faces.rows[:MOST]
    seen = (trainer.faces.of(rows[at : at + 64]).pictures.numpy() for at in range(0, len(rows), 64))
    codes = np.stack([encoder(one[None])[0] for batch in seen for one in batch])
    basis = Basis.of(torch.from_numpy(codes))
    mean, turn = basis.mean.numpy(), basis.rows.numpy()
    inside = (codes - mean).astype(np.float64) @ turn.T.astype(np.float64)
    spread = inside.std(axis=0)
    energy = _energies(decoder, mean, turn, spread)
    statistics = Statistics.of(inside, energy, seed=trainer.plan.seed, deviations=spread)
    return GAN(encoder, decoder, mean, turn, energy, statistics, (side, side, 3), card)


def _energies(
    decoder: Network, mean: np.ndarray, basis: np.ndarray, spread: np.ndarray
) -> Float64[np.ndarray, " m"]:
    """Return the squared norm of the change of the mean picture per unit of each component, in levels."""
    none = np.zeros(len(CONDITIONS), np.float32)
    found = []
    for row, deviation in zip(basis, spread, strict=True):
        ends = [
            decoder(np.concatenate([mean + sign * STEP * deviation * row, none])[None].astype(np.float32))
            for sign in (-1, 1)
        ]
        change = (ends[1] - ends[0]).astype(np.float64) * 127.5 / (2 * STEP * deviation)
        found.append(float((change**2).sum()))
    return np.asarray(np.maximum(np.array(found), 1e-9))
