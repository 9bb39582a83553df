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
    identification_rates,
    open_set,
    real_or_made,
    verification,
    verification_rates,
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
    "identification_rates",
    "identify",
    "open_set",
    "parrot",
    "real_or_made",
    "strongest",
    "usable",
    "verification",
    "verification_rates",
    "verify",
]
