"""The adversary's side: recognising people in released pictures. No release code imports it."""

from dpveil.attacks.identify import Identified, identify
from dpveil.attacks.parrot import parrot, strongest
from dpveil.attacks.real_or_made import ToldApart, real_or_made
from dpveil.attacks.verification import Verified, verify

__all__ = [
    "Identified",
    "ToldApart",
    "Verified",
    "identify",
    "parrot",
    "real_or_made",
    "strongest",
    "verify",
]
