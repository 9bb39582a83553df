"""Reilly & Fan 2021, tables II to V, on eyes: pupils and gaze, and who passes for himself by his iris.

The paper's eyes are CASIA-IrisV2, which a user may give (folders 001/L and 001/R); else they are eyes that
dpveil draws. Two photos of each eye are its baselines, and the others are released. A
release passes if its iris code is nearer to a baseline than a threshold, which 1 in 1000 clean photos of
other eyes pass (the paper: a Hamming distance of 0.35). Methods have the parameters of table I for CASIA,
and m = 1: neighbours differ in one pixel.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from jaxtyping import UInt8

from dpveil.bench.data import Dataset, load
from dpveil.bench.run import one_thread
from dpveil.bench.setting import Setting
from dpveil.bench.synthetic_photos import draw_items
from dpveil.postprocessing import parse
from dpveil_research.drawn_eyes import DrawnEye
from dpveil_research.iris import Code, code, distance, eye, fill_commonest, gaze, pupil_detection
from dpveil_research.plots import Panel, figure
from dpveil_research.reilly_fan_risk import MEDIAN, SVD_OF_ONE, methods
from dpveil_research.results import Row, clustered_mean, clustered_share, estimate, to_csv

SEED: Final = 2021
EYES, PHOTOS, BASELINES = 40, 5, 2
FALSE: Final = 0.001  # share of other eyes that pass
FILLED: Final = "filled"
METHODS: Final = methods(block=6, clusters=28, rank=6)
TABLES: Final[Mapping[str, Mapping[str, tuple[float, float | None, float]]]] = {
    "DP-Pix": {
        "0.01": (47, 5.48, 0),
        "0.05": (46, 4.30, 0),
        "0.1": (47, 4.38, 0),
        "0.5": (43, 5.79, 0),
        "1": (45, 5.09, 0),
        "5": (45, 4.98, 0),
        "10": (46, 4.50, 0),
    },
    "DP-Samp": {
        "0.01": (0, None, 0),
        "0.05": (2, 10.41, 0),
        "0.1": (6, 10.92, 0),
        "0.5": (40, 5.66, 0),
        "1": (56, 5.09, 0),
        "5": (77, 3.02, 4),
        "10": (83, 2.72, 7),
    },
    "DP-SVD": {
        "0.01": (30, 56.98, 0),
        "0.05": (46, 44.39, 0),
        "0.1": (47, 21.53, 0),
        "0.5": (79, 2.58, 0),
        "1": (77, 2.19, 0),
        "5": (77, 2.08, 0),
        "10": (77, 2.07, 0),
    },
    "Snow": {
        "0.1": (0, None, 0),
        "0.33": (30, 3.20, 0),
        "0.4": (64, 2.17, 0),
        "0.5": (80, 1.76, 0),
        "0.6": (87, 1.42, 1),
        "0.7": (92, 0.95, 5),
        "0.8": (94, 0.58, 10),
    },
    "Snow-Med": {
        "0.1": (0, None, 0),
        "0.33": (0, None, 0),
        "0.4": (2, 6.58, 0),
        "0.5": (50, 3.06, 0),
        "0.6": (82, 1.88, 0),
        "0.7": (94, 0.88, 25),
        "0.8": (99, 0.28, 77),
    },
}
"""By method and ε or δ: pupil confidence in percent, gaze error in degrees, and CRR in percent."""
PUBLISHED: Final = {**TABLES, SVD_OF_ONE: TABLES["DP-SVD"]}
Image = UInt8[np.ndarray, "h w c"]


FILTERS: Final[Mapping[str, Callable[[Image], Image]]] = {
    "as it is": lambda image: image,
    "gaussian": parse("gaussian:2"),
    FILLED: fill_commonest,
}
"""What attackers do with a release before they look for the iris."""
SNOWY: Final = ("Snow",)  # methods of whose releases a level tells which pixels are hidden


@dataclass(frozen=True, eq=False)
class Baselines:
    """Everybody's baseline codes, and the largest distance that passes."""

    codes: Mapping[str, tuple[Code, ...]]
    threshold: float

    def passes(self, person: str, image: Image) -> bool:
        own = coded(image)
        return own is not None and bool(distance(own, self.codes[person]).min() < self.threshold)


def coded(image: Image) -> Code | None:
    """Return the iris code of a picture, None without a pupil."""
    found = eye(image)
    return None if found is None else code(image, found)


