"""Scalar range-adherent mechanisms: one file each, and this table, the only list to edit."""

from typing import Final

from dpveil.mechanisms.scalar.base import ScalarMechanism
from dpveil.mechanisms.scalar.explicit_fair import ExplicitFair
from dpveil.mechanisms.scalar.exponential import Exponential
from dpveil.mechanisms.scalar.laplace import Geometric, Laplace
from dpveil.mechanisms.scalar.linear_program import LinearProgram1, LinearProgram2
from dpveil.mechanisms.scalar.permute_and_flip import PermuteAndFlip
from dpveil.mechanisms.scalar.ranges import Range
from dpveil.mechanisms.scalar.staircase import Staircase
from dpveil.mechanisms.scalar.truncated_laplace import TruncatedLaplace
from dpveil.mechanisms.scalar.uniform import Uniform

TABLE: Final[dict[str, type[ScalarMechanism]]] = {
    mechanism.name: mechanism
    for mechanism in (
        Laplace,
        TruncatedLaplace,
        Staircase,
        Geometric,
        ExplicitFair,
        Exponential,
        PermuteAndFlip,
        Uniform,
        LinearProgram1,
        LinearProgram2,
    )
}

__all__ = [
    "TABLE",
    "ExplicitFair",
    "Exponential",
    "Geometric",
    "Laplace",
    "LinearProgram1",
    "LinearProgram2",
    "PermuteAndFlip",
    "Range",
    "ScalarMechanism",
    "Staircase",
    "TruncatedLaplace",
    "Uniform",
]
