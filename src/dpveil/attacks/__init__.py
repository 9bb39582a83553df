"""The adversary's side: what somebody learns of who is on a released picture. Nothing of the release side
imports it.
"""

from dpveil.attacks.embedding import CHIP, LENGTH, SAME, Embedder, embedder
from dpveil.attacks.identify import Identified, identify

__all__ = ["CHIP", "LENGTH", "SAME", "Embedder", "Identified", "embedder", "identify"]
