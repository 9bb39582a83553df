"""Choose between compiled (numba) and plain NumPy kernels: both give the same numbers from the same bits.

Loading numba costs as much time as drawing tens of millions of numbers without it. So a process starts with
the plain kernels and loads the compiled ones when its plain draws have cost as much as loading would: at most
twice the time of the better choice. `compile_now` loads them at once, for long-lived processes.
"""

from __future__ import annotations

import hashlib
import importlib
import inspect
import os
from collections.abc import Callable
from types import FunctionType, ModuleType, SimpleNamespace
from typing import Any, Final

LOAD_COST: Final = 25_000_000
"""Table look-ups of plain code that take about as long as loading the compiled kernels."""


class _State:
    """The state of this process: what is loaded, and the look-ups done so far by plain code."""

    kernels: ModuleType | None = None
    loops: dict[str, SimpleNamespace] = {}  # noqa: RUF012  # the process has one of each
    done: int = 0
    plain: bool = os.environ.get("DPVEIL_PLAIN", "") == "1"


def kernels(work: int) -> ModuleType | None:
    """Return the compiled kernels if they are loaded or worth loading for `work` more look-ups, else None."""
    if _State.kernels is None and not _State.plain:
        _State.done += work
        if _State.done > LOAD_COST:
            compile_now()
    return None if _State.plain else _State.kernels


def compile_now() -> None:
    """Load the compiled kernels now: later draws get faster, their values stay the same.

    The environment variable DPVEIL_PLAIN=1, read when dpveil is imported, disables compiled code.
    """
    if _State.kernels is None:
        _State.kernels = importlib.import_module("dpveil.noise.kernels")


def jit(signature: Any = None, **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Return numba's `njit` with a cache on disk; without one where neither package nor home is writable."""
    from numba import njit  # slow to import: half a second

    def compiling(function: Callable[..., Any]) -> Any:
        try:
            return njit(signature, cache=True, nogil=True, **options)(function)
        except RuntimeError:  # what numba raises where it finds no folder for its cache
            return njit(signature, nogil=True, **options)(function)

    return compiling


def loops(modules: tuple[ModuleType, ...], work: int) -> Any:
    """Return the functions of `modules` as a namespace, compiled if that is worth it for `work` look-ups.

    The modules are written as plain loops over arrays of integers and doubles with + - × ÷ only, so that
    interpreter and compiler give the same numbers. They are listed in import order.
    """
    name = modules[-1].__name__
    if name not in _State.loops and not _State.plain:
        _State.done += work
        if _State.kernels is not None or _State.done > LOAD_COST:
            _State.loops[name] = _compile(modules)
    found = None if _State.plain else _State.loops.get(name)
    return SimpleNamespace(**_functions(modules)) if found is None else found


def _functions(modules: tuple[ModuleType, ...]) -> dict[str, FunctionType]:
    return {
        name: value
        for module in modules
        for name, value in vars(module).items()
        if isinstance(value, FunctionType) and value.__module__ == module.__name__
    }


def _source(module: ModuleType) -> bytes:
    """Return a module's source, or random bytes if there is none, so that no cache entry matches."""
    try:
        return inspect.getsource(module).encode("utf-8")
    except (OSError, TypeError):
        return os.urandom(16)


def _compile(modules: tuple[ModuleType, ...]) -> SimpleNamespace:
    """Return the compiled functions of `modules`, each calling the others directly.

    `error_model="numpy"` drops the checks for division by zero, which never occurs, so that loops vectorise.
    `_nrt=False` drops numba's runtime: no function allocates an array, and reference counts of the arguments
    would take longer than the arithmetic.
    """
    options: dict[str, Any] = {"error_model": "numpy", "forceinline": True, "_nrt": False}
    sources = hashlib.sha256(b"".join(map(_source, modules))).hexdigest()[:16]
    done: dict[str, Any] = {}
    for module in modules:
        space = {**vars(module), **done}
        for name, function in _functions((module,)).items():
            plain = inspect.unwrap(function)  # tests check the types of calls
            twin = FunctionType(plain.__code__, space, name, plain.__defaults__)
            # numba's cache key covers one file, but the compiled code depends on all of them
            twin.__qualname__ = f"{name}_{sources}"
            space[name] = done[name] = jit(**options)(twin)
    return SimpleNamespace(**done)
