"""Croft's comparisons of an exponential mechanism with Laplace noise in pixel space, by risk and utility.

Figures 6.18 to 6.20 of the thesis (exponential in squared error; AT&T) and figure 15 of the paper of 2022
(exponential in SSIM; LFW). A fifth of everybody's photos is attacked; the attacker has the others and its own
releases of them. Both mechanisms are pure ε-DP about any two photos, with cells of b × b pixels; Croft has
another ε for Laplace noise, by its neighbourhood, which changes nothing else. Blur is a Gaussian after the
release. Croft's networks are replaced by linear attackers, which are stronger on AT&T (R12 to R15).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np
from jaxtyping import Float64

from dpveil.attacks.restoration import Restored
from dpveil.attacks.vectors import PixelDiscriminant
from dpveil.bench.cells import Cell
from dpveil.bench.data import Dataset as Faces
from dpveil.bench.data import load
from dpveil.bench.measuring import cells
from dpveil.bench.run import one_thread
from dpveil.bench.setting import Setting
from dpveil.errors import UsageError
from dpveil.mechanisms.pixel import DPPix, MSEExponential, SSIMExponential
from dpveil.mechanisms.pixel.base import PixelMethod
from dpveil_research.data import Resized, Size
from dpveil_research.plots import Panel, figure
from dpveil_research.results import Row, clustered_mean, clustered_share, estimate, to_csv

SEED: Final = 618
PLAIN, BLURRED = "as it is", "blurred"
LAPLACE, EXPONENTIAL = "Laplace", "exponential"
MEASURES: Final = ("mse", "ssim")
TAKEN: Final = ("psnr", "ssim")  # what `dpveil evaluate` measures of a release, of which MSE follows
Make = Callable[[str, int], PixelMethod]


@dataclass(frozen=True)
class Comparison:
    """One comparison: the data, the mechanism that is put beside Laplace noise, and the settings.

    `people` of the data set, None for all, and `size`, to which photos of a user's own are resized. `figures`
    are the names of those of risk by ε, None for none, of utility by ε, likewise, and of utility by risk.
    """

    folder: str
    people: int | None
    size: Size | None
    about: str
    exponential: Make
    blocks: tuple[int, ...]
    epsilons: tuple[str, ...]
    blur: str
    afters: tuple[str, ...]
    figures: tuple[str | None, str | None, str]

    @property
    def methods(self) -> dict[str, Make]:
        return {EXPONENTIAL: self.exponential, LAPLACE: lambda e, b: DPPix(epsilon=e, block=b)}


THESIS: Final = Comparison(
    folder="att_faces",
    people=None,
    size=None,
    about="AT&T, 80 photos of 40 people",
    exponential=lambda epsilon, block: MSEExponential(epsilon=epsilon, block=block),
    blocks=(4, 2, 1),
    epsilons=("100", "300", "1000", "3000", "10000", "30000", "100000"),
    blur="gaussian:2",
    afters=(PLAIN, BLURRED),
    figures=("6-18", "6-19", "6-20"),
)
PAPER: Final = Comparison(
    folder="lfw10_128",
    people=79,
    size=(128, 128),
    about="LFW, 467 photos of 79 people",
    exponential=lambda epsilon, block: SSIMExponential(epsilon=epsilon, block=block),
    blocks=(4, 8, 16),
    epsilons=("100", "316", "1000", "3162", "10000", "31623", "100000", "1000000"),
    blur="gaussian:1",
    afters=(BLURRED,),
    figures=(None, None, "15"),
)


@dataclass(frozen=True)
class Point:
    """A mechanism at ε and b, with or without blur."""

    of: Comparison
    method: str
    block: int
    after: str
    epsilon: str

    @property
    def series(self) -> str:
        return f"{self.method}, b = {self.block}, {self.after}"

    @property
    def setting(self) -> Setting:
        after = (self.of.blur,) if self.after == BLURRED else ()
        return Setting(self.of.methods[self.method](self.epsilon, self.block), None, after)


@dataclass(frozen=True, eq=False)
class Measured:
    """What was measured of each release at a point, and whose it is."""

    values: Mapping[str, np.ndarray]
    people: tuple[str, ...]

    @classmethod
    def of(cls, found: Sequence[Cell]) -> Measured:
        """Return the measures and the strongest attack of the cells of one point."""
        noise, ssim = (np.array(found[0].utility[name], np.float64) for name in TAKEN)
        values = {"mse": 255**2 / 10 ** (noise / 10), "ssim": ssim, "named": crossed(found)}
        return cls(values, tuple(str(one) for one in found[0].people))

    def mean(self, name: str) -> tuple[float, float, float]:
        return (clustered_share if name == "named" else clustered_mean)(self.values[name], self.people)


def crossed(cells: Sequence[Cell]) -> Float64[np.ndarray, " n"]:
    """Return how often the strongest of several attacks is right about each of n releases.

    It is chosen on one half of the people and counted on the other, and the other way round: else the highest
    of several rates would be too high, for having been chosen. Of equals, that which more often has the
    person among the five likeliest is chosen. `dpveil.bench.table.strongest` gives the highest rate with an
    interval for that; differences between methods need a value for each release.
    """
    people = np.array(cells[0].people)
    right, near = (np.array([getattr(cell, name) for cell in cells]) for name in ("right", "near"))
    out = np.empty(len(people))
    for half in (people % 2 == 0, people % 2 == 1):
        rates = [
            one[:, ~half].mean(axis=1) if (~half).any() else np.zeros(len(cells)) for one in (near, right)
        ]
        out[half] = right[np.lexsort(rates)[-1], half]
    return out


def points(of: Comparison) -> list[Point]:
    return [
        Point(of, method, block, after, epsilon)
        for method in of.methods
        for block in of.blocks
        for after in of.afters
        for epsilon in of.epsilons
    ]


def people_of(of: Comparison, data: Path, count: int | None, own: Path | None) -> Faces:
    """Return the photos of the comparison, or a user's own in its size. Raises `UsageError`."""
    folder = own or data / of.folder
    if not folder.is_dir():
        raise UsageError(f"{folder} is not a folder", hint="say with --data where your data sets are")
    faces = load(folder, people=of.people if count is None else count)
    items = faces.items if own is None else tuple(Resized.of(item, of.size) for item in faces.items)
    return replace(faces, items=items)


