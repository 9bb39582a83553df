"""The audit of `ssim-exponential`: its law from the definition, wrong exponents, and settings."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Final

import numpy as np
from jaxtyping import Float64, Int64, UInt8

from dpveil.mechanisms.pixel import SSIMExponential
from dpveil_audit.divergence import Part, ProductLaw
from dpveil_audit.engine import Drawn, Level
from dpveil_audit.pixel.case import Case, Images, Size, as_channels, method_audit, version

C1: Final = (0.01 * 255) ** 2
C2: Final = (0.03 * 255) ** 2
Window = Float64[np.ndarray, " cells"]
Outputs = Float64[np.ndarray, "outputs cells"]
Numbers = Float64[np.ndarray, " outputs"]
Quality = Callable[[Window, Outputs], Numbers]
Factor = Callable[[SSIMExponential, Size], float]


def evenly(levels: int) -> list[int]:
    """Return so many levels from black to white."""
    return [math.floor(255 * j / (levels - 1) + 0.5) for j in range(levels)]


def outputs(cells: int, levels: int) -> Outputs:
    """Return all outputs of a window, one per row, the last cell changing fastest."""
    return np.array(list(itertools.product(evenly(levels), repeat=cells)), np.float64)


def ssim(x: Window, y: Outputs) -> Numbers:
    """Return SSIM of a window and each row of y (Wang et al. 2004, equation 13, weights 1/n)."""
    mean_x, mean_y = x.mean(), y.mean(axis=1)
    var_x, var_y = x.var(), y.var(axis=1)
    cov = ((x - mean_x) * (y - mean_y[:, None])).mean(axis=1)
    similar = (2 * mean_x * mean_y + C1) * (2 * cov + C2)
    found: Numbers = similar / ((mean_x**2 + mean_y**2 + C1) * (var_x + var_y + C2))
    return found


def clipped_ssim(x: Window, y: Outputs) -> Numbers:
    """Return max(0, SSIM) (errata E2)."""
    found: Numbers = np.maximum(0, ssim(x, y))
    return found


def log_distribution(x: object, exponent: float, levels: int, quality: Quality = clipped_ssim) -> Numbers:
    """Return ln P of every output of a window whose true cells are x."""
    window = np.asarray(x, np.float64).ravel()
    logs = exponent * quality(window, outputs(len(window), levels))
    logs -= logs.max()
    return logs - math.log(np.exp(logs).sum())


def windows_of(image: UInt8[np.ndarray, "h w"], block: int, side: int) -> list[Int64[np.ndarray, "s s"]]:
    """Return the windows of one channel, cell by cell: rounded means, the last cells repeated."""
    rows, columns = (math.ceil(length / block) for length in image.shape)

    def cell(row: int, column: int) -> int:
        row, column = min(row, rows - 1), min(column, columns - 1)
        part = image[row * block : (row + 1) * block, column * block : (column + 1) * block]
        return math.floor(float(part.mean()) + 0.5)

    return [
        np.array([[cell(top + i, left + j) for j in range(side)] for i in range(side)], np.int64)
        for top in range(0, rows, side)
        for left in range(0, columns, side)
    ]


def distribution(
    method: SSIMExponential,
    images: Images,
    *,
    factor: Factor = lambda method, size: 1.0,
    quality: Quality = clipped_ssim,
) -> ProductLaw:
    """Return the law of every window of every channel, with ε′ multiplied by `factor`.

    For ε alone ε′ is ε/(2·c·N), counted here; else it is the value that the method's accountant chose.
    """
    size = images.shape[1:]
    places = _places(method, size)
    exponent = float(method.epsilon or 0) / (2 * len(places))
    if method.kind != "pure":
        exponent = float(method.exponent(height=size[0], width=size[1], channels=size[2]))
    exponent *= factor(method, size)
    shown = outputs(method.window**2, method.levels).astype(np.uint8)
    parts = [Part(np.array(where), shown[:, cells]) for where, cells in places]
    true = [
        [
            window
            for channel in np.moveaxis(image, 2, 0)
            for window in windows_of(channel, method.block, method.window)
        ]
        for image in images
    ]
    rows = [
        np.exp([log_distribution(x, exponent, method.levels, quality) for x in draw])
        for draw in zip(*true, strict=True)
    ]
    return ProductLaw.of(rows, parts)


def _places(method: SSIMExponential, size: Size) -> list[tuple[list[tuple[int, int, int]], list[int]]]:
    """Return, for each window of each channel, the places that show it and the cell that each shows."""
    (height, width, channels), side, step = size, method.window, method.window * method.block
    found = []
    for channel, top, left in itertools.product(
        range(channels), range(0, height, step), range(0, width, step)
    ):
        rows, columns = range(top, min(top + step, height)), range(left, min(left + step, width))
        where = [(row, column, channel) for row in rows for column in columns]
        cells = [(r - top) // method.block * side + (c - left) // method.block for r, c, _ in where]
        found.append((where, cells))
    return found


def _published_count(method: SSIMExponential, size: Size) -> float:
    return len(_places(method, size)) * (method.window * method.block) ** 2 / math.prod(size)


FACTORS: Final[dict[str, Factor]] = {
    "windows counted as n·c/p²": _published_count,
    "factor 2 dropped": lambda method, size: 2.0,
    "channels not counted": lambda method, size: float(size[2]),
}
MUTANTS: Final = (
    version("quality without the clip", partial(distribution, quality=ssim)),
    *(version(name, partial(distribution, factor=own)) for name, own in FACTORS.items()),
)


def level() -> Level:
    two, four, zcdp, both, weak = (
        SSIMExponential(**given)
        for given in (
            {"epsilon": 10, "window": 2, "levels": 2},
            {"epsilon": 12, "window": 2, "levels": 4},
            {"rho": 8, "window": 2, "levels": 2},
            {"epsilon": 1, "delta": "0.05", "window": 1, "levels": 3},
            {"epsilon": 2, "window": 1, "levels": 2},
        )
    )
    exact = (
        Case(2, 2, 1, four, (93, 192, 255)),
        Case(2, 2, 1, two, (0, 128, 255)),
        Case(1, 3, 1, two, (0, 128, 255)),
        Case(1, 1, 3, two, (0, 128, 255)),
        Case(2, 2, 1, zcdp, (0, 128, 255)),
        Case(1, 2, 1, both, (0, 1, 128, 255)),
    )
    coarse = replace(two, epsilon=40, block=2)
    drawn = (
        Drawn(Case(2, 2, 1, four), 20_000),
        Drawn(Case(3, 5, 3, coarse), 5_000),
        Drawn(Case(1, 3, 1, replace(two, epsilon=2)), 10_000),
        Drawn(Case(1, 1, 3, weak), 20_000),
    )
    return Level(exact, drawn)


AUDIT: Final = method_audit(
    SSIMExponential, as_channels(SSIMExponential, "sampler"), distribution, MUTANTS, level()
)
