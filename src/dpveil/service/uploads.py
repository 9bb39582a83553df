"""Uploads: forms, held in memory and counted while they arrive, and the settings that come with a photo."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from starlette.datastructures import FormData, UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import ClientDisconnect, Request

from dpveil.errors import UsageError
from dpveil.service.guard import RequestLoad
from dpveil.service.limits import Limits
from dpveil.service.problems import ServiceError

FORM: Final = 'send multipart/form-data with the parts "photo" and, if you like, "settings"'
WHOLE: Final = re.compile(r"[-+]?[0-9]{1,18}")
EXAMPLE: Final = 'such as {"method": "dp-pix", "epsilon": 2}'


@dataclass
class Upload:
    """The parts of an upload, a photo and its settings, and a digest of both."""

    photo: bytes
    settings: dict[str, Any]
    digest: bytes


class _Parser(MultiPartParser):
    """Starlette's parser, which writes no original to a disk, and notes whether the form is whole."""

    spool_max_size = 0  # never
    whole = False

    def on_end(self) -> None:
        self.whole = True


async def receive(request: Request, limits: Limits, share: RequestLoad) -> Upload:
    """Return the upload of a request; raises errors that are problems, among them those of every limit."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "multipart/form-data":
        raise ServiceError("WrongType", "the body is not multipart/form-data", hint=FORM)
    large = ServiceError(
        "TooLarge", f"the upload has more than {limits.body_bytes:,} bytes", hint="make the photo smaller"
    )

    async def body() -> AsyncGenerator[bytes, None]:
        size = 0
        async for chunk in request.stream():  # counted, whatever length it states
            if (size := size + len(chunk)) > limits.body_bytes:
                raise large
            share.add(len(chunk))
            yield chunk
        if not parser.whole:  # raised here, where the parser closes what it has opened
            raise ServiceError("BadRequest", "the body ends before its last boundary", hint="send it again")

    stated = request.headers.get("content-length", "")
    if stated.isdigit() and int(stated[:20]) > limits.body_bytes:
        raise large
    parser = _Parser(request.headers, body(), max_part_size=limits.body_bytes)
    try:
        async with asyncio.timeout(limits.body_seconds):
            form = await parser.parse()
    except TimeoutError:
        raise ServiceError("TooSlow", f"the upload did not arrive within {limits.body_seconds:g} s") from None
    except ClientDisconnect:
        raise ServiceError("BadRequest", "the upload broke off", hint="send it again") from None
    except (MultiPartException, ValueError, LookupError):
        raise ServiceError("BadRequest", "the body is not what multipart/form-data is", hint=FORM) from None
    try:
        photo, settings = await _parts(form)
    finally:
        await form.close()
    if len(settings) > limits.settings_bytes:
        raise ServiceError("TooLarge", f"the settings have more than {limits.settings_bytes:,} bytes")
    digests = [await asyncio.to_thread(hashlib.sha256, part) for part in (photo, settings)]
    return Upload(photo, read_settings(settings), b"".join(each.digest() for each in digests))


async def _parts(form: FormData) -> tuple[bytes, bytes]:
    found: dict[str, bytes] = {"settings": b"{}"}  # without any: the defaults
    for name, part in form.multi_items():
        if name not in ("photo", "settings") or len(form.getlist(name)) > 1:
            raise ServiceError("BadRequest", "a part is not expected, or there twice", hint=FORM)
        found[name] = part.encode() if isinstance(part, str) else await part.read()
    if not isinstance(form.get("photo"), UploadFile):
        raise ServiceError("BadRequest", 'the part "photo" is missing, or no file', hint=FORM)
    return found["photo"], found["settings"]


def read_settings(text: bytes) -> dict[str, Any]:
    """Return the object of a JSON text, decimals as text, so that they stay exact; raises `UsageError`."""
    try:
        found = json.loads(text, object_pairs_hook=_members, parse_float=str, parse_constant=_no_number)
        json.dumps(found, ensure_ascii=False).encode()  # half a surrogate pair is no text
    except (ValueError, RecursionError) as error:  # also UnicodeError, and integers of thousands of digits
        raise UsageError("the settings are not JSON", hint=EXAMPLE) from error
    if not isinstance(found, dict):
        raise UsageError("the settings are no object", hint=EXAMPLE)
    return found


def _members(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise UsageError("a setting is given twice", hint="give it once")
    return found


def _no_number(text: str) -> Any:
    raise UsageError(f"{text} is no number of JSON", hint="leave it out")


def of_query(pairs: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """Return the settings of a query's names and values: whole numbers and true or false are such.

    >>> of_query([("block", "16"), ("epsilon", "0.5")])
    {'block': 16, 'epsilon': '0.5'}
    """
    words: dict[str, Any] = {"true": True, "false": False}
    return {n: int(v) if WHOLE.fullmatch(v) else words.get(v, v) for n, v in _members(pairs).items()}
