"""Synthetic data sets that are private as data sets: one promise for all photos of a person together."""

from typing import TYPE_CHECKING

from dpveil.core.lazy import lazy

if TYPE_CHECKING:
    from dpveil.synthesis.evolution import Evolved, evolve
    from dpveil.synthesis.plan import Plan
    from dpveil.synthesis.simulator import Simulator

__all__ = ["Evolved", "Plan", "Simulator", "evolve"]

__getattr__, __dir__ = lazy(
    __name__, {}, Evolved="evolution", Plan="plan", Simulator="simulator", evolve="evolution"
)
