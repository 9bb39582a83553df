"""The audit of `mse-exponential`: its integers, formula 6.32 for comparison, and mutants."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import partial
from typing import Final

import numpy as np

from dpveil.mechanisms.pixel import MSEExponential
from dpveil.mechanisms.pixel.base import cell_levels, expand_cells
from dpveil.mechanisms.pixel.mse_exponential import shown_levels
from dpveil.noise.bits import BitSource
from dpveil.noise.matrix import ROW_SUM
from dpveil_audit.divergence import WORK, Masses, ProductLaw
from dpveil_audit.engine import BY_DRAWS, Drawn, Level
from dpveil_audit.pixel.case import Case, Image, Images, Part, Releases, Size, cells, method_audit, version

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


def rounded_down(method: MSEExponential, images: Images) -> ProductLaw:
    """Return the formula rounded to integers without a margin; the rest goes to the most likely level."""
    exponent, steps = rate(method, images.shape[1:]), method.levels - 1

    def row(mean: int) -> Masses:
        with localcontext(WORK):
            unit = Decimal(exponent.numerator) / exponent.denominator / (TOP * steps) ** 2
            chances = [(-unit * (mean * steps - TOP * j) ** 2).exp() for j in range(method.levels)]
            total = sum(chances, Decimal(0))
            weights = [int(ROW_SUM * chance / total) for chance in chances]
        weights[weights.index(max(weights))] += ROW_SUM - sum(weights)
        return np.array(weights, object)

    return _distribution(method, images, row)


def releases(method: MSEExponential, image: Image, count: int, bits: BitSource) -> Releases:
    """Return `count` releases from the method's own integers, drawn side by side as more channels."""
    height, width, channels = image.shape
    levels = cell_levels(np.tile(image, (1, 1, count)), method.block)
    matrix = method.matrix(height=height, width=width, channels=channels)
    drawn = matrix.sample(np.ascontiguousarray(levels).reshape(-1), bits).reshape(levels.shape)
    shown = expand_cells(np.array(shown_levels(method.levels), np.uint8)[drawn], method.block, height, width)
    return np.ascontiguousarray(np.moveaxis(shown.reshape(height, width, count, channels), 2, 0))


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
    version("integers without a margin", rounded_down, gates=("exact",)),
    version("one draw for all cells and channels", drawn_distribution, gates=BY_DRAWS, shared=True),
)


def levels() -> dict[str, Level]:
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
    quick = Level(exact, tuple(Drawn(case, 20_000) for case in larger))
    return quick.levels((Case(2, 2, 1, few, (0, 128, 255)), Case(1, 2, 3, zcdp)))


AUDIT: Final = method_audit(MSEExponential, releases, drawn_distribution, MUTANTS, levels(), right=right)
