"""Pixel-space methods: their regions, grids of cells with exact sums, and budgets of ε, ρ or (ε, δ)."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import ClassVar, Final, NamedTuple, TypeVar

import numpy as np

from dpveil.accounting import zcdp_rho
from dpveil.accounting.draw_cost import Account, ZeroConcentrated
from dpveil.core.array_types import Int64, UInt8
from dpveil.core.guarantee import Guarantee, Relation, Scope
from dpveil.core.parameters import MISSING_HINTS, OptionalPositive, OptionalProbability, check_count
from dpveil.core.photo import Photo, check_image
from dpveil.core.region import Region
from dpveil.errors import InvalidParameter
from dpveil.mechanisms.method import Image, Method, Placement, Size, Step
from dpveil.noise.bits import BitSource, check_bits
from dpveil.regions.growth import grow


class Pixels(Placement):
    """Regions grown to whole blocks of a lossy format, each drawn by a pixel-space method."""

    def __init__(self, photo: Photo, regions: Iterable[Region], method: PixelMethod) -> None:
        self.photo, self.method = photo, method
        self.regions = tuple(grow(region, photo) for region in regions)

    def draw(self, bits: BitSource, steps: Sequence[Step]) -> Image:
        """Return the photo with each region released by the method and passed through `steps`."""
        image = self.photo.image.copy()
        for region in self.regions:
            released = self.method.release(region.crop(self.photo.image), bits=bits)
            for step in steps:
                released = step(released)
            region.paste(image, released)
        return image


class PixelMethod(Method):
    """A method that reads the pixels of a region and returns pixels of the same shape."""

    @abstractmethod
    def _draw(self, image: UInt8[np.ndarray, "h w c"], bits: BitSource) -> UInt8[np.ndarray, "h w c"]:
        """Return the private image; the only place where noise meets this region."""

    def place(self, photo: Photo, regions: Sequence[Region]) -> Pixels:
        """Return the regions, grown to whole blocks of a lossy format."""
        return Pixels(photo, regions, self)

    def release(self, image: UInt8[np.ndarray, ...], *, bits: BitSource) -> UInt8[np.ndarray, ...]:
        """Return a private image of the shape of `image`.

        `image` is uint8, h × w or h × w × (1 or 3), with levels 0..255. `bits` is the only source of
        randomness. Raises `InvalidParameter` for other input.
        """
        pixels = check_image(image)
        check_bits(bits)
        height, width = pixels.shape[:2]
        return self._draw(pixels.reshape(height, width, -1), bits).reshape(pixels.shape)


def check_size(height: int, width: int, channels: int) -> tuple[int, int, int]:
    """Return the size of a region in pixels and channels. Raises `InvalidParameter` if it is not valid."""
    if check_count(channels, "channels") not in (1, 3):
        raise InvalidParameter("channels", channels, "is neither 1 nor 3", hint="1 is grey, 3 is colour")
    return check_count(height, "height"), check_count(width, "width"), channels


BAND: Final = 1 << 18  # cells whose sums are held in memory at once
TOP: Final = 255  # the highest 8-bit level, and so the largest change of one pixel in one channel


def cell_sums(image: UInt8[np.ndarray, "h w c"], block: int) -> Int64[np.ndarray, "rows columns c"]:
    """Return the exact sum of every block × block cell; cells at the right and bottom may be smaller."""
    height, width, channels = image.shape
    step = min(block, max(height, width))
    narrow = np.uint16 if TOP * step < 2**16 else np.uint32 if TOP * step < 2**32 else np.uint64
    flat, full = np.ascontiguousarray(image).reshape(height, width * channels), height // step
    tall = np.empty((-(-height // step), width * channels), narrow)
    whole = flat[: full * step].reshape(full, step, width * channels)
    np.add.reduce(whole, axis=1, dtype=narrow, out=tall[:full])
    if full < len(tall):
        np.add.reduce(flat[full * step :], axis=0, dtype=narrow, out=tall[full])
    columns = tall.reshape(len(tall), width, channels)
    return np.asarray(np.add.reduceat(columns, np.arange(0, width, step), axis=1, dtype=np.int64))


def cell_areas(height: int, width: int, block: int) -> Int64[np.ndarray, "rows columns 1"]:
    """Return the number of pixels of each cell; those in the last row and column may be smaller."""
    return np.asarray((_sides(height, block)[:, None] * _sides(width, block))[:, :, None])


def _sides(length: int, block: int) -> Int64[np.ndarray, " cells"]:
    """Return the sides of the cells along a line of pixels; only the last may be shorter."""
    step = min(block, length)
    sides = np.full(-(-length // step), step, np.int64)
    sides[-1] = length - step * (len(sides) - 1)
    return sides


def fullest_cells(height: int, width: int, block: int, changed: int | None) -> dict[int, int]:
    """Return the worst shifts of the sums of one channel by one neighbour, as {shift: number of cells}.

    The `changed` pixels (None: all) fill the largest cells first, each by 255 levels. Of all shifts this has
    the largest L2 norm (docs: accounting), and dominates the others under Laplace noise.

    >>> fullest_cells(5, 5, 2, 9)
    {1020: 2, 255: 1}
    """
    return fullest_of(_areas(height, width, block), changed)


def fullest_in(regions: Iterable[tuple[int, int]], block: int, changed: int | None) -> dict[int, int]:
    """Return the same for the cells of several disjoint regions (height, width).

    >>> fullest_in([(2, 2), (5, 5)], 2, 9)
    {1020: 2, 255: 1}
    """
    areas: Counter[int] = Counter()
    for region in regions:
        areas.update(_areas(*region, block))
    return fullest_of(areas, changed)


def _areas(height: int, width: int, block: int) -> Counter[int]:
    tall, wide = (divmod(side, min(block, side)) for side in (height, width))
    sizes: Counter[int] = Counter()
    for rows, row_count in ((min(block, height), tall[0]), (tall[1], 1)):
        for columns, column_count in ((min(block, width), wide[0]), (wide[1], 1)):
            sizes[rows * columns] += row_count * column_count
    return sizes


def fullest_of(sizes: Mapping[int, int], changed: int | None) -> dict[int, int]:
    """Return the shifts when `changed` pixels fill the largest cells first; `sizes` counts cells by area."""
    left = sum(area * count for area, count in sizes.items()) if changed is None else changed
    moved: dict[int, int] = {}
    for area, count in sorted(sizes.items(), reverse=True):
        full = min(count, left // area) if area else 0
        left -= full * area
        rest = left if full < count and area else 0
        for pixels, cells in ((area, full), (rest, 1)):
            if pixels and cells:
                moved[TOP * pixels] = moved.get(TOP * pixels, 0) + cells
        left -= rest
    return moved


def pixelise(
    image: UInt8[np.ndarray, "h w c"], block: int, noise: Callable[[int], Int64[np.ndarray, " cells"]]
) -> UInt8[np.ndarray, "h w c"]:
    """Return the image of noisy cell means; `noise(n)` is called once and added to the n exact sums."""
    height, width, _ = image.shape
    sums = cell_sums(image, block)
    sums += noise(sums.size).reshape(sums.shape)
    means = mean_levels(sums, cell_areas(height, width, block))
    return expand_cells(means, block, height, width)


def mean_levels(
    sums: Int64[np.ndarray, "rows columns c"], areas: Int64[np.ndarray, "rows columns 1"]
) -> UInt8[np.ndarray, "rows columns c"]:
    """Return sums divided by areas, clamped to 0..255 and rounded half up: post-processing of noisy sums."""
    return np.asarray(
        ((2 * np.minimum(np.maximum(sums, 0), TOP * areas) + areas) // (2 * areas)).astype(np.uint8)
    )


def cell_levels(image: UInt8[np.ndarray, "h w c"], block: int) -> UInt8[np.ndarray, "rows columns c"]:
    """Return the mean level of every cell, rounded half up from its exact sum, in bands of cells."""
    height, width, channels = image.shape
    step = min(block, max(height, width))
    if step == 1:
        return image
    areas = cell_areas(height, width, block)
    levels = np.empty((*areas.shape[:2], channels), np.uint8)
    band = max(1, BAND // (areas.shape[1] * channels))
    for row in range(0, len(levels), band):
        sums = cell_sums(image[row * step : (row + band) * step], step)
        levels[row : row + band] = mean_levels(sums, areas[row : row + band])
    return levels


def expand_cells(
    cells: UInt8[np.ndarray, "rows columns c"], block: int, height: int, width: int
) -> UInt8[np.ndarray, "h w c"]:
    """Return the image in which every pixel has its cell's level."""
    return cells.repeat(_sides(width, block), axis=1).repeat(_sides(height, block), axis=0)


