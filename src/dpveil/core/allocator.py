"""Freed memory, which is soon needed again: each photo of many needs arrays as large as the one before."""

from __future__ import annotations

import ctypes
import sys
from contextlib import suppress
from typing import Final

M_TRIM_THRESHOLD: Final = -1
M_MMAP_MAX: Final = -4
KEPT: Final = 1 << 28
"""Bytes of freed memory that are kept; what is beyond goes back to the system."""


def keep_freed() -> None:
    """Let this process keep freed memory for the next photo, where the C library is glibc (`mallopt`).

    By itself glibc gives every large array back at once and asks for it anew, and the system clears each of
    its pages again: a fifth of the time of a release. For programs, not for libraries: it holds for all of
    the process.
    """
    if sys.platform != "linux":
        return
    with suppress(AttributeError):  # another C library
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(M_MMAP_MAX, 0)
        mallopt(M_TRIM_THRESHOLD, KEPT)
