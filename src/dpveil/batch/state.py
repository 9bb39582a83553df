"""The state of an output folder, for reruns: a private file elsewhere, never part of a release.

Each output folder has a file in the user's state folder (XDG Base Directory Specification), so that it is not
published by accident; its name is a hash of the folder's path. It is in JSON Lines, each line one of

    {"release": SHA-256 of an output file, "size": bytes of its input, "time": nanoseconds, when that changed}

Of a row of a Parquet file, "time" is a number by its bytes. The file is only appended to, each time starting
a new line, so that concurrent and killed runs lose at most their own line. It is read as an untrusted file
is, and damaged lines are skipped. At worst, a bad file makes a rerun refuse a photo, or miss that an input
was replaced.
"""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from dpveil.core.urls import Url
from dpveil.io.folders import real, state_home
from dpveil.io.names import show_path
from dpveil.io.unreadable import Refused
from dpveil.io.untrusted_files import is_present, read_untrusted
from dpveil.io.urls import object_status
from dpveil.io.writing import as_output_error

MOST_BYTES: Final = 1 << 26  # largest state file in bytes: about 400 000 releases

Stamp = tuple[int, int]
"""Size of a file in bytes, and its modification time in nanoseconds."""


def stamp_of(path: Path) -> Stamp | None:
    """Return size and modification time of a file, or None if it cannot be inspected.

    Of an object, its size when it was listed, and a number by its version.
    """
    try:
        status = (path.listed or object_status(path)) if isinstance(path, Url) else path.stat()
    except (OSError, ValueError, Refused):
        return None
    return None if status is None else (status.st_size, status.st_mtime_ns)


def state_path(folder: Path) -> Path:
    """Return the state file of a folder: in $XDG_STATE_HOME/dpveil or ~/.local/state/dpveil.

    On Windows it is in %LOCALAPPDATA%. A folder that is moved gets another file. Raises `OSError` if the user
    has no home folder.
    """
    return state_home() / f"{name_hash(os.fspath(real(folder)), b'dpveil.folder')}.jsonl"


def stage_of(url: Url) -> Path:
    """Return the folder on this disk in which releases wait that are to be put below `url`.

    Raises `OutputError` if the user has no home folder.
    """
    with as_output_error(url):
        return state_home() / "urls" / name_hash(str(url), b"dpveil.url")


def name_hash(name: str, person: bytes) -> str:
    """Return what a file is called that stands for a name; `person` tells kinds of names apart."""
    return hashlib.blake2b(os.fsencode(name), digest_size=16, person=person).hexdigest()


@dataclass
class State:
    """The state of one output `folder`, and what was wrong with its file (`problem`), if anything.

    `stamps` are those of the inputs of each release, by its SHA-256.
    """

    folder: Path
    stamps: dict[str, set[Stamp]] = field(default_factory=dict)
    problem: str = ""

    @classmethod
    def read(cls, folder: Path) -> State:
        """Return the state of `folder`, which is empty if there is no file or it cannot be read."""
        state = cls(folder)
        try:
            path = state_path(folder)
            lines = read_untrusted(path, MOST_BYTES).splitlines() if is_present(path) else []
        except OSError as error:
            return cls(folder, problem=f"nothing is remembered of {show_path(folder)}: {error}")
        except Refused as refusal:
            return cls(folder, problem=f"the state file {show_path(path)} {refusal.problem}")
        for line in filter(None, lines):
            try:
                known = json.loads(line.decode("ascii"))
                stamp = (int(known["size"]), int(known["time"]))
                state.stamps.setdefault(known["release"], set()).add(stamp)
            except (ValueError, TypeError, KeyError, RecursionError):  # truncated by a full disk
                state.problem = f"the state file {show_path(path)} is damaged"
        return state

    def is_replaced(self, release: str, stamp: Stamp | None) -> bool:
        """Whether the release with this SHA-256 is known, but not from an input with this `stamp`."""
        return release in self.stamps and stamp not in self.stamps[release]

    def note_release(self, release: str, stamp: Stamp) -> None:
        """Store the stamp of a release's input; raises `OSError`."""
        line = {"release": release, "size": stamp[0], "time": stamp[1]}
        path = state_path(self.folder)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        with os.fdopen(handle, "ab") as file:  # the file may end in an incomplete line
            file.write(f"\n{json.dumps(line)}\n".encode("ascii"))
        self.stamps.setdefault(release, set()).add(stamp)
