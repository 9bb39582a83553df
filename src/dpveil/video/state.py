"""The folder of a rendering that is not finished: what it needs to go on after any end, also `kill -9`.

It lies beside the output, hidden, readable by its owner only, and holds (in the order of its making): 32
random bytes that key the draws; what the rendering is of, with a nonce that the ledger's keys contain; what
was drawn; segments that are whole; the joined clip and its certificate. Each file is flushed before it has
its name. A rendering that goes on therefore pays nothing twice, and draws nothing else than it would have.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import secrets
import shutil
import stat
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final

from dpveil.errors import OutputError
from dpveil.io import is_present, received
from dpveil.io.locking import alone
from dpveil.io.names import shown
from dpveil.io.refused import Refused
from dpveil.io.writing import OWN, flush_folder, refusal
from dpveil.video.begun import differing, digests_of

FORMAT: Final = "dpveil.video-state/1"
KEY: Final = "key"
STATE: Final = "state.json"
DRAWS: Final = "draws"
CERTIFICATE: Final = "certificate.json"
LOCK: Final = "lock"
RELEASE: Final = "release"
"""The field of a state with SHA-256 of the certificate that the rendering has got, once it has."""
PART: Final = "part"
MOST_BYTES: Final = 1 << 16
"""Most bytes of the state itself, which is short."""
LONGEST: Final = 1 << 26
"""Most bytes of a file that is read whole: more than a certificate has."""
OTHER: Final = (
    "give the same as then, which costs nothing; or {replace}, which drops it, and what was paid for it is"
    " lost"
)


def folder_of(out: Path) -> Path:
    """Return where a rendering to `out` keeps its state.

    >>> folder_of(Path("private.mp4")).name
    '.private.mp4.dpveil-video'
    """
    return out.with_name(f".{out.name}.dpveil-video")


@dataclass(frozen=True)
class State:
    """A rendering's folder, which this process alone uses; `nonce` is new for each rendering that is begun.

    `resumed` says whether another process began it.
    """

    folder: Path
    nonce: str
    resumed: bool

    @property
    def key(self) -> bytes:
        """The 32 bytes that key the draws; raises `OutputError` if they are gone or damaged."""
        key = self.read(KEY)
        if key is None or len(key) != 32:
            raise self.damaged()
        return key

    def forget_key(self) -> None:
        """Delete the key: all that it draws is stored."""
        with told(self.folder):
            (self.folder / KEY).unlink(missing_ok=True)
            flush_folder(self.folder)

    def note_release(self, certificate: bytes) -> None:
        """Store which release this becomes, until all of the state is removed."""
        digest = hashlib.sha256(certificate).hexdigest()
        self.keep(STATE, json.dumps(_found(self.folder) | {RELEASE: digest}).encode())

    def is_of(self, certificate: bytes) -> bool:
        """Whether this is the rendering of the release with this certificate."""
        return _found(self.folder).get(RELEASE) == hashlib.sha256(certificate).hexdigest()

    @contextmanager
    def new(self, name: str, *, mode: int = OWN) -> Iterator[BinaryIO]:
        """Write a file that is stored at the end, durably, unless an error comes. Raises `OutputError`."""
        with told(self.folder), _new(self.folder, name, mode) as file:
            yield file

    def keep(self, name: str, contents: bytes, *, mode: int = OWN) -> None:
        """Store a file as `new` does."""
        with self.new(name, mode=mode) as file:
            file.write(contents)

    @contextmanager
    def opened(self, name: str) -> Iterator[BinaryIO]:
        """Open a file of the state; raises `OutputError` if it is gone, or no file."""
        if not self.has(name):
            raise self.damaged()
        with told(self.folder):
            file = (self.folder / name).open("rb")
        with file:
            yield file

    def read(self, name: str) -> bytes | None:
        """Return a short file of the state; None if it is not stored yet. Raises `OutputError`."""
        if not is_present(self.folder / name):
            return None
        try:
            return received(self.folder / name, LONGEST)
        except Refused as error:
            raise self.damaged() from error

    def path(self, name: str) -> Path:
        """Return the place of a file of the state."""
        return self.folder / name

    def finish(self, name: str) -> None:
        """Give the part that is written, a whole file, its name; it survives a loss of power then."""
        with told(self.folder):
            part = self.part(name)
            with part.open("rb+") as file:
                os.fsync(file.fileno())
            part.replace(self.folder / name)
            flush_folder(self.folder)

    def part(self, name: str) -> Path:
        """Return the path under which a file is written until it is whole; it keeps its suffix."""
        return self.folder / f"{PART}-{name}"

    def new_part(self, name: str) -> Path:
        """Return `part`, at which nothing is any more; raises `OutputError`."""
        part = self.part(name)
        with told(part):
            part.unlink(missing_ok=True)
        return part

    def has(self, name: str) -> bool:
        """Whether a file of the state is stored: what is no regular file, such as a link, is none."""
        with suppress(OSError):
            return stat.S_ISREG((self.folder / name).lstat().st_mode)
        return False

    def remove(self) -> None:
        """Delete everything, the key first and what it is of last: the rendering is finished, or dropped."""
        with told(self.folder):
            _clear(self.folder)
            (self.folder / LOCK).unlink(missing_ok=True)
            self.folder.rmdir()
            flush_folder(self.folder.parent)

    def damaged(self) -> OutputError:
        """Return the error that a file of the state is damaged, or gone."""
        text = f"{shown(self.folder)} is damaged"
        return OutputError(text, hint="remove it to begin anew; what was paid for it is lost then")


@contextmanager
def state(out: Path, settings: Mapping[str, Any], *, anew: bool = False) -> Iterator[State]:
    """Hold the state of a rendering with these `settings` to `out`, begun now or by a process that has ended.

    One with other settings is an `OutputError`; `anew` drops that one. Raises `OutputError` if another
    process is rendering to `out`, if the folder is not this user's own, or cannot be written.
    """
    folder = folder_of(out)
    with ExitStack() as held:
        with told(out):
            with suppress(FileExistsError):
                folder.mkdir(mode=0o700)
            check_own(folder)
            try:
                held.enter_context(alone(folder / LOCK))
            except OSError as error:
                if error.errno != errno.EBUSY:
                    raise
                text = f"another process is rendering {shown(out)}"
                raise OutputError(text, hint="wait until it is done") from error
            folder.chmod(0o700)  # the process before may have removed it, and the lock made it anew
        yield _begun(folder, digests_of(settings), out, anew=anew)


def begun(out: Path, settings: Mapping[str, Any]) -> str | None:
    """Return the nonce of a rendering with these `settings` to `out` that was begun, and is not finished."""
    try:
        check_own(folder_of(out))
    except (OSError, OutputError):
        return None
    found = _found(folder_of(out))
    return found["nonce"] if found.get("settings") == digests_of(settings) else None


def drop(out: Path, certificate: bytes) -> bool:
    """Delete what is left of the rendering of the release at `out`, which has this certificate.

    Returns whether there is another rendering to `out`, begun and not finished; it is kept.
    """
    folder = folder_of(out)
    if not folder.is_dir() or folder.is_symlink():
        return False
    with suppress(OSError, OutputError):
        check_own(folder)
        with alone(folder / LOCK):
            found = State(folder, "", resumed=True)
            if is_present(folder / STATE) and not found.is_of(certificate):
                return True
            found.remove()
    return False


def _begun(folder: Path, settings: Mapping[str, str], out: Path, *, anew: bool) -> State:
    """Return the state in a folder that is locked, or a new one if there is none."""
    there = _found(folder) if is_present(folder / STATE) else None
    if there and there["settings"] == settings:
        return State(folder, there["nonce"], resumed=True)
    if there is not None and not anew:
        problem = f"with {differing(there['settings'], settings)}" if there else "and is damaged"
        text = f"a rendering to {shown(out)} was begun and not finished, {problem}"
        raise OutputError(text, hint=OTHER, arguments={"replace": "replace=True"})
    with told(folder):
        _clear(folder)
        nonce = secrets.token_hex(16)
        with _new(folder, KEY) as file:
            file.write(os.urandom(32))
        with _new(folder, STATE) as file:
            file.write(json.dumps({"format": FORMAT, "settings": settings, "nonce": nonce}).encode())
        flush_folder(folder.parent)
    return State(folder, nonce, resumed=False)


def _found(folder: Path) -> dict[str, Any]:
    """Return what a state says: nothing if none was begun, or if it is damaged."""
    try:
        data = json.loads(received(folder / STATE, MOST_BYTES))
    except (Refused, ValueError, RecursionError):
        return {}
    fields = {"format": str, "settings": dict, "nonce": str, RELEASE: str}
    found = data if isinstance(data, dict) else {}
    typed = {name: found[name] for name, kind in fields.items() if isinstance(found.get(name), kind)}
    return typed if {*fields} - {*typed} <= {RELEASE} and typed["format"] == FORMAT else {}


def check_own(folder: Path) -> None:
    """Raise `OutputError` unless a folder is a real one that nobody but this user can read or write.

    Whoever could write there could choose the key of the draws.
    """
    status = folder.lstat()
    mine = not hasattr(os, "geteuid") or status.st_uid == os.geteuid()
    closed = os.name != "posix" or not status.st_mode & 0o077
    if not (stat.S_ISDIR(status.st_mode) and mine and closed):
        text = f"{shown(folder)} is not a private folder of yours"
        raise OutputError(text, hint="remove it, or choose another name for the output")


@contextmanager
def _new(folder: Path, name: str, mode: int = OWN) -> Iterator[BinaryIO]:
    part = folder / f"{PART}-{name}"
    part.unlink(missing_ok=True)
    handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    with os.fdopen(handle, "wb") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())
    part.replace(folder / name)
    flush_folder(folder)


def _clear(folder: Path) -> None:
    """Delete all but the lock: the key first, and last what the rendering is of.

    One that is killed meanwhile leaves a state that is known, whose nonce was paid.
    """
    for name in (KEY, DRAWS):
        (folder / name).unlink(missing_ok=True)
    for path in folder.iterdir():
        if path.name not in (LOCK, STATE):
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    (folder / STATE).unlink(missing_ok=True)


@contextmanager
def told(place: Path) -> Iterator[None]:
    """Turn errors of the operating system into `OutputError`."""
    try:
        yield
    except OSError as error:
        raise refusal(place, error) from error
