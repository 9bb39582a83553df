"""Compiled or plain: the same numbers from the same bits, whichever costs less.

Loading numba costs about as much as drawing tens of millions of numbers without it. So a process starts
plain and loads the compiled kernels once it has done as much plain work as loading them costs (never more
than twice the best choice). `compile_now` loads them at once, for long-lived processes.
"""

from __future__ import annotations

import importlib
import os
import tempfile
from types import ModuleType
from typing import Final

LOAD_COST: Final = 25_000_000
"""Look-ups that take plain code about as long as loading the kernels takes."""


class _State:
    kernels: ModuleType | None = None
    done: int = 0
    plain: bool = os.environ.get("DPVEIL_PLAIN", "") == "1"


def kernels(work: int) -> ModuleType | None:
    """Return the compiled kernels if they are loaded or worth loading for `work` more look-ups."""
    if _State.kernels is None and not _State.plain:
        _State.done += work
        if _State.done > LOAD_COST:
            compile_now()
    return None if _State.plain else _State.kernels


def compile_now() -> None:
    """Load the compiled kernels now; changes the speed of later draws, never their values.

    The environment variable DPVEIL_PLAIN=1, read when dpveil is imported, keeps everything plain.
    """
    if _State.kernels is None:
        try:
            _State.kernels = importlib.import_module("dpveil.noise.kernels")
        except RuntimeError:  # no place to cache compiled code: numba says so at decoration
            os.environ["NUMBA_CACHE_DIR"] = tempfile.mkdtemp(prefix="dpveil-numba-")
            _State.kernels = importlib.import_module("dpveil.noise.kernels")
