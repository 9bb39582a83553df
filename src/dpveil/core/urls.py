"""Places that callers name by URL: objects, and prefixes of objects.

Only `place` makes one, of what a user typed: nothing in a file that was received is taken for a URL. No kept
library does this: universal_pathlib takes any text with a scheme that fsspec knows for a URL.
"""

from __future__ import annotations

import errno
import os
import re
from pathlib import Path
from typing import Any, Final, NamedTuple

from dpveil.errors import UsageError

SCHEMES: Final = {"memory": False, "s3": True}
"""The only list of schemes to edit, and whether other processes see the same."""
SCHEME: Final = re.compile(r"([a-zA-Z][a-zA-Z0-9+.-]*)://(.*)", re.DOTALL)
BEGINS: Final = re.compile(r"\s*[a-z][a-z0-9+.:-]+://", re.IGNORECASE)  # how a URL begins
SECRET: Final = re.compile(
    r"(?!\s*file:///)\s*[a-z][a-z0-9+.:-]*:/+[^/]*(?:@|:.*@)", re.IGNORECASE | re.DOTALL
)
"""What has credentials in it, also if it is nearly a URL, or there is a slash in them."""
OBJECT: Final = "name an object, or a prefix such as s3://bucket/photos/"
CREDENTIALS: Final = (
    "check the credentials (AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY) and what they allow"
)


class Status(NamedTuple):
    """Size of an object in bytes, and instead of a time a number of 63 bits by its version (ETag)."""

    st_size: int
    st_mtime_ns: int


class Url(type(Path())):  # type: ignore[misc]
    """An object, or a prefix of objects. As a path it has a name and is joined; on this disk there is none.

    `listed` is its status when it was listed, `prefix` whether it was named as one, and `problem` why it is
    not read, and the remedy, if so.
    """

    listed: Status | None = None
    prefix: bool = False
    problem: tuple[str, str] | None = None

    def __str__(self) -> str:
        text = super().__str__()
        scheme, found, rest = text.partition(":/")
        return f"{scheme}://{rest}" if found and scheme in SCHEMES else text

    def __reduce__(self) -> tuple[Any, ...]:
        return rebuild_url, (str(self), self.listed, self.prefix, self.problem)

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:
        """Raise `FileNotFoundError`, as for anything that is not on this disk."""
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(self))

    @property
    def scheme(self) -> str:
        return str(self).partition("://")[0]

    @property
    def key(self) -> str:
        """What fsspec calls it, without the scheme."""
        return str(self).partition("://")[2]

    @property
    def is_shared(self) -> bool:
        """Whether other processes see it."""
        return SCHEMES[self.scheme]


def rebuild_url(text: str, listed: Status | None, prefix: bool, problem: tuple[str, str] | None) -> Url:
    """Return a place again, as it was sent to another process, or with what a list told of it."""
    made = Url(text)
    made.listed, made.prefix, made.problem = listed, prefix, problem
    return made


def place(text: str) -> Path:
    """Return what a user calls a place: a path on this disk, or by its URL one that is elsewhere.

    Spaces around a URL are left out. Raises `UsageError` for an unknown scheme, and for credentials in a URL,
    or in what was meant as one, which are not told again.

    >>> place("photos/a.jpg").name, str(place("s3://bucket/in/a.jpg")), str(place("file:///photos"))
    ('a.jpg', 's3://bucket/in/a.jpg', '/photos')
    """
    if SECRET.match(text):
        raise UsageError("a URL has credentials in it", hint=f"leave them out and {CREDENTIALS}")
    if not text.strip():
        raise UsageError("a file or folder has an empty name", hint="a variable of the shell may be unset")
    found = SCHEME.fullmatch(text.strip(" "))
    if found is None:
        return Path(text)
    scheme, rest = found[1].lower(), found[2]
    if scheme == "file" and rest.startswith("/"):
        return Path(rest)
    if scheme not in SCHEMES:
        problem = f"{scheme}:// is no place that dpveil reads or writes"
        raise UsageError(problem, hint=f"choose from {', '.join(sorted([*SCHEMES, 'file']))}")
    key = rest.rstrip("/")
    if is_ambiguous(key) or not key:
        raise UsageError(f"{text!r} is no plain URL", hint=OBJECT)
    made = Url(f"{scheme}://{key}")
    made.prefix = rest.endswith("/")
    return made


def check_local(name: str, text: str) -> None:
    """Raise `UsageError`, which does not tell the text, if what is to be a path on this disk is a URL."""
    if BEGINS.match(text) or SECRET.match(text):
        hint = "name a path on this disk, and download first what is elsewhere"
        raise UsageError(f"{name} takes a path on this disk, and no URL", hint=hint)


def is_ambiguous(key: str) -> bool:
    """Whether a name is none that is the same for everybody: it leads elsewhere, or is not printable.

    A backslash is a part of a name here, and parts names elsewhere.
    """
    if not key.isprintable() or "\\" in key or "?versionId=" in key:
        return True
    return any(part in ("", ".", "..") for part in key.split("/"))
