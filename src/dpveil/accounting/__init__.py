"""Composing, converting and calibrating guarantees."""

from dpveil.accounting.compose import compose, weaker
from dpveil.accounting.laplace import laplace_epsilon, laplace_scale
from dpveil.accounting.together import compose_at
from dpveil.accounting.zcdp import zcdp_delta, zcdp_epsilon, zcdp_rho

__all__ = [
    "compose",
    "compose_at",
    "laplace_epsilon",
    "laplace_scale",
    "weaker",
    "zcdp_delta",
    "zcdp_epsilon",
    "zcdp_rho",
]
