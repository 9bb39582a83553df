"""Packages that load an attribute when it is first used (PEP 562), so that importing one is cheap."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy(
    package: str, homes: Mapping[str, str], **below: str
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` of a package whose names are loaded from elsewhere.

    `homes` names the module of each, `below` does for modules of the package itself ("base"). What is loaded
    stays as an attribute. No name may be that of a module of the package: whoever imports the module puts it
    in the name's place. Type checkers read the imports under TYPE_CHECKING that stand beside this.

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
