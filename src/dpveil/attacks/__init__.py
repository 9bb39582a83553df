"""The adversary's side: recognising people in released pictures. No release code imports it."""

from dpveil.attacks.base import Attack, Background, Fitted, Scores, View
from dpveil.attacks.identify import Identified, identify, parrot, strongest
from dpveil.attacks.labels import attack, usable
from dpveil.attacks.measures import (
    Rate,
    ToldApart,
    Verified,
    equal_error,
    equal_error_rate,
    identification,
    named,
    open_set,
    passed,
    real_or_made,
    verification,
    verify,
)

__all__ = [
    "Attack",
    "Background",
    "Fitted",
    "Identified",
    "Rate",
    "Scores",
    "ToldApart",
    "Verified",
    "View",
    "attack",
    "equal_error",
    "equal_error_rate",
    "identification",
    "identify",
    "named",
    "open_set",
    "parrot",
    "passed",
    "real_or_made",
    "strongest",
    "usable",
    "verification",
    "verify",
]
