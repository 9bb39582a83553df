"""The adversary's side: what somebody learns of who is on a released picture. Nothing of the release side
imports it.
"""

from dpveil.attacks.identify import Identified, identify
from dpveil.attacks.parrot import parrot, strongest
from dpveil.attacks.verification import Verified, verify

__all__ = ["Identified", "Verified", "identify", "parrot", "strongest", "verify"]
