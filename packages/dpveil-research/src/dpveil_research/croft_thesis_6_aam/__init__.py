"""Croft's thesis, figure 6.7: an active appearance model beside a generator, in the photo and on its own."""

from dpveil_research.croft_thesis_6_aam.plan import PLAN, Plan
from dpveil_research.croft_thesis_6_aam.run import make

__all__ = ["PLAN", "Plan", "make"]
