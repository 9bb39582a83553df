"""File names: which format a suffix stands for, and how a message shows a path."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from dpveil.errors import UnknownName

FORMATS: Final[dict[str, str]] = {
    ".png": "png",
    ".jpg": "jpeg",
    ".jpeg": "jpeg",
    ".webp": "webp",
    ".tif": "tiff",
    ".tiff": "tiff",
    ".bmp": "bmp",
}
"""Suffix of an output, in small letters, to the format that is written."""

LONGEST_TEXT: Final = 500
"""Letters of a text of a received file that a message shows."""
LONGEST: Final = 1000
"""Letters of a path that a message shows."""


def format_of(path: str | Path) -> str:
    """Return the format that the suffix of `path` stands for; raises `UnknownName` naming the choices.

    >>> format_of("group.private.JPG")
    'jpeg'
    """
    suffix = Path(path).suffix.lower()
    if suffix not in FORMATS:
        raise UnknownName("format", suffix or shown(path), FORMATS)
    return FORMATS[suffix]


def shown(path: str | Path) -> str:
    """Return `path` for a one-line message: as it is, or escaped where it would break the line."""
    text = str(path)
    if len(text) > LONGEST:
        text = f"{text[: LONGEST // 2]}…{text[-LONGEST // 2 :]}"
    return text if text.isprintable() and text else repr(text)


def quoted(text: str) -> str:
    r"""Return what a received file says, for a one-line message: nothing in it moves or colours the terminal.

    >>> quoted("face\x1b[2J\n2"), len(quoted(600 * "a"))
    ('face\\x1b[2J\\n2', 500)
    """
    half = LONGEST_TEXT // 2
    seen = text if len(text) <= LONGEST_TEXT else text[:half] + text[-half:]
    told = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in seen)
    return told if len(told) + len(text) - len(seen) <= LONGEST_TEXT else f"{told[: half - 1]}…{told[-half:]}"
