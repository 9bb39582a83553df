"""Face detectors: one file each, and the choice among those installed."""

from dpveil.core.registry import DETECTORS
from dpveil.regions.detectors.table import Detector, choose

__all__ = ["DETECTORS", "Detector", "choose"]