EPSILON: Final = ("epsilon",)
EPSILON_DELTA: Final = ("epsilon", "delta")
RHO: Final = ("rho",)
KIND: Final = {EPSILON: "pure", EPSILON_DELTA: "approximate", RHO: "zcdp"}
"""The kind of guarantee of each budget, by the names of its numbers."""


T = TypeVar("T")


MOST_SIZES: Final = 64
"""Most different region sizes that are accounted as one release, where each needs its own calibration."""


def distinct_sizes(sizes: Sequence[Size]) -> list[Size]:
    """Return the distinct sizes, in order of appearance."""
    return list({tuple(size.items()): size for size in sizes}.values())


def only(values: Iterable[T]) -> T | None:
    """Return the common value of all `values`, or None if they differ; stops at the first difference."""
    every = iter(values)
    first = next(every)
    return first if all(value == first for value in every) else None


def least(*costs: Fraction | None) -> Fraction:
    """Return the smallest of the costs that are not None."""
    return min(cost for cost in costs if cost is not None)


class Budget(NamedTuple):
    """The numbers of a budget, exactly; those not given are None."""

    epsilon: Fraction | None
    delta: Fraction | None
    rho: Fraction | None

    @property
    def given_names(self) -> tuple[str, ...]:
        """The names of the numbers that are given."""
        return tuple(name for name, value in self._asdict().items() if value is not None)


