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

DETAILS: Final = {
    DONE: "",
    INCOMPLETE: (
        "Some or all photos were not released, because their regions do not fit or are not found, or because"
        " something else lies at their output; `verify` found a file without a certificate, or a"
        " release that is missing, inconsistent, weaker than asked for or not signed by a trusted key;"
        " `audit` failed; `evaluate` found a broken guarantee, or a run that does not fit together; `train`"
        " or `synthesize` left images out; `card` found a picture that is no publishable release; `install`"
        " installed nothing"
    ),
    USAGE: "An option is missing, unknown or out of range; nothing was read",
    BUDGET: (
        "Nothing was drawn for a photo, or a set of `synthesize`, that would cost more than a limit of its"
        " subject has left, for a photo that was released with other regions before, or for one that would"
        " promise less than `--at-least`; nor for any photo of a run whose photos cost more together than is"
        " left. `card` found releases that have no total, or more for a person than `--at-most`, and wrote"
        " nothing"
    ),
    IMPOSSIBLE: (
        "No photo, table or model is one that dpveil reads, or no output can be written, or another run"
        " that a ledger pays for fills the same folder, or the ledger is missing, damaged, busy or replaced,"
        " or `serve` cannot listen or keep results; also where the one picture, plot or model that a command"
        " writes exists, without `--force`"
    ),
    INTERRUPTED: "By Ctrl-C or `SIGTERM`; nothing half written is left",
}
"""When commands end with each exit code, in Markdown for the documentation."""
