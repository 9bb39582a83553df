"""Uploads: multipart bodies, read into memory and counted while they arrive; nothing is spooled to a disk."""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header
from starlette.requests import ClientDisconnect, Request

from dpveil.core.guarantee import counted
from dpveil.io.names import quoted
from dpveil.service.keys import LOCAL, Caller
from dpveil.service.limits import Limits
from dpveil.service.problems import BadRequest, Busy, TooLarge, TooMany, TooSlow, WrongType
from dpveil.service.quotas import AGAIN_SECONDS

SMALL: Final = 1 << 20
"""Bytes of a body below which its digest is computed at once: another thread would take longer."""
PHOTO: Final = "photo"
PARTS: Final = (PHOTO, "settings")
"""The parts of an upload, of which the first may be there several times."""
FORM: Final = 'send multipart/form-data with the parts "photo" and, if you like, "settings"'
SHAPE: Final = re.compile(rb"multipart/form-data\s*;", re.IGNORECASE)


@dataclass
class Upload:
    """The parts of one upload: photos, and the settings for each; and a digest of each photo and these."""

    photos: list[bytes]
    settings: bytes
    digests: list[bytes]


class Held:
    """The bytes of all uploads in memory: `limits.held_bytes` at most, and `limits.key_bytes` of each key.

    Where no key is needed, whoever asks has the whole.
    """

    def __init__(self, limits: Limits) -> None:
        self.limits, self.now = limits, 0
        self.of_keys: Counter[str] = Counter()

    @contextmanager
    def share(self, caller: Caller = LOCAL) -> Iterator[Share]:
        """Give one request a share, which it gives back when it ends."""
        share = Share(self, None if caller is LOCAL else caller.number)
        try:
            yield share
        finally:
            share.free()


@dataclass
class Share:
    """What one request holds in memory: of the memory of all, and of that of a `key` by its number."""

    held: Held
    key: str | None = None
    size: int = 0

    def add(self, size: int) -> None:
        """Hold more; raises `TooMany` for more than a key may hold, and `Busy` for more than all may."""
        limits = self.held.limits
        if self.key is not None and self.held.of_keys[self.key] + size > limits.key_bytes:
            raise TooMany("the uploads of this key fill the memory that it has for them", after=AGAIN_SECONDS)
        if self.held.now + size > limits.held_bytes:
            raise Busy("uploads of others fill the memory for them", after=5)
        self._count(size)

    def part(self, size: int) -> Share:
        """Give `size` bytes of this share to a share of its own, as for one photo of several."""
        self.size -= size
        return Share(self.held, self.key, size)

    def free(self) -> None:
        """Give everything back."""
        self._count(-self.size)

    def _count(self, more: int) -> None:
        self.size += more
        self.held.now += more
        if self.key is not None:
            self.held.of_keys[self.key] += more


async def receive(request: Request, limits: Limits, share: Share) -> Upload:
    """Return the upload of a request; raises errors that are problems, among them those of every limit.

    The stated length is only believed where it is too large; what arrives is counted.
    """
    stated = request.headers.get("content-length", "")
    if stated.isdigit() and int(stated[:20]) > limits.body_bytes:
        raise _large(limits)
    form = _Form(limits, _boundary(request))
    try:
        async with asyncio.timeout(limits.body_seconds):
            async for chunk in _chunks(request):
                share.add(len(chunk))
                form.add(chunk)
    except TimeoutError:
        raise TooSlow(f"the upload did not arrive within {limits.body_seconds:g} s") from None
    except ClientDisconnect:
        raise BadRequest("the upload broke off", hint="send it again") from None
    return form.upload() if form.size < SMALL else await asyncio.to_thread(form.upload)


async def _chunks(request: Request) -> AsyncIterator[bytes]:
    async for chunk in request.stream():
        if chunk:
            yield chunk


