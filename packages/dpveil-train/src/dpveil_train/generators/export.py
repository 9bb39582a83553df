"""A trained encoder and decoder as a codec: principal components of the codes, and their statistics."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

import numpy as np
import torch
from jaxtyping import Float64
from torch import Tensor, nn

from dpveil.assets.cards import Card
from dpveil.assets.network import Network
from dpveil.codecs import GAN, Statistics
from dpveil.codecs.gan import CONDITIONS
from dpveil.codecs.neural import EncoderDecoder, shown
from dpveil.core.numbers import Json
from dpveil.metrics import psnr, ssim
from dpveil_train.generators.faces import Faces
from dpveil_train.generators.noise import Basis
from dpveil_train.generators.trainer import Trainer
from dpveil_train.onnx_export import exported, halved

MOST: Final = 20_000
"""Training codes of which the statistics are computed."""
STEP: Final = 0.5
"""Half of the difference by which energies are computed, in deviations of a component."""
Made = TypeVar("Made", bound=EncoderDecoder)
MEASURED: Final = 400
"""Most held-out pictures that are measured."""


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
    encoder, decoder = trainer.mean.cpu()
    return joined(GAN, (encoder, Joined(decoder)), trainer.faces, trainer.plan.length, Basis.of, card)


def joined(
    kind: type[Made],
    networks: tuple[nn.Module, nn.Module],
    faces: Faces,
    count: int,
    basis_of: Callable[[Tensor], Basis],
    card: Card,
) -> Made:
    """Return the codec of an encoder to `count` numbers and a decoder, with statistics of training faces."""
    side = faces.plan.side
    shapes = (1, 3, side, side), (1, count + len(kind.conditions))
    parts = [
        np.frombuffer(halved(exported(network, shape)), np.uint8)
        for network, shape in zip(networks, shapes, strict=True)
    ]
    encoder, decoder = kind.networks(parts[0], parts[1], side, count)
    rows = faces.rows[:MOST]
    seen = (faces.of(rows[at : at + 64]).pictures.numpy() for at in range(0, len(rows), 64))
    codes = np.stack([encoder(one[None])[0] for batch in seen for one in batch])
    basis = basis_of(torch.from_numpy(codes))
    mean, turn = basis.mean.numpy(), basis.rows.numpy()
    inside = (codes - mean).astype(np.float64) @ turn.T.astype(np.float64)
    spread = inside.std(axis=0)
    energy = _energies(decoder, len(kind.conditions), mean, turn, spread)
    statistics = Statistics.of(inside, energy, seed=faces.plan.seed, deviations=spread)
    more: dict[str, Any] = {"canvas": (side, side, 3), "card": card}
    return kind(encoder, decoder, mean, turn, energy, statistics, **more)


def measured(codec: EncoderDecoder, faces: Faces) -> dict[str, Json]:
    """Return the mean PSNR in dB and SSIM of held-out crops after encoding and decoding, each at most 100.

    What lies beyond the public ellipse is grey in both.
    """
    crops = faces.crops[faces.held_out[:MEASURED]]
    crops = np.where(shown(codec.canvas[0])[..., None], crops, np.uint8(128))
    pairs = zip(crops, codec.decode(codec.encode(crops)), strict=True)
    found = [(psnr(crop, seen, data_range=255), ssim(crop, seen, data_range=255)) for crop, seen in pairs]
    noise, likeness = np.mean(np.minimum(found, 100), axis=0)
    return {"images": len(found), "PSNR in dB": round(float(noise), 2), "SSIM": round(float(likeness), 4)}


def _energies(
    decoder: Network, conditions: int, mean: np.ndarray, basis: np.ndarray, spread: np.ndarray
) -> Float64[np.ndarray, " m"]:
    """Return the squared norm of the change of the mean picture per unit of each component, in levels."""
    none = np.zeros(conditions, np.float32)
    found = []
    for row, deviation in zip(basis, spread, strict=True):
        ends = [
            decoder(np.concatenate([mean + sign * STEP * deviation * row, none])[None].astype(np.float32))
            for sign in (-1, 1)
        ]
        change = (ends[1] - ends[0]).astype(np.float64) * 127.5 / (2 * STEP * deviation)
        found.append(float((change**2).sum()))
    return np.asarray(np.maximum(np.array(found), 1e-9))
