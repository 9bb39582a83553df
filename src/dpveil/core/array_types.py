"""Types of arrays in annotations: jaxtyping's for type checkers and tests, which load it first.

Nothing reads them otherwise, and importing it takes longer than releasing a photo.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING or "jaxtyping" in sys.modules:
    from jaxtyping import (
        Bool,
        Float,
        Float32,
        Float64,
        Int,
        Int8,
        Int16,
        Int32,
        Int64,
        Integer,
        Num,
        Shaped,
        UInt8,
        UInt16,
        UInt64,
    )
else:

    class Shaped:
        """Any array, whatever is said of it."""

        def __class_getitem__(cls, said: Any) -> type:
            return np.ndarray

    Bool = Float = Float32 = Float64 = Int = Int8 = Int16 = Int32 = Int64 = Shaped
    Integer = Num = UInt8 = UInt16 = UInt64 = Shaped

__all__ = ["Bool", "Float", "Float32", "Float64", "Int", "Int8", "Int16", "Int32", "Int64", "Integer", "Num"]
__all__ += ["Shaped", "UInt8", "UInt16", "UInt64"]
