"""What a worker does with one request: explain, plan, or plan and then draw once it was paid for."""

from __future__ import annotations

import json
import mmap
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from dpveil.core.guarantee import count_noun
from dpveil.core.numbers import Json
from dpveil.errors import DPVeilError, InvalidParameter, RegionError
from dpveil.io import read
from dpveil.processes import MOST_JSON
from dpveil.release.plan import Plan, plan, plan_json, size_of
from dpveil.release.saving import Release
from dpveil.service import media
from dpveil.service.page import plan_details as page
from dpveil.service.page.plan_details import offers
from dpveil.service.settings import MOST_NOTES, OWN, SEARCH, WORDS, Request

Message = tuple[dict[str, Any], bytes]
DRAW: Final = "draw"
RELEASE: Final = "release"
SPOKEN: Final = {name: name for name in (*OWN, *SEARCH)} | WORDS
"""Words for arguments in messages: names of settings, where the command line has options."""
DRAW_BYTES: Final = 36
"""Bytes of memory that the draw of one level takes, rounded up: measured for blocks of one pixel."""
SIZED: Final = ("size", "channels")


def steps(
    told: dict[str, Any], contents: bytes, progress: Callable[[int, int], None] = lambda done, of: None
) -> Iterator[Message]:
    """Yield the answers to one request; if it is `paid`, what is sent after the first decides on the second.

    `progress` is called with how much of a document or clip is done.

    Errors of dpveil become an answer {"error": {...}}, in the words of the command line. Raises `MemoryError`
    where one is behind them: what was being imported may be half done, and the process is no more use.
    """
    try:
        if told["do"] == RELEASE and media.format_of_release(contents):
            yield from media.release_steps(told, contents, progress)
        else:
            yield from DOES[told["do"]](told, contents)
    except DPVeilError as error:
        if _short_of_memory(error):
            raise MemoryError from error
        message, hint = error.message_and_hint(SPOKEN)
        yield {"error": {"kind": _kind(error), "message": message, "hint": hint}}, b""


def _short_of_memory(error: BaseException | None) -> bool:
    while error is not None and not isinstance(error, MemoryError):
        error = error.__cause__ or error.__context__
    return error is not None


def _kind(error: DPVeilError) -> str:
    """Return the name of the nearest class of `dpveil.errors`: a plug-in's own is none of the service's."""
    home = DPVeilError.__module__
    return next(kind.__name__ for kind in type(error).__mro__ if kind.__module__ == home)


def _methods(told: dict[str, Any], contents: bytes) -> Iterator[Message]:
    from dpveil.catalogue import latent_mechanisms, methods

    yield {"methods": methods(), "latent_mechanisms": latent_mechanisms()}, b""


def _explain(told: dict[str, Any], contents: bytes) -> Iterator[Message]:
    from dpveil.release.explain import explain

    settings = told["settings"]
    given = {name: value for name, value in settings.items() if name not in SIZED}
    method = Request.of(given).method
    size, channels = settings.get("size"), settings.get("channels", 3)
    usual = "128x128" if size is None and method.regions == "faces" else size
    width, height = size_of(None if usual is None else str(usual))
    if channels not in (1, 3):
        raise InvalidParameter("channels", channels, "is neither 1 nor 3", hint="1 is grey, 3 is colour")
    yield explain(method, height=height, width=width, channels=channels).to_json(), b""


def _plan(told: dict[str, Any], contents: bytes) -> Iterator[Message]:
    _, planned = _read_and_plan(told, contents)
    yield _short(planned, plan_json(planned, SPOKEN)), b""


def _page_plan(told: dict[str, Any], contents: bytes) -> Iterator[Message]:
    _, planned = _read_and_plan(told, contents)
    yield _short(planned, page.plan_details(planned, told["settings"], SPOKEN)), b""


def _short(planned: Plan, told: dict[str, Json]) -> dict[str, Json]:
    """Return what is told of a plan, if it is short enough; raises `RegionError`."""
    if len(json.dumps(told)) > MOST_JSON - 100:
        problem = f"the plan of {count_noun(len(planned.regions), 'region')} is longer than the service tells"
        raise RegionError(problem, hint="protect a larger region around them, or whole")
    return told


def _page_offers(told: dict[str, Any], contents: bytes) -> Iterator[Message]:
    yield offers(), b""


def _release(told: dict[str, Any], contents: bytes) -> Iterator[Message]:
    """Plan, and yield what a ledger is told if it is `paid`; draw, once that is committed, and yield it."""
    request, planned = _read_and_plan(told, contents)
    _check_memory(planned)
    total = None if planned.total is None else planned.total.to_json()
    covered = planned.covered.to_json() if told["paid"] and planned.covered else None
    yield {"total": total, "covered": covered, "room": _room(planned)}, b""
    release: Release = planned.release()
    kind = request.format or ("png" if release.blocks is None else "jpeg")
    image, certificate = release.encoded(kind)
    text, notes = certificate.to_text().encode(), _notes((*certificate.warnings, *planned.remarks))
    yield {"certificate": len(text), "format": kind, "notes": notes}, text + image


def _notes(remarks: Sequence[str]) -> list[Json]:
    """Return notes that are short enough to be kept; the last one says if there were more."""
    kept: list[Json] = [*remarks]
    while len(json.dumps(kept)) > MOST_NOTES - 100:
        kept = kept[: len(kept) // 2]
    left = len(remarks) - len(kept)
    return [*kept, f"{count_noun(left, 'more note')} left out"] if left else kept


def _room(planned: Plan) -> int:
    """Return the bytes that image, certificate and notes have at most: no format needs twice the levels, and
    the rows of some are padded.
    """
    height, width, channels = planned.photo.image.shape
    return int(2 * height * width * channels + 8 * height + (1 << 20) + (1 << 14) * len(planned.regions))


def _check_memory(planned: Plan) -> None:
    """Raise `MemoryError` if a draw would: before it is paid for, as what is paid and not drawn is lost."""
    block = getattr(planned.method, "block", None)
    if block is None:
        return
    levels = sum(each.box.w * each.box.h for each in planned.regions) * planned.photo.image.shape[2]
    try:
        mmap.mmap(-1, DRAW_BYTES * (levels // block**2) + 1).close()
    except OSError as error:
        raise MemoryError from error


def _read_and_plan(told: dict[str, Any], contents: bytes) -> tuple[Request, Plan]:
    request = Request.of(told["settings"])
    photo = read(contents, max_pixels=told["pixels"], trust_source=request.trust_source)
    planned = plan(
        photo,
        request.method,
        regions=request.finders,
        if_none=request.if_none,
        post_processing=request.post_processing,
        at_least=request.at_least,
    )
    return request, planned


DOES: Final[dict[str, Callable[[dict[str, Any], bytes], Iterator[Message]]]] = {
    "methods": _methods,
    "explain": _explain,
    "plan": _plan,
    RELEASE: _release,
    "page-plan": _page_plan,
    "page-offers": _page_offers,
}
"""What a worker can be asked for."""
