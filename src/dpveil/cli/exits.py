"""Exit codes, for help, documentation and code; those of errors are in `dpveil.errors`."""

from __future__ import annotations

from typing import Final

DONE: Final = 0
INCOMPLETE: Final = 1
USAGE: Final = 2
BUDGET: Final = 3
IMPOSSIBLE: Final = 4
INTERRUPTED: Final = 130

MEANING: Final = {
    DONE: "all done",
    INCOMPLETE: "something failed: a photo, a release, an audit",
    USAGE: "wrong usage",
    BUDGET: "budget refused or promise too weak",
    IMPOSSIBLE: "nothing readable, or the output or ledger cannot be written",
    INTERRUPTED: "interrupted",
}
"""The meaning of each exit code in a few words, for `dpveil --help`."""
