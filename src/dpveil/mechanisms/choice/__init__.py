"""Mechanisms that choose among public values: by rank, or by randomised response."""

from typing import TYPE_CHECKING

from dpveil.core.lazy import lazy

if TYPE_CHECKING:
    from dpveil.mechanisms.choice.rank_choice import RandomisedResponse, RankChoice

__all__ = ["RandomisedResponse", "RankChoice"]

__getattr__, __dir__ = lazy(__name__, {"rank_choice": "RandomisedResponse RankChoice"})
