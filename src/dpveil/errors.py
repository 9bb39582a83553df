"""Every error that dpveil raises on purpose, as one tree.

    DPVeilError                  exit code
    ├── UsageError               2   the call itself is wrong; nothing was read
    │   ├── InvalidParameter         a parameter is missing, malformed or out of range
    │   ├── UnknownName              no method, region or format of that name (suggests the nearest)
    │   └── PluginError              an installed plug-in cannot be used
    │       └── MissingPlugin        a received file needs a plug-in that is not installed
    ├── RegionError              1   the regions do not fit this photo: outside, empty, another size
    │   ├── NoRegion                 the photo holds no region of the wanted kind
    │   └── TooNear                  a region would have to be cut for a face that stays
    ├── UnsupportedRelation      2   guarantees that cannot be composed
    ├── BudgetRefused            3   a ledger cannot take the debit: no limit, or no total
    │   ├── BudgetExceeded           the limit has less left than the release costs
    │   └── RegionsDiffer            earlier releases of the photo cover other regions
    ├── AlreadyPaid              1   a ledger has a stored release for this key
    ├── ReservationLost          1   a reservation expired, or another one took its place
    ├── LedgerError              4   the ledger is missing, damaged, busy, or not what it was
    ├── TooWeak                  3   a plan promises less than was asked for
    ├── PhotoError               4   the file is not a photo that dpveil reads
    │   └── ClipError                or not a clip that dpveil reads
    ├── DataError                4   dpveil cannot read the table or its values
    ├── OutputError              4   the output cannot be written
    ├── ModelError               4   a trained model's file is missing, damaged, or not the expected one
    ├── CertificateError         1   a certificate is missing, malformed or does not fit its photo
    └── NoiseError               1   a sampler was asked for a distribution that it cannot draw exactly

Messages name what is wrong and its value; `hint` says how to fix it. Both write arguments as Python does;
`DPVeilError.message_and_hint` writes them as options of the command line.
"""

from __future__ import annotations

import copyreg
import shlex
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any, Final

CLOSE: Final = 0.82
"""The least difflib ratio of a suggestion: "dp-pix" is suggested for "dppix", "mean" not for "median"."""


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that is most similar to `name`, or None if none is similar enough (`CLOSE`).

    A word of just one name counts as similar.

    >>> nearest("dppix", ["dp-pix"]), nearest("svd", ["dp-pix", "dp-svd"]), nearest("median", ["mean"])
    ('dp-pix', 'dp-svd', None)
    >>> nearest("tella", ["telea"]), nearest("fcaes", ["faces"]), nearest("max", ["mad"])
    ('telea', 'faces', None)
    """
    names = list(known)
    holding = [known for known in names if name in known.split("-")]
    alike = [known for known in names if abs(len(known) - len(name)) < 2]  # may be one slip in typing
    found = get_close_matches(name, names, n=1, cutoff=CLOSE) or get_close_matches(name, alike, 1, cutoff=0.8)
    found = found or (holding if len(holding) == 1 else [])
    return found[0] if found else None


def suggestion(name: str, known: Iterable[str]) -> str:
    """Return a question for the beginning of a hint, or nothing if no known name is similar."""
    near = nearest(name, known)
    return f"did you mean {near}? " if near else ""


INTACT: Final = "get an intact copy of the release and its certificate, or release the photo again"
"""The hint where a release and its certificate do not belong together."""


class DPVeilError(Exception):
    """Base of dpveil's errors; `hint` is the remedy in one sentence, `exit_code` that of the command line.

    The message and the hint name arguments in braces, and `arguments` maps each to its Python form:
    `hint="or replace it with {replace}", arguments={"replace": "replace=True"}`.
    """

    exit_code = 1

    def __init__(self, message: str, *, hint: str = "", arguments: Mapping[str, str] | None = None) -> None:
        self._forms = (message, hint)
        self.arguments = dict(arguments or {})
        self.message, self.hint = self._fill_forms(self.arguments)
        super().__init__(self.message)

    def __str__(self) -> str:
        return f"{self.message}: {self.hint}" if self.hint else self.message

    def __reduce__(self) -> tuple[Any, ...]:
        """Let it be pickled, with the system's error that caused it."""
        cause = self.__cause__ if isinstance(self.__cause__, OSError) else None
        # without calling the constructor, whose arguments are others than `args`
        return copyreg.__newobj__, (type(self), *self.args), {**self.__dict__, "__cause__": cause}  # type: ignore[attr-defined]

    def rename(self, old: str, new: str) -> None:
        """Call a place otherwise in all that is told, as one by URL is known by another name."""
        self._forms = (self._forms[0].replace(old, new), self._forms[1].replace(old, new))
        self.message, self.hint = self._fill_forms(self.arguments)

    def message_and_hint(self, options: Mapping[str, str]) -> tuple[str, str]:
        """Return message and hint with arguments written as `options`, such as {"replace": "--force"}.

        >>> error = DPVeilError("it exists", hint="{out}", arguments={"out": "out"})
        >>> error.message_and_hint({"out": "--out"})
        ('it exists', '--out')
        """
        return self._fill_forms({name: options.get(name, python) for name, python in self.arguments.items()})

    def _fill_forms(self, words: Mapping[str, str]) -> tuple[str, str]:
        message, hint = self._forms
        return fill_words(message, words), fill_words(hint, words)


