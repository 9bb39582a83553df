"""Shapes and types are checked at the first calls of a function in each test, not at all of them.

A check by jaxtyping takes fifty microseconds, and statistical tests call samplers hundreds of thousands of
times with arguments of the same kind: checks were three quarters of their time.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from types import FunctionType
from typing import Any

import jaxtyping

CHECKED = 30
"""How many calls of one function are checked in one test."""


class Now:
    """The test that is running, as a number that changes with it."""

    test = 0


def check_first_calls() -> None:
    """Replace what jaxtyping puts around the functions of the packages that pytest's options name."""
    original = jaxtyping.jaxtyped

    def jaxtyped(*arguments: Any, **options: Any) -> Any:
        decorate = original(*arguments, **options)
        if arguments:
            return decorate

        def decorated(made: Any) -> Any:
            checked = decorate(made)
            return first_calls(checked, made) if isinstance(made, FunctionType) else checked

        return decorated

    jaxtyping.jaxtyped = jaxtyped


def first_calls(checked: Callable[..., Any], plain: FunctionType) -> Callable[..., Any]:
    """Return a function that is `checked` at its first calls in each test, and then `plain`."""
    test = calls = 0

    @wraps(checked)
    def call(*arguments: Any, **options: Any) -> Any:
        nonlocal test, calls
        if test != Now.test:
            test, calls = Now.test, 0
        calls += 1
        return (checked if calls <= CHECKED else plain)(*arguments, **options)

    return call
