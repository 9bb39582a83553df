"""Training faces in memory: those of known people, of others for the critic, and those held out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import torch
from jaxtyping import Float32, UInt8
from torch import Tensor

from dpveil.codecs.neural import pictures, shown
from dpveil.codecs.upconv import embedded
from dpveil_train.upconv.plan import Plan

EVERY: Final = 20
"""One picture in this many is held out."""


@dataclass(frozen=True, eq=False)
class Batch:
    """Pictures n × 3 × s × s from -1 to 1, conditions n × 2, and whether their expression is `known`."""

    pictures: Tensor
    conditions: Tensor
    known: Tensor

    def to(self, device: torch.device) -> Batch:
        """Return the batch on a device."""
        return Batch(self.pictures.to(device), self.conditions.to(device), self.known.to(device))


class Faces:
    """Crops n × s × s × 3, one of a person, and conditions n × 2, with NaN for unknown expressions.

    `people` are the rows whom the generator knows, `mean` and `axes` their principal components, and
    `gallery` their embeddings. `generator` is the only randomness.
    """

    def __init__(
        self,
        crops: UInt8[np.ndarray, "n s s 3"],
        conditions: Float32[np.ndarray, "n 2"],
        plan: Plan,
        generator: torch.Generator,
    ) -> None:
        self.crops, self.generator = crops, generator
        self.conditions = torch.from_numpy(conditions)
        self.mask = torch.from_numpy(shown(plan.side))
        held = np.arange(len(crops)) % EVERY == 0
        self.held_out, self.rows = np.flatnonzero(held), np.flatnonzero(~held)
        count = min(plan.people, len(self.rows))
        self.people = self.rows[np.linspace(0, len(self.rows) - 1, count).round().astype(int)]
        known = crops[self.people]
        self.mean, self.axes = components(pictures(known).reshape(count, -1), min(plan.embedded, count - 1))
        self.gallery = embedded(known, self.mean, self.axes).astype(np.float32)

    def random(self, count: int) -> Batch:
        """Return a batch of any training faces."""
        return self.of(self.rows[torch.randint(len(self.rows), (count,), generator=self.generator).numpy()])

    def of(self, rows: np.ndarray) -> Batch:
        """Return the faces of these rows."""
        seen = torch.from_numpy(pictures(self.crops[rows]))
        conditions = self.conditions[rows]
        return Batch(seen, conditions.nan_to_num(), conditions.isfinite().all(dim=1))


def components(
    rows: Float32[np.ndarray, "n pixels"], count: int
) -> tuple[Float32[np.ndarray, " pixels"], Float32[np.ndarray, "d pixels"]]:
    """Return the mean and the leading principal components of pictures, rounded to 16 bits as in files."""
    mean = rows.mean(axis=0)
    away = (rows - mean).astype(np.float64)
    values, vectors = np.linalg.eigh(away @ away.T)
    axes = (away.T @ vectors[:, ::-1][:, :count] / np.sqrt(values[::-1][:count].clip(1e-9))).T
    axes = axes * np.sign(axes[np.arange(count), np.abs(axes).argmax(axis=1)])[:, None]
    return mean, axes.astype(np.float16).astype(np.float32)
