"""Labels given by hand: a CSV file with values of attributes for some of the training pictures."""

from __future__ import annotations

import csv
import hashlib
import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from dpveil.errors import InvalidParameter
from dpveil.faces.attribute_model import READ
from dpveil.io.names import shown

PICTURE: Final = "picture"
"""The first column: what `key_of` a picture's file is."""
DIGITS: Final = 16
LARGEST: Final = 1 << 24
"""Largest file, in bytes."""
HINT: Final = f"its first line names the columns, such as {PICTURE},glasses,beard"


@dataclass(frozen=True)
class HandLabels:
    """Labels by `key_of` the picture: the attributes that are known of it, as indices into their values.

    `names` are the attributes that the file has, and `digest` is the SHA-256 of the file.
    """

    names: tuple[str, ...] = ()
    digest: str = ""
    rows: Mapping[str, Mapping[str, int]] = field(default_factory=dict, repr=False)

    @classmethod
    def read(cls, path: Path) -> HandLabels:
        """Return the labels in a CSV file; an empty cell is a value that is not known.

        Raises `InvalidParameter` if there is no such file, or for contents that are not labels.
        """
        try:
            with path.open("rb") as opened:
                data = opened.read(LARGEST + 1)
            text = data.decode("utf-8")
        except (OSError, ValueError) as error:
            raise _wrong(path, "cannot be read as text") from error
        if len(data) > LARGEST:
            raise _wrong(path, f"has more than {LARGEST} bytes")
        lines = _lines(path, text)
        first, *names = next(lines, (1, []))[1] or [""]
        if first != PICTURE or not names or not {*names} <= READ.keys() or len({*names}) < len(names):
            raise _wrong(path, f"has other columns than {PICTURE} and some of {', '.join(READ)}")
        rows = {}
        for number, (key, *words) in lines:
            if len(words) != len(names) or len(key) != DIGITS or key in rows:
                raise _wrong(path, f"has a wrong line {number}")
            rows[key] = {
                name: _index(path, name, word) for name, word in zip(names, words, strict=True) if word
            }
        return cls(tuple(name for name in READ if name in names), hashlib.sha256(data).hexdigest(), rows)

    def of(self, picture: bytes) -> Mapping[str, int]:
        """Return what is known of the picture in a file with these bytes."""
        return self.rows.get(key_of(picture), {}) if self.rows else {}


def key_of(picture: bytes) -> str:
    """Return the first 16 hexadecimal digits of the SHA-256 of a picture's file."""
    return hashlib.sha256(picture).hexdigest()[:DIGITS]


def _lines(path: Path, text: str) -> Iterator[tuple[int, list[str]]]:
    """Yield every line that is not empty, with its number."""
    reader = csv.reader(io.StringIO(text))
    try:
        yield from ((reader.line_num, line) for line in reader if line)
    except csv.Error as error:
        raise _wrong(path, f"has a wrong line {reader.line_num}") from error


def _index(path: Path, name: str, word: str) -> int:
    if word not in READ[name]:
        raise _wrong(path, f"has {word[:40]!r} as {name}, which is one of {', '.join(READ[name])}")
    return READ[name].index(word)


def _wrong(path: Path, problem: str) -> InvalidParameter:
    return InvalidParameter("labels", shown(path), problem, hint=HINT)
