"""The papers' experiments, run anew: one file of settings a paper, one grid, CSV and plots.

The photos are the user's own copies of public data sets, and nothing of them is written: only means over many
photos. Layer: above the methods and measures, below the command line.
"""

from typing import Final

from dpveil.reproduction import croft_2022, reilly_fan_2021
from dpveil.reproduction.grid import Experiment

EXPERIMENTS: Final[dict[str, Experiment]] = {
    module.EXPERIMENT.name: module.EXPERIMENT for module in (reilly_fan_2021, croft_2022)
}

__all__ = ["EXPERIMENTS", "Experiment"]
