"""Post-processing steps: one file each, and a row in this table.

A step only sees the released pixels of one region, so it changes no guarantee.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from dpveil.errors import InvalidParameter, UnknownName
from dpveil.postprocessing.denoiser import Denoiser
from dpveil.postprocessing.filters import GaussianBlur, Median, NonLocalMeans, Step, TotalVariation

TABLE: Final[dict[str, type[Step]]] = {
    step.name: step for step in (GaussianBlur, Median, NonLocalMeans, TotalVariation, Denoiser)
}

__all__ = [
    "TABLE",
    "Denoiser",
    "GaussianBlur",
    "Median",
    "NonLocalMeans",
    "Step",
    "TotalVariation",
    "opens",
    "parse",
    "parse_all",
    "stated",
]


def opens(step: str) -> bool:
    """Return whether parsing a step opens a file that it names.

    >>> opens(" denoiser:mine.safetensors"), opens("denoiser"), opens("median:3")
    (True, False, False)
    """
    name, colon, _ = step.strip().partition(":")
    return name == Denoiser.name and bool(colon)


def stated(step: str) -> Step:
    """Return the step that a certificate states, name, colon and parameter; opens no file.

    Raises `UnknownName` and `InvalidParameter`.
    """
    name, _, text = step.partition(":")
    if name not in TABLE:
        raise UnknownName("post-processing step", name, TABLE)
    if not text:
        raise InvalidParameter(
            "post_processing", step, "lacks its parameter", hint=f"such as {TABLE[name].usual}"
        )
    return TABLE[name].stated(text)


def parse(step: str | Step) -> Step:
    """Return the step written as "name:number", such as "gaussian:1.5"; the number has a default. After
    "denoiser:" stands a file; alone it is that of dpveil-faces.

    Raises `UnknownName` and `InvalidParameter`.

    >>> parse("median:3").description, parse("gaussian").description
    ('median:3', 'gaussian:1')
    """
    if isinstance(step, Step):
        return step
    name, colon, amount = str(step).strip().partition(":")
    if name not in TABLE:
        raise UnknownName("post-processing step", name, TABLE)
    if colon and not amount:
        raise InvalidParameter(
            "post_processing", step, "lacks its number", hint=f"such as {TABLE[name].usual}"
        )
    return TABLE[name].of(amount) if colon else parse(TABLE[name].usual)


def parse_all(steps: Sequence[str | Step] | str | Step) -> tuple[Step, ...]:
    """Return the steps in order; a single one need not be in a list. Raises as `parse`."""
    listed = (steps,) if isinstance(steps, str | Step) else steps
    return tuple(parse(step) for step in listed)
