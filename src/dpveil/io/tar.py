"""Writing .tar files, and listing those from anyone: headers are bounded, and names in them stay text.

Formats: POSIX ustar and pax (IEEE Std 1003.1-2017, `pax`), and GNU tar's long names and large sizes.
"""

from __future__ import annotations

import re
import tarfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from io import BytesIO
from typing import BinaryIO, Final

from dpveil.io.refused import COPY_AGAIN, Refused

BLOCK: Final = 512
MOST_MORE: Final = 1 << 16
"""Largest extended header, in bytes."""
MOST_HEADERS: Final = 1 << 21
"""Most headers of one file."""
MOST_NAME: Final = 1 << 10
"""Most bytes of a name; of a longer one, which nobody may use, the end is told."""
LATEST: Final = (1 << 33) - 1
"""Latest time, in seconds, in octal digits; later ones are told as this."""
BEYOND: Final = 1 << 24
"""Most bytes after the end, in which nothing may follow: archives may be padded, and not joined."""
PART: Final = 1 << 16
PLAIN: Final = (b"0", b"\0", b"7")
"""Types of members that are files with all their bytes in one place."""
EMPTY: Final = (b"1", b"2", b"3", b"4", b"5", b"6")
"""Types of links, devices, folders and pipes, whose size is that of nothing in the file."""
SPARSE: Final = b"GNU.sparse"
"""How the keys begin of the records of a file of which the holes are left out."""
OTHER: Final = b"other"
"""Stands for records with other keys than the `HARMLESS`."""
ROOM: Final = 100
"""Most bytes of a name in a header, without the part that only some formats have."""
LONGEST_VALUE: Final = 64
"""Most bytes of the value of a harmless record."""
HARMLESS: Final = frozenset(
    {b"path", b"size", b"mtime", b"atime", b"ctime", b"uid", b"gid", b"uname", b"gname"}
)
"""Keys of records that change neither which bytes are a member's nor what it is called by some tools only."""
MORE: Final = ("holds more than its files, or says it in a way that not all tools read alike", "pack it anew")
OCTAL: Final = re.compile(rb"[ ]*([0-7]*)[ \0]*")


@dataclass(frozen=True)
class Member:
    """One member: `size` bytes from byte `start`; `time` is in seconds, and `plain` whether it is a file.

    A `folder` has no contents. Of a row in another format, `start` is its number, and `digest` the SHA-256 of
    its bytes, if it is known.
    """

    name: str
    start: int
    size: int
    time: int
    plain: bool
    digest: bytes = b""
    folder: bool = False


def members(file: BinaryIO, size: int, *, bare: bool = False) -> Iterator[Member]:
    """Yield the members of a .tar of `size` bytes in their order, of which no contents are read.

    If it is to be `bare`, nothing may lie between members, and nothing may be said of them that some tools
    take for another name or size. Raises `Refused` where it is damaged or ends early, after the members
    before.
    """
    at, more = 0, dict[bytes, bytes]()
    for _ in range(MOST_HEADERS):
        head = _read(file, at, BLOCK)
        if head == bytes(BLOCK):
            _check_end(file, size)
            return
        kind, length = _checked(head), _number(head[124:136])
        if kind in PLAIN and b"size" in more:
            length = _decimal(more[b"size"])
        length = 0 if kind in EMPTY else length
        start, end = at + BLOCK, at + BLOCK + length
        at = start + -(-length // BLOCK) * BLOCK
        if end > size:
            raise Refused("ends early", COPY_AGAIN)
        if kind in (b"x", b"L", b"g", b"K"):
            if length > MOST_MORE:
                raise Refused(f"has a header of {length:,} bytes", COPY_AGAIN)
            if bare and (more or kind in (b"g", b"K")):
                raise Refused(*MORE)
            if kind in (b"x", b"L"):
                text = _read(file, start, length)
                more |= _records(text) if kind == b"x" else _long_name(text)
        own = {} if kind in (b"x", b"L") else more
        if bare and (OTHER in more or any(_read(file, end, at - end)) or _is_ambiguous(head, own)):
            raise Refused(*MORE)
        if kind in (b"x", b"L", b"g", b"K"):
            continue
        name = (more.get(b"path") or _name(head))[-MOST_NAME:].decode("utf-8", "surrogateescape")
        plain = kind in PLAIN and SPARSE not in more
        yield Member(name, start, length, _time(head[136:148]), plain, folder=kind == b"5")
        more = {}
    raise Refused(f"has more than {MOST_HEADERS:,} members", "split it")


def _check_end(file: BinaryIO, size: int) -> None:
    """Raise `Refused` unless nothing but zeros, and not too many, follows where `file` is."""
    empty = size - file.tell() <= BEYOND
    while empty and (part := file.read(PART)):
        empty = not part.strip(b"\0")
    if not empty:
        raise Refused("goes on after its end, as if joined of several", "unpack and pack it anew")


def _is_ambiguous(head: bytes, more: dict[bytes, bytes]) -> bool:
    """Whether tools read different names or sizes in a header, of which `more` was said in one before.

    That may state no other size, which those find that do not know it, and another name only if a header has
    no room for it. A name must not begin where only some tools look for its first part.
    """
    if b"size" in more and _decimal(more[b"size"]) != _number(head[124:136]):
        return True
    path = more.get(b"path", _name(head))
    other = path != _name(head) and path.isascii() and len(path) < ROOM
    return other or (head[257:263] != b"ustar\0" and head[345] != 0)


def write_tar(file: BinaryIO, files: Iterable[tuple[str, bytes]]) -> None:
    """Write a .tar of files by names and contents, which states nothing else of them; raises `OSError`."""
    with tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT) as made:
        for name, contents in files:
            told = tarfile.TarInfo(name)
            told.size = len(contents)
            made.addfile(told, BytesIO(contents))


