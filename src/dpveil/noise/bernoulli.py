"""Exact Bernoulli draws of one rational probability: one byte decides most of them, more bits the rest."""

from __future__ import annotations

from fractions import Fraction
from typing import Final

import numpy as np

from dpveil.core.array_types import Bool
from dpveil.errors import NoiseError
from dpveil.noise.bits import BitSource

CHUNK: Final = 1 << 20  # booleans drawn at a time


def bernoulli(chance: Fraction, size: int, bits: BitSource) -> Bool[np.ndarray, " size"]:
    """Return `size` independent booleans that are true with probability exactly `chance`.

    `chance` is a rational strictly between 0 and 1 (`NoiseError` otherwise). A uniform number in [0, 1) is
    compared with it digit by digit, first in base 256, then in base 2^64, while digits are equal; how many
    bits are read depends on the bits alone. Source: docs, "Exact noise".

    >>> from dpveil.noise.bits import SeededBits
    >>> int(bernoulli(Fraction(1, 3), 9000, SeededBits(1)).sum())
    2992
    """
    if not 0 < chance < 1:
        raise NoiseError(f"the probability {chance} is not between 0 and 1")
    out = np.empty(size, np.bool_)
    for start in range(0, size, CHUNK):
        part = out[start : start + CHUNK]
        digits = bits.words(-(-len(part) // 8)).astype("<u8", copy=False).view(np.uint8)[: len(part)]
        first, rest = divmod(256 * chance, 1)
        np.less(digits, np.uint8(first), out=part)
        ties = np.flatnonzero(digits == np.uint8(first))
        part[ties] = _draw_below(rest, len(ties), bits)
    return out


def _draw_below(chance: Fraction, size: int, bits: BitSource) -> Bool[np.ndarray, " size"]:
    """Return the same for any chance in [0, 1), with 64-bit digits only."""
    first, rest = divmod((1 << 64) * chance, 1)
    digits = bits.words(size)
    below: Bool[np.ndarray, " size"] = digits < np.uint64(first)
    ties = np.flatnonzero(digits == np.uint64(first))
    if rest and len(ties):
        below[ties] = _draw_below(rest, len(ties), bits)
    return below
