"""Uploads: forms, held in memory and counted while they arrive, and the settings that come with photos."""

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

from dpveil.core.guarantee import count_noun
from dpveil.errors import UsageError
from dpveil.io.names import escape_text
from dpveil.service.guard import Share
from dpveil.service.problems import BadRequest, TooLarge, TooSlow, WrongType
from dpveil.service.settings import Limits

SMALL: Final = 1 << 20
"""Bytes of a body below which its digest is computed at once: another thread would take longer."""
PHOTO: Final = "photo"
SETTINGS: Final = "settings"
FORM: Final = 'send multipart/form-data with the parts "photo" and, if you like, "settings"'
WHOLE: Final = re.compile(r"[-+]?[0-9]{1,18}")
MOST_NAMES: Final = 200
"""Most settings in a request; no method has 30."""
EXAMPLE: Final = 'such as {"method": "dp-pix", "epsilon": 2}'


@dataclass
class Upload:
    """The parts of one upload: photos, and the settings for each; and a digest of each photo and these."""

    photos: list[bytes]
    settings: bytes
    digests: list[bytes]


class _Parser(MultiPartParser):
    """Starlette's parser, which writes no original to a disk, and notes whether the form is whole."""

    spool_max_size = 0  # never
    whole = False

    def on_end(self) -> None:
        self.whole = True


async def receive(request: Request, limits: Limits, share: Share) -> Upload:
    """Return the upload of a request; raises errors that are problems, among them those of every limit."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "multipart/form-data":
        raise WrongType("the body is not multipart/form-data", hint=FORM)

    async def body() -> AsyncGenerator[bytes, None]:
        async for chunk in _count_body(request, limits):
            share.add(len(chunk))
            yield chunk
        if not parser.whole:  # raised here, where the parser closes what it has opened
            raise BadRequest("the body ends before its last boundary", hint="send it again")

    parser = _Parser(request.headers, body(), max_part_size=limits.body_bytes)
    try:
        async with asyncio.timeout(limits.body_seconds):
            form = await parser.parse()
    except TimeoutError:
        raise TooSlow(f"the upload did not arrive within {limits.body_seconds:g} s") from None
    except ClientDisconnect:
        raise BadRequest("the upload broke off", hint="send it again") from None
    except (MultiPartException, ValueError, LookupError):
        raise BadRequest("the body is not what multipart/form-data is", hint=FORM) from None
    try:
        photos, settings = await _parts(form, limits)
    finally:
        await form.close()
    if sum(map(len, photos)) < SMALL:
        return _with_digests(photos, settings)
    return await asyncio.to_thread(_with_digests, photos, settings)


async def _count_body(request: Request, limits: Limits) -> AsyncGenerator[bytes, None]:
    """Yield the body; the stated length is only believed where it is too large: what arrives is counted."""
    problem = TooLarge(f"the upload has more than {limits.body_bytes:,} bytes", hint="make the photo smaller")
    stated, size = request.headers.get("content-length", ""), 0
    if stated.isdigit() and int(stated[:20]) > limits.body_bytes:
        raise problem
    async for chunk in request.stream():
        size += len(chunk)
        if size > limits.body_bytes:
            raise problem
        yield chunk


async def _parts(form: FormData, limits: Limits) -> tuple[list[bytes], bytes]:
    """Return the photos and the settings of a form; names of files are not looked at."""
    if others := form.keys() - {PHOTO, SETTINGS}:
        name = escape_text(min(others))
        raise BadRequest(f'the part "{name}" is not expected', hint=FORM)
    given, settings = form.getlist(PHOTO), form.getlist(SETTINGS)
    files = [each for each in given if isinstance(each, UploadFile)]
    if not given or len(files) < len(given):
        raise BadRequest(f'the part "photo" is {"no file" if given else "missing"}', hint=FORM)
    if len(settings) > 1:
        raise BadRequest('the part "settings" is there twice', hint=FORM)
    if len(files) > limits.photos:
        problem = f"the upload has more than {count_noun(limits.photos, 'photo')}"
        raise TooLarge(problem, hint="send the others in requests of their own")
    told = settings[0] if settings else "{}"  # without any: the defaults
    text = told.encode() if isinstance(told, str) else await told.read()
    if len(text) > limits.settings_bytes:
        raise TooLarge(f"the settings have more than {limits.settings_bytes:,} bytes")
    photos = []
    for file in files:  # none is in memory twice for long
        photos.append(await file.read())
        await file.close()
    return photos, text


def _with_digests(photos: list[bytes], settings: bytes) -> Upload:
    told = hashlib.sha256(settings).digest()
    return Upload(photos, settings, [hashlib.sha256(photo).digest() + told for photo in photos])


def read_settings(text: bytes) -> dict[str, Any]:
    """Return the object of a JSON text, decimals as text, so that they stay exact.

    Raises `UsageError` for anything else: another type, a name that is given twice or cannot be printed, NaN,
    deep nesting, half a surrogate pair, which is no text.
    """
    try:
        found = json.loads(
            text, object_pairs_hook=_unique_members, parse_float=str, parse_constant=_no_number
        )
        json.dumps(found, ensure_ascii=False).encode()
    except RecursionError:
        raise UsageError("the settings are nested too deeply", hint="write one object of values") from None
    except UnicodeEncodeError:
        raise UsageError("the settings have text that is no Unicode", hint="leave it out") from None
    except ValueError as error:  # also UnicodeDecodeError, and integers of thousands of digits
        raise UsageError("the settings are not JSON", hint=EXAMPLE) from error
    if not isinstance(found, dict):
        raise UsageError("the settings are no object", hint=EXAMPLE)
    return found


def _unique_members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the object of names and values; takes time in proportion to their number."""
    if len(pairs) > MOST_NAMES:
        raise UsageError(f"an object has {len(pairs):,} settings", hint=f"at most {MOST_NAMES}")
    found: dict[str, Any] = {}
    for name, value in pairs:
        if not name.isprintable():  # messages show it
            raise UsageError("a setting has a name that cannot be printed", hint="leave it out")
        if name in found:
            raise UsageError(f"the setting {name[:100]!r} is given twice", hint="give it once")
        found[name] = value
    return found


def _no_number(text: str) -> Any:
    raise UsageError(f"{text} is no number of JSON", hint="leave it out")


def of_query(pairs: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """Return the settings of a query's names and values: whole numbers and true or false are such.

    >>> of_query([("block", "16"), ("epsilon", "0.5")])
    {'block': 16, 'epsilon': '0.5'}
    """
    words: dict[str, Any] = {"true": True, "false": False}
    settings = _unique_members(list(pairs))
    return {n: int(v) if WHOLE.fullmatch(v) else words.get(v, v) for n, v in settings.items()}
