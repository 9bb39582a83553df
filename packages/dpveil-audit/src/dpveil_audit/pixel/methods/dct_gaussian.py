"""The audit of `dct-gaussian`: its steps, noisy coefficients, and versions with one wrong step.

The noise is too wide to enumerate, so noisy coefficients are counted in bins of a fiftieth of its width. That
hides less than a part in 10⁴ of a divergence, and never adds to it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from itertools import product
from typing import Final

import numpy as np
from jaxtyping import Float64, Int64
from scipy import special

from dpveil.mechanisms.pixel import DCTGaussian
from dpveil.mechanisms.pixel.dct_gaussian import UNIT, Plan, reach_of
from dpveil.noise.bits import BitSource
from dpveil.noise.gaussian import discrete_gaussian
from dpveil_audit.divergence import ProductLaw
from dpveil_audit.engine import BY_DRAWS, BY_LAW, Drawn, Level, Version
from dpveil_audit.pixel.case import Case, Image, Images, Releases, Size, method_audit, version

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
Noise = Int64[np.ndarray, "n b k"]
Variances = list[Fraction | None]


def plan_of(method: DCTGaussian, size: Size) -> Plan:
    return method.plan(height=size[0], width=size[1], channels=size[2])


def exact(method: DCTGaussian, image: Image) -> Blocks:
    transform = plan_of(method, image.shape).transform
    answers: Blocks = np.clip(transform.forward(image), -transform.bounds, transform.bounds)
    return answers


def variances(method: DCTGaussian, image: Image) -> Variances:
    """Return the noise variance of each coefficient of a block, None for dropped ones."""
    return list(plan_of(method, image.shape).variances)


def fresh(variance: Fraction, shape: tuple[int, int, int], bits: BitSource) -> Noise:
    """Return independent noise for n releases of some coefficients of all blocks."""
    return discrete_gaussian(variance, int(np.prod(shape)), bits).reshape(shape)


@dataclass(frozen=True, kw_only=True)
class GaussianSteps:
    """One way to carry out the method: intact, or a mutant with one wrong step."""

    exact: Callable[[DCTGaussian, Image], Blocks] = exact
    variances: Callable[[DCTGaussian, Image], Variances] = variances
    noise: Callable[[Fraction, tuple[int, int, int], BitSource], Noise] = fresh
    clipped_after: bool = False

    def version(self, name: str, gates: tuple[str, ...] = ()) -> Version:
        return version(name, self.distribution, self.outcomes, gates=gates)

    def noisy(
        self, method: DCTGaussian, image: Image, count: int, bits: BitSource
    ) -> Float64[np.ndarray, "n blocks coefficients"]:
        """Return noisy coefficients of `count` releases; 0 for dropped ones."""
        answers, found = self.exact(method, image), self.variances(method, image)
        noisy = np.zeros((count, *answers.shape))
        for variance in sorted({v for v in found if v is not None}):
            columns = [k for k, v in enumerate(found) if v == variance]
            noise = self.noise(variance, (count, len(answers), len(columns)), bits)
            noisy[:, :, columns] = answers[:, columns] + noise
        return noisy

    def releases(self, method: DCTGaussian, image: Image, count: int, bits: BitSource) -> Releases:
        """Return `count` independent releases of one small image (one strip of blocks)."""
        height, width, channels = image.shape
        made = plan_of(method, image.shape)
        noisy, bounds = self.noisy(method, image, count, bits), made.transform.bounds
        shown = (np.clip(noisy, -bounds, bounds) if self.clipped_after else noisy) / np.sqrt(
            made.transform.norms
        )
        kept = (shown if method.raw else shown * made.shrinkage()).reshape(-1, len(bounds))
        tall = -(-height // made.transform.tall) * made.transform.tall
        images = made.transform.backward(kept, count * tall, width)
        return np.ascontiguousarray(images.reshape(count, tall, width, channels)[:, :height])

    def distribution(self, method: DCTGaussian, images: Images) -> ProductLaw:
        """Return the law of every noisy coefficient, in bins."""
        found = [self.variances(method, image) for image in images]
        return bin_answers(method, images, np.stack([self.exact(method, i) for i in images]), found)

    def outcomes(
        self, method: DCTGaussian, image: Image, count: int, bits: BitSource
    ) -> Int64[np.ndarray, "n parts"]:
        noisy = self.noisy(method, image, count, bits)
        edges = bins(method, image.shape)
        return np.stack(
            [np.searchsorted(edges[k], noisy[:, b, k]) for b in range(noisy.shape[1]) for k in edges], axis=1
        )


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


def bin_answers(
    method: DCTGaussian, images: Images, answers: Int64[np.ndarray, "images blocks k"], found: list[Variances]
) -> ProductLaw:
    """Return the law of answers with Gaussian noise, in bins with edges between integers.

    Discrete noise of such width has the law of the continuous one there, to 64-bit precision.
    """
    rows = []
    for block in range(answers.shape[1]):
        for k, edges in bins(method, images.shape[1:]).items():
            widths = np.array([float(own[k] or 0) ** 0.5 for own in found])
            at = (edges - answers[:, block, k, None]) / widths[:, None]
            low, high = special.ndtr(at), special.ndtr(-at)
            upward = np.diff(low, axis=1, prepend=0, append=1)
            downward = -np.diff(high, axis=1, prepend=1, append=0)
            rows.append(np.where(np.pad(at, ((0, 0), (0, 1)), constant_values=9) < 0, upward, downward))
    return ProductLaw.of(rows)


def right(method: DCTGaussian, images: Images) -> ProductLaw:
    """Return the law by definition: clipped coefficients, and the variances of the plan."""
    made = plan_of(method, images.shape[1:])
    answers = np.stack([coefficients(method, image)[1] for image in images])
    bounds = made.transform.bounds
    return bin_answers(
        method, images, np.clip(answers, -bounds, bounds), [list(made.variances)] * len(images)
    )


# Mutants


def repeat_edges(method: DCTGaussian, image: Image) -> Blocks:
    """Repeat the last row and column in blocks beyond the edge, so that a pixel there counts often."""
    made, found = coefficients(method, image, fill="repeated")
    return np.asarray(np.clip(found, -made.transform.bounds, made.transform.bounds))


def times(factor: Callable[[DCTGaussian, Image], Fraction]) -> Callable[[DCTGaussian, Image], Variances]:
    return lambda method, image: [v and v * factor(method, image) for v in variances(method, image)]


def each_alone(method: DCTGaussian, image: Image) -> Variances:
    reach = reach_of(image.shape, method.block, method.neighbourhood)
    rho, places = method.account(height=1, width=1, channels=1).rho, np.arange(len(reach.transform.norms))
    costs = [Fraction(reach.cost(np.where(places == k, 0, -1))) for k in places]
    kept = zip(variances(method, image), costs, reach.transform.norms.tolist(), strict=True)
    return [v and cost * norm / rho for v, cost, norm in kept]


def one_for_all_blocks(variance: Fraction, shape: tuple[int, int, int], bits: BitSource) -> Noise:
    return np.repeat(fresh(variance, (shape[0], 1, shape[2]), bits), shape[1], axis=1)


INTACT: Final = GaussianSteps()
MUTANTS: Final = (
    GaussianSteps(variances=times(lambda method, image: Fraction(16, 25))).version("noise ×0.8", BY_LAW),
    GaussianSteps(
        exact=lambda method, image: plan_of(method, image.shape).transform.forward(image), clipped_after=True
    ).version("clipping after the noise", ("exact",)),
    GaussianSteps(exact=repeat_edges).version("repeated edges not counted"),
    GaussianSteps(variances=times(lambda m, image: Fraction(1, image.shape[2]))).version(
        "channels not counted"
    ),
    GaussianSteps(variances=each_alone).version("allocation not normalised", BY_LAW),
    GaussianSteps(noise=one_for_all_blocks).version("one draw for all blocks", BY_DRAWS),
)


def levels() -> dict[str, Level]:
    """Return the settings: the deep level has more small images, and five times the draws."""

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
    quick = Level(exact, tuple(Drawn(case, 10_000) for case in larger))
    return quick.levels((rho(2, 3, 1, 2, 2, 1), rho(1, 2, 3, 2, 1, "0.1")))


AUDIT: Final = method_audit(
    DCTGaussian,
    INTACT.releases,
    INTACT.distribution,
    MUTANTS,
    levels(),
    right=right,
    outcomes=INTACT.outcomes,
)
