"""The program of a worker: it decodes and draws, holds no ledger and no key, and may end at any moment."""

from __future__ import annotations

import ctypes
import json
import mmap
import signal
import sys
from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np

from dpveil.catalogue import latent_mechanisms, methods
from dpveil.core.guarantee import count_noun
from dpveil.core.rationals import Json
from dpveil.errors import DPVeilError, InvalidParameter, RegionError
from dpveil.io.reading import read
from dpveil.noise.backend import compile_now
from dpveil.opencv import cv2
from dpveil.processes import MOST_JSON, Answering, Channel, answer, keep_freed_memory
from dpveil.release.explain import explain
from dpveil.release.plan import Plan, plan, plan_json, size_of
from dpveil.service import documents_and_clips
from dpveil.service.limits import MOST_NOTES
from dpveil.service.page import plan_details as page
from dpveil.service.request_settings import COMMON, SEARCH, WORDS, Request

PR_SET_PDEATHSIG: Final = 1
PR_SET_NO_NEW_PRIVS: Final = 38
SPOKEN: Final = {name: name for name in (*COMMON, *SEARCH)} | WORDS
"""Words for arguments in messages: names of settings, where the command line has options."""
DRAW_BYTES: Final = 36
"""Bytes of memory that the draw of one level takes, rounded up: measured for blocks of one pixel."""
SIZED: Final = ("size", "channels")
Parts = tuple[Any, ...]
"""What is told, and the bytes that go with it: of a release its certificate and its image."""


def serve(channel: Channel) -> None:
    """Answer the server's questions until it is gone."""
    try:
        compile_now()
    except Exception as error:  # noqa: BLE001  of a broken installation, before anything of a photo is here
        channel.send({"raised": f"{type(error).__name__}: {error}"})
        return
    answer(channel, prepare)


def prepare(_: Any) -> Answering:
    """Load what most requests need, and return what answers questions."""
    if sys.platform == "linux":
        prctl = ctypes.CDLL(None).prctl
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    keep_freed_memory()
    cv2.setNumThreads(1)  # there are more workers
    planned: Iterator[Parts] = iter(())

    def answers(told: dict[str, Any], *photo: np.ndarray) -> Parts:
        nonlocal planned
        try:
            match told["do"]:
                case "draw":  # what was planned last, and is paid for by now
                    return next(planned)
                case "release":
                    planned = _release(told, photo[0].tobytes())
                    return next(planned)
                case "methods":
                    return ({"methods": methods(), "latent_mechanisms": latent_mechanisms()},)
                case "explain":
                    return (_explain(told["settings"]),)
                case "page-offers":
                    return (page.offers(),)
                case "plan":
                    _, made = _read_and_plan(told, photo[0].tobytes())
                    return (_short(made, plan_json(made, SPOKEN)),)
                case "page-plan":
                    _, made = _read_and_plan(told, photo[0].tobytes())
                    return (_short(made, page.plan_details(made, SPOKEN)),)
                case "page-media":
                    return (page.media_details(told, photo[0].tobytes()),)
                case _:
                    return ({},)  # it is ready
        except DPVeilError as error:
            cause: BaseException | None = error
            while cause is not None:
                if isinstance(cause, MemoryError):  # what was being imported may be half done
                    raise MemoryError from error
                cause = cause.__cause__ or cause.__context__
            message, hint = error.message_and_hint(SPOKEN)
            home = DPVeilError.__module__  # a plug-in's own class is none of the service's
            kind = next(kind.__name__ for kind in type(error).__mro__ if kind.__module__ == home)
            return ({"error": {"kind": kind, "message": message, "hint": hint}},)

    return answers


def _explain(settings: dict[str, Any]) -> dict[str, Json]:
    method = Request.of({name: value for name, value in settings.items() if name not in SIZED}).method
    size, channels = settings.get("size"), settings.get("channels", 3)
    usual = "128x128" if size is None and method.draws_faces else size
    width, height = size_of(None if usual is None else str(usual))
    if channels not in (1, 3):
        raise InvalidParameter("channels", channels, "is neither 1 nor 3", hint="1 is grey, 3 is colour")
    return explain(method, height=height, width=width, channels=channels).to_json()


def _short(planned: Plan, told: dict[str, Json]) -> dict[str, Json]:
    if len(json.dumps(told)) > MOST_JSON - 100:
        problem = f"the plan of {count_noun(len(planned.regions), 'region')} is longer than the service tells"
        raise RegionError(problem, hint="protect a larger region around them, or whole")
    return told


def _release(told: dict[str, Any], contents: bytes) -> Iterator[Parts]:
    """Yield what is to be paid for, and how much room the release takes; then draw, and yield that."""
    if documents_and_clips.format_of_release(contents):
        yield from documents_and_clips.release_steps(told, contents)
        return
    request, planned = _read_and_plan(told, contents)
    _check_memory(planned)
    total = None if planned.total is None else planned.total.to_json()
    covered = planned.coverage.to_json() if told["paid"] and planned.coverage else None
    yield ({"total": total, "covered": covered, "room": _room(planned)},)
    release = planned.release()
    kind = request.format or ("png" if release.blocks is None else "jpeg")
    image, certificate = release.encode_with_certificate(kind)
    notes = _notes((*certificate.warnings, *planned.remarks))
    yield {"format": kind, "notes": notes}, certificate.to_text().encode(), image


def _notes(remarks: Sequence[str]) -> list[Json]:
    kept: list[Json] = [*remarks]
    while len(json.dumps(kept)) > MOST_NOTES - 100:
        kept = kept[: len(kept) // 2]
    left = len(remarks) - len(kept)
    return [*kept, f"{count_noun(left, 'more note')} left out"] if left else kept


def _room(planned: Plan) -> int:
    """Return the most bytes of image, certificate and notes: at most twice the levels, and padded rows."""
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
        regions=request.regions,
        if_none=request.if_none,
        post_processing=request.post_processing,
        at_least=request.at_least,
    )
    return request, planned
