"""Training of the attribute network: Adam on one hidden layer, deterministic for a seed."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Float32, Int64

from dpveil.assets.cards import Card
from dpveil.errors import InvalidParameter
from dpveil.faces.attribute_model import AttributeModel, columns_of
from dpveil.noise.bits import SeededBits

UNITS: Final = 192
"""Hidden units."""
EPOCHS: Final = 8
BATCH: Final = 128
RATE: Final = 1e-3
"""Learning rate at the start."""
DECAY: Final = 1e-3
"""Weight decay, multiplied by the learning rate at every step."""
SEEN: Final = 230
"""Probability, in 256ths, that dropout keeps a feature."""
UNITS_SEEN: Final = 180
"""Probability, in 256ths, that dropout keeps a hidden unit."""
FIRST: Final = 0.9
"""Adam's β₁."""
SECOND: Final = 0.999
"""Adam's β₂."""
LEAST_SPREAD: Final = 1e-2
"""Added to the standard deviations by which features are divided."""
LEAST: Final = 40
"""Least number of training images."""
UNKNOWN: Final = -1
"""The label of an image whose value of an attribute is not known."""

Features = Float32[np.ndarray, "n f"]
Labels = Mapping[str, Int64[np.ndarray, " n"]]
Weights = list[np.ndarray]


@dataclass
class Adam:
    """Adam with decoupled weight decay, and its moments of every weight.

    Source: Kingma & Ba 2015; Loshchilov & Hutter 2019.
    """

    weights: Weights
    steps: int

    def __post_init__(self) -> None:
        self.first = [np.zeros_like(weights) for weights in self.weights]
        self.second = [np.zeros_like(weights) for weights in self.weights]
        self.done = 0

    def step(self, gradients: Weights) -> None:
        """Update every weight by its gradient, with a learning rate that falls as a cosine."""
        self.done += 1
        rate = RATE / 2 * (1 + math.cos(math.pi * self.done / self.steps))
        rate *= math.sqrt(1 - SECOND**self.done) / (1 - FIRST**self.done)
        moments = zip(self.weights, gradients, self.first, self.second, strict=True)
        for weights, gradient, first, second in moments:
            first += np.float32(1 - FIRST) * (gradient - first)
            second += np.float32(1 - SECOND) * (gradient * gradient - second)
            if weights.ndim == 2:
                weights *= np.float32(1 - rate * DECAY)
            weights -= np.float32(rate) * first / (np.sqrt(second) + np.float32(1e-8))


def fitted(
    features: Features,
    labels: Labels,
    values: Mapping[str, tuple[str, ...]],
    *,
    card: Card,
    seed: int,
    units: int = UNITS,
    epochs: int = EPOCHS,
    step: Callable[[], None] = lambda: None,
) -> AttributeModel:
    """Return the model trained to predict `labels`, indices into `values`, from `features`.

    A label of `UNKNOWN` is left out of the loss. `features` may be 16-bit floats. `step` is called after each
    of `epochs`. The result is a function of the arguments on the same machine with the same number of
    threads. Raises `InvalidParameter` for fewer than 40 rows.
    """
    if len(features) < LEAST:
        raise InvalidParameter(
            "images", len(features), "are too few", hint=f"give {LEAST} or more with labels"
        )
    bits = SeededBits(seed, "attributes")
    mean = features.mean(axis=0, dtype=np.float64).astype(np.float32)
    spread = np.sqrt(_variance(features, mean)) + np.float32(LEAST_SPREAD)
    columns = columns_of(values)
    length, answers = features.shape[1], sum(map(len, values.values()))
    weights = [_start(bits, length, units), np.zeros(units, np.float32)]
    weights += [_start(bits, units, answers), np.zeros(answers, np.float32)]
    size = min(BATCH, len(features))
    adam = Adam(weights, epochs * (len(features) // size))
    for _ in range(epochs):
        order = np.argsort(bits.words(len(features)), kind="stable")
        for start in range(0, len(features) // size * size, size):
            rows = np.sort(order[start : start + size])
            seen = (features[rows].astype(np.float32) - mean) / spread
            truth = {name: labels[name][rows] for name in values}
            adam.step(_gradients(weights, seen, truth, columns, bits))
        step()
    hidden = (weights[0] / spread[:, None]).astype(np.float16).astype(np.float32)  # as stored in a file
    out = weights[2].astype(np.float16).astype(np.float32)
    return AttributeModel(values, hidden, weights[1] - mean @ hidden, out, weights[3], card)


def _gradients(
    weights: Weights, seen: Features, truth: Labels, columns: Mapping[str, slice], bits: SeededBits
) -> Weights:
    """Return the gradients of the sum of the mean cross-entropies, with dropout of features and hidden units.

    The mean of each attribute is over the rows whose label is known.
    """
    hidden, bias, out, out_bias = weights
    seen = seen * _dropout(bits, seen.shape, SEEN)
    raw = seen @ hidden + bias
    kept = _dropout(bits, raw.shape, UNITS_SEEN)
    active = np.maximum(raw, 0) * kept
    scores = active @ out + out_bias
    error = np.empty_like(scores)
    for name, its in columns.items():
        chances = np.exp(scores[:, its] - scores[:, its].max(axis=1, keepdims=True))
        chances /= chances.sum(axis=1, keepdims=True)
        known = truth[name] != UNKNOWN
        chances[known, truth[name][known]] -= 1
        error[:, its] = chances * known[:, None] / np.float32(max(known.sum(), 1))
    back = (error @ out.T) * kept * (raw > 0)
    return [seen.T @ back, back.sum(axis=0), active.T @ error, error.sum(axis=0)]


def _dropout(bits: SeededBits, shape: tuple[int, ...], of_256: int) -> Float32[np.ndarray, "n k"]:
    """Return a dropout mask: 256/`of_256` with probability `of_256`/256, else 0, so that its mean is 1."""
    count = int(np.prod(shape))
    numbers = bits.words(-(-count // 8)).view(np.uint8)[:count].reshape(shape)
    return (numbers < of_256) * np.float32(256 / of_256)


def _start(bits: SeededBits, rows: int, columns: int) -> Float32[np.ndarray, "rows columns"]:
    """Return initial weights, uniform with mean 0 and variance 1/rows."""
    words = bits.words(rows * columns) >> np.uint64(40)
    even = words.astype(np.float32) / np.float32(1 << 23) - np.float32(1)
    return even.reshape(rows, columns) * np.float32(math.sqrt(3 / rows))


def _variance(features: Features, mean: Float32[np.ndarray, " f"]) -> Float32[np.ndarray, " f"]:
    total = np.zeros(len(mean))
    for start in range(0, len(features), 1024):
        part = features[start : start + 1024].astype(np.float32) - mean
        total += np.einsum("nf,nf->f", part, part, dtype=np.float64)
    return (total / len(features)).astype(np.float32)
