"""API keys: random secrets of 256 bits, of which the file of keys holds SHA-256 alone."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from dpveil.errors import InvalidParameter, UsageError, suggestion
from dpveil.io.names import show_path
from dpveil.io.writing import write_together
from dpveil.ledger.limits import check_subject, is_under
from dpveil.service.limits import MOST_PARALLEL, PARALLEL
from dpveil.service.problems import ServiceError, busy

KEY: Final = re.compile(r"dpveil_([0-9a-f]{12})_([A-Za-z0-9_-]{43})")
"""The form of a key: a number that may be shown, and the secret."""
MOST_RATE: Final = 10**6
ASK: Final = "ask whoever runs this service for a key"
SEND: Final = f"{ASK}, which programs send as Authorization: Bearer dpveil_..."
HINT: Final = "make one with dpveil api-key new"


class Caller(BaseModel):
    """Who asks: the `number` of a key, the `subjects` it may spend (None: any), and its `rate` a minute.

    It may have `parallel` requests and jobs under way.
    """

    model_config = ConfigDict(frozen=True)
    number: str
    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
    subjects: tuple[Annotated[str, AfterValidator(check_subject)], ...] | None
    rate: Annotated[int, Field(gt=0, le=MOST_RATE)]
    parallel: Annotated[int, Field(gt=0, le=MOST_PARALLEL)] = PARALLEL
    sha256: str = ""

    def subject(self, asked: str | None) -> str | None:
        """Return the subject of a request: the one that was asked for, or the only one of the key."""
        if self.subjects is None:
            return asked
        asked = None if asked is None else check_subject(asked)
        if asked is None and len(self.subjects) == 1:
            return self.subjects[0]
        if asked is None:
            raise ServiceError(
                "Forbidden", "the settings name no subject, and this key has several", hint='add "subject"'
            )
        if not self.may_spend(asked):
            hint = f"{suggestion(asked, self.subjects)}name one of the key's own"
            raise ServiceError("Forbidden", "this key may not spend that subject", hint=hint)
        return asked

    def may_spend(self, subject: str) -> bool:
        """Whether a subject is one of the caller's, or below one."""
        return self.subjects is None or any(is_under(subject, own) for own in self.subjects)


LOCAL: Final = Caller.model_construct(
    number="local", name="local", subjects=None, rate=MOST_RATE, parallel=MOST_RATE
)
"""Whoever asks from this machine, where no key is needed."""


class Keys(BaseModel):
    """The keys of a file."""

    version: Literal["dpveil.keys/1"] = Field(default="dpveil.keys/1", alias="schema")
    callers: tuple[Caller, ...] = Field(default=(), alias="keys")

    @classmethod
    def read(cls, path: Path) -> Keys:
        """Return the keys in the file at `path`; raises `UsageError`."""
        try:
            return cls.model_validate_json(path.read_bytes())
        except FileNotFoundError:
            raise UsageError(f"there is no file of keys {show_path(path)}", hint=HINT) from None
        except OSError as error:
            problem = f"the file of keys {show_path(path)} cannot be read ({error.strerror})"
            raise UsageError(problem, hint=HINT) from error
        except (ValidationError, InvalidParameter) as error:
            raise UsageError(f"{show_path(path)} is no file of keys", hint=HINT) from error

    def write(self, path: Path) -> None:
        """Write the keys to `path`, for its owner alone, in one step; raises `OutputError`."""
        text = self.model_dump_json(by_alias=True, indent=2) + "\n"
        write_together([(path, text.encode())], replace=True, private=True)

    def new(
        self, name: str, subjects: Sequence[str], rate: int, parallel: int = PARALLEL
    ) -> tuple[Keys, str]:
        """Return these keys and one more, and that key, which is nowhere else; raises `InvalidParameter`."""
        if any(caller.name == name for caller in self.callers):
            raise InvalidParameter("name", name, "is there already", hint="choose another, or remove it")
        number, secret = secrets.token_hex(6), secrets.token_urlsafe(32)
        key = f"dpveil_{number}_{secret}"
        given: Any = {"name": name, "subjects": tuple(subjects), "rate": rate, "parallel": parallel}
        try:
            caller = Caller(number=number, sha256=_hash(key), **given)
        except ValidationError as error:
            first = error.errors()[0]
            argument = str(first["loc"][0])
            option = argument.removesuffix("s")
            raise InvalidParameter(option, given[argument], "is out of range", hint=first["msg"]) from error
        return Keys.model_construct(callers=(*self.callers, caller)), key

    def without(self, name: str) -> Keys:
        """Return these keys without the one of that name; raises `InvalidParameter` if there is none."""
        rest = tuple(caller for caller in self.callers if caller.name != name)
        if len(rest) == len(self.callers):
            raise InvalidParameter("name", name, "is no key of this file", hint="see dpveil api-key list")
        return Keys.model_construct(callers=rest)

    def caller(self, header: str) -> Caller:
        """Return whose key an Authorization header holds; raises "Unauthorised"."""
        scheme, _, key = header.partition(" ")
        if scheme.lower() != "bearer" or not key.strip():
            raise ServiceError("Unauthorised", "an API key is needed here", hint=SEND)
        form = KEY.fullmatch(key.strip())
        if form is None:
            raise ServiceError(
                "Unauthorised", "this is no API key", hint=f"copy all of it, from dpveil_ on, or {ASK}"
            )
        for caller in self.callers:
            if caller.number == form[1] and hmac.compare_digest(caller.sha256, _hash(form[0])):
                return caller
        raise ServiceError("Unauthorised", "this API key is not known here, or no longer", hint=ASK)


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
        """Return whose key a header holds; raises "Unauthorised", and "Busy" while the file is unusable."""
        stamp = _stamp(self.path)
        if stamp is None or stamp != self._stamp:
            try:
                self._stamp, self._keys = stamp, Keys.read(self.path)
            except UsageError as error:
                self._stamp = None
                raise busy("the keys cannot be read", after=30) from error
        return self._keys.caller(header)


def _stamp(path: Path) -> tuple[int, ...] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


def _hash(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()
