"""Every error that dpveil raises on purpose, as one tree.

    DPVeilError                  exit code
    ├── UsageError               2   the call itself is wrong; nothing was read
    │   ├── InvalidParameter         a parameter is missing, malformed or out of range
    │   ├── UnknownName              no method, region or format of that name (says the nearest)
    │   └── PluginError              an installed plug-in cannot be used
    │       └── MissingPlugin        what was received needs a plug-in that is not installed
    ├── RegionError              1   the regions do not fit this photo: outside, empty, another size
    │   └── NoRegion                 the photo holds no region of the wanted kind
    ├── UnsupportedRelation      2   guarantees that cannot be composed
    ├── BudgetExceeded           3   a ledger refused the debit
    ├── TooWeak                  3   a plan promises less than was asked for
    ├── PhotoError               4   the file is not a photo that dpveil reads
    ├── DataError                4   the table or its values are not ones that dpveil reads
    ├── OutputError              4   the output cannot be written
    ├── ModelError           4   a trained model's file is missing, damaged, or another one
    ├── CertificateError         1   a certificate is missing, malformed or does not fit its photo
    └── NoiseError               1   a sampler was asked for a law that it cannot draw exactly

Messages name what is wrong and its value; `hint` says how to mend it.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class DPVeilError(Exception):
    """Base of every refusal; `hint` is the remedy in one sentence, `exit_code` the command line's answer."""

    exit_code = 1

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}: {self.hint}" if self.hint else self.message


class UsageError(DPVeilError):
    """The call itself is wrong; nothing was read or spent."""

    exit_code = 2


class InvalidParameter(UsageError, ValueError):
    """A parameter is missing, malformed or out of range."""

    def __init__(self, name: str, value: object, problem: str, *, hint: str = "") -> None:
        shown = "" if value is None else f" = {value!r}" if isinstance(value, str) else f" = {value}"
        super().__init__(f"{name}{shown} {problem}", hint=hint)
        self.name = name
        self.value = value


class UnknownName(UsageError, KeyError):
    """No entry of that name in a table; the nearest one is suggested."""

    def __init__(self, role: str, name: str, known: Iterable[str]) -> None:
        names = sorted(known)
        near = get_close_matches(name, names, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]!r}?" if near else f"choose from {', '.join(names)}"
        super().__init__(f"unknown {role} {name!r}", hint=hint)
        self.name = name
        self.known = tuple(names)

    __str__ = DPVeilError.__str__


class PluginError(UsageError):
    """A plug-in of that name is installed and cannot be used."""


class MissingPlugin(PluginError):
    """Something received names what neither this version of dpveil nor an installed plug-in has.

    It names no package to install: only whoever made the release knows it, and a file must not choose it.
    """

    def __init__(self, role: str, name: str, group: str) -> None:
        super().__init__(
            f"the {role} {name!r} is neither in this version of dpveil nor in an installed plug-in: ask "
            f"whoever made the release which package brings it ({group}), and install that"
        )
        self.name = name


class PluginWarning(UserWarning):
    """A plug-in is left out; what dpveil itself brings is not affected."""


class RegionError(DPVeilError):
    """The regions do not fit this photo."""


class NoRegion(RegionError):
    """The photo holds no region of the wanted kind, so nothing is released."""


class UnsupportedRelation(UsageError):
    """These guarantees cannot be composed into one statement."""


class BudgetExceeded(DPVeilError):
    """A ledger refused the debit: nothing was drawn."""

    exit_code = 3

    def __init__(self, *, subject: str, asked: object, left: object) -> None:
        super().__init__(
            f"{subject} has epsilon {left} left and this release costs {asked}",
            hint=f"ask for {left} or less, or raise its limit",
        )
        self.subject = subject
        self.asked = asked
        self.left = left


class TooWeak(DPVeilError):
    """A plan promises less than was asked for: nothing was drawn."""

    exit_code = 3

    def __init__(
        self, *, asked: str, strength: str | None, total: object, missing: Iterable[str] = ()
    ) -> None:
        stated = "is an unprotected copy" if strength is None else f"promises {total}, which is {strength}"
        if strength is not None and (left := ", ".join(missing)):
            stated = f"leaves {left} in the clear, as nothing was found"
        super().__init__(
            f"the release {stated}, and at least {asked} was asked for",
            hint="dpveil explain says what each strength needs; or ask for less",
        )
        self.asked = asked
        self.strength = strength


class PhotoError(DPVeilError):
    """The file is not a photo that dpveil reads."""

    exit_code = 4


class DataError(DPVeilError):
    """The table or its values are not ones that dpveil reads.

    `private` says more, such as in which rows: for the eyes of whoever holds the data, and no others.
    """

    exit_code = 4

    def __init__(self, message: str, *, hint: str = "", private: str = "") -> None:
        super().__init__(message, hint=hint)
        self.private = private

    def __str__(self) -> str:
        told = super().__str__()
        return f"{told} ({self.private})" if self.private else told


class OutputError(DPVeilError):
    """The output cannot be written; nothing was left behind."""

    exit_code = 4


class ModelError(DPVeilError):
    """A trained model's file is missing, damaged, or another one than what was asked for."""

    exit_code = 4


class CertificateError(DPVeilError):
    """A certificate is missing, malformed, or does not fit its photo."""


class NoiseError(DPVeilError):
    """A sampler was asked for a law that it cannot draw exactly."""
