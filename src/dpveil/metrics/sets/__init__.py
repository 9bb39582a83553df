"""Measures between two sets of pictures, by rows of features: one file each.

They compare distributions, not pairs: how real made faces are together, whether kinds of faces are missing,
and whether faces of the training are given back.
"""

from dpveil.metrics.sets.base import colours
from dpveil.metrics.sets.bins import Binned, Bins
from dpveil.metrics.sets.frechet import frechet
from dpveil.metrics.sets.memorisation import Nearest, memorised
from dpveil.metrics.sets.wasserstein import sliced_wasserstein

__all__ = ["Binned", "Bins", "Nearest", "colours", "frechet", "memorised", "sliced_wasserstein"]
