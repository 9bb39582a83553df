"""Packages that load an attribute when it is first used (PEP 562), so that importing one is cheap."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy(
    package: str, homes: Mapping[str, str], **below: str
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` for a package that loads its names on first use.

    `homes` maps each name to its module; `below` does the same for modules of the package itself, without
    its name ("base"). A loaded value is stored as an attribute of the package. No name may be that of a
    submodule: importing the submodule would overwrite it. For type checkers, the package repeats the imports
    under TYPE_CHECKING.

    >>> load, names = lazy("dpveil.core", {}, Photo="photo")
    >>> load("Photo").__name__, names()
    ('Photo', ['Photo'])
    """
    known = {**homes, **{name: f"{package}.{module}" for name, module in below.items()}}

    def load(name: str) -> Any:
        if name not in known:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(known[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    return load, lambda: sorted(known)
