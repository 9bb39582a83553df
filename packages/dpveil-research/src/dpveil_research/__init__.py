"""The papers' experiments, run anew: one file of settings a paper, one grid, CSV and plots.

The photos are the user's own copies of public data sets, and nothing of them is written: only means over many
photos. What needs no data is computed, from the laws of the mechanisms and made-up surveys. Layer: above the
methods and measures, below the command line.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Final

from dpveil_research import (
    attributes,
    croft_2022,
    croft_thesis_5,
    errata_e1,
    faceidp,
    gallery,
    half_infinite,
    ksame,
    li_clifton_2021,
    reilly_fan_2021,
)
from dpveil_research.grid import Experiment

EXPERIMENTS: Final[dict[str, Experiment]] = {
    module.EXPERIMENT.name: module.EXPERIMENT for module in (reilly_fan_2021, croft_2022)
}

COMPUTED: Final[dict[str, Callable[[], dict[str, bytes]]]] = {
    "croft-thesis-5": croft_thesis_5.make,
    "errata-e1": errata_e1.make,
    "half-infinite": half_infinite.make,
}
"""Experiments without data: each returns its files by their names."""

TRAINED: Final[dict[str, Callable[[Path, int | None, Callable[[str], None]], dict[str, bytes]]]] = {
    "faceidp": faceidp.make,
    "li-clifton-2021": li_clifton_2021.make,
    "croft-2022-ksame": ksame.make,
    "attributes": attributes.make,
    "gallery": gallery.make,
}
"""Experiments of their own on the data: the folder, how many pairs or photos, and what is told of it."""

__all__ = ["COMPUTED", "EXPERIMENTS", "TRAINED", "Experiment"]
