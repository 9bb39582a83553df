"""Croft's comparison of differential privacy and k-same (2022 §6, thesis §6.8), in the space of one codec."""

from dpveil_research.ksame.plan import PLAN, Plan
from dpveil_research.ksame.run import make

__all__ = ["PLAN", "Plan", "make"]
