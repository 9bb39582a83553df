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
EPOCHS: Final = 8
BATCH: Final = 128
RATE: Final = 1e-3
DECAY: Final = 1e-3
"""How much of itself, times the rate, each weight loses at every step."""
SEEN: Final = 230
UNITS_SEEN: Final = 180
"""Of 256, the chance of a feature or of a hidden unit to be seen in a step: the others are left out."""
FIRST: Final = 0.9
SECOND: Final = 0.999
LEAST_SPREAD: Final = 1e-2
LEAST: Final = 40
"""Smallest number of training images."""

Features = Float32[np.ndarray, "n f"]
Labels = Mapping[str, Int64[np.ndarray, " n"]]
Weights = list[np.ndarray]


@dataclass
class Adam:
    """The optimiser's memory of every weight. Source: Kingma & Ba 2015; Loshchilov & Hutter 2019."""

    weights: Weights
    steps: int

    def __post_init__(self) -> None:
        self.first = [np.zeros_like(weights) for weights in self.weights]
        self.second = [np.zeros_like(weights) for weights in self.weights]
        self.done = 0

    def step(self, slopes: Weights) -> None:
        """Move every weight against its slope, at a rate that falls like a cosine."""
        self.done += 1
        rate = RATE / 2 * (1 + math.cos(math.pi * self.done / self.steps))
        rate *= math.sqrt(1 - SECOND**self.done) / (1 - FIRST**self.done)
        for weights, slope, first, second in zip(self.weights, slopes, self.first, self.second, strict=True):
            first += np.float32(1 - FIRST) * (slope - first)
            second += np.float32(1 - SECOND) * (slope * slope - second)
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
    """Return the model that predicts `labels`, integers below the number of `values`, from `features`.

    `features` may be of 16-bit floats. `step` is called after each of `epochs`. The same numbers in give the
    same model on the same machine and number of threads. Raises `InvalidParameter` for fewer than 40 rows.
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
            adam.step(_slopes(weights, seen, truth, columns, bits))
        step()
    hidden = (weights[0] / spread[:, None]).astype(np.float16).astype(np.float32)  # what a file keeps
    out = weights[2].astype(np.float16).astype(np.float32)
    return AttributeModel(values, hidden, weights[1] - mean @ hidden, out, weights[3], card)


def _slopes(
    weights: Weights, seen: Features, truth: Labels, columns: Mapping[str, slice], bits: SeededBits
) -> Weights:
    """Return the slopes of the mean cross-entropy, with some features and units left out."""
    hidden, bias, out, out_bias = weights
    seen = seen * _left(bits, seen.shape, SEEN)
    raw = seen @ hidden + bias
    left = _left(bits, raw.shape, UNITS_SEEN)
    active = np.maximum(raw, 0) * left
    scores = active @ out + out_bias
    error = np.empty_like(scores)
    for name, its in columns.items():
        chances = np.exp(scores[:, its] - scores[:, its].max(axis=1, keepdims=True))
        chances /= chances.sum(axis=1, keepdims=True)
        chances[np.arange(len(seen)), truth[name]] -= 1
        error[:, its] = chances / np.float32(len(seen))
    back = (error @ out.T) * left * (raw > 0)
    return [seen.T @ back, back.sum(axis=0), active.T @ error, error.sum(axis=0)]


def _left(bits: SeededBits, shape: tuple[int, ...], of_256: int) -> Float32[np.ndarray, "n k"]:
    """Return 256/`of_256` with that chance, else 0: the mean stays."""
    count = int(np.prod(shape))
    numbers = bits.words(-(-count // 8)).view(np.uint8)[:count].reshape(shape)
    kept: Float32[np.ndarray, "n k"] = (numbers < of_256) * np.float32(256 / of_256)
    return kept


def _start(bits: SeededBits, rows: int, columns: int) -> Float32[np.ndarray, "rows columns"]:
    """Return numbers of mean 0 and variance 1/rows, all alike over an interval."""
    words = bits.words(rows * columns) >> np.uint64(40)
    even = words.astype(np.float32) / np.float32(1 << 23) - np.float32(1)
    start: Float32[np.ndarray, "rows columns"] = even.reshape(rows, columns) * np.float32(math.sqrt(3 / rows))
    return start


def _variance(features: Features, mean: Float32[np.ndarray, " f"]) -> Float32[np.ndarray, " f"]:
    total = np.zeros(len(mean))
    for start in range(0, len(features), 1024):
        part = features[start : start + 1024].astype(np.float32) - mean
        total += np.einsum("nf,nf->f", part, part, dtype=np.float64)
    return (total / len(features)).astype(np.float32)