def _read(file: BinaryIO, at: int, length: int) -> bytes:
    file.seek(at)
    found = file.read(length)
    if len(found) < length:
        raise Refused("ends early", COPY_AGAIN)
    return found


def _checked(head: bytes) -> bytes:
    """Return the type of a header's member; raises `Refused` unless its checksum is right."""
    if _number(head[148:156]) != sum(head[:148]) + sum(head[156:]) + 8 * ord(" "):
        raise Refused("is damaged, or not a .tar without compression", COPY_AGAIN)
    return head[156:157]


def _number(field: bytes) -> int:
    """Return a number in octal digits, or in GNU tar's binary form, which is not negative."""
    if field[0] == 0x80:
        return int.from_bytes(field[1:], "big")
    found = OCTAL.fullmatch(field)
    if found is None:
        raise Refused("is damaged, or not a .tar without compression", COPY_AGAIN)
    return int(found[1] or b"0", 8)


def _time(field: bytes) -> int:
    """Return a time in seconds from 1970 to `LATEST`; as 0 one before."""
    return 0 if field[0] == 0xFF else min(_number(field), LATEST)


def _decimal(text: bytes) -> int:
    if not text.isdigit() or len(text) > 20:
        raise Refused("has a damaged header", COPY_AGAIN)
    return int(text)


def _name(head: bytes) -> bytes:
    name, prefix = head[:100].partition(b"\0")[0], head[345:500].partition(b"\0")[0]
    return prefix + b"/" + name if head[257:263] == b"ustar\0" and prefix else name


def _long_name(text: bytes) -> dict[bytes, bytes]:
    """Return the path in a header of GNU tar's, and whether anything `OTHER` follows it."""
    name, _, rest = text.partition(b"\0")
    return {b"path": name} | ({OTHER: b""} if rest.strip(b"\0") else {})


def _records(text: bytes) -> dict[bytes, bytes]:
    """Return path and size in a pax header, and whether it is of a `SPARSE` file or has `OTHER` records.

    Each of its records is its length, a space, a key, "=", a value and a line end.
    """
    found = {}
    at = 0
    while at < len(text):
        digits = text[at : at + 6].partition(b" ")[0]
        end = at + _decimal(digits)
        key, equals, value = text[at + len(digits) + 1 : end].partition(b"=")
        if end > len(text) or not equals or not value.endswith(b"\n"):
            raise Refused("has a damaged header", COPY_AGAIN)
        if key in (b"path", b"size"):
            found[key] = value[:-1]
        elif key.startswith(SPARSE):
            found[SPARSE] = b""
        elif key not in HARMLESS or len(value) > LONGEST_VALUE:
            found[OTHER] = b""
        at = end
    return found
