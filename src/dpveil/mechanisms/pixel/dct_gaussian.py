"""Discrete Gaussian noise on block cosine coefficients, under zCDP."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from math import sqrt
from typing import ClassVar, Final

import numpy as np

from dpveil.accounting.draw_cost import ZeroConcentrated
from dpveil.core.array_types import Float64, Int64, UInt8
from dpveil.core.parameters import Count, Flag, Neighbourhood, OptionalCount
from dpveil.errors import InvalidParameter
from dpveil.mechanisms.method import Size
from dpveil.mechanisms.pixel.base import MOST_SIZES, TOP, ConcentratedMethod, check_size, distinct_sizes, only
from dpveil.noise.bits import BitSource
from dpveil.noise.gaussian import check_variance, discrete_gaussian

UNIT: Final = 1 << 10  # factor on cosines before they are rounded to integers
COLOURS: Final = {1: ((1,),), 3: ((1, 1, 1), (1, 0, -1), (1, -2, 1))}
"""The colour transform, by number of channels."""
EXPECTED: Final = {1: ((60.0, 4.5),), 3: ((100.0, 8.0), (50.0, 2.5), (15.0, 1.0))}
"""For each colour plane: standard deviation of block means, and of frequencies, in grey levels.

Public round numbers, close to those of the four colour photographs that come with scikit-image.
"""
FALL: Final = -2 / 3  # exponent by which the expected spread falls with the squared frequency
CLIP: Final = 4
"""Multiple of the spread at which coefficients are clipped, except the mean of a grey or R+G+B block."""

Coefficients = Int64[np.ndarray, "blocks coefficients"]


def cosines(side: int) -> Int64[np.ndarray, "side side"]:
    """Return the orthonormal cosine transform times 1024, rounded; these integers define the transform."""
    rows, columns = np.arange(side)[:, None], np.arange(side)[None, :]
    exact = np.cos(np.pi * (2 * columns + 1) * rows / (2 * side)) * np.sqrt(np.where(rows == 0, 1, 2) / side)
    return np.asarray(np.rint(exact * UNIT).astype(np.int64))


@dataclass(frozen=True)
class BlockTransform:
    """The transform of `tall` × `wide` blocks; coefficients are ordered by colour plane, row and column.

    Levels x enter as 2x - 255, colours as R+G+B, R-B and R-2G+B (the three-point cosine transform), blocks
    with ⌊1024·cosine⌉ on both sides: a linear map of integers, without rounding of the data. Blocks beyond
    the right or bottom edge are padded with mid-grey, 2x - 255 = 0: repeating the last column and row instead
    would count a pixel twice.

    >>> BlockTransform(1, 1, 1).forward(np.array([[[0], [255]]], np.uint8)).ravel() // UNIT**2
    array([-255,  255])
    """

    tall: int
    wide: int
    channels: int

    @cached_property
    def matrices(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The integer matrices for colours, rows and columns."""
        return np.array(COLOURS[self.channels]), cosines(self.tall), cosines(self.wide)

    @cached_property
    def norms(self) -> Int64[np.ndarray, " coefficients"]:
        """The integer by which a squared coefficient is divided to be in orthonormal units, levels²."""
        planes = (self.matrices[0] ** 2).sum(axis=1) * 4 * UNIT**4
        return np.repeat(planes, self.tall * self.wide)

    @cached_property
    def stretch(self) -> Fraction:
        """An exact bound, close to 1, on the factor by which the transform increases squared lengths.

        The largest eigenvalue of a matrix is at most the largest sum of absolute values in a row.
        """
        bounds = [int(np.abs(m @ m.T).sum(axis=1).max()) for m in self.matrices[1:]]
        return Fraction(bounds[0] * bounds[1], UNIT**4)

    @cached_property
    def frequencies(self) -> Float64[np.ndarray, "tall wide"]:
        """The squared frequency of each coefficient of a plane, in half cycles per pixel."""
        rows, columns = np.arange(self.tall)[:, None] / self.tall, np.arange(self.wide)[None, :] / self.wide
        return rows**2 + columns**2

    @cached_property
    def expected_spread(self) -> Float64[np.ndarray, " coefficients"]:
        """The public spread of each coefficient in orthonormal units: a power law of natural images."""
        falling = np.where(self.frequencies > 0, self.frequencies, 1) ** FALL
        planes = []
        for mean, detail in EXPECTED[self.channels]:
            spread = detail * falling
            spread[0, 0] = mean * np.sqrt(self.tall * self.wide)
            planes.append(spread.ravel())
        return np.concatenate(planes)

    @cached_property
    def largest_shifts(self) -> Int64[np.ndarray, "t frequencies"]:
        """The largest shift of a coefficient of one channel when 1, 2, ... pixels of its block change."""
        _, rows, columns = (np.abs(matrix) for matrix in self.matrices)
        weights = np.sort(np.einsum("ui,vj->uvij", rows, columns).reshape(self.frequencies.size, -1))
        return 2 * TOP * np.cumsum(weights[:, ::-1], axis=1).T

    @cached_property
    def bounds(self) -> Int64[np.ndarray, " coefficients"]:
        """The public bound on each coefficient's absolute value; larger ones are clipped before the noise."""
        mixed = np.abs(self.matrices[0]).sum(axis=1)
        reach = np.outer(mixed, self.largest_shifts[-1]).ravel() // 2
        usual = np.ceil(CLIP * self.expected_spread * np.sqrt(self.norms)).astype(np.int64)
        bounds: Int64[np.ndarray, " coefficients"] = np.minimum(reach, usual)
        bounds[0] = reach[0]
        return bounds

    def forward(self, image: UInt8[np.ndarray, "h w c"]) -> Coefficients:
        """Return the exact coefficients of all blocks, row by row of blocks.

        Every partial sum is an integer below 2^53, so floating-point products are exact.
        """
        colours, rows, columns = self.matrices
        height, width, _ = image.shape
        levels = np.pad(2.0 * image - TOP, ((0, -height % self.tall), (0, -width % self.wide), (0, 0)))
        blocks = levels.reshape(-1, self.tall, levels.shape[1] // self.wide, self.wide, self.channels)
        planes = np.einsum("kc,aibjc->abkij", colours.astype(np.float64), blocks)
        found = rows.astype(np.float64) @ planes @ columns.T.astype(np.float64)
        return np.asarray(found.reshape(-1, self.norms.size).astype(np.int64))

    def backward(
        self, coefficients: Float64[np.ndarray, "blocks coefficients"], height: int, width: int
    ) -> UInt8[np.ndarray, "height width c"]:
        """Return the clamped image of coefficients in orthonormal units: post-processing."""
        colours, rows, columns = self.matrices
        across = -(-width // self.wide)
        planes = coefficients * np.sqrt(self.norms)
        blocks = planes.reshape(-1, across, self.channels, self.tall, self.wide)
        levels = np.linalg.inv(rows) @ blocks @ np.linalg.inv(columns).T
        pixels = np.einsum("ck,abkij->aibjc", np.linalg.inv(colours), levels)
        whole = pixels.reshape(-1, across * self.wide, self.channels)[:height, :width]
        return np.asarray(np.rint(np.clip((whole + TOP) / 2, 0, TOP)).astype(np.uint8))


Steps = Int64[np.ndarray, " coefficients"]
"""The variance of each coefficient as the number of halvings; -1 if the coefficient is dropped."""
MOST_HALVINGS: Final = 16
MULTIPLIERS: Final = np.linspace(0, 1, 33)
"""Lagrange multipliers λ that are tried, relative to the largest useful one."""
ABOVE: Final = 1 + Fraction(1, 1 << 30)
"""Factor on a cost for rounding: a sum of fewer than 2^20 positive floats is off by less than 2^-32."""


@dataclass(frozen=True)
class Reach:
    """What a neighbour can move by changing `changed` pixels (None: all) of a region of `blocks` blocks.

    Squared shifts are in orthonormal units. What t changed pixels of one block can move has three bounds:

    1. a clipped coefficient by the width of its range;
    2. the c coefficients of one frequency, whose colour planes are orthogonal, together by c times the square
       of 255 times the sum of its t largest weights;
    3. all coefficients together by 255²·c·t, as no shift is longer than that of the pixels (Parseval).

    The most expensive shift within all three, of cost f(t), fills the coefficients with the least noise
    first. Over blocks, Σ f(t_j) with Σ t_j ≤ m is at most λ·m + blocks·max(f(t) - λ·t) for every λ ≥ 0
    (Lagrange), of which the smallest is taken.
    """

    transform: BlockTransform
    blocks: int
    changed: int | None

    @cached_property
    def pixels(self) -> Int64[np.ndarray, " t"]:
        """The numbers of changed pixels in one block that have to be considered."""
        area = self.transform.tall * self.transform.wide
        return np.array([area]) if self.changed is None else np.arange(1, min(self.changed, area) + 1)

    @cached_property
    def of_frequency(self) -> Float64[np.ndarray, "t 1 frequencies"]:
        """The second bound, for each number of pixels and each frequency."""
        moved = self.transform.largest_shifts[self.pixels - 1, None].astype(np.float64)
        return self.transform.channels * moved**2 / (4 * UNIT**4)

    @cached_property
    def squares(self) -> Float64[np.ndarray, "t planes frequencies"]:
        """The smaller of the first two bounds for each coefficient alone."""
        widths = (2.0 * self.transform.bounds) ** 2 / self.transform.norms
        return np.asarray(np.minimum(widths.reshape(self.transform.channels, -1), self.of_frequency))

    def cost(self, steps: Steps) -> float:
        """Return ρ for variances 2^-step: Σ shift²/(2·variance) of the most expensive shift."""
        left = float(self.transform.stretch) * TOP**2 * self.transform.channels * self.pixels
        of_frequency = self.of_frequency[:, 0].copy()
        spent = np.zeros(len(left))
        planes = steps.reshape(self.transform.channels, -1)
        for step in sorted(set(steps.tolist()) - {-1}, reverse=True):
            room = np.minimum((self.squares * (planes == step)).sum(axis=1), of_frequency)
            of_frequency -= room
            taken = np.minimum(room.sum(axis=1), left)
            spent, left = spent + taken * 2.0**step / 2, left - taken
        if self.changed is None:
            return float(self.blocks * spent[0])
        prices = np.max(spent / self.pixels) * MULTIPLIERS
        most = np.maximum(spent - prices[:, None] * self.pixels, 0).max(axis=1)
        return float(np.min(prices * self.changed + self.blocks * most))


@dataclass(frozen=True)
class Plan:
    """A transform, and the noise variance of each coefficient: None for dropped ones."""

    transform: BlockTransform
    variances: tuple[Fraction | None, ...]

    def groups(self) -> list[tuple[Fraction, Int64[np.ndarray, " columns"]]]:
        """Return the coefficients that share a variance, in a fixed order."""
        shared: dict[Fraction, list[int]] = {}
        for column, variance in enumerate(self.variances):
            if variance is not None:
                shared.setdefault(variance, []).append(column)
        return [(variance, np.array(columns)) for variance, columns in sorted(shared.items())]

    def noise(self) -> Float64[np.ndarray, " coefficients"]:
        """Return the noise variances in orthonormal units; infinite for dropped coefficients."""
        known = [np.inf if variance is None else float(variance) for variance in self.variances]
        return np.asarray(np.array(known) / self.transform.norms)

    def shrinkage(self) -> Float64[np.ndarray, " coefficients"]:
        """Return the factor on each noisy coefficient that has the least expected error."""
        expected = self.transform.expected_spread**2
        return np.asarray(expected / (expected + self.noise()))


@lru_cache(maxsize=64)
def plan(
    size: tuple[int, int, int], block: int, changed: int | None, kept: int | None, rho: Fraction, raw: bool
) -> Plan:
    """Return the plan that costs `rho` for a region of `size` (height, width, channels).

    `kept` is the number of lowest frequencies of each colour plane; None takes the number with the least
    error under the public expectation, shrunk or `raw`.
    """
    reach = reach_of(size, block, changed)
    transform, most = reach.transform, reach.transform.frequencies.size
    counts = [min(kept, most)] if kept else sorted({most} | {1 << k for k in range(most.bit_length())})
    tried = [steps for count in counts for steps in _allocations(reach, min(count, most))]
    steps = min(tried, key=lambda steps: _error(transform, steps, reach.cost(steps) / float(rho), raw))
    unit = Fraction(reach.cost(steps)) * ABOVE / rho
    halved = zip(transform.norms.tolist(), steps.tolist(), strict=True)
    return Plan(transform, tuple(unit * norm / 2**step if step >= 0 else None for norm, step in halved))


@lru_cache(maxsize=16)
def reach_of(size: tuple[int, int, int], block: int, changed: int | None) -> Reach:
    """Return what a neighbour that differs in `changed` pixels (None: all) can move."""
    height, width, channels = size
    down, across = -(-height // block), -(-width // block)
    transform = BlockTransform(-(-height // down), -(-width // across), channels)
    blocks = -(-height // transform.tall) * -(-width // transform.wide)
    return Reach(transform, blocks, changed if changed is None else min(changed, height * width))


def spent(made: Plan, blocks: int, changed: int | None) -> Fraction:
    """Return ρ of a plan's noise on so many blocks if `changed` of their pixels (None: all) differ.

    For the region that the plan was made for, this is its ρ exactly.
    """
    norms = made.transform.norms.tolist()
    units: list[Fraction | None] = [
        None if variance is None else variance / norm
        for norm, variance in zip(norms, made.variances, strict=True)
    ]
    most = max(unit for unit in units if unit is not None)
    steps = [-1 if unit is None else int(most / unit).bit_length() - 1 for unit in units]  # powers of two
    cost = Fraction(Reach(made.transform, blocks, changed).cost(np.array(steps)))
    return cost * ABOVE / most


def _allocations(reach: Reach, kept: int) -> list[Steps]:
    """Return variances ∝ width, to a power of two, for the `kept` lowest frequencies, under every ceiling."""
    transform = reach.transform
    order = np.argsort(transform.frequencies.ravel(), kind="stable")
    rank = np.tile(np.argsort(order), transform.channels)
    widths = np.log2(reach.squares[-1].ravel()) / 2
    halvings = np.clip(np.rint(widths.max() - widths), 0, MOST_HALVINGS).astype(np.int64)
    ceilings = np.unique(halvings[rank < kept])
    return [np.where(rank < kept, np.maximum(halvings - ceiling, 0), -1) for ceiling in ceilings]


def _error(transform: BlockTransform, steps: Steps, unit: float, raw: bool) -> float:
    """Return the expected squared error of a block under the public expectation."""
    expected = transform.expected_spread**2
    noise = unit * 0.5 ** np.maximum(steps, 0)
    kept = noise if raw else expected / (1 + expected / noise)
    return float(np.sum(np.where(steps >= 0, kept, expected)))


LARGEST_BLOCK: Final = 16
STRIPS: Final = 32  # strips into which an image is divided, so that memory stays in proportion to the image
SMALLEST_STRIP: Final = 128  # fewest blocks of a strip


@dataclass(frozen=True, kw_only=True)
class DCTGaussian(ConcentratedMethod):
    """Cosine coefficients of blocks of at most `block` × `block` pixels get discrete Gaussian noise.

    Coefficients are exact integers, clipped to public bounds before the noise. The variances are calibrated
    to what m changed pixels can move (`plan`) and cost ρ in total. The `coefficients` lowest frequencies of
    each colour plane are kept (default: the number with the least expected error). Noisy coefficients are
    shrunk towards public expectations, which is post-processing; `raw` leaves them as they are, for a
    denoiser of your own. Give `rho`, or `epsilon` and `delta`. `neighbourhood` is m, in pixels of the
    region's raster (default: all of them, any-image). Raises `InvalidParameter`. Source: Canonne, Kamath &
    Steinke 2020, theorem 4.

    >>> DCTGaussian(rho=0.5, neighbourhood=256).guarantee(height=112, width=92, channels=1).kind
    'zcdp'
    """

    name: ClassVar[str] = "dct-gaussian"
    summary: ClassVar[str] = "cosine coefficients of blocks, discrete Gaussian noise"
    source: ClassVar[str] = "Canonne, Kamath & Steinke 2020, theorem 4"
    help: ClassVar[Mapping[str, str]] = {
        "coefficients": "Frequencies that are kept; default: those with the least expected error.",
        "raw": "Leave noisy coefficients as they are.",
    }

    block: Count = Count(default=8)
    coefficients: OptionalCount = OptionalCount(optional=True)
    neighbourhood: Neighbourhood = Neighbourhood(optional=True)
    raw: Flag = Flag(default=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.block > LARGEST_BLOCK:
            raise InvalidParameter("block", self.block, f"is above {LARGEST_BLOCK}", hint="8 is usual")

    def account_of(self, sizes: Sequence[Size], changed: int | None) -> ZeroConcentrated | None:
        """Return the cost of the blocks of all regions, or None if regions have different plans or more than
        `MOST_SIZES` sizes, each of which needs a plan.

        *Proof.* Regions with one transform and one list of variances are one set of B blocks, and as they are
        disjoint, a changed pixel lies in one of these. Block j, of which t_j pixels change, moves its
        coefficients by what costs at most f(t_j) (`plan`), wherever it lies, and Σ t_j is at most `changed`
        and at most the pixels of all regions. So Lagrange's bound on Σ f(t_j) holds with B blocks, and ρ of
        independent Gaussian noise adds over coefficients and blocks. ∎
        """
        every_size = distinct_sizes(sizes)
        if len(every_size) > MOST_SIZES:
            return None
        made = only(self.plan(**size) for size in every_size)
        if made is None:
            return None
        pixels = sum(size["height"] * size["width"] for size in sizes)
        reaches = [
            reach_of((size["height"], size["width"], size["channels"]), self.block, 1) for size in sizes
        ]
        blocks = sum(reach.blocks for reach in reaches)
        moved = changed if changed is None else min(changed, pixels)
        return ZeroConcentrated(spent(made, blocks, moved))

    def plan(self, *, height: int, width: int, channels: int) -> Plan:
        """Return which coefficients of a region are kept, and the exact variance parameter σ² of each."""
        size = check_size(height, width, channels)
        return plan(size, self.block, self.neighbourhood, self.coefficients, self._rho, self.raw)

    def noise_scale(self, *, height: int, width: int, channels: int) -> float:
        """Return σ in grey levels of the mean of a full block, before shrinkage, averaged over channels."""
        made = self.plan(height=height, width=width, channels=channels)
        area = made.transform.tall * made.transform.wide
        return sqrt(float(np.mean(made.noise()[::area])) / area)

    def prepare(self, *, height: int, width: int, channels: int) -> None:
        for variance, _ in self.plan(height=height, width=width, channels=channels).groups():
            check_variance(variance)

    def _draw(self, image: UInt8[np.ndarray, "h w c"], bits: BitSource) -> UInt8[np.ndarray, "h w c"]:
        height, width, channels = image.shape
        made = self.plan(height=height, width=width, channels=channels)
        down, across = -(-height // made.transform.tall), -(-width // made.transform.wide)
        rows = made.transform.tall * max(1, -(-max(SMALLEST_STRIP, down * across // STRIPS) // across))
        out = np.empty_like(image, order="C")
        for top in range(0, height, rows):
            out[top : top + rows] = self._strip(made, image[top : top + rows], bits)
        return out

    def _strip(
        self, made: Plan, image: UInt8[np.ndarray, "h w c"], bits: BitSource
    ) -> UInt8[np.ndarray, "h w c"]:
        """Return the private image of some rows of blocks."""
        transform = made.transform
        exact = np.clip(transform.forward(image), -transform.bounds, transform.bounds)
        noisy = np.zeros(exact.shape)
        for variance, columns in made.groups():
            noise = discrete_gaussian(variance, len(exact) * len(columns), bits)
            noisy[:, columns] = exact[:, columns] + noise.reshape(-1, len(columns))
        noisy /= np.sqrt(transform.norms)
        return transform.backward(noisy if self.raw else noisy * made.shrinkage(), *image.shape[:2])
