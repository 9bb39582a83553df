"""An unfinished rendering: after any end, also `kill -9`, the next one pays nothing twice and draws the same.

A hidden folder beside the output, which only its owner can read, holds the clip as far as it is written, and
`state.json`: what the rendering is of, a nonce that the ledger's key contains, 32 random bytes that key the
draws, and the plan, if a run made it. That is on the disk before anything is paid. The key is deleted before
the release has its name, as whoever has both undoes the release; from there on `release` is the SHA-256 of
the clip that is complete.
"""

from __future__ import annotations

import errno
import json
import os
import secrets
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from dpveil.core.envelope import this_tool
from dpveil.errors import OutputError
from dpveil.io.locking import hold_lock
from dpveil.io.names import show_path
from dpveil.io.writing import OWN, flush_folder, refusal

if TYPE_CHECKING:
    from dpveil.video.plan import VideoPlan

STATE: Final = "state.json"
LOCK: Final = "lock"
OTHER: Final = (
    "give the same as then, which costs nothing; or {replace}, which drops it, and what was paid for it is"
    " lost"
)


def settings_of(plan: VideoPlan, out: Path, payer: Sequence[str] | None, seed: int | None) -> dict[str, Any]:
    """Return what a rendering to `out` is of; only one of the same goes on."""
    about = {"clip": plan.facts.sha256, "plan": plan.sha256, "name": out.name}
    return {**about, "seed": seed, "payer": payer and [*payer], "version of dpveil": this_tool()}


def folder_of(out: Path) -> Path:
    """Return where a rendering to `out` keeps its state.

    >>> folder_of(Path("private.mp4")).name
    '.private.mp4.dpveil-video'
    """
    return out.with_name(f".{out.name}.dpveil-video")


@dataclass(frozen=True)
class Unfinished:
    """A rendering's folder, which this process alone uses, and its state; an earlier one may have `begun`."""

    folder: Path
    state: dict[str, Any]
    begun: bool

    @property
    def nonce(self) -> str:
        """What keys of the ledger contain: new for each rendering that is begun."""
        return str(self.state["nonce"])

    @property
    def key(self) -> bytes:
        """The 32 bytes that key the draws."""
        return bytes.fromhex(self.state["key"])

    @property
    def release(self) -> str | None:
        """The SHA-256 of the clip once it is complete."""
        return self.state.get("release")

    def complete(self, sha256: str) -> None:
        """Store that the clip is complete, and delete the key: nothing is drawn any more."""
        del self.state["key"]
        self.state["release"] = sha256
        self.store()

    def store(self) -> None:
        """Write the state; it survives a loss of power then."""
        with as_output_error(self.folder):
            part = self.folder / f"{STATE}.part"
            part.unlink(missing_ok=True)
            handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, OWN)
            with os.fdopen(handle, "w") as file:
                json.dump(self.state, file)
                file.flush()
                os.fsync(handle)
            part.replace(self.folder / STATE)
            flush_folder(self.folder)

    def remove(self) -> None:
        """Delete everything: the rendering is finished, or dropped."""
        with as_output_error(self.folder):
            for path in self.folder.iterdir():
                if path.name not in (STATE, LOCK):
                    shutil.rmtree(path) if path.is_dir() else path.unlink()
            # the state last: one that is killed before is known to be finished
            for name in (STATE, LOCK):
                (self.folder / name).unlink(missing_ok=True)
            self.folder.rmdir()
            flush_folder(self.folder.parent)


@contextmanager
def hold_rendering(
    out: Path, settings: Mapping[str, Any], *, anew: bool = False, plan: str | None = None
) -> Iterator[Unfinished]:
    """Hold a rendering of these `settings` to `out`, begun now, with this `plan`, or by a process that ended.

    One with other settings is an `OutputError`; `anew` drops that one. Raises `OutputError` if another
    process is rendering to `out`, or the folder cannot be written.
    """
    folder = folder_of(out)
    with ExitStack() as held:
        try:
            held.enter_context(hold_lock(folder / LOCK))
            folder.chmod(0o700)
        except OSError as error:
            if error.errno != errno.EBUSY:
                raise refusal(out, error) from error
            text = f"another process is rendering {show_path(out)}"
            raise OutputError(text, hint="wait until it is done") from error
        there = _read_state(folder)
        if there is not None and there["settings"] != settings:
            if not anew:
                then = there["settings"]
                other = " and ".join(name for name in settings if then.get(name) != settings[name])
                text = f"a rendering to {show_path(out)} was begun and not finished, with another {other}"
                raise OutputError(text, hint=OTHER, arguments={"replace": "replace=True"})
            there = None
        begun = {"settings": dict(settings), "nonce": secrets.token_hex(16), "key": os.urandom(32).hex()}
        work = Unfinished(folder, there or {**begun, "plan": plan}, begun=there is not None)
        if there is None:
            work.store()
            flush_folder(folder.parent)
        yield work


def unfinished_nonce(out: Path, settings: Mapping[str, Any]) -> str | None:
    """Return the nonce of a rendering with these `settings` to `out` that was begun, and is not finished."""
    found = _read_state(folder_of(out))
    return str(found["nonce"]) if found is not None and found["settings"] == settings else None


def left_plan(out: Path, sha256: str) -> str | None:
    """Return the plan that a run made for this clip before it was killed while rendering to `out`."""
    found = _read_state(folder_of(out))
    same = found is not None and found["settings"]["clip"] == sha256
    return found["plan"] if found is not None and same else None


def drop(out: Path, sha256: str) -> bool:
    """Delete what is left of the rendering of the release at `out`, which has this SHA-256.

    Returns whether there is another rendering to `out`, begun and not finished; it is kept.
    """
    folder = folder_of(out)
    if not folder.is_dir():
        return False
    with suppress(OSError, OutputError), hold_lock(folder / LOCK):
        found = _read_state(folder)
        if found is not None and found.get("release") != sha256:
            return True
        Unfinished(folder, {}, begun=True).remove()
    return False


def damage_error(folder: Path) -> OutputError:
    """Return the error that a rendering's folder is damaged."""
    hint = "remove it to begin anew; what was paid for it is lost then"
    return OutputError(f"{show_path(folder)} is damaged", hint=hint)


def _read_state(folder: Path) -> dict[str, Any] | None:
    """Return the state of a rendering that was begun; None if none was. Raises `OutputError` for damage."""
    try:
        found = json.loads((folder / STATE).read_bytes())
        _ = found["settings"]["clip"], found["nonce"], found["plan"]
        return dict(found)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise damage_error(folder) from error


@contextmanager
def as_output_error(place: Path) -> Iterator[None]:
    """Turn errors of the operating system about a `place` into `OutputError`."""
    try:
        yield
    except OSError as error:
        raise refusal(place, error) from error
