"""Shared by the benchmarks of models that are trained on releases: settings, intervals and the table."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dpveil.attacks.resampling import drawn_people
from timing import load_note, report

SHARED = Path(__file__).parent.parent.parent / "shared" / "data"
FACES = {"regions": "faces"}
SETTINGS: dict[str, dict[str, Any]] = {
    "clean": {},
    "attributes, none": {"method": "attributes", "attributes": "none"},
    "attributes, gender, ε = 8": {"method": "attributes", "attributes": "gender=8"},
    "gallery, ε = 8": {"method": "gallery", "epsilon": 8},
    "dp-pix, ε = 20, 16 px, m = 16": {
        **FACES,
        "method": "dp-pix",
        "epsilon": 20,
        "block": 16,
        "neighbourhood": 16,
    },
    "mosaic, 16 px": {**FACES, "method": "mosaic", "block": 16},
    "blur, σ = 8 px": {**FACES, "method": "blur", "sigma": 8},
    "fill": {**FACES, "method": "fill"},
}
SETS, DRAWS, SEED = 3, 1000, 16

Row = dict[str, Any]
Score = Callable[[dict[str, Any], Sequence[Any]], tuple[np.ndarray, int]]
"""From settings and a training set to a value for each draw, and how many photos were not released."""


@dataclass(frozen=True)
class Task:
    """A model: its benchmark, what `values` of it are called, photos of each training set and of the test.

    `items` yields photos from the folder `data`; `scorer` takes those of the test, and how often each draw
    has each. `more` are columns from the values of a setting and those of clean photos.
    """

    name: str
    measure: str
    data: str
    photos: int
    tested: int
    items: Callable[[Path], Iterator[Any]]
    scorer: Callable[[Sequence[Any], np.ndarray], Score]
    more: Callable[[np.ndarray, np.ndarray], Row] = lambda values, clean: {}
    note: str = ""

    def row(self, name: str, values: np.ndarray, clean: np.ndarray, refused: int) -> Row:
        """Return the figures of a setting, from values of shape (sets, draws).

        The first draw is the sample itself. Intervals are [middle, low, high].
        """
        return {
            "trained on": name,
            self.measure: interval(values.mean(axis=0)),
            "sets": {str(one): round(float(value), 3) for one, value in enumerate(values[:, 0], 1)},
            "lost": interval((clean - values).mean(axis=0)) if name != "clean" else "",
            **self.more(values, clean),
            "not released": refused,
        }

    def run(self) -> None:
        """Print and save the table. The command line may give the numbers of photos."""
        if not (SHARED / self.data).is_dir():
            print("needs the shared data sets in ../shared/data", file=sys.stderr)
            return
        size, count = (
            int(word) for word in (sys.argv[1:] + [str(self.photos), str(self.tested)][len(sys.argv) - 1 :])
        )
        source = self.items(SHARED / self.data)
        sets = [[next(source) for _ in range(size)] for _ in range(SETS)]
        tested = [next(source) for _ in range(count)]
        times = np.concatenate([np.ones((1, count), np.int64), drawn_people(count, DRAWS, SEED)])
        score = self.scorer(tested, times)
        rows: list[Row] = []
        clean = np.zeros(0)
        for name, settings in SETTINGS.items():
            found = [score(settings, taken) for taken in sets]
            values = np.array([one for one, _ in found])
            clean = clean if rows else values
            rows.append(self.row(name, values, clean, sum(refused for _, refused in found)))
            rows[-1] |= {"tested": count}
            print(rows[-1], file=sys.stderr)
        note = f"{SETS} training sets of {size} photos, {count} in the test{self.note}."
        report(self.name, rows, notes=(note, load_note()))


def interval(draws: np.ndarray) -> list[float]:
    """Return the value of the sample, the first draw, and the ends of its 95 % interval."""
    return [round(float(one), 3) for one in (draws[0], *np.quantile(draws[1:], (0.025, 0.975)))]
