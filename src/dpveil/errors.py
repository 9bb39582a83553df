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
    ├── ModelError               4   a trained model's file is missing, damaged, or another one
    ├── CertificateError         1   a certificate is missing, malformed or does not fit its photo
    └── NoiseError               1   a sampler was asked for a law that it cannot draw exactly

Messages name what is wrong and its value; `hint` says how to mend it. Both speak of arguments as Python
writes them; `DPVeilError.told` puts the options of a command line in their place.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Final

CLOSE: Final = 0.82
"""difflib's ratio from which a name is suggested: "dp-pix" for "dppix", and not "mean" for "median"."""
INTACT: Final = "get an intact copy of the release and its certificate, or release the photo again"
"""The remedy where a release and its certificate do not fit."""


class DPVeilError(Exception):
    """Base of every refusal; `hint` is the remedy in one sentence, `exit_code` the command line's answer.

    `arguments` are what the message and the hint name in braces, each with how Python writes it:
    `hint="or replace it with {replace}", arguments={"replace": "replace=True"}`.
    """

    exit_code = 1

    def __init__(self, message: str, *, hint: str = "", arguments: Mapping[str, str] | None = None) -> None:
        self._forms = (message, hint)
        self.arguments = dict(arguments or {})
        self.message, self.hint = self._filled(self.arguments)
        super().__init__(self.message)

    def __str__(self) -> str:
        return f"{self.message}: {self.hint}" if self.hint else self.message

    def told(self, options: Mapping[str, str]) -> tuple[str, str]:
        """Return message and hint with `options`, such as {"replace": "--force"}, in place of arguments.

        >>> DPVeilError("it exists", hint="{out}", arguments={"out": "out"}).told({"out": "--out"})
        ('it exists', '--out')
        """
        return self._filled({name: options.get(name, python) for name, python in self.arguments.items()})

    def _filled(self, words: Mapping[str, str]) -> tuple[str, str]:
        message, hint = self._forms
        return filled(message, words), filled(hint, words)


def filled(text: str, words: Mapping[str, str]) -> str:
    """Return `text` with each word in place of its name in braces; other braces are a file's own name."""
    for name, word in words.items():
        text = text.replace(f"{{{name}}}", word)
    return text


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that somebody who wrote `name` surely meant, or None.

    >>> nearest("dppix", ["dp-pix", "dp-svd"]), nearest("median", ["mean"])
    ('dp-pix', None)
    """
    found = get_close_matches(name, list(known), n=1, cutoff=CLOSE)
    return found[0] if found else None


class UsageError(DPVeilError):
    """The call itself is wrong; nothing was read or spent."""

    exit_code = 2


class InvalidParameter(UsageError, ValueError):
    """A parameter is missing, malformed or out of range."""

    def __init__(
        self,
        name: str,
        value: object,
        problem: str,
        *,
        hint: str = "",
        arguments: Mapping[str, str] | None = None,
    ) -> None:
        shown = "" if value is None else f" = {value!r}" if isinstance(value, str) else f" = {value}"
        super().__init__(f"{name}{shown} {problem}", hint=hint, arguments=arguments)
        self.name = name
        self.value = value
        self.problem = problem

    def told(self, options: Mapping[str, str]) -> tuple[str, str]:
        """Return message and hint; where the parameter is an option, as it was written on a command line.

        >>> InvalidParameter("block", 0, "is out of range").told({"block": "--block"})[0]
        '--block 0 is out of range'
        """
        message, hint = super().told(options)
        option = options.get(self.name, self.name)
        if not option.startswith("--"):
            return message, hint
        given = "" if self.value is None else f" {shlex.quote(str(self.value))}"
        words = {name: options.get(name, python) for name, python in self.arguments.items()}
        return f"{option}{given} {filled(self.problem, words)}", hint


class UnknownName(UsageError, KeyError):
    """No entry of that name in a table; `hint` suggests the one that was surely meant, or lists all."""

    def __init__(self, role: str, name: str, known: Iterable[str], *, hint: str = "") -> None:
        names = sorted(known)
        near = nearest(name, names)
        usual = f"did you mean {near!r}?" if near else f"choose from {', '.join(names)}"
        super().__init__(f"unknown {role} {name!r}", hint=hint or usual)
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

    def __init__(
        self,
        message: str,
        *,
        hint: str = "",
        arguments: Mapping[str, str] | None = None,
        private: str = "",
    ) -> None:
        super().__init__(message, hint=hint, arguments=arguments)
        self.private = private

    def __str__(self) -> str:
        told = super().__str__()
        return f"{told} ({self.private})" if self.private else told

    def about(self, place: str) -> DataError:
        """Return the same error with the place that it is about, such as a file and its column, in front."""
        message, hint = self._forms
        private = self.private and f"{place}: {self.private}"
        return DataError(f"{place}: {message}", hint=hint, arguments=self.arguments, private=private)


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
