"""What a user asks for a clip besides tracks: the words of each choice, and which methods each mode takes."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from dpveil.core.origin import BOX, OBJECT, WHOLE
from dpveil.errors import InvalidParameter
from dpveil.faces.base import FaceMethod
from dpveil.mechanisms.method import Method
from dpveil.mechanisms.pixel.base import BudgetedMethod
from dpveil.mechanisms.pixel.baselines import Fill

ONCE: Final = "once"
SPLIT: Final = "split"
OVER_TIME: Final = (ONCE, SPLIT)
"""How a budget lasts: one draw of a key frame, or shares for each frame."""
FIXED: Final = (WHOLE, BOX, OBJECT)
"""Kinds of regions whose place a user gives, and no pixel."""
SHARED: Final = {"pure": "epsilon", "zcdp": "rho"}
"""Kinds of guarantees that can be divided over frames, and the parameter that is."""


def check_word(name: str, value: object, known: Collection[str]) -> str:
    """Return a choice that is one of the `known` words; raises `InvalidParameter`.

    >>> check_word("over_time", "once", OVER_TIME)
    'once'
    """
    if not isinstance(value, str) or value not in known:
        raise InvalidParameter(name, value, "is unknown", hint=f"one of {', '.join(known)}")
    return value


def draws_faces(method: Method) -> bool:
    """Whether a method draws faces, and covers all else."""
    return isinstance(method, FaceMethod)


def divides(method: Method) -> bool:
    """Whether the budget of a method can be divided over frames; one that costs nothing has none."""
    return isinstance(method, Fill) or (isinstance(method, BudgetedMethod) and method.kind in SHARED)


def check_mode(method: Method, over_time: str) -> None:
    """Raise `InvalidParameter` unless a method takes this mode of `OVER_TIME`.

    Methods that draw faces are drawn once. A split divides ε of a pure guarantee or ρ of a zCDP one, of
    methods whose cost is their budget whatever the size of a region; a δ would not divide with it, and other
    guarantees have no number to divide.
    """
    if getattr(method, "link", False):
        raise InvalidParameter("link", None, "is for photos", hint="a track has one face in any case")
    if over_time == ONCE or isinstance(method, Fill):
        return
    if draws_faces(method):
        problem = f"is for methods that change pixels, and {method.name} draws faces"
        raise InvalidParameter("over_time", over_time, problem, hint="leave it at once")
    if not divides(method):
        problem = f"does not divide the {method.kind} guarantee of {method.name}"
        hint = "take once, or a method with epsilon alone or rho, such as dp-pix"
        raise InvalidParameter("over_time", over_time, problem, hint=hint)
