"""Synthetic data sets that are private as data sets: one promise for all photos of a person together."""

from dpveil.synthesis.evolution import Evolved, evolve
from dpveil.synthesis.plan import Plan
from dpveil.synthesis.simulator import Simulator

__all__ = ["Evolved", "Plan", "Simulator", "evolve"]
