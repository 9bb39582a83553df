"""The audit of `dct-gaussian`: its noisy coefficients by definition, and versions with one wrong step.

The noise is too wide to enumerate, so noisy coefficients are counted in bins of a fiftieth of its width. That
hides less than a part in 10⁴ of a divergence, and never adds to it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache, partial
from itertools import product
from typing import Any, Final
from unittest import mock

import numpy as np
from jaxtyping import Float64, Int64
from scipy import special

from dpveil.mechanisms.pixel import DCTGaussian
from dpveil.mechanisms.pixel.dct_gaussian import UNIT, BlockTransform, Plan
from dpveil.noise.bits import BitSource
from dpveil_audit.divergence import Outcomes, ProductLaw
from dpveil_audit.engine import BY_DRAWS, Drawn, Level
from dpveil_audit.pixel.case import Case, Image, Images, Size, method_audit, version

COLOURS: Final = {1: [[1]], 3: [[1, 1, 1], [1, 0, -1], [1, -2, 1]]}


def whole_cosine(side: int, row: int, column: int) -> int:
    """Return one entry of the orthonormal cosine transform times 1024, rounded."""
    size = math.sqrt((1 if row == 0 else 2) / side)
    return round(UNIT * size * math.cos(math.pi * (2 * column + 1) * row / (2 * side)))


@lru_cache(maxsize=64)
def kernels(tall: int, wide: int, channels: int) -> Int64[np.ndarray, "coefficients tall wide channels"]:
    """Return the integer weights of every coefficient: planes, frequencies, then pixels."""
    rows, columns = (
        [[whole_cosine(side, u, i) for i in range(side)] for u in range(side)] for side in (tall, wide)
    )
    return np.array(
        [
            [[[m * r * c for m in mixed] for c in across] for r in down]
            for mixed in COLOURS[channels]
            for down in rows
            for across in columns
        ]
    )


def coefficients(
    method: DCTGaussian, image: Image, *, fill: str = "grey"
) -> tuple[Plan, Int64[np.ndarray, "blocks coefficients"]]:
    """Return the plan, and the coefficients of all blocks before clipping, by definition.

    `fill` is what lies beyond the edges: "grey", or "repeated" pixels.
    """
    height, width, channels = image.shape
    made = method.plan(height=height, width=width, channels=channels)
    tall, wide = made.transform.tall, made.transform.wide
    weights = kernels(tall, wide, channels)
    found = []
    for top, left in product(range(0, height, tall), range(0, width, wide)):
        block = np.zeros((tall, wide, channels), np.int64)
        for i, j in product(range(tall), range(wide)):
            row, column = top + i, left + j
            if fill == "repeated":
                row, column = min(row, height - 1), min(column, width - 1)
            if row < height and column < width:
                block[i, j] = 2 * image[row, column].astype(int) - 255
        found.append((weights * block).sum(axis=(1, 2, 3)))
    return made, np.array(found)


BINS: Final = 50  # bins per standard deviation of the noise
REACH: Final = 6
"""Standard deviations beyond all exact values that the bins cover; the outer bins hold the rest."""

Blocks = Int64[np.ndarray, "blocks coefficients"]
Variances = list[Fraction | None]


def plan_of(method: DCTGaussian, size: Size) -> Plan:
    return method.plan(height=size[0], width=size[1], channels=size[2])


def clipped(method: DCTGaussian, image: Image, *, fill: str = "grey") -> Blocks:
    """Return the coefficients by definition, moved into the public bounds."""
    made, found = coefficients(method, image, fill=fill)
    return np.asarray(np.clip(found, -made.transform.bounds, made.transform.bounds))


def variances(method: DCTGaussian, image: Image) -> Variances:
    """Return the noise variance of each coefficient of a block, None for dropped ones."""
    return list(plan_of(method, image.shape).variances)


def outcomes(method: DCTGaussian, image: Image, count: int, bits: BitSource) -> Outcomes:
    """Return the bins of what the method gives to `backward`: the noisy coefficients of releases, drawn
    together.
    """
    given, forward = list[Any](), BlockTransform.forward

    def keep(own: BlockTransform, noisy: Any, height: int, width: int) -> Image:
        given.append(noisy * np.sqrt(own.norms) / (1 if method.raw else np.maximum(made.shrinkage(), 1e-300)))
        return image

    made = plan_of(method, image.shape)
    with (
        mock.patch.object(BlockTransform, "forward", lambda *one: np.tile(forward(*one), (count, 1))),
        mock.patch.object(BlockTransform, "backward", keep),
    ):
        method.release(image, bits=bits)
    noisy = given[0].reshape(count, -1, given[0].shape[1])
    edges = bins(method, image.shape)
    parts = [np.searchsorted(edges[k], noisy[:, b, k]) for b in range(noisy.shape[1]) for k in edges]
    return np.stack(parts, axis=1)


def distribution(
    method: DCTGaussian,
    images: Images,
    *,
    exact: Callable[[DCTGaussian, Image], Blocks] = clipped,
    variances: Callable[[DCTGaussian, Image], Variances] = variances,
) -> ProductLaw:
    """Return the law of every noisy coefficient, in bins with edges between integers.

    Discrete noise of such width has the law of the continuous one there, to 64-bit precision.
    """
    answers, rows = np.stack([exact(method, image) for image in images]), []
    found = variances(method, images[0])
    for block in range(answers.shape[1]):
        for k, edges in bins(method, images.shape[1:]).items():
            at = (edges - answers[:, block, k, None]) / float(found[k] or 0) ** 0.5
            low, high = special.ndtr(at), special.ndtr(-at)
            upward = np.diff(low, axis=1, prepend=0, append=1)
            downward = -np.diff(high, axis=1, prepend=1, append=0)
            rows.append(np.where(np.pad(at, ((0, 0), (0, 1)), constant_values=9) < 0, upward, downward))
    return ProductLaw.of(rows)


def bins(method: DCTGaussian, size: Size) -> dict[int, Float64[np.ndarray, " edges"]]:
    """Return the edges of the bins of every coefficient that is kept; they depend on the size alone."""
    made = plan_of(method, size)
    found = {}
    for k, variance in enumerate(made.variances):
        if variance is not None:
            width, bound = float(variance) ** 0.5, int(made.transform.bounds[k])
            most = np.ceil((bound / width + REACH) * BINS)
            found[k] = np.floor(np.arange(-most, most + 1) * width / BINS) + 0.5
    return found


# Mutants


def times(factor: Callable[[DCTGaussian, Image], Fraction]) -> Callable[[DCTGaussian, Image], Variances]:
    return lambda method, image: [v and v * factor(method, image) for v in variances(method, image)]


WRONG: Final[dict[str, dict[str, Any]]] = {
    "noise ×0.8": {"variances": times(lambda method, image: Fraction(16, 25))},
    "clipping after the noise": {"exact": lambda method, image: coefficients(method, image)[1]},
    "repeated edges not counted": {"exact": partial(clipped, fill="repeated")},
    "channels not counted": {"variances": times(lambda m, image: Fraction(1, image.shape[2]))},
}
MUTANTS: Final = (
    *(version(name, partial(distribution, **changed)) for name, changed in WRONG.items()),
    version("one draw for all blocks", distribution, gates=BY_DRAWS, shared=True),
)


def level() -> Level:
    def rho(h: int, w: int, c: int, b: int, m: int | None, r: object, k: int | None = None) -> Case:
        method = DCTGaussian(rho=r, block=b, neighbourhood=m, coefficients=k, raw=True)  # type: ignore[arg-type]
        return Case(h, w, c, method, (0, 127, 255) if h * w == 1 else (0, 255))

    shrunk = DCTGaussian(epsilon=2, delta="0.01", block=2)
    exact = (
        rho(2, 2, 1, 2, None, 1, 4),
        rho(1, 1, 3, 8, None, 1),
        rho(1, 3, 1, 2, 1, 1, 1),
        Case(2, 2, 1, shrunk),
    )
    larger = (
        rho(3, 3, 1, 2, 2, 2),
        rho(2, 3, 3, 2, 2, 50),
        rho(2, 2, 3, 2, None, 2),
        rho(1, 3, 1, 2, 1, 2, 1),
        Case(2, 2, 1, replace(shrunk, delta="0.05", neighbourhood=1)),
    )
    beyond = np.array([[[[0], [255]], [[255], [0]]]], np.uint8)  # its last coefficient is clipped
    clipped = Drawn(rho(2, 2, 1, 2, None, 20, 4), 10_000, beyond)
    return Level(exact, (*(Drawn(case, 10_000) for case in larger), clipped))


AUDIT: Final = method_audit(DCTGaussian, outcomes, distribution, MUTANTS, level())
