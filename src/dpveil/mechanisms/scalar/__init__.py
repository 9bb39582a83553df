"""Scalar range-adherent mechanisms: each a class, and a row in `core.registry`."""

from typing import TYPE_CHECKING

from dpveil.core import registry
from dpveil.core.lazy import lazy

if TYPE_CHECKING:
    from dpveil.mechanisms.scalar.base import ScalarMechanism
    from dpveil.mechanisms.scalar.explicit_fair import ExplicitFair, Uniform
    from dpveil.mechanisms.scalar.laplace import Geometric, Laplace, Staircase, TruncatedLaplace
    from dpveil.mechanisms.scalar.linear_program import LinearProgram1, LinearProgram2
    from dpveil.mechanisms.scalar.ranges import Range

__all__ = [
    "ExplicitFair",
    "Geometric",
    "Laplace",
    "LinearProgram1",
    "LinearProgram2",
    "Range",
    "ScalarMechanism",
    "Staircase",
    "TruncatedLaplace",
    "Uniform",
]

__getattr__, __dir__ = lazy(__name__, {"base": "ScalarMechanism", "ranges": "Range"}, registry.SCALAR.homes)
