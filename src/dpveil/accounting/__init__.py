"""Composition, conversion and calibration of guarantees."""

from dpveil.accounting.compose import compose, meet
from dpveil.accounting.draw_cost import to_approximate
from dpveil.accounting.zcdp import laplace_epsilon, laplace_scale, zcdp_delta, zcdp_epsilon, zcdp_rho

__all__ = [
    "compose",
    "laplace_epsilon",
    "laplace_scale",
    "meet",
    "to_approximate",
    "zcdp_delta",
    "zcdp_epsilon",
    "zcdp_rho",
]
