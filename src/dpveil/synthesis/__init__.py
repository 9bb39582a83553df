"""Synthetic data sets that are private as data sets: one promise for all photos of a person together."""

from typing import TYPE_CHECKING

from dpveil.core.lazy import lazy

if TYPE_CHECKING:
    from dpveil.synthesis.face_variations import Simulator
    from dpveil.synthesis.plan import Evolved, SetPlan, evolve

__all__ = ["Evolved", "SetPlan", "Simulator", "evolve"]

__getattr__, __dir__ = lazy(__name__, {"plan": "Evolved SetPlan evolve", "face_variations": "Simulator"})
