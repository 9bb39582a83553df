"""Packages that load an attribute when it is first used (PEP 562), so that importing one is cheap."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Any


def lazy(
    package: str, below: Mapping[str, str], homes: Mapping[str, str] = MappingProxyType({})
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` for a package that loads its names on first use.

    `below` has the names of each module of the package, and `homes` the full module of each other name. A
    loaded value is stored as an attribute of the package. No name may be that of a submodule: importing the
    submodule would overwrite it. For type checkers, the package repeats the imports under TYPE_CHECKING.

    >>> load, names = lazy("dpveil.core", {"photo": "Photo"})
    >>> load("Photo").__name__, names()
    ('Photo', ['Photo'])
    """
    own = {name: f"{package}.{module}" for module, names in below.items() for name in names.split()}
    known = {**homes, **own}

    def load(name: str) -> Any:
        if name not in known:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(known[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    return load, lambda: sorted(known)
