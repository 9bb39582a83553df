"""Synthetic data sets that are private as data sets: one promise for all photos of a person together."""

from typing import TYPE_CHECKING

from dpveil.core.lazy import lazy

if TYPE_CHECKING:
    from dpveil.synthesis.plan import Evolved, Plan, evolve
    from dpveil.synthesis.simulator import Simulator

__all__ = ["Evolved", "Plan", "Simulator", "evolve"]

__getattr__, __dir__ = lazy(__name__, {"plan": "Evolved Plan evolve", "simulator": "Simulator"})
