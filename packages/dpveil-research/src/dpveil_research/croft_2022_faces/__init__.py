"""Croft et al. 2022, figures 5, 7, 10 and 11: recognition and gender in releases of one generator."""

from dpveil_research.croft_2022_faces.plan import PLAN, Plan
from dpveil_research.croft_2022_faces.run import make

__all__ = ["PLAN", "Plan", "make"]
