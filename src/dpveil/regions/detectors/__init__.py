"""Face detectors: one file each, one table, and the choice among those that are installed."""

from dpveil.regions.detectors.base import Detector
from dpveil.regions.detectors.table import DETECTORS, choose

__all__ = ["DETECTORS", "Detector", "choose"]