def make(
    of: Comparison, data: Path, count: int | None, told: Callable[[str], None], own: Path | None = None
) -> dict[str, bytes]:
    """Return results.csv, gains.csv and the plots; `count` is the number of people, and `own` a data set in
    place of the comparison's.
    """
    faces = people_of(of, data, count, own)
    every = points(of)
    found: dict[Point, Measured] = {}
    with one_thread():
        for done, point in enumerate(every, 1):
            made = cells(faces, point.setting, (PixelDiscriminant(), Restored()), SEED, TAKEN)
            found[point] = Measured.of(list(made))
            told(f"{done} of {len(every)} settings")
    results = [_row(point, one) for point, one in found.items()]
    about = of.about if own is None else f"{own.name}, {len(faces.people)} people"
    tables = {"results.csv": to_csv(results), "gains.csv": to_csv(_gains(found))}
    return tables | figures(of, results, about)


def _row(point: Point, one: Measured) -> Row:
    labels = {"series": point.series, "method": point.method, "b": str(point.block), "after": point.after}
    numbers = [estimate(name, one.mean(name), ".5g") for name in ("named", *MEASURES)]
    about = {"releases": str(len(one.people)), "people": str(len(set(one.people)))}
    return {**labels, "epsilon": point.epsilon, **numbers[0], **numbers[1], **numbers[2], **about}


def _gains(found: Mapping[Point, Measured]) -> list[Row]:
    """Return by how much the exponential mechanism is above Laplace, and blur above none, at equal ε."""
    made = []
    for point, one in found.items():
        pairs = [("blur", replace(point, after=PLAIN))] * (point.after == BLURRED)
        pairs += [("exponential", replace(point, method=LAPLACE))] * (point.method == EXPONENTIAL)
        for of, other in pairs:
            if other not in found:
                continue
            labels = {"of": of, "method": point.method, "b": str(point.block), "after": point.after}
            row = {**labels, "epsilon": point.epsilon}
            for name in ("named", *MEASURES):
                apart = one.values[name] - found[other].values[name]
                row |= estimate(name, clustered_mean(apart, one.people), ".4g")
            made.append(row)
    return made


def figures(of: Comparison, results: Sequence[Row], about: str) -> dict[str, bytes]:
    """Return the plots: one panel for each size of cells, on the same scales."""
    risk, utility, traded = of.figures
    asked = [(risk, "risk", "epsilon", "named")] if risk else []
    if utility:
        asked += [(f"{utility}-{name}", name.upper(), "epsilon", name) for name in MEASURES]
    asked += [(f"{traded}-{name}", f"{name.upper()} by risk, blurred", "named", name) for name in MEASURES]
    made = {}
    for file, title, x, measure in asked:
        xlabel = "ε" if x == "epsilon" else "share of photos that are named"
        panels = [Panel(measure, xlabel, f"b = {block}", logx=x == "epsilon") for block in of.blocks]
        for panel, block in zip(panels, of.blocks, strict=True):
            for number, method in enumerate(of.methods):
                for after in of.afters if x == "epsilon" else (BLURRED,):
                    name = Point(of, method, block, after, "").series
                    panel.curve(name, results, number, "-" if after == BLURRED else "--", x=x, series=name)
        made[f"figure-{file}.png"] = figure(f"{title}, {about}", *panels, same=True)
    return made
