"""Croft's thesis, figures 6.18 to 6.20: the exponential mechanism beside Laplace noise in pixel space.

All 400 photos of AT&T: two of each person are attacked, and the attacker has the other eight and its own
releases of them. Both mechanisms are pure ε-DP about any two photos, with cells of b × b pixels; the thesis
has another ε for the Laplace mechanism, by its neighbourhood, which changes nothing else. Blur is a Gaussian
after the release. The thesis' network is replaced by linear attackers, which are stronger on AT&T (R12 to
R15).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np

from dpveil.attacks.pixels import PixelDiscriminant
from dpveil.attacks.restored import Restored
from dpveil.bench.cells import Cell
from dpveil.bench.data import load
from dpveil.bench.measuring import cells
from dpveil.bench.run import one_thread
from dpveil.bench.settings import Setting
from dpveil.bench.table import strongest
from dpveil.errors import UsageError
from dpveil.mechanisms.pixel import DPPix, MSEExponential
from dpveil.mechanisms.pixel.base import PixelMethod
from dpveil_research.intervals import clustered_mean, clustered_share
from dpveil_research.plots import Figure, Line, Panel, draw
from dpveil_research.results import Row, estimate, to_csv

SEED: Final = 618
FOLDER: Final = "att_faces"
BLOCKS: Final = (4, 2, 1)
EPSILONS: Final = ("100", "300", "1000", "3000", "10000", "30000", "100000")
BLUR: Final = "gaussian:2"
PLAIN, BLURRED = "as it is", "blurred"
LAPLACE, EXPONENTIAL = "Laplace", "exponential"
METHODS: Final[Mapping[str, Callable[[str, int], PixelMethod]]] = {
    EXPONENTIAL: lambda epsilon, block: MSEExponential(epsilon=epsilon, block=block),
    LAPLACE: lambda epsilon, block: DPPix(epsilon=epsilon, block=block),
}
MEASURES: Final = ("mse", "ssim")
GAINS: Final = "gains"
"""The sweep of differences between the two mechanisms, of the same photos at the same ε."""


@dataclass(frozen=True)
class Point:
    """A mechanism at ε and b, with or without blur."""

    method: str
    block: int
    after: str
    epsilon: str

    @property
    def series(self) -> str:
        """What plots call its curve."""
        return f"{self.method}, b = {self.block}, {self.after}"

    @property
    def setting(self) -> Setting:
        """The point as the bench releases it."""
        after = (BLUR,) if self.after == BLURRED else ()
        return Setting(METHODS[self.method](self.epsilon, self.block), None, after)


@dataclass(frozen=True, eq=False)
class Measured:
    """What was measured of each release at a point, and whose it is."""

    values: Mapping[str, np.ndarray]
    people: tuple[str, ...]

    @classmethod
    def of(cls, found: Sequence[Cell]) -> Measured:
        """Return the measures and the strongest attack of the cells of one point."""
        values = {name: np.array(found[0].utility[name], np.float64) for name in MEASURES}
        return cls({**values, "named": strongest(found)}, tuple(str(one) for one in found[0].people))

    def mean(self, name: str) -> tuple[float, float, float]:
        """Return the mean of a measure with its interval over people."""
        return (clustered_share if name == "named" else clustered_mean)(self.values[name], self.people)


def points() -> list[Point]:
    """Return every setting."""
    return [
        Point(method, block, after, epsilon)
        for method in METHODS
        for block in BLOCKS
        for after in (PLAIN, BLURRED)
        for epsilon in EPSILONS
    ]


def make(data: Path, count: int | None, told: Callable[[str], None]) -> dict[str, bytes]:
    """Return results.csv, gains.csv and the plots; `count` is the number of people."""
    if not (data / FOLDER).is_dir():
        hint = "say with --data where your data sets are"
        raise UsageError(f"{data / FOLDER} is not a folder", hint=hint)
    faces, every = load(data / FOLDER, people=count), points()
    found: dict[Point, Measured] = {}
    with one_thread():
        for done, point in enumerate(every, 1):
            made = cells(faces, point.setting, (PixelDiscriminant(), Restored()), SEED, MEASURES)
            found[point] = Measured.of(list(made))
            told(f"{done} of {len(every)} settings")
    results, gains = [_row(point, one) for point, one in found.items()], _gains(found)
    shown = [*_swept(results), *_traded(results)]
    plots = {f"{figure.name}.png": draw(figure, shown) for figure in figures()}
    return {**plots, "results.csv": to_csv(results), "gains.csv": to_csv(gains)}


def _row(point: Point, one: Measured) -> Row:
    labels = {"series": point.series, "method": point.method, "b": str(point.block), "after": point.after}
    numbers = [estimate(name, one.mean(name), ".5g") for name in ("named", *MEASURES)]
    about = {"releases": str(len(one.people)), "people": str(len(set(one.people)))}
    return {**labels, "epsilon": point.epsilon, **numbers[0], **numbers[1], **numbers[2], **about}


def _gains(found: Mapping[Point, Measured]) -> list[Row]:
    """Return by how much the exponential mechanism is above Laplace, and blur above none, at equal ε."""
    made = []
    for point, one in found.items():
        pairs = [("blur", Point(point.method, point.block, PLAIN, point.epsilon))] * (point.after == BLURRED)
        pairs += [("exponential", Point(LAPLACE, point.block, point.after, point.epsilon))] * (
            point.method == EXPONENTIAL
        )
        for of, other in pairs:
            labels = {"of": of, "method": point.method, "b": str(point.block), "after": point.after}
            row = {**labels, "epsilon": point.epsilon}
            for name in ("named", *MEASURES):
                apart = one.values[name] - found[other].values[name]
                row |= estimate(name, clustered_mean(apart, one.people), ".4g")
            made.append(row)
    return made


def _swept(results: Sequence[Row]) -> list[Row]:
    """Return the rows of figures 6.18 and 6.19: every measure by ε."""
    return [{**row, "sweep": "epsilon", "x": row["epsilon"]} for row in results]


def _traded(results: Sequence[Row]) -> list[Row]:
    """Return the rows of figure 6.20: every measure by the share that is named."""
    return [{**row, "sweep": "risk", "x": row["named"]} for row in results]


def figures() -> tuple[Figure, ...]:
    """Return the plots: one panel for each size of cells, on the same scales."""
    about = "AT&T, 80 photos of 40 people"

    def panels(sweep: str, measure: str, afters: Sequence[str], xlabel: str) -> tuple[Panel, ...]:
        def lines(block: int) -> tuple[Line, ...]:
            return tuple(
                Line(Point(method, block, after, "").series, number, "-" if after == BLURRED else "--")
                for number, method in enumerate(METHODS)
                for after in afters
            )

        each = partial(Panel, sweep, measure, xlabel, logx=sweep == "epsilon")
        return tuple(each(lines(block), title=f"b = {block}") for block in BLOCKS)

    both = (PLAIN, BLURRED)
    return (
        Figure(
            "figure-6-18", f"Figure 6.18: risk, {about}", panels("epsilon", "named", both, "ε"), same=True
        ),
        Figure(
            "figure-6-19-mse", f"Figure 6.19: error, {about}", panels("epsilon", "mse", both, "ε"), same=True
        ),
        Figure(
            "figure-6-19-ssim", f"Figure 6.19: SSIM, {about}", panels("epsilon", "ssim", both, "ε"), same=True
        ),
        *(
            Figure(
                f"figure-6-20-{name}",
                f"Figure 6.20: {name.upper()} by risk, blurred, {about}",
                panels("risk", name, (BLURRED,), "share of photos that are named"),
                same=True,
            )
            for name in MEASURES
        ),
    )
