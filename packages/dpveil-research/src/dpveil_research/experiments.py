"""Every experiment by its name: the only list to edit."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

from dpveil_research import (
    attributes,
    croft_2022,
    croft_2022_faces,
    croft_pixels,
    croft_thesis_5,
    croft_thesis_6,
    croft_thesis_6_aam,
    errata_e1,
    faceidp,
    faceidp_faces,
    gallery,
    half_infinite,
    ksame,
    li_clifton_2021,
    naive_bayes,
    reilly_fan_2021,
    reilly_fan_eyes,
    reilly_fan_risk,
)
from dpveil_research.grid import Grid, measure

GRIDS: Final[dict[str, Grid]] = {module.GRID.name: module.GRID for module in (reilly_fan_2021, croft_2022)}
"""Experiments of settings × photos of one data set, all run by `grid.measure`."""

ON_DATA: Final[dict[str, Callable[[Path, int | None, Callable[[str], None]], dict[str, bytes]]]] = {
    **{name: partial(measure, grid) for name, grid in GRIDS.items()},
    "naive-bayes": naive_bayes.make,
    "reilly-fan-2021-risk": reilly_fan_risk.make,
    "reilly-fan-2021-eyes": reilly_fan_eyes.make,
    "faceidp": faceidp.make,
    "li-clifton-2021": li_clifton_2021.make,
    "croft-2022-ksame": ksame.make,
    "croft-2022-faces": croft_2022_faces.make,
    "croft-thesis-6": croft_thesis_6.make,
    "croft-thesis-6-aam": croft_thesis_6_aam.make,
    "croft-thesis-6-pixels": partial(croft_pixels.make, croft_pixels.THESIS),
    "croft-2022-risk": partial(croft_pixels.make, croft_pixels.PAPER),
    "attributes": attributes.make,
    "gallery": gallery.make,
}
"""Functions of (folder of data sets, count, progress callback) that return files by name.

The count is of photos, pairs, people or splits; None is the experiment's own default.
"""

COMPUTED: Final[dict[str, Callable[[], dict[str, bytes]]]] = {
    "croft-thesis-5": croft_thesis_5.make,
    "errata-e1": errata_e1.make,
    "faceidp-faces": faceidp_faces.make,
    "half-infinite": half_infinite.make,
}
"""Experiments without data."""

NAMES: Final = (*ON_DATA, *COMPUTED)
