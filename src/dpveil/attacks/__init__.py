"""The adversary's side: recognising people in released pictures. No release code imports it."""

from dpveil.attacks.base import Attack, Background, Fitted, Scores, View
from dpveil.attacks.combined import attack, usable
from dpveil.attacks.measures import (
    Rate,
    Verified,
    equal_error,
    identification,
    identification_rates,
    verification,
    verification_rates,
)

__all__ = [
    "Attack",
    "Background",
    "Fitted",
    "Rate",
    "Scores",
    "Verified",
    "View",
    "attack",
    "equal_error",
    "identification",
    "identification_rates",
    "usable",
    "verification",
    "verification_rates",
]
