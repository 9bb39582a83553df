"""Text and plates in photos, by the network of the package rapidocr."""

from dpveil.regions.text.finder import Text
from dpveil.regions.text.plates import Plates

__all__ = ["Plates", "Text"]
