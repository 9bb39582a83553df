"""Which variables of the environment processes get that read what anybody gives."""

from __future__ import annotations

import os
from typing import Final

PASSED_ON: Final = frozenset(
    {"PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TMPDIR", "LD_LIBRARY_PATH", "PYTHONHOME"}
    | {"PYTHONDONTWRITEBYTECODE", "XDG_CACHE_HOME", "NUMBA_CACHE_DIR", "DPVEIL_PLAIN"}
)
"""The only ones: others may hold passwords, such as the ledger's."""


def passed_on() -> dict[str, str]:
    """Return the variables of this process that are in `PASSED_ON`."""
    return {name: value for name, value in os.environ.items() if name in PASSED_ON}
