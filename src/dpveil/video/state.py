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
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final

from dpveil.core.envelope import this_tool
from dpveil.errors import OutputError
from dpveil.io.locking import hold_lock
from dpveil.io.names import show_path
from dpveil.io.writing import OWN, flush_folder, refusal

if TYPE_CHECKING:
    from dpveil.video.plan import VideoPlan

WORDS: Final = {
    "clip": "another clip",
    "plan": "another plan or other options",
    "out": "another name",
    "seed": "another seed",
    "payer": "another ledger or subject",
    "tool": "another version of dpveil",
}
"""What is said of each setting that differs."""
FORMAT: Final = "dpveil.video-state/1"
KEY: Final = "key"
STATE: Final = "state.json"
PLAN: Final = "plan.json"
DRAWS: Final = "draws"
CERTIFICATE: Final = "certificate.json"
LOCK: Final = "lock"
RELEASE: Final = "release"
"""The field of a state with SHA-256 of the certificate that the rendering has got, once it has."""
PART: Final = "part"
OTHER: Final = (
    "give the same as then, which costs nothing; or {replace}, which drops it, and what was paid for it is"
    " lost"
)


def settings_of(plan: VideoPlan, out: Path, payer: Sequence[str] | None, seed: int | None) -> dict[str, Any]:
    """Return the settings of a rendering to `out`."""
    about = {"clip": plan.facts.sha256, "plan": plan.sha256, "out": out.name}
    return {**about, "seed": seed, "payer": payer, "tool": this_tool()}


def digest_of(settings: Mapping[str, Any]) -> str:
    """Return SHA-256 of settings, in hexadecimal."""
    return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()


