"""Noise in training: that of `pca-basis`, in principal components of the codes of the present encoder."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np
import torch
from torch import Tensor

from dpveil.mechanisms.latent.principal import affordable

RATIO: Final = Fraction(3, 2)
"""The ratio of `pca-basis`."""
GRID: Final = 33
"""Number of budgets of which training draws one for each code."""


@dataclass(frozen=True, eq=False)
class Basis:
    """Principal components of codes: `mean` (m), orthonormal `rows` (m × m) in order of decreasing variance,
    and the lowest and highest values, and deviations, of the codes in them.
    """

    mean: Tensor
    rows: Tensor
    low: Tensor
    high: Tensor
    deviations: Tensor

    @classmethod
    def of(cls, codes: Tensor) -> Basis:
        """Return the basis of codes n × m."""
        codes = codes.double()
        mean = codes.mean(dim=0)
        _, rows = torch.linalg.eigh((codes - mean).T @ (codes - mean) / len(codes))
        rows = rows.T.flip(0)
        rows = rows * torch.where(rows.sum(dim=1, keepdim=True) < 0, -1.0, 1.0)
        inside = (codes - mean) @ rows.T
        spread = inside.std(dim=0, unbiased=False).clamp(min=1e-6)
        ends = inside.amin(dim=0) - 1e-6, inside.amax(dim=0) + 1e-6
        return cls(*(one.float() for one in (mean, rows, *ends, spread)))

    def noisy(self, codes: Tensor, budgets: tuple[float, float], generator: torch.Generator) -> Tensor:
        """Return codes with the noise of `pca-basis`, each for an ε drawn from a range.

        Components that ε does not afford have their mean.
        """
        width = (self.high - self.low).double().numpy()
        steps = np.linspace(*budgets, GRID)
        spread = self.deviations.double().numpy()
        kept = [affordable(width, spread, RATIO, Fraction(step)) for step in steps]
        drawn = torch.randint(GRID, (len(codes),), generator=generator)
        epsilon = torch.tensor(steps, dtype=torch.float32)[drawn]
        count = torch.tensor(kept)[drawn]
        inside = torch.maximum(torch.minimum((codes - self.mean) @ self.rows.T, self.high), self.low)
        uniform = torch.rand(inside.shape, generator=generator) - 0.5
        laplace = -uniform.sign() * torch.log1p(-2 * uniform.abs().clamp(max=0.49999))
        scale = count[:, None] * (self.high - self.low) / epsilon[:, None]
        shown = torch.arange(codes.shape[1]) < count[:, None]
        inside = torch.where(shown, inside + scale * laplace, torch.zeros(()))
        inside = torch.maximum(torch.minimum(inside, self.high), self.low)
        out: Tensor = inside @ self.rows + self.mean
        return out
