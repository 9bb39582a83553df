"""Bit sources and exact samplers. No privacy claim is made here."""

from dpveil.noise.backend import compile_now
from dpveil.noise.bits import BitSource, SecureBits, SeededBits
from dpveil.noise.gaussian import discrete_gaussian
from dpveil.noise.integer_matrix import IntegerMatrix, certify_matrix, quantise
from dpveil.noise.laplace import discrete_laplace

__all__ = [
    "BitSource",
    "IntegerMatrix",
    "SecureBits",
    "SeededBits",
    "certify_matrix",
    "compile_now",
    "discrete_gaussian",
    "discrete_laplace",
    "quantise",
]