def baselines(eyes: Dataset) -> Baselines:
    """Return the baselines of a data set, with the threshold that few photos of other eyes pass."""
    known: dict[str, list[Code]] = {}
    others: dict[str, list[Code]] = {}
    for place, item in enumerate(eyes.items):
        if (own := coded(item.read().image)) is not None:
            later = [one.person for one in eyes.items[:place]].count(item.person) >= BASELINES
            (others if later else known).setdefault(item.person, []).append(own)
    codes = {person: tuple(own) for person, own in known.items()}
    apart = [
        float(distance(one, codes[person]).min())
        for whose, own in others.items()
        for one in own
        for person in codes
        if person != whose
    ]
    return Baselines(codes, float(np.quantile(apart, FALSE)))


def drawn(count: int, photos: int) -> Dataset:
    """Return so many eyes that are drawn, with so many photos of each."""
    return Dataset(DrawnEye.kind, tuple(draw_items(DrawnEye, count, photos)), count, photos)


def make(count: int | None, told: Callable[[str], None], own: Path | None = None) -> dict[str, bytes]:
    """Return results.csv and a plot; `count` is the number of eyes, and `own` a data set in place of drawn
    ones. Raises `UsageError`.
    """
    eyes = load(own, people=count or EYES, photos=PHOTOS) if own else drawn(count or EYES, PHOTOS)
    table: list[Row] = []
    with one_thread():
        known = baselines(eyes)
        table += _rows(eyes, known, Setting(None), "nothing", "")
        for name, numbers in PUBLISHED.items():
            for x in numbers:
                setting = Setting(METHODS[name](x), None, MEDIAN.get(name, ()))
                table += _rows(eyes, known, setting, name, x)
            told(name)
    return {"crr.png": plot(table, eyes.name), "results.csv": to_csv(table)}


def _rows(eyes: Dataset, known: Baselines, setting: Setting, name: str, x: str) -> list[Row]:
    people, photos, releases = _released(eyes, setting, known)
    pairs = list(zip(photos, releases, strict=True))
    found = np.array([pupil_detection(a, b) or 0.0 for a, b in pairs])
    there = [(gaze(a, b), person) for (a, b), person in zip(pairs, people, strict=True)]
    angles = [(value, person) for value, person in there if value is not None]
    published = PUBLISHED.get(name, {}).get(x)
    words = ("", "", "") if published is None else tuple("" if one is None else str(one) for one in published)
    made = []
    for kind, undo in FILTERS.items():
        if kind == FILLED and name not in SNOWY:
            continue
        passed = [float(known.passes(p, undo(b))) for p, b in zip(people, releases, strict=True)]
        row = {"method": name, "x": x, "filter": kind, "series": f"{name}, {kind}"}
        row |= estimate("passed", clustered_share(np.array(passed), people), ".4f")
        row |= estimate("pupils", clustered_share(found, people), ".4f")
        row |= estimate("gaze", _mean(angles), ".3f")
        row |= dict(zip(("pupils_published", "gaze_published", "passed_published"), words, strict=True))
        made.append({**row, "releases": str(len(people)), "eyes": str(len(set(people)))})
    return made


def _mean(found: Sequence[tuple[float, str]]) -> tuple[float, float, float]:
    if not found:
        return (float("nan"),) * 3
    values, people = zip(*found, strict=True)
    return clustered_mean(np.array(values), people)


def _released(
    eyes: Dataset, setting: Setting, known: Baselines
) -> tuple[list[str], list[Image], list[Image]]:
    people, photos, releases = list[str](), list[Image](), list[Image]()
    times: dict[str, int] = {}
    for item in eyes.items:
        times[item.person] = times.get(item.person, 0) + 1
        view = setting.adversary_view(item, SEED)
        if times[item.person] > BASELINES and item.person in known.codes and view is not None:
            people.append(item.person)
            photos.append(item.read().image)
            releases.append(view[0].image)
    return people, photos, releases


def plot(table: Sequence[Row], about: str) -> bytes:
    """Return who passes, by method, as PNG."""
    panels = []
    for name in METHODS:
        snowy = name.startswith("Snow")
        panels.append(Panel("passed", "δ" if snowy else "ε", name, logx=not snowy))
        for number, kind in enumerate(FILTERS):
            panels[-1].curve(f"{name}, {kind}", table, number)
    counted = f"{table[0]['releases']} releases, {table[0]['eyes']} eyes; bands are 95 % intervals"
    return figure(f"Who passes by the iris of a release: {about}\n{counted}", *panels, same=True)