def fill_words(text: str, words: Mapping[str, str]) -> str:
    """Return `text` with each name in braces replaced by its word; other braces, as in file names, stay."""
    for name, word in words.items():
        text = text.replace(f"{{{name}}}", word)
    return text


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

    def message_and_hint(self, options: Mapping[str, str]) -> tuple[str, str]:
        """Return message and hint; a parameter that is an option is written as on the command line.

        >>> InvalidParameter("block", 0, "is out of range").message_and_hint({"block": "--block"})[0]
        '--block 0 is out of range'
        """
        message, hint = super().message_and_hint(options)
        option = options.get(self.name, self.name)
        if not option.startswith("--"):
            return option + message.removeprefix(self.name), hint
        given = "" if self.value is None else f" {shlex.quote(str(self.value))}"
        words = {name: options.get(name, python) for name, python in self.arguments.items()}
        return f"{option}{given} {fill_words(self.problem, words)}", hint


class UnknownName(UsageError, KeyError):
    """A table has no entry of that name; `hint` suggests the nearest name, or lists all."""

    def __init__(self, role: str, name: str, known: Iterable[str], *, hint: str = "") -> None:
        names = sorted(known)
        near = nearest(name, names)
        usual = f"did you mean {near!r}?" if near else f"choose from {', '.join(names)}"
        super().__init__(f"unknown {role} {name!r}", hint=hint or usual)
        self.name = name
        self.known = tuple(names)

    __str__ = DPVeilError.__str__


class PluginError(UsageError):
    """An installed plug-in cannot be used."""


class MissingPlugin(PluginError):
    """A received file names a class that neither this version of dpveil nor an installed plug-in has.

    The message names no package to install: a file from a stranger must not choose what is installed.
    """

    def __init__(self, role: str, name: str, group: str) -> None:
        super().__init__(
            f"the {role} {name!r} is neither in this version of dpveil nor in an installed plug-in: ask "
            f"whoever made the release which package brings it ({group}), and install that"
        )
        self.name = name


class InstallationWarning(UserWarning):
    """Something that is installed does not work, and is left out."""


class PluginWarning(InstallationWarning):
    """A plug-in is left out; dpveil's own methods are not affected."""


class RegionError(DPVeilError):
    """The regions do not fit this photo."""


class NoRegion(RegionError):
    """The photo holds no region of the wanted kind, so nothing is released.

    With `all_stay` it does, and the user keeps all of them.
    """

    all_stay = False


class TooNear(RegionError):
    """A `region` would have to be cut for a face that is `kept`; both are labels."""

    def __init__(self, kept: str, region: str) -> None:
        super().__init__(
            f"{kept} stays, and {region} is so near that its region reaches into it",
            hint="let both stay, if other faces are replaced, or replace both",
        )
        self.kept = kept


class UnsupportedRelation(UsageError):
    """These guarantees cannot be composed into one statement."""


