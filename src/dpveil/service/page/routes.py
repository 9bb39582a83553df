"""The addresses of the page, beside those of the service that it uses."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

from fastapi import APIRouter, Request
from fastapi.responses import Response, StreamingResponse

from dpveil.errors import DPVeilError, PhotoError
from dpveil.service.answers import JSONResponse, encode_json
from dpveil.service.app import Asking, Parts, Using, answer_plan, finished_release, read_order
from dpveil.service.documents_and_clips import (
    DOCUMENT,
    certificate_of,
    check_unpaid,
    format_of_certificate,
    format_of_release,
    read_progress,
    work_folder,
)
from dpveil.service.guard import RequestLoad
from dpveil.service.page.files import FOLDER, HEADERS, INDEX, PAGE_FILES, contents, page
from dpveil.service.problems import problem

NOT_FORGERY: Final = (
    "The certificate is not signed: it shows whether picture and promise belong together, not who made them."
)

PAUSE: Final = 0.5  # seconds between two lines that say how much was looked at
router: Final = APIRouter(prefix=FOLDER, include_in_schema=False)


def page_router(parts: Parts) -> APIRouter:
    """Return the addresses, which are for the page alone and not in /openapi.json."""
    from dpveil import __version__

    made = APIRouter(include_in_schema=False)
    ledger = parts.jobs.budget.ledger is not None
    text = page(version=__version__, keys=parts.keys is not None, ledger=ledger)
    made.add_api_route(INDEX, _file(text, "text/html"), name="page")
    for name, kind in PAGE_FILES.items():
        made.add_api_route(f"{FOLDER}/{name}", _file(contents(name), kind), name=name)
    made.include_router(router)
    return made


def _file(text: str | bytes, kind: str) -> Any:
    async def file() -> Response:
        return Response(text, media_type=kind, headers=dict(HEADERS))

    return file


@router.post("/plan")
async def plan(request: Request, parts: Using, caller: Asking) -> Response:
    """Return the plan of `/v1/plan` with outlines and sentences; nothing is drawn or spent."""
    return await answer_plan(request, parts, caller, "page-plan")


@router.post("/media")
async def media(request: Request, parts: Using, caller: Asking) -> Response:
    """Return lines of JSON about a document or clip: how much was looked at, and at last what was found, or
    a problem. Whoever goes away ends it.
    """
    jobs, share = parts.jobs, RequestLoad(parts.held)
    check_unpaid(paid=jobs.budget.ledger is not None)
    with ExitStack() as stack:
        stack.callback(share.free)
        stack.enter_context(jobs.under_way.count(caller))
        order = await read_order(request, parts, caller, share, None)
        if not format_of_release(order.photo):
            raise PhotoError("this is no document or clip", hint="photos go to /page/plan")
        folder = stack.enter_context(work_folder())
        asked = asyncio.ensure_future(jobs.ask("page-media", order.settings, order.photo, folder=folder))
        return _Lines(asked, folder, stack.pop_all())


class _Lines(StreamingResponse):
    """What a worker finds, line by line; all that is `held` is given back with the last one, or before."""

    def __init__(self, asked: asyncio.Future[dict[str, Any]], folder: Path, held: ExitStack) -> None:
        super().__init__(self._lines(asked, folder), media_type="application/x-ndjson")
        self._held = held
        asked.add_done_callback(lambda one: one.cancelled() or one.exception())  # also if nobody waits

    async def __call__(self, *sent: Any) -> None:
        with self._held:  # without its folder, a worker ends what nobody waits for
            await super().__call__(*sent)

    async def _lines(self, asked: asyncio.Future[dict[str, Any]], folder: Path) -> AsyncIterator[bytes]:
        while not (await asyncio.wait([asked], timeout=PAUSE))[0]:
            done, of = read_progress(folder) or (0, 0)
            yield encode_json({"progress": {"done": done, "of": of}}) + b"\n"
        try:
            yield encode_json(asked.result()) + b"\n"
        except DPVeilError as error:
            yield encode_json({"problem": problem(error)}) + b"\n"


@router.get("/offers")
async def offers(parts: Using, caller: Asking) -> Response:
    """Return what can be chosen."""
    return JSONResponse(await parts.jobs.ask("page-offers", {}))  # asked anew, as `methods`


@router.get("/budget")
async def budget(request: Request, parts: Using, caller: Asking, subject: str | None = None) -> Response:
    """Return what is left for a subject, and whether releases at the prices of plans can be paid.

    The query repeats `price`; the answer is null without a ledger.
    """
    ledger = parts.jobs.budget.ledger
    if ledger is None:
        return JSONResponse(None)
    from dpveil.service.page.account import account_json, prices

    asked = prices(request.query_params.getlist("price"))
    return JSONResponse(await parts.jobs.payments(account_json, ledger, caller, subject or None, asked))


@router.get("/releases/{id}")
async def words(parts: Using, caller: Asking, id: str) -> Response:  # noqa: A002  the path's word
    """Return the certificate of a release in words."""
    made = await finished_release(parts.jobs, caller, id)
    notes = json.loads(made.notes or "[]")
    return JSONResponse(await asyncio.to_thread(_words, str(made.certificate), notes))


def _words(text: str, notes: list[str]) -> dict[str, Any]:
    """Return a certificate in words; the first call imports what makes them, which takes a while.

    Where somebody was lost in a clip is among its `notes`, and in no certificate.
    """
    from dpveil.release.quote import with_sentences
    from dpveil.release.words import in_short, quotation
    from dpveil.service.page.plan_details import licence_notes, warnings
    from dpveil.video.words import lines

    kind = format_of_certificate(text)
    certificate: Any = certificate_of(kind, text)
    certificate = certificate if kind else with_sentences(certificate)
    pages = getattr(certificate, "protected", None)
    parts = [certificate] if pages is None else [with_sentences(page.certificate) for page in pages]
    total, signed, kept = certificate.composition, certificate.signature, getattr(certificate, "kept", "")
    own = dict.fromkeys([kept.capitalize()] * bool(kept))
    own |= dict.fromkeys(text for part in parts for text in part.warnings)
    known = {text.partition(";")[0] for text in own}
    more = [text for text in notes if kind and text.partition(";")[0] not in known]
    covers = [each.scope.covers for each in getattr(certificate, "guarantees", ())]
    if kind:
        covers = [certificate.together] if kind == DOCUMENT else [*lines(certificate.quote)][:-1]
    terms = [text for part in parts for text in part.terms.values()]
    return {
        "total": "nothing is promised" if total is None else in_short(total),
        "strength": certificate.strength,
        "covers": covers,
        "in_the_clear": [] if total is None else [*total.scope.in_the_clear],
        **warnings([*more, *own, *licence_notes(terms)]),
        "objections": list(certificate.objections),
        "note": NOT_FORGERY if signed is None else f"The certificate is signed by {signed.signer}.",
        "quotation": quotation(total, certificate.tool, getattr(certificate, "output", certificate).sha256),
    }
