"""What photos and releases are called in files of many: their names come from anyone."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from dpveil.io.names import quoted
from dpveil.io.refused import Refused

LONGEST: Final = 230
"""Most bytes of a photo's name in a shard, so that its release, and the certificate, can be unpacked."""
LONGEST_RELEASE: Final = LONGEST + len(".png")
"""The same of a release's name, which may be that of its photo and more."""
RENAME: Final = "give it a plain name"
ROW: Final = "{:09}.png"
"""What the release of a row is called; the first row is 0."""
LINK: Final = "is a link, a device or sparse, and no file"


def refusal_of(name: str, seen: Collection[str] = (), *, longest: int = LONGEST) -> Refused | None:
    """Return what is wrong with a name in a file, if anything; `seen` are those before it.

    It has at most so many bytes.
    """
    parts = name.split("/")
    if not name.isprintable() or len(name.encode("utf-8", "replace")) > longest or "\\" in name:
        return Refused(f"is called {quoted(name)!r}, which is no plain name", RENAME)
    if any(part in ("", ".", "..") for part in parts):
        return Refused(f"is called {name!r}, which leads elsewhere", RENAME)
    if name in seen:
        return Refused(f"is called {name!r}, as another before it", "name it otherwise")
    return None
