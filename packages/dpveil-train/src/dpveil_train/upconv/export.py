"""A trained table of people and its generator as a codec."""

from __future__ import annotations

from typing import Final

import numpy as np
from jaxtyping import Float64

from dpveil.assets.cards import Card
from dpveil.assets.network import Network
from dpveil.codecs import Statistics, UpConv
from dpveil.codecs.upconv import CONDITIONS, generator
from dpveil_train.onnx_export import exported, halved
from dpveil_train.upconv.trainer import Trainer

STEP: Final = 0.5
"""Half of the difference by which energies are computed, in deviations of a coordinate."""


def codec_of(trainer: Trainer, card: Card) -> UpConv:
    """Return the codec of a training's averaged rows and generator, whose weights are of 16 bits."""
    plan, faces = trainer.plan, trainer.faces
    trainer.mean.cpu()
    network = halved(exported(trainer.mean[1], (1, plan.length + len(CONDITIONS))))
    decoder = generator(np.frombuffer(network, np.uint8), plan.side, plan.length)
    rows = trainer.mean[0].rows.detach()
    codes = trainer.mean[0](rows).numpy().astype(np.float64)
    energy = _energies(decoder, codes)
    statistics = Statistics.of(codes, energy, seed=plan.seed)
    canvas = (plan.side, plan.side, 3)
    return UpConv(
        decoder, rows.numpy(), faces.gallery, faces.mean, faces.axes, energy, statistics, canvas, card
    )


def _energies(decoder: Network, codes: Float64[np.ndarray, "p m"]) -> Float64[np.ndarray, " m"]:
    """Return the squared norm of the change of the mean picture per unit of each coordinate, in levels."""
    none, mean, spread = np.zeros(len(CONDITIONS)), codes.mean(axis=0), codes.std(axis=0).clip(1e-6)
    found = []
    for number, deviation in enumerate(spread):
        step = np.zeros(len(mean))
        step[number] = STEP * deviation
        ends = [
            decoder(np.concatenate([one, none])[None].astype(np.float32))
            for one in (mean - step, mean + step)
        ]
        change = (ends[1] - ends[0]).astype(np.float64) * 127.5 / (2 * STEP * deviation)
        found.append(float((change**2).sum()))
    return np.asarray(np.maximum(found, 1e-9))
