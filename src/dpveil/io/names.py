"""File names: the format of a suffix, and how messages show a path."""

from __future__ import annotations

import os
import re
from pathlib import Path, PurePath
from typing import Final

from dpveil.errors import InvalidParameter, UnknownName
from dpveil.io.folders import UNWRITTEN

FORMATS: Final[dict[str, str]] = {
    ".png": "png",
    ".jpg": "jpeg",
    ".jpeg": "jpeg",
    ".webp": "webp",
    ".tif": "tiff",
    ".tiff": "tiff",
    ".bmp": "bmp",
}
"""The format of each suffix of an output, in lower case."""

LONGEST_TEXT: Final = 500  # longest text from an untrusted file that a message shows, in characters
LONGEST_PATH: Final = 1000  # longest path that a message shows, in characters
SPACES: Final = re.compile("  +")


def check_path(path: object, hint: str) -> str | Path:
    """Return `path` as a string or `Path`; raises `InvalidParameter` with `hint` if it is not a path."""
    if isinstance(path, str | Path):
        return path
    if isinstance(path, os.PathLike) and isinstance(name := os.fspath(path), str):
        return name
    raise InvalidParameter("path", type(path).__name__, "is not a path", hint=hint)


def format_of(path: str | Path) -> str:
    """Return the format of the suffix of `path`; raises `UnknownName`, which lists the suffixes.

    >>> format_of("group.private.JPG")
    'jpeg'
    """
    suffix = Path(path).suffix.lower()
    if suffix not in FORMATS:
        written = f"choose from {', '.join(sorted(FORMATS))}" if suffix in UNWRITTEN else ""
        raise UnknownName("format", suffix or show_path(path), FORMATS, hint=written)
    return FORMATS[suffix]


KEPT: Final = frozenset({".jpg", ".jpeg", ".png", ".bmp"})
"""Suffixes of inputs whose releases have the same: nothing outside of regions is lost in these formats."""
WRITTEN_AS: Final = {"png": ".png", "jpeg": ".jpg", "webp": ".webp", "tiff": ".tif", "bmp": ".bmp"}
"""The suffix of outputs in a format that was chosen."""


def released_suffix(name: str | PurePath, format: str | None = None) -> str:  # noqa: A002  the field's word
    """Return the suffix of the release of a file: its own, if that is kept or of the chosen format, or .png.

    >>> released_suffix("a.JPG"), released_suffix("a.heic"), released_suffix("a.jpg", "webp")
    ('.JPG', '.png', '.webp')
    """
    suffix = PurePath(name).suffix
    if format is None:
        return suffix if suffix.lower() in KEPT else ".png"
    return suffix if FORMATS.get(suffix.lower()) == format else WRITTEN_AS[format]


PICTURE_WORDS: Final = frozenset(
    {"Screen", "Shot", "Screenshot", "Image", "Photo", "Scan", "Untitled", "Copy"}
)
"""Capitalised words in names of pictures that are no names of people."""


def may_name_a_person(path: str | Path) -> bool:
    """Return whether a file's name is two to four capitalised words, with numbers or without.

    >>> [may_name_a_person(name) for name in ("Jane Miller.jpg", "Jane_Miller-2.png", "IMG_2.jpg")]
    [True, True, False]
    """
    words = [word for word in re.split(r"[\s_.,-]+", Path(path).stem) if word and not word.isdigit()]
    named = all(word.isalpha() and word.istitle() and word not in PICTURE_WORDS for word in words)
    return named and 2 <= len(words) <= 4


def show_path(path: str | Path) -> str:
    """Return `path` for a one-line message: unchanged, or escaped if it has unprintable characters.

    The middle of a path longer than `LONGEST_PATH` is left out.
    """
    text = str(path)
    if len(text) > LONGEST_PATH:
        text = f"{text[: LONGEST_PATH // 2]}…{text[-LONGEST_PATH // 2 :]}"
    return text if text.isprintable() and text and text == text.strip() else repr(text)


def escape_text(text: str) -> str:
    r"""Return text from a received file, made safe to print in a one-line message.

    Escapes what is not printable, such as controls and marks of direction, makes runs of spaces one, and
    leaves out the middle of a text longer than `LONGEST_TEXT`.

    >>> escape_text("face\x1b[2J\n2"), escape_text("a   b"), len(escape_text(600 * "a"))
    ('face\\x1b[2J\\n2', 'a b', 500)
    """
    half = LONGEST_TEXT // 2
    seen = text if len(text) <= LONGEST_TEXT else text[:half] + text[-half:]
    shown = "".join(
        each if each.isprintable() else each.encode("unicode_escape").decode()
        for each in SPACES.sub(" ", seen)
    )
    whole = len(shown) + len(text) - len(seen) <= LONGEST_TEXT
    return shown if whole else f"{shown[: half - 1]}…{shown[-half:]}"