def _boundary(request: Request) -> bytes:
    kind = request.headers.get("content-type", "").encode("latin-1")
    if not SHAPE.match(kind):
        raise WrongType("the body is not multipart/form-data", hint=FORM)
    boundary = parse_options_header(kind)[1].get(b"boundary", b"")
    if not 1 <= len(boundary) <= 70:  # RFC 2046
        raise BadRequest("the body has no boundary of 1 to 70 letters", hint=FORM)
    return bytes(boundary)


def _large(limits: Limits) -> TooLarge:
    return TooLarge(f"the upload has more than {limits.body_bytes:,} bytes", hint="make the photo smaller")


@dataclass
class _Form:
    """The parts as they arrive."""

    limits: Limits
    boundary: bytes
    parts: dict[str, list[bytearray]] = field(default_factory=dict)
    size: int = 0
    ended: bool = False

    def __post_init__(self) -> None:
        self._name, self._field, self._value = "", b"", b""
        self._told, self._coded = b"", False
        self._parser = MultipartParser(
            self.boundary,
            {
                "on_part_begin": self._begun,
                "on_header_field": self._heard_field,
                "on_header_value": self._heard_value,
                "on_header_end": self._header,
                "on_headers_finished": self._named,
                "on_part_data": self._data,
                "on_end": self._finished,
            },
        )

    def add(self, chunk: bytes) -> None:
        """Parse more of the body."""
        self.size += len(chunk)
        if self.size > self.limits.body_bytes:
            raise _large(self.limits)
        try:
            self._parser.write(chunk)
        except FormParserError:
            raise BadRequest("the body is not what multipart/form-data is", hint=FORM) from None

    def upload(self) -> Upload:
        """Return the parts."""
        if not self.ended:
            raise BadRequest("the body ends before its last boundary", hint="send it again")
        if PHOTO not in self.parts:
            raise BadRequest('the part "photo" is missing', hint=FORM)
        given = self.parts.pop(PHOTO)
        photos = [bytes(given.pop(0)) for _ in range(len(given))]  # none is in memory twice for long
        settings = bytes(self.parts.pop("settings", [b"{}"])[0])  # without any: the defaults
        told = hashlib.sha256(settings).digest()
        return Upload(photos, settings, [hashlib.sha256(photo).digest() + told for photo in photos])

    def _begun(self) -> None:
        self._name, self._told = "", b""

    def _heard_field(self, data: bytes, start: int, end: int) -> None:
        self._field += data[start:end]

    def _heard_value(self, data: bytes, start: int, end: int) -> None:
        self._value += data[start:end]

    def _header(self) -> None:
        if self._field.lower() == b"content-disposition":
            self._told = self._value
        elif self._field.lower() == b"content-transfer-encoding" and self._value.lower() != b"binary":
            self._coded = True
        self._field = self._value = b""

    def _named(self) -> None:
        """Take the name of a part; the name of the file, if any, is not looked at."""
        options: dict[bytes, Any] = parse_options_header(self._told)[1] if self._told else {}
        name = bytes(options.get(b"name", b"")).decode("ascii", "replace")
        if name not in PARTS:
            what = f'the part "{quoted(name)}"' if name else "a part without a name"
            raise BadRequest(f"{what} is not expected", hint=FORM)
        if self._coded:
            raise BadRequest(f'the part "{name}" has a transfer encoding', hint="send it as it is")
        here = self.parts.setdefault(name, [])
        if here and name != PHOTO:
            raise BadRequest(f'the part "{name}" is there twice', hint=FORM)
        if len(here) == self.limits.photos:
            problem = f"the upload has more than {counted(self.limits.photos, 'photo')}"
            raise TooLarge(problem, hint="send the others in requests of their own")
        here.append(bytearray())
        self._name = name

    def _data(self, data: bytes, start: int, end: int) -> None:
        part = self.parts[self._name][-1]
        part += data[start:end]
        if self._name == "settings" and len(part) > self.limits.settings_bytes:
            raise TooLarge(f"the settings have more than {self.limits.settings_bytes:,} bytes")

    def _finished(self) -> None:
        self.ended = True
