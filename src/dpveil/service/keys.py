"""API keys: random secrets of 256 bits, of which the file of keys holds SHA-256 alone."""

from __future__ import annotations

import fcntl
import hashlib
import hmac
import json
import os
import re
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from dpveil.core.parameters import check_count
from dpveil.errors import InvalidParameter, OutputError, UsageError, suggestion
from dpveil.io.names import show_path
from dpveil.ledger.limits import check_subject, is_under
from dpveil.service.problems import Busy, Forbidden, Unauthorised
from dpveil.service.settings import MOST_PARALLEL, PARALLEL

SCHEMA: Final = "dpveil.keys/1"
KEY: Final = re.compile(r"dpveil_([0-9a-f]{12})_([A-Za-z0-9_-]{43})")
"""The form of a key: a number that may be shown, and the secret."""
NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
MOST_BYTES: Final = 1 << 22
"""Largest file of keys."""
MOST_RATE: Final = 10**6
WRITTEN: Final = ("number", "name", "sha256", "subjects", "rate", "parallel")
"""What the file says of a key."""
ASK: Final = "ask whoever runs this service for a key"
SEND: Final = f"{ASK}, which programs send as Authorization: Bearer dpveil_..."
OWNER: Final = "run this as the user whose it is, or chown the file to the one who runs it"
HINT: Final = "make one with dpveil api-key new"


@dataclass(frozen=True)
class Caller:
    """Who asks: the `number` of a key, the `subjects` it may spend (None: any), and its `rate` a minute.

    It may have `parallel` requests and jobs under way.
    """

    number: str
    name: str
    subjects: tuple[str, ...] | None
    rate: int
    parallel: int = PARALLEL
    sha256: str = ""

    def subject(self, asked: str | None) -> str | None:
        """Return the subject of a request: the one that was asked for, or the only one of the key.

        Raises `Forbidden` for a subject that is neither one of the key's nor below one, and
        `InvalidParameter` for what is no subject.
        """
        if self.subjects is None:
            return asked
        asked = None if asked is None else check_subject(asked)
        if asked is None and len(self.subjects) == 1:
            return self.subjects[0]
        if asked is None:
            raise Forbidden("the settings name no subject, and this key has several", hint='add "subject"')
        if not self.may_spend(asked):
            hint = f"{suggestion(asked, self.subjects)}name one of the key's own"
            raise Forbidden("this key may not spend that subject", hint=hint)
        return asked

    def may_spend(self, subject: str) -> bool:
        """Whether a subject is one of the caller's, or below one."""
        return self.subjects is None or any(is_under(subject, own) for own in self.subjects)


LOCAL: Final = Caller("local", "local", None, MOST_RATE, MOST_RATE)
"""Whoever asks from this machine, where no key is needed."""


