"""What became of one row of a data set, as data that every engine can carry."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass, fields
from typing import Final

from dpveil import errors
from dpveil.batch.report import FAILED, NO_REGION, RELEASED, UNTRIED, Failure
from dpveil.errors import DPVeilError, NoRegion

STATUSES: Final = (RELEASED, FAILED, NO_REGION, UNTRIED)
NAME: Final = re.compile(r"[0-9a-f]{2}/[0-9a-f]{62}\.png")
"""Names of releases in a store's folder of them."""


@dataclass(frozen=True)
class Row:
    """What became of the row `key`: one of the `STATUSES`.

    `release` is the name of its PNG in the store's folder of releases, or else `error` the name of a class of
    `dpveil.errors`, `problem` what is wrong, and `hint` the remedy. `stamp` tells versions of a file apart.
    """

    key: str
    stamp: str
    status: str
    release: str = ""
    error: str = ""
    problem: str = ""
    hint: str = ""

    @classmethod
    def of(cls, key: str, stamp: str, error: Exception, *, tried: bool = True) -> Row:
        """Return the row of which nothing was released because of this error."""
        failure = Failure.of(error, {})
        status = UNTRIED if not tried else NO_REGION if isinstance(error, NoRegion) else FAILED
        own = (kind.__name__ for kind in failure.kind.__mro__ if kind.__module__ == errors.__name__)
        named = next(own, DPVeilError.__name__)
        return cls(key, stamp, status, error=named, problem=failure.message, hint=failure.hint)

    @property
    def failure(self) -> Failure | None:
        """Why nothing was released, or None."""
        if self.status == RELEASED:
            return None
        kind = getattr(errors, self.error, DPVeilError)
        known = isinstance(kind, type) and issubclass(kind, DPVeilError)
        return Failure(kind if known else DPVeilError, self.problem, self.hint)

    def to_line(self) -> str:
        """Return one line of JSON."""
        return json.dumps(asdict(self)) + "\n"

    @classmethod
    def parse(cls, line: str) -> Row | None:
        """Return the row of a line that `to_line` wrote, or None: a process may be killed while it writes."""
        try:
            given = json.loads(line)
        except (ValueError, RecursionError):
            return None
        names = [field.name for field in fields(cls)]
        if not isinstance(given, dict) or sorted(given) != sorted(names):
            return None
        if not all(isinstance(value, str) for value in given.values()) or given["status"] not in STATUSES:
            return None
        named = bool(NAME.fullmatch(given["release"]))
        return cls(**given) if named == (given["status"] == RELEASED) else None
