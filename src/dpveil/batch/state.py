"""The state of an output folder, for reruns: a private file elsewhere, never part of a release.

Each such folder has a file in the user's own state folder (XDG Base Directory Specification), where nobody
publishes it by accident; its name is a hash of the folder's path. JSON Lines, each line one of

    {"release": SHA-256 of an output file, "size": bytes of its input, "time": nanoseconds, when that changed,
     "of": hash of the input's name}
    {"number": 7, "of": hash of the path of an input}

It is only ever appended to, each time from a new line on, so that runs side by side and killed runs lose
nothing but a line of their own. It is read as `received` files are, and damaged lines are passed over. The
worst that it can do is to let a rerun refuse, or to let it miss that an input was replaced.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from dpveil.io import is_present, received
from dpveil.io.folders import real
from dpveil.io.names import shown
from dpveil.io.refused import Refused

APP: Final = "dpveil"
MOST_BYTES: Final = 1 << 26
"""Bytes of the largest state file that is read: about 400 000 releases."""
RELEASE: Final = re.compile(r"[0-9a-f]{64}")
OF: Final = re.compile(r"[0-9a-f]{32}")
CEILING: Final = 1 << 63
MOST_NUMBER: Final = 10**12

Stamp = tuple[int, int]
"""Size of a file in bytes, and when it was last changed, in nanoseconds."""


def stamp_of(path: Path) -> Stamp | None:
    """Return size and time of a file, or None where it cannot be looked at: reading it says why."""
    try:
        status = path.stat()
    except (OSError, ValueError):
        return None
    return status.st_size, status.st_mtime_ns


def key_of(name: str) -> str:
    """Return what stands for an input's name in the state file.

    Whoever guesses a name can check the guess: it keeps names from being read in passing, no more.
    """
    return hashlib.blake2b(os.fsencode(name), digest_size=16, person=b"dpveil.state").hexdigest()


def state_path(folder: Path) -> Path:
    """Return the file with the state of a folder: in $XDG_STATE_HOME/dpveil, or ~/.local/state/dpveil.

    On Windows that is %LOCALAPPDATA%. A folder that is moved has another file. Raises OSError where the user
    has no home.
    """
    given = os.environ.get("LOCALAPPDATA" if os.name == "nt" else "XDG_STATE_HOME", "")
    try:
        home = Path(given) if Path(given).is_absolute() else Path.home() / ".local" / "state"
    except RuntimeError as error:
        raise OSError("there is no home folder") from error
    name = hashlib.blake2b(os.fsencode(real(folder)), digest_size=16, person=b"dpveil.folder").hexdigest()
    return home / APP / f"{name}.jsonl"


@dataclass
class State:
    """The state of one `folder`: what is known of inputs, and its `problem`, if any.

    `stamps` and `sources` are stamps and keys of names of inputs, by release; `numbers` are by key.
    """

    folder: Path
    stamps: dict[str, set[Stamp]] = field(default_factory=dict)
    sources: dict[str, set[str]] = field(default_factory=dict)
    numbers: dict[str, int] = field(default_factory=dict)
    problem: str = ""

    @classmethod
    def read(cls, folder: Path) -> State:
        """Return the state of `folder`; an empty one where there is none or it cannot be read."""
        state = cls(folder)
        try:
            path = state_path(folder)
            lines = received(path, MOST_BYTES).splitlines() if is_present(path) else []
        except OSError as error:
            return cls(folder, problem=f"nothing is remembered of {shown(folder)}: {error}")
        except Refused as refusal:
            return cls(folder, problem=f"the state file {shown(path)} {refusal.problem}")
        for line in filter(None, lines):
            try:
                state._take(json.loads(line.decode("ascii")))
            except (ValueError, TypeError, KeyError, RecursionError):  # torn by a full disk, or forged
                state.problem = f"the state file {shown(path)} is damaged"
        return state

    def replaced(self, release: str, stamp: Stamp | None) -> bool:
        """Whether the release with this SHA-256 is known to come from another input than one with `stamp`."""
        return release in self.stamps and stamp not in self.stamps[release]

    def another(self, release: str, name: str) -> bool:
        """Whether the release with this SHA-256 is known to come from inputs of other names alone."""
        return release in self.sources and key_of(name) not in self.sources[release]

    def note_release(self, release: str, stamp: Stamp, name: str) -> None:
        """Keep what the input of a release was like, and its name; raises OSError."""
        line = {"release": release, "size": stamp[0], "time": stamp[1], "of": key_of(name)}
        self._append([line])
        self._take(line)

    def note_numbers(self, numbers: Iterable[tuple[str, int]]) -> None:
        """Keep which number belongs to which key of an input; raises OSError."""
        new = dict(numbers)
        self._append({"number": number, "of": key} for key, number in new.items())
        self.numbers |= new

    def _take(self, line: dict[str, Any]) -> None:
        if set(line) | {"of"} == {"release", "size", "time", "of"} and RELEASE.fullmatch(line["release"]):
            stamp = (_whole(line["size"]), _whole(line["time"]))
            if "of" in line and not OF.fullmatch(line["of"]):
                raise ValueError("no name of an input")
            self.stamps.setdefault(line["release"], set()).add(stamp)
            if "of" in line:  # the first versions did not keep it
                self.sources.setdefault(line["release"], set()).add(line["of"])
        elif set(line) == {"number", "of"} and OF.fullmatch(line["of"]):
            number = _whole(line["number"])
            if not 0 < number < MOST_NUMBER:
                raise ValueError("no number of a photo")
            self.numbers[line["of"]] = number
        else:
            raise ValueError("no line of a state file")

    def _append(self, lines: Iterable[dict[str, Any]]) -> None:
        path = state_path(self.folder)
        text = ("\n" + "".join(_lines(lines))).encode("ascii")  # what lies there may end in a torn line
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        handle = os.open(path, flags | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0), 0o600)
        try:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise OSError("is not a regular file")
            with suppress(OSError, AttributeError):
                os.fchmod(handle, 0o600)
            while text:
                text = text[os.write(handle, text) :]
        finally:
            os.close(handle)


def _lines(lines: Iterable[dict[str, Any]]) -> Iterator[str]:
    return (json.dumps(line) + "\n" for line in lines)


def _whole(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not -CEILING < value < CEILING:
        raise ValueError("no whole number")
    return value
