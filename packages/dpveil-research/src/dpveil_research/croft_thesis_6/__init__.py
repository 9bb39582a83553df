"""Croft's thesis §6.8.2: differential privacy and k-same in one generator, figures 6.15 to 6.17."""

from dpveil_research.croft_thesis_6.plan import PLAN, Plan
from dpveil_research.croft_thesis_6.run import make

__all__ = ["PLAN", "Plan", "make"]
