"""Iris recognition after Daugman: circles, a rubber sheet, phases, and Hamming distances."""

from dpveil.attacks.iris.circles import Circle, Eye, eye
from dpveil.attacks.iris.codes import Code, Iris, code, distance

__all__ = ["Circle", "Code", "Eye", "Iris", "code", "distance", "eye"]
