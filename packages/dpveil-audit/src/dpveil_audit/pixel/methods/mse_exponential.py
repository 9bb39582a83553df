"""The audit of `mse-exponential`: its integers, formula 6.32 for comparison, and mutants."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Final

import numpy as np

from dpveil.mechanisms.pixel import MSEExponential
from dpveil_audit.divergence import Masses, Part, ProductLaw
from dpveil_audit.engine import BY_DRAWS, Drawn, Level
from dpveil_audit.pixel.case import Case, Images, Size, as_channels, cells, method_audit, version

TOP: Final = 255
Factor = Callable[[MSEExponential, Size], int]
Row = Callable[[int], Masses]
"""A function from a true level to the probabilities of all levels."""


def draws(method: MSEExponential, size: Size) -> int:
    return len(cells(size[0], size[1], method.block)) * size[2]


def rate(method: MSEExponential, size: Size) -> Fraction:
    """Return ε′: ε/(n·c) for ε alone, else the value that the method's accountant chose."""
    if method.kind == "pure":
        return (method.budget.epsilon or Fraction(1)) / draws(method, size)
    account = method.account(height=size[0], width=size[1], channels=size[2])
    return account.pure / account.draws


def _distribution(method: MSEExponential, images: Images, row: Row) -> ProductLaw:
    """Return the law of cells and channels, each drawn by the row of its mean, rounded half up."""
    levels = [math.floor(TOP * j / (method.levels - 1) + 0.5) for j in range(method.levels)]
    looks, parts, rows = np.array(levels, np.uint8)[:, None], [], []
    for cell in cells(images.shape[1], images.shape[2], method.block):
        for channel in range(images.shape[3]):
            places = np.array([(*pixel, channel) for pixel in cell], np.int64)
            sums = images[:, *places.T].sum(axis=1, dtype=np.int64)
            means = (2 * sums + len(cell)) // (2 * len(cell))
            parts.append(Part(places, looks.repeat(len(cell), axis=1)))
            rows.append(np.stack([row(mean) for mean in means.tolist()]))
    return ProductLaw.of(rows, parts)


def drawn_distribution(method: MSEExponential, images: Images) -> ProductLaw:
    """Return the exact law of the integers that the method draws from."""
    _, height, width, channels = images.shape
    weights = method.matrix(height=height, width=width, channels=channels).weights
    return _distribution(method, images, lambda mean: np.array(weights[mean], object))


def right(method: MSEExponential, images: Images, *, factor: Factor = lambda method, size: 1) -> ProductLaw:
    """Return the law by formula 6.32 in floats, with ε′ multiplied by `factor`."""
    size = images.shape[1:]
    exponent = float(rate(method, size)) * factor(method, size)

    def row(mean: int) -> Masses:
        shown = TOP * np.arange(method.levels) / (method.levels - 1)
        weights = np.exp(-exponent * (mean - shown) ** 2 / TOP**2)
        return weights / weights.sum()

    return _distribution(method, images, row)


def _channels(method: MSEExponential, size: Size) -> int:
    return size[2]


def _whole_cells_only(method: MSEExponential, size: Size) -> int:
    whole = (size[0] // method.block) * (size[1] // method.block) * size[2]
    return draws(method, size) // max(1, whole)


FACTORS: Final[dict[str, Factor]] = {
    "2ε′ for ε′": lambda method, size: 2,
    "channels not counted": _channels,
    "ragged cells not counted": _whole_cells_only,
}
MUTANTS: Final = (
    *(version(name, partial(right, factor=own)) for name, own in FACTORS.items()),
    version("one draw for all cells and channels", drawn_distribution, gates=BY_DRAWS, shared=True),
)


def level() -> Level:
    one, few, both, zcdp = (
        MSEExponential(**given)
        for given in (
            {"epsilon": 3},
            {"epsilon": 3, "levels": 2},
            {"epsilon": 1, "delta": "0.05", "levels": 6},
            {"rho": 1, "levels": 6},
        )
    )
    ragged = MSEExponential(epsilon=3, levels=6, block=2)
    exact = (
        Case(1, 1, 1, one, (0, 1, 128, 255)),
        Case(1, 3, 1, few, (0, 128, 255)),
        Case(1, 3, 1, ragged, (0, 1, 255)),
        Case(1, 1, 3, few, (0, 128, 255)),
        Case(1, 2, 1, both, (0, 1, 128, 255)),
        Case(1, 2, 1, zcdp, (0, 1, 128, 255)),
    )
    strong = MSEExponential(epsilon=30, block=2)
    larger = (
        Case(1, 2, 1, one),
        Case(3, 3, 3, strong),
        Case(1, 1, 1, few),
        Case(1, 1, 3, few),
        Case(1, 3, 1, ragged),
    )
    return Level(exact, tuple(Drawn(case, 20_000) for case in larger))


AUDIT: Final = method_audit(
    MSEExponential,
    as_channels(MSEExponential, "matrix"),
    drawn_distribution,
    MUTANTS,
    level(),
    right=right,
)