def differences_text(then: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """Return in words which settings differ.

    >>> differences_text({"seed": 1, "tool": "a"}, {"seed": 2, "tool": "b"})
    'another seed and another version of dpveil'
    """
    names = [name for name in WORDS if then.get(name) != now.get(name)]
    if "clip" in names and "plan" in names:
        names.remove("plan")  # one of another clip is always another
    return " and ".join(WORDS[name] for name in names) or "other settings"


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
            raise self.damage_error()
        return key

    def forget_key(self) -> None:
        """Delete the key: all that it draws is stored."""
        with as_output_error(self.folder):
            (self.folder / KEY).unlink(missing_ok=True)
            flush_folder(self.folder)

    def note_release(self, certificate: bytes) -> None:
        """Store which release this becomes, until all of the state is removed."""
        digest = hashlib.sha256(certificate).hexdigest()
        self.keep(STATE, json.dumps(_read_state(self.folder) | {RELEASE: digest}).encode())

    def is_of(self, certificate: bytes) -> bool:
        """Whether this is the rendering of the release with this certificate."""
        return _read_state(self.folder).get(RELEASE) == hashlib.sha256(certificate).hexdigest()

    @contextmanager
    def new(self, name: str, *, mode: int = OWN) -> Iterator[BinaryIO]:
        """Write a file that is stored at the end, durably, unless an error comes. Raises `OutputError`."""
        with as_output_error(self.folder):
            part = self.new_part(name)
            handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
            with os.fdopen(handle, "wb") as file:
                yield file
            self.finish(name)

    def keep(self, name: str, contents: bytes, *, mode: int = OWN) -> None:
        """Store a file as `new` does."""
        with self.new(name, mode=mode) as file:
            file.write(contents)

    def read(self, name: str) -> bytes | None:
        """Return a file of the state; None if it is not stored yet. Raises `OutputError`."""
        with as_output_error(self.folder), suppress(FileNotFoundError):
            return (self.folder / name).read_bytes()
        return None

    def path(self, name: str) -> Path:
        """Return the place of a file of the state."""
        return self.folder / name

    def finish(self, name: str) -> None:
        """Give the part that is written, a whole file, its name; it survives a loss of power then."""
        with as_output_error(self.folder):
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
        with as_output_error(part):
            part.unlink(missing_ok=True)
        return part

    def has(self, name: str) -> bool:
        """Whether a file of the state is stored."""
        return (self.folder / name).is_file()

    def remove(self) -> None:
        """Delete everything, the key first and what it is of last: the rendering is finished, or dropped."""
        with as_output_error(self.folder):
            _clear_folder(self.folder)
            (self.folder / LOCK).unlink(missing_ok=True)
            self.folder.rmdir()
            flush_folder(self.folder.parent)

    def damage_error(self) -> OutputError:
        """Return the error that a file of the state is damaged, or gone."""
        text = f"{show_path(self.folder)} is damaged"
        return OutputError(text, hint="remove it to begin anew; what was paid for it is lost then")


@contextmanager
def state(out: Path, settings: Mapping[str, Any], *, anew: bool = False) -> Iterator[State]:
    """Hold the state of a rendering with these `settings` to `out`, begun now or by a process that has ended.

    One with other settings is an `OutputError`; `anew` drops that one. Raises `OutputError` if another
    process is rendering to `out`, or the folder cannot be written.
    """
    folder = folder_of(out)
    with ExitStack() as held:
        with as_output_error(out):
            try:
                held.enter_context(hold_lock(folder / LOCK))
            except OSError as error:
                if error.errno != errno.EBUSY:
                    raise
                text = f"another process is rendering {show_path(out)}"
                raise OutputError(text, hint="wait until it is done") from error
            folder.chmod(0o700)
        yield _begin(folder, settings, out, anew=anew)


def unfinished_nonce(out: Path, settings: Mapping[str, Any]) -> str | None:
    """Return the nonce of a rendering with these `settings` to `out` that was begun, and is not finished."""
    found = _read_state(folder_of(out))
    return found["nonce"] if found.get("settings") == _as_reread(settings) else None


def drop(out: Path, certificate: bytes) -> bool:
    """Delete what is left of the rendering of the release at `out`, which has this certificate.

    Returns whether there is another rendering to `out`, begun and not finished; it is kept.
    """
    folder = folder_of(out)
    if not folder.is_dir():
        return False
    with suppress(OSError, OutputError), hold_lock(folder / LOCK):
        found = State(folder, "", resumed=True)
        if (folder / STATE).exists() and not found.is_of(certificate):
            return True
        found.remove()
    return False


def keep_plan(work: State, plan: str, asked: str) -> None:
    """Store the text of a plan with the digest of what was asked, so that the next process need not plan."""
    work.keep(PLAN, f"{asked}\n{plan}".encode())


def left_plan(out: Path, asked: str) -> str | None:
    """Return the plan by which a killed process was rendering to `out`, if it was asked the same."""
    with suppress(OSError, UnicodeDecodeError):
        question, _, plan = (folder_of(out) / PLAN).read_text().partition("\n")
        return plan if question == asked else None
    return None


def _as_reread(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings as they are read again."""
    return dict(json.loads(json.dumps(settings)))


def _begin(folder: Path, settings: Mapping[str, Any], out: Path, *, anew: bool) -> State:
    """Return the state in a folder that is locked, or a new one if there is none."""
    there = _read_state(folder) if (folder / STATE).exists() else None
    if there and there["settings"] == _as_reread(settings):
        return State(folder, there["nonce"], resumed=True)
    if there is not None and not anew:
        problem = (
            f"with {differences_text(there['settings'], _as_reread(settings))}" if there else "and is damaged"
        )
        text = f"a rendering to {show_path(out)} was begun and not finished, {problem}"
        raise OutputError(text, hint=OTHER, arguments={"replace": "replace=True"})
    made = State(folder, secrets.token_hex(16), resumed=False)
    with as_output_error(folder):
        _clear_folder(folder)
    made.keep(KEY, os.urandom(32))
    made.keep(STATE, json.dumps({"format": FORMAT, "settings": settings, "nonce": made.nonce}).encode())
    flush_folder(folder.parent)
    return made


def _read_state(folder: Path) -> dict[str, Any]:
    """Return what a state says: nothing if none was begun, or if it is damaged."""
    try:
        found = json.loads((folder / STATE).read_bytes())
        return dict(found) if found["format"] == FORMAT and {"settings", "nonce"} <= {*found} else {}
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return {}


def _clear_folder(folder: Path) -> None:
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
def as_output_error(place: Path) -> Iterator[None]:
    """Turn errors of the operating system into `OutputError`."""
    try:
        yield
    except OSError as error:
        raise refusal(place, error) from error
