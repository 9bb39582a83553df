"""What a release keeps of its original's EXIF: a few allow-listed texts, written anew."""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Iterable, Mapping
from typing import Any, Final

from PIL import Image

from dpveil.errors import InvalidParameter, OutputError, UnknownName
from dpveil.io.unreadable import Refused

NAMES: Final = ("date", "copyright", "caption")
"""What may be kept: DateTimeOriginal, Copyright and ImageDescription (EXIF 2.3 §4.6)."""
ORIENTATION: Final = "orientation"
"""The name of what is kept in any case: a JPEG's is its tag, and all else is stored upright."""
FREE: Final = ("copyright", "caption")  # free texts, in which people may be named
DATE: Final = re.compile(r"[0-9]{4}:[0-9]{2}:[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}")
LONGEST_TEXT: Final = 2000  # most characters of a text
CAPTION, TURN, COPYRIGHT, POINTER = 0x010E, 0x0112, 0x8298, 0x8769
"""Tags of the first directory; the pointer is that to the second one."""
DATE_TAKEN: Final = 0x9003  # the tag of DateTimeOriginal, in the second directory
NO_TEXTS: Final[Mapping[str, str]] = {}
EXIF_HEAD: Final = b"Exif\0\0"
WITHOUT: Final = "leave {keep_metadata} out"
KEEPING: Final = {"keep_metadata": "keep_metadata"}
"""The remedy where metadata cannot be kept, and the argument that it names."""
PLACES: Final = {"jpeg": 20, "png": 33}
"""Where EXIF stands in a file of dpveil's: after a JPEG's JFIF header and a PNG's IHDR."""


def parse_names(text: str | None) -> tuple[str, ...]:
    """Return what is to be kept by an option such as "date,copyright".

    >>> parse_names("caption,date,orientation")
    ('date', 'caption')
    """
    asked = [] if text is None else [part.strip() for part in text.split(",")]
    for name in asked:
        if name not in (*NAMES, ORIENTATION):
            raise UnknownName("metadata", name, {*NAMES, ORIENTATION})
    return tuple(name for name in NAMES if name in asked)


def check_texts(texts: Mapping[str, str]) -> dict[str, str]:
    """Return texts that may be kept, in order; raises `UnknownName` and `InvalidParameter`."""
    for name, text in texts.items():
        if name not in NAMES:
            raise UnknownName("metadata", name, set(NAMES))
        if not text or text != _plain(text) or len(text) > LONGEST_TEXT:
            problem = f"is no line of 1 to {LONGEST_TEXT:,} printable characters"
            raise InvalidParameter("metadata", name, problem, hint="shorten it, or do not keep it")
        if name == "date" and not DATE.fullmatch(text):
            raise InvalidParameter("metadata", name, "is not written as in 2024:05:31 18:00:00")
    return {name: texts[name] for name in NAMES if name in texts}


def texts_of(picture: Image.Image | Image.Exif, names: Iterable[str]) -> dict[str, str]:
    """Return those of the named texts that EXIF has, each in one line; raises `Refused` for a long one."""
    try:
        tags = picture if isinstance(picture, Image.Exif) else picture.getexif()
        held = {"date": tags.get_ifd(POINTER).get(DATE_TAKEN), "copyright": tags.get(COPYRIGHT)}
        held["caption"] = tags.get(CAPTION)
    except Exception:  # noqa: BLE001  a parser given hostile bytes may raise anything
        return {}
    texts = {name: _plain(_text_of(held[name])) for name in names}
    if not DATE.fullmatch(texts.get("date", "")):
        texts.pop("date", None)
    for name, text in texts.items():
        if len(text) > LONGEST_TEXT:
            raise Refused(f"has a {name} of more than {LONGEST_TEXT:,} characters", WITHOUT, KEEPING)
    return {name: text for name, text in texts.items() if text}


def _text_of(value: Any) -> str:
    text = value if isinstance(value, str) else ""
    try:  # most programs write UTF-8, of which Pillow makes Latin-1
        return text.encode("latin-1").decode()
    except UnicodeError:
        return text


def _plain(text: str) -> str:
    return " ".join("".join(each for each in text if each.isprintable() or each.isspace()).split())


def exif_block(texts: Mapping[str, str], orientation: int = 1) -> bytes:
    """Return the block of EXIF that states these texts and an orientation other than upright."""
    tags = Image.Exif()
    if orientation != 1:
        tags[TURN] = orientation
    for name, tag in (("caption", CAPTION), ("copyright", COPYRIGHT)):
        if name in texts:
            tags[tag] = texts[name].encode()
    if "date" in texts:
        tags.get_ifd(POINTER)[DATE_TAKEN] = texts["date"]
    return tags.tobytes().removeprefix(EXIF_HEAD)


def states_texts(block: bytes, texts: Mapping[str, str]) -> bool:
    """Return whether a block of EXIF states these texts, maybe an orientation, and nothing else."""
    tags = Image.Exif()
    tags.load(block)
    kept = {*tags} <= {CAPTION, TURN, COPYRIGHT, POINTER} and {*tags.get_ifd(POINTER)} <= {DATE_TAKEN}
    return kept and texts_of(tags, NAMES) == dict(texts)


def with_exif(contents: bytes, format_: str, texts: Mapping[str, str], orientation: int = 1) -> bytes:
    """Return a file of dpveil's, which has none yet, with a block of EXIF; raises `OutputError`."""
    if not texts and orientation == 1:
        return contents
    if format_ not in PLACES:
        hint = f"write {' or '.join(PLACES)}, or keep none"
        raise OutputError(f"a {format_} file gets no metadata", hint=hint)
    block, place = exif_block(check_texts(texts), orientation), PLACES[format_]
    segment = b"\xff\xe1" + struct.pack(">H", 2 + len(EXIF_HEAD) + len(block)) + EXIF_HEAD + block
    part = segment if format_ == "jpeg" else png_chunk(b"eXIf" + block)
    return contents[:place] + part + contents[place:]


def png_chunk(named: bytes) -> bytes:
    """Return a chunk of PNG by its type, of four bytes, and its contents."""
    return struct.pack(">I", len(named) - 4) + named + struct.pack(">I", zlib.crc32(named))
