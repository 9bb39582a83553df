"""The adversary's side: what somebody learns of who is on a released picture. Nothing of the release side
imports it.
"""

from dpveil.faces.embedding import CHIP, LENGTH, SAME, Embedder, aligned, embedder, of_crop
from dpveil.attacks.identify import Identified, identify
from dpveil.attacks.parrot import parrot, strongest
from dpveil.attacks.verification import Verified, verify

__all__ = [
    "CHIP",
    "LENGTH",
    "SAME",
    "Embedder",
    "Identified",
    "Verified",
    "aligned",
    "embedder",
    "identify",
    "of_crop",
    "parrot",
    "strongest",
    "verify",
]