@dataclass(frozen=True)
class Keys:
    """The keys of a file."""

    callers: tuple[Caller, ...] = ()

    @classmethod
    def read(cls, path: Path) -> Keys:
        """Return the keys in the file at `path`, which only its owner may change; raises `UsageError`."""
        try:
            status = path.stat()
            if status.st_mode & 0o022:
                problem = f"the file of keys {show_path(path)} can be changed by other users"
                raise UsageError(problem, hint=f"chmod 600 {show_path(path)}")
            text = path.read_bytes() if status.st_size <= MOST_BYTES else b""
            data = json.loads(text)
            if not isinstance(data, dict) or data.get("schema") != SCHEMA:
                raise ValueError("another schema")
            callers = tuple(_caller(entry) for entry in data["keys"])
            if len({caller.number for caller in callers}) != len(callers):
                raise UsageError(f"{show_path(path)} has two keys of one number", hint="remove one of them")
            return cls(callers)
        except FileNotFoundError:
            raise UsageError(f"there is no file of keys {show_path(path)}", hint=HINT) from None
        except OSError as error:
            problem = f"the file of keys {show_path(path)} cannot be read ({error.strerror})"
            hint = OWNER if isinstance(error, PermissionError) else HINT
            raise UsageError(problem, hint=hint) from error
        except (ValueError, KeyError, TypeError, RecursionError) as error:  # also InvalidParameter
            raise UsageError(f"{show_path(path)} is no file of keys", hint=HINT) from error

    def write(self, path: Path) -> None:
        """Write the keys to `path`, for its owner alone, in one step; raises `OutputError`.

        Whoever changes keys holds `lock_keys` from reading to writing.
        """
        entries = [{name: getattr(caller, name) for name in WRITTEN} for caller in self.callers]
        text = json.dumps({"schema": SCHEMA, "keys": entries}, indent=2) + "\n"
        beside = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
        try:
            handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            beside.replace(path)
        except OSError as error:
            beside.unlink(missing_ok=True)
            raise _write_error(path, error) from error

    def new(
        self, name: str, subjects: Sequence[str], rate: int, parallel: int = PARALLEL
    ) -> tuple[Keys, str]:
        """Return these keys and one more, and that key, which is nowhere else; raises `InvalidParameter`."""
        if not NAME.fullmatch(name):
            raise InvalidParameter("name", name, "is no name", hint="letters, digits, dots and dashes")
        if any(caller.name == name for caller in self.callers):
            raise InvalidParameter(
                "name", name, "is there already", hint="choose another, or remove that one"
            )
        spends = tuple(check_subject(subject) for subject in subjects)
        if check_count(rate, "rate") > MOST_RATE:
            raise InvalidParameter("rate", rate, "is out of range", hint=f"at most {MOST_RATE:,} a minute")
        if check_count(parallel, "parallel") > MOST_PARALLEL:
            hint = f"at most {MOST_PARALLEL}: all keys share one queue"
            raise InvalidParameter("parallel", parallel, "is out of range", hint=hint)
        number, secret = secrets.token_hex(6), secrets.token_urlsafe(32)
        key = f"dpveil_{number}_{secret}"
        caller = Caller(number, name, spends, rate, parallel, _hash(key))
        return Keys((*self.callers, caller)), key

    def without(self, name: str) -> Keys:
        """Return these keys without the one of that name; raises `InvalidParameter` if there is none."""
        rest = tuple(caller for caller in self.callers if caller.name != name)
        if len(rest) == len(self.callers):
            raise InvalidParameter("name", name, "is no key of this file", hint="see dpveil api-key list")
        return Keys(rest)

    def caller(self, header: str) -> Caller:
        """Return whose key an Authorization header holds; raises `Unauthorised`."""
        scheme, _, key = header.partition(" ")
        if scheme.lower() != "bearer" or not key.strip():
            raise Unauthorised("an API key is needed here", hint=SEND)
        form = KEY.fullmatch(key.strip())
        if form is None:
            raise Unauthorised("this is no API key", hint=f"copy all of it, from dpveil_ on, or {ASK}")
        for caller in self.callers:
            if caller.number == form[1] and hmac.compare_digest(caller.sha256, _hash(form[0])):
                return caller
        raise Unauthorised("this API key is not known here, or no longer", hint=ASK)


@contextmanager
def lock_keys(path: Path) -> Iterator[None]:
    """Be the only one that changes the keys in the file at `path`; waits for others. Raises `OutputError`.

    The folder is locked: the file is replaced by each change, and a lock on it would end there.
    """
    try:
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise _write_error(path, error) from error
    try:
        _lock(folder, path)
        yield
    finally:
        os.close(folder)


def _write_error(path: Path, error: OSError) -> OutputError:
    problem = f"the file of keys {show_path(path)} cannot be written ({error.strerror})"
    return OutputError(problem, hint="its folder has to exist, and be writable for who runs this")


def _lock(folder: int, path: Path) -> None:
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
    except OSError as error:
        raise OutputError(f"{show_path(path)} cannot be locked ({error.strerror})") from error


class KeyFile:
    """The keys of a file, read anew when it was changed: a key that was removed is refused at once."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._stamp, self._keys = _stamp(path), Keys.read(path)

    @property
    def count(self) -> int:
        """How many keys there were when the file was last read."""
        return len(self._keys.callers)

    def caller(self, header: str) -> Caller:
        """Return whose key a header holds; raises `Unauthorised`, and `Busy` while the file is unusable."""
        stamp = _stamp(self.path)
        if stamp is None or stamp != self._stamp:
            try:
                self._stamp, self._keys = stamp, Keys.read(self.path)
            except UsageError as error:
                self._stamp = None
                raise Busy("the keys cannot be read", after=30) from error
        return self._keys.caller(header)


def _stamp(path: Path) -> tuple[int, ...] | None:
    """Return what changes with a file's contents, or with who may change them; None if there is no file."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino, status.st_mode


def _hash(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()


def _caller(entry: dict[str, Any]) -> Caller:
    subjects, parallel = entry["subjects"], entry["parallel"]
    fits = (
        re.fullmatch("[0-9a-f]{12}", entry["number"])
        and NAME.fullmatch(entry["name"])
        and re.fullmatch("[0-9a-f]{64}", entry["sha256"])
        and isinstance(subjects, list)
        and all(check_subject(subject) == subject for subject in subjects)
        and type(entry["rate"]) is int
        and 0 < entry["rate"] <= MOST_RATE
        and type(parallel) is int
        and 0 < parallel <= MOST_PARALLEL
    )
    if not fits:
        raise ValueError("a key is malformed")
    return Caller(entry["number"], entry["name"], tuple(subjects), entry["rate"], parallel, entry["sha256"])