@dataclass(frozen=True, kw_only=True)
class BudgetedMethod(PixelMethod):
    """A method that takes ε, (ε, δ) or ρ, and draws the least noise that a valid accountant allows.

    `budgets` are the definitions that a concrete method accepts, and `calibrations` the accountant that
    chooses the noise, by kind of guarantee; `account` states the total cost of its noise.
    """

    budgets: ClassVar[tuple[tuple[str, ...], ...]] = (EPSILON, EPSILON_DELTA, RHO)
    calibrations: ClassVar[Mapping[str, str]] = {}

    epsilon: OptionalPositive = OptionalPositive(optional=True)
    delta: OptionalProbability = OptionalProbability(optional=True)
    rho: OptionalPositive = OptionalPositive(optional=True)

    def __post_init__(self) -> None:
        given = self.budget.given_names
        if given in self.budgets:
            return
        if not given and EPSILON in self.budgets:
            raise InvalidParameter("epsilon", None, "is missing", hint=MISSING_HINTS["epsilon"])
        named = [[f"{{{name}}}" for name in budget] for budget in self.budgets]
        ways = [" and ".join(names) if len(names) > 1 else f"{names[0]} alone" for names in named]
        raise InvalidParameter(
            "budget",
            " and ".join(given) or None,
            f"is not a budget that {self.name} takes" if given else "is missing",
            hint=f"give {', or '.join(ways)}; rho = 0.5 is about epsilon 4.7 at delta 1e-5",
            arguments={name: name for name in Budget._fields},
        )

    @property
    def budget(self) -> Budget:
        """The cost of one release of one region."""
        return Budget(self.epsilon, self.delta, self.rho)

    @property
    def kind(self) -> str:
        """The kind of guarantee, which follows from the budget: pure, approximate or zcdp."""
        return KIND[self.budget.given_names]

    @property
    def calibration(self) -> str:
        """The accountant that determined the noise."""
        return self.calibrations.get(self.kind, "")

    @abstractmethod
    def account(self, *, height: int, width: int, channels: int) -> Account:
        """Return the cost of the noise of one release of a region under every definition that holds."""

    def cost_of_disjoint(self, total: Guarantee, sizes: Sequence[Size]) -> Guarantee:
        """Return the total cost of disjoint regions of these sizes; `total` is the sum of their costs.

        A neighbour changes m pixels in all, wherever they lie. So disjoint boxes with noise of one scale are
        one release of all their cells (docs: accounting, "Regions of one photo"). An (ε, δ) is only replaced
        if that release costs as much as one region alone, as nothing is calibrated here.
        """
        account = self.account_of(sizes, total.relation.m)
        if account is None:
            return total
        if any(account == self.account(**size) for size in distinct_sizes(sizes)):
            return replace(total, epsilon=self.epsilon, delta=self.delta, rho=self.rho)
        if total.kind == "zcdp":
            return replace(total, rho=least(account.rho, total.rho))
        return replace(total, epsilon=least(account.pure, total.epsilon)) if total.kind == "pure" else total

    @property
    def limit(self) -> Fraction:
        """The number of the budget that `spent` must not exceed: ε or ρ."""
        return self.rho or self.epsilon or Fraction(0)

    def spent(self, account: Account) -> Fraction:
        """Return the cost of an account in the unit of the budget: ρ, or ε at the budget's δ if there is one.

        Raises `InvalidParameter` if the account has no finite cost in that unit.
        """
        cost = account.rho if self.rho is not None else account.pure
        cost = account.epsilon(self.delta) if self.delta is not None else cost
        if cost is None:
            raise InvalidParameter("budget", self.kind, "is not a currency of this noise")
        return cost

    def relation(self) -> Relation:
        """Return m-pixels if the method has a `neighbourhood` m, else any-image."""
        m = getattr(self, "neighbourhood", None)
        return Relation("any-image") if m is None else Relation("m-pixels", m)

    def in_the_clear(self) -> tuple[str, ...]:
        """Return what a release reveals besides its pixels, such as its time; nothing by default."""
        return ()

    def guarantee(self, *, height: int, width: int, channels: int) -> Guarantee:
        """Return the budget as a guarantee, about m pixels or any two images."""
        height, width, channels = check_size(height, width, channels)
        return Guarantee(
            kind=self.kind,
            **self.budget._asdict(),
            relation=self.relation(),
            scope=Scope(f"{width}×{height} pixels, {channels} channels", self.in_the_clear()),
        )


class ConcentratedMethod(BudgetedMethod):
    """A method that takes ρ, or ε and δ, from which the largest ρ follows; Gaussian noise has no pure ε."""

    kinds: ClassVar[tuple[str, ...]] = ("zcdp", "approximate")
    budgets: ClassVar[tuple[tuple[str, ...], ...]] = (RHO, EPSILON_DELTA)
    calibrations: ClassVar[Mapping[str, str]] = {"approximate": "the tight conversion of zCDP"}

    def account(self, *, height: int, width: int, channels: int) -> ZeroConcentrated:
        return ZeroConcentrated(self._rho)

    @cached_property
    def _rho(self) -> Fraction:
        """ρ: the given one, or the largest that keeps (ε, δ)."""
        epsilon, delta, rho = self.budget
        return rho or zcdp_rho(epsilon or 0, delta or 0)
