"""Mechanisms that choose among public values: by rank, or by randomised response."""

from dpveil.mechanisms.choice.randomised_response import RandomisedResponse
from dpveil.mechanisms.choice.rank_choice import LAWS, RankChoice

__all__ = ["LAWS", "RandomisedResponse", "RankChoice"]
