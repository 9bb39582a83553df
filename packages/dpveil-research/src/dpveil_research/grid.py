"""Data set × settings × measures: one run of an experiment, as rows of means with intervals."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from jaxtyping import Float64, UInt8

from dpveil.mechanisms.pixel import PixelMethod
from dpveil.metrics import mse, ssim
from dpveil.noise.bits import SeededBits
from dpveil.postprocessing import Step
from dpveil_research.data import Dataset, Picture, read_pictures
from dpveil_research.results import Row, clustered_mean, estimate, to_csv

MEASURES: Final = ("mse", "ssim", "cpu_ms")
TOP: Final = 255
SEED: Final = 2021
Values = Float64[np.ndarray, "images measures"]
Contrast = tuple[str, str, str]
"""A sweep and two of its series, whose difference, first minus second, is computed per photo at every x."""


@dataclass(frozen=True)
class Setting:
    """One point of a curve: `x`, as text, on the `series` of a `sweep`; empty for a constant."""

    sweep: str
    series: str
    x: str
    method: PixelMethod
    after: Step | None = None


@dataclass(frozen=True)
class Grid:
    """The settings, data and figures of one paper; `images` is the number of photos.

    `figures` returns PNG files by name, of the rows and the words for whose photos they are of.
    """

    name: str
    about: str
    dataset: Dataset
    images: int
    settings: tuple[Setting, ...]
    contrasts: tuple[Contrast, ...]
    figures: Callable[[Sequence[Row], str], dict[str, bytes]]


def measure(
    grid: Grid, data: Path | None, count: int | None, told: Callable[[str], None], own: Path | None = None
) -> dict[str, bytes]:
    """Return results.csv, differences.csv and a plot for each figure; `count` is the number of photos.

    `own` is a data set in place of the grid's. Raises `UsageError` if it has fewer photos.
    """
    images = grid.images if count is None else count
    pictures = read_pictures(grid.dataset.at(own), data or Path(), images)
    values, seen = run(grid.settings, pictures, seed=SEED, told=lambda n: told(f"{n} of {images} photos"))
    table = rows(values, seen)
    about = f"{own.name if own else grid.about}: {table[0]['images']} photos, {table[0]['people']} people"
    return {
        **grid.figures(table, f"{about}; bands are 95 % intervals"),
        "results.csv": to_csv(table),
        "differences.csv": to_csv(differences(values, seen, grid.contrasts)),
    }


def run(
    settings: Sequence[Setting],
    pictures: Iterable[Picture],
    *,
    seed: int,
    told: Callable[[int], None] = lambda done: None,
) -> tuple[dict[Setting, Values], list[Picture]]:
    """Return mean squared error, SSIM and milliseconds of processor time of every setting on every picture.

    Every method and picture has its own seeded bits, so that no number depends on what else is run; settings
    that differ only in post-processing share a release. The time is that of the release alone, made a second
    time, and the only number that another run does not reproduce.
    """
    found: dict[Setting, list[tuple[float, float, float]]] = {setting: [] for setting in settings}
    seen: list[Picture] = []
    for picture in pictures:
        original = picture.image
        released: dict[PixelMethod, tuple[UInt8[np.ndarray, "h w *c"], float]] = {}
        for setting in settings:
            if setting.method not in released:
                released[setting.method] = _timed(setting.method, picture, seed)
            shown, spent = released[setting.method]
            if setting.after is not None:
                shown = setting.after(shown.reshape(*shown.shape[:2], -1)).reshape(shown.shape)
            both = (measured(original, shown, data_range=TOP) for measured in (mse, ssim))
            found[setting].append((*both, spent))  # type: ignore[arg-type]
        seen.append(picture)
        told(len(seen))
    return {setting: np.array(values) for setting, values in found.items()}, seen


def _timed(method: PixelMethod, picture: Picture, seed: int) -> tuple[UInt8[np.ndarray, "h w *c"], float]:
    """Return a release and the milliseconds of making it again.

    The first time loads compiled code and builds tables of noise, more than caches keep from one picture to
    the next.
    """
    about = f"{picture.name} {method!r}"
    method.release(picture.image, bits=SeededBits(seed, about))
    bits = SeededBits(seed, about)
    gc.disable()  # else the same setting would pay for collections at every picture
    try:
        start = time.process_time()
        image = method.release(picture.image, bits=bits)
        return image, 1000 * (time.process_time() - start)
    finally:
        gc.enable()


def rows(values: dict[Setting, Values], pictures: Sequence[Picture]) -> list[Row]:
    size = dict(zip(("height", "width", "channels"), (*pictures[0].image.shape, 1), strict=False))
    return [
        {
            "sweep": setting.sweep,
            "series": setting.series,
            "x": setting.x,
            "method": setting.method.name,
            "parameters": " ".join(
                f"{name}={value}"
                for name, value in setting.method.parameters().items()
                if value not in (None, False)
            ),
            "after": setting.after.description if setting.after else "",
            "guarantee": str(setting.method.guarantee(**size)),
            **_summary(measured, pictures, MEASURES),
        }
        for setting, measured in values.items()
    ]


def differences(
    values: dict[Setting, Values], pictures: Sequence[Picture], contrasts: Iterable[Contrast]
) -> list[Row]:
    """Return a row for every point of every contrast; intervals are those of differences within photos."""
    found = {(setting.sweep, setting.series, setting.x): measured for setting, measured in values.items()}
    made = []
    for sweep, first, second in contrasts:
        for *at, x in found:
            other = found.get((sweep, second, x))
            if at == [sweep, first] and other is not None:
                labels = {"sweep": sweep, "first": first, "second": second, "x": x}
                made.append(labels | _summary(found[sweep, first, x] - other, pictures, MEASURES[:2]))
    return made


def _summary(measured: Values, pictures: Sequence[Picture], names: Sequence[str]) -> Row:
    people = [picture.person for picture in pictures]
    row = {"images": str(len(people)), "people": str(len(set(people)))}
    for column, name in enumerate(names):
        row |= estimate(name, clustered_mean(measured[:, column], people))
    return row
