"""Compiled or plain: the same numbers from the same bits, whichever costs less.

Loading numba costs about as much as drawing tens of millions of numbers without it. So a process starts
plain and loads the compiled kernels once it has done as much plain work as loading them costs (never more
than twice the best choice). `compile_now` loads them at once, for long-lived processes.
"""

from __future__ import annotations

import hashlib
import importlib
import inspect
import os
import tempfile
from collections.abc import Callable
from types import FunctionType, ModuleType, SimpleNamespace
from typing import Any, Final, TypeVar

Loaded = TypeVar("Loaded")

LOAD_COST: Final = 25_000_000
"""Look-ups that take plain code about as long as loading the kernels takes."""


class _State:
    kernels: ModuleType | None = None
    loops: dict[str, SimpleNamespace] = {}  # noqa: RUF012  # the process has one of each
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
        _State.kernels = _with_a_cache(lambda: importlib.import_module("dpveil.noise.kernels"))


def _with_a_cache(load: Callable[[], Loaded]) -> Loaded:
    try:
        return load()
    except RuntimeError:  # no place to cache compiled code: numba says so at decoration
        os.environ["NUMBA_CACHE_DIR"] = tempfile.mkdtemp(prefix="dpveil-numba-")
        return load()


def loops(modules: tuple[ModuleType, ...], work: int) -> Any:
    """Return the functions of modules written as plain loops, compiled where that is worth it for `work`.

    The modules stand in the order in which they import each other. They use nothing but whole numbers,
    doubles and + - × ÷ on arrays, so both give the same numbers; here there is one source instead of two.
    """
    found = compiled(modules, work)
    return SimpleNamespace(**_functions(modules)) if found is None else found


def compiled(modules: tuple[ModuleType, ...], work: int) -> Any | None:
    """Return the compiled functions of such modules if they are loaded or worth loading for `work` more."""
    name = modules[-1].__name__
    if name not in _State.loops and not _State.plain:
        _State.done += work
        if _State.kernels is not None or _State.done > LOAD_COST:
            _State.loops[name] = _with_a_cache(lambda: _compiled(modules))
    return None if _State.plain else _State.loops.get(name)


def _functions(modules: tuple[ModuleType, ...]) -> dict[str, FunctionType]:
    return {
        name: value
        for module in modules
        for name, value in vars(module).items()
        if isinstance(value, FunctionType) and value.__module__ == module.__name__
    }


def _source(module: ModuleType) -> bytes:
    """Return what a module was made from; a mark of the process itself where that cannot be had."""
    try:
        return inspect.getsource(module).encode("utf-8")
    except (OSError, TypeError):
        return os.urandom(16)


def _compiled(modules: tuple[ModuleType, ...]) -> SimpleNamespace:
    """Return the functions compiled, each with the others inside.

    Nothing divides by zero, which plain code would raise; without the question loops are done in parallel.
    Arrays come from the caller: without numba's runtime nothing can make one, and no call counts references
    to them, which took more time than what is computed.
    """
    from numba import njit  # takes half a second

    options: dict[str, Any] = {"cache": True, "nogil": True, "error_model": "numpy", "forceinline": True}
    options["_nrt"] = False
    sources = hashlib.sha256(b"".join(map(_source, modules))).hexdigest()[:16]
    done: dict[str, Any] = {}
    for module in modules:
        space = {**vars(module), **done}
        for name, function in _functions((module,)).items():
            twin = FunctionType(function.__code__, space, name, function.__defaults__)
            # numba's cache looks at one file, and what is compiled comes from all of these
            twin.__qualname__ = f"{name}_{sources}"
            space[name] = done[name] = njit(**options)(twin)
    return SimpleNamespace(**done)