class BudgetRefused(DPVeilError):
    """A ledger cannot take the debit, so no noise was drawn."""

    exit_code = 3


class BudgetExceeded(BudgetRefused):
    """A limit has less left than the release costs, so no noise was drawn.

    `unit` is what `asked` and `left` are amounts of: epsilon, rho, or epsilon at some delta. `fits` is what
    is left in the terms of the release, where these are others.
    """

    def __init__(
        self, *, subject: str, asked: object, left: object, unit: str = "epsilon", fits: object = None
    ) -> None:
        less = "" if str(left) == "0" else f"ask for {fits or left} or less in all, "
        free = "use what costs nothing, such as fill, or raise its limit: nothing comes back with time"
        super().__init__(f"{subject} has {unit} {left} left and this release costs {asked}", hint=less + free)
        self.subject, self.asked, self.left, self.unit, self.fits = subject, asked, left, unit, fits


class RegionsDiffer(BudgetRefused):
    """A photo was paid for with other regions, so that its sum would hold for less than they cover."""


class AlreadyPaid(DPVeilError):
    """A release with this key was paid for and stored: nothing was drawn, and nothing was debited.

    `sha256s` are the hashes of its files, and `draw` the number of the draw that made them.
    """

    def __init__(self, *, subject: str, draw: int, sha256s: Iterable[str]) -> None:
        self.subject = subject
        self.draw = draw
        self.sha256s = tuple(sha256s)
        super().__init__(
            f"{subject} has a release for this key already, with SHA-256 {self.sha256s[-1]}",
            hint="use that file, which costs nothing, or choose another key to draw again",
        )


class ReservationLost(DPVeilError):
    """A reservation expired, was cancelled, or gave way to a later one: nothing was drawn or debited."""


class LedgerError(DPVeilError):
    """A ledger is missing, damaged, busy, full, or was replaced; nothing may be drawn."""

    exit_code = 4


class TooWeak(DPVeilError):
    """A plan's guarantee is weaker than was asked for, so no noise was drawn."""

    exit_code = 3

    def __init__(
        self,
        *,
        asked: str,
        strength: str | None,
        total: object,
        missing: Iterable[str] = (),
        objection: str = "",
    ) -> None:
        stated = "is an unprotected copy" if strength is None else f"promises {total}, which is {strength}"
        if strength is not None and (left := ", ".join(missing)):
            stated = f"leaves {left} visible, as nothing was found"
        elif objection:
            stated = f"is not publishable ({objection})"
        super().__init__(
            f"the release {stated}, and at least {asked} was asked for",
            hint="dpveil explain says what each strength needs; or ask for less",
        )
        self.asked, self.strength = asked, strength


class PhotoError(DPVeilError):
    """The file is not a photo that dpveil reads."""

    exit_code = 4


class ClipError(PhotoError):
    """The file is not a clip that dpveil reads."""


class DataError(DPVeilError):
    """dpveil cannot read the table or its values.

    `private` has details that reveal data, such as which rows: only the data's owner may see it.
    """

    exit_code = 4

    def __init__(
        self, message: str, *, hint: str = "", arguments: Mapping[str, str] | None = None, private: str = ""
    ) -> None:
        super().__init__(message, hint=hint, arguments=arguments)
        self.private = private

    def __str__(self) -> str:
        told = super().__str__()
        return f"{told} ({self.private})" if self.private else told

    def about(self, place: str) -> DataError:
        """Return the same error with its place in front, such as a file and its column."""
        message, hint = self._forms
        private = self.private and f"{place}: {self.private}"
        return DataError(f"{place}: {message}", hint=hint, arguments=self.arguments, private=private)


class OutputError(DPVeilError):
    """The output cannot be written; nothing was left behind."""

    exit_code = 4


class ModelError(DPVeilError):
    """A trained model's file is missing, damaged, or not the expected one."""

    exit_code = 4


class CertificateError(DPVeilError):
    """A certificate is missing, malformed, or does not fit its photo."""


class NoiseError(DPVeilError):
    """A sampler was asked for a distribution that it cannot draw exactly."""
