"""Calls from a worker to the process that started it: pickles over two pipes, one call at a time.

Both run as the same user with the same rights, so a worker whose image library was taken over by a photo
needs no pickle to do harm, as without workers. No pixels are sent: photos are read and written by workers.
"""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import IO, Any, Final

from dpveil.batch.choices import Choices
from dpveil.batch.shared import Shared
from dpveil.batch.task import Task
from dpveil.core.covered import Covered
from dpveil.core.guarantee import Guarantee
from dpveil.errors import DPVeilError, UsageError
from dpveil.release.keys import PublicKey, SigningKey
from dpveil.release.marking import Marker

ENDED: Final = (EOFError, OSError, pickle.UnpicklingError)
"""What reading from, or writing to, an ended process raises."""


@dataclass(frozen=True)
class Call:
    """One call: its name and arguments."""

    name: str
    given: tuple[Any, ...]
    more: Mapping[str, Any]


@dataclass(frozen=True)
class Raised:
    """An error that a call raised, as data: errors themselves are made with arguments that pickles drop."""

    kind: type[Exception]
    args: tuple[Any, ...]
    state: Mapping[str, Any]
    cause: OSError | None = None

    @classmethod
    def of(cls, error: Exception) -> Raised:
        """Return an error and the system's, if that was its cause; one that cannot be sent, by its words."""
        cause = error.__cause__ if isinstance(error.__cause__, OSError) else None
        made = cls(type(error), error.args, dict(error.__dict__), cause)
        try:
            pickle.dumps(made)
        except Exception:  # noqa: BLE001  any object may be in it
            text = f"unexpected {type(error).__name__}: {error}"
            return cls.of(DPVeilError(text, hint="please report this"))
        return made

    def error(self) -> Exception:
        """Return the error again."""
        made = self.kind.__new__(self.kind)
        made.args = self.args
        made.__dict__.update(self.state)
        made.__cause__ = self.cause
        return made


@dataclass(frozen=True)
class Setup:
    """What a worker is told first. Ledger and private keys stay behind: it calls for what they do."""

    choices: Choices
    options: Mapping[str, str]
    see: Callable[..., object]
    pays: bool
    public: PublicKey | None
    mark: tuple[str, str] | None

    @classmethod
    def packed(cls, choices: Choices, options: Mapping[str, str], see: Callable[..., object]) -> bytes:
        """Return the message; raises `UsageError` if a method, finder or step cannot be sent."""
        sign, mark = choices.sign, choices.mark
        setup = cls(
            choices=replace(choices, ledger=None, sign=None, mark=None),
            options=options,
            see=see,
            pays=choices.ledger is not None,
            public=None if sign is None else sign.public,
            mark=None if mark is None else (mark.chain, mark.algorithm),
        )
        try:
            return pickle.dumps(setup)
        except Exception as error:
            raise UsageError(
                f"the method, or what finds its regions, cannot be sent to other processes: {error}",
                hint="use {jobs}",
                arguments={"jobs": "jobs=1"},
            ) from error

    def choices_by(self, line: Line) -> Choices:
        """Return the settings for a worker, with a ledger and keys that call for their owner."""
        sign = None if self.public is None else SigningKey(self.public, _Signer(line))  # type: ignore[arg-type]
        mark = None if self.mark is None else Marker(*self.mark, partial(line, "mark"))
        return replace(self.choices, ledger=_Ledger(line) if self.pays else None, sign=sign, mark=mark)


class Line:
    """A worker's end of the pipes; threads take turns. If the other end is gone, the worker ends."""

    def __init__(self, answers: IO[bytes], calls: IO[bytes]) -> None:
        self._answers, self._calls, self._alone = answers, calls, threading.Lock()
        self._shared = Shared()

    def __call__(self, name: str, *given: Any, **more: Any) -> Any:
        """Return what the call returns, or raise what it raises."""
        with self._alone:
            try:
                send(self._calls, Call(name, given, more))
                answer = pickle.load(self._answers)  # noqa: S301  from the process that started this one
            except ENDED:
                raise SystemExit from None  # nothing that was not written yet will be
        if isinstance(answer, Raised):
            raise answer.error()
        return answer

    def stopped(self, task: Task) -> str:
        """Ask whether a photo may be drawn, as `Around`."""
        return str(self("stopped", task.output))

    def stop(self, reason: str) -> None:
        """Let no other photo be drawn."""
        self("stop", reason)

    def open(self, folder: Path) -> None:
        """Have the run make a folder, or compare it with what it was at the run's first use of it."""
        if folder in self._shared.made:
            self._shared.open(folder)
        else:
            self._shared.made[folder] = self("open", folder)


def send(stream: IO[bytes], message: object) -> None:
    """Write a message to a pipe."""
    stream.write(message if isinstance(message, bytes) else pickle.dumps(message))
    stream.flush()


class _Payment:
    def __init__(self, line: Line, number: int) -> None:
        self._line, self._number = line, number

    def stored(self, sha256: str) -> None:
        self._line("stored", self._number, sha256)


class _Ledger:
    files: tuple[Path, ...] = ()  # the worker opens none

    def __init__(self, line: Line) -> None:
        self._line = line

    def debit(self, subject: str, guarantee: Guarantee, key: str | bytes, **more: Any) -> _Payment:
        return _Payment(self._line, self._line("debit", subject, guarantee, key, **more))

    def knows(self, subject: str, sha256: str) -> bool:
        return bool(self._line("knows", subject, sha256))

    def check_regions(self, covered: Covered) -> None:
        self._line("check_regions", covered)


class _Signer:
    def __init__(self, line: Line) -> None:
        self._line = line

    def sign(self, data: bytes) -> bytes:
        return bytes(self._line("sign", data))
