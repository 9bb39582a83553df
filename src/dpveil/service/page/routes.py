"""The addresses of the page, beside those of the service that it uses."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from fastapi import APIRouter, Request
from fastapi.responses import Response

from dpveil.core.certificate import parse_certificate
from dpveil.service.answers import JSONResponse
from dpveil.service.app import Asking, Parts, Using, answer_plan, finished_release
from dpveil.service.page.files import FOLDER, HEADERS, PAGE_FILES, PAGES, contents, page

NOT_FORGERY: Final = (
    "The certificate is not signed: it shows whether picture and promise belong together, not who made them."
)


router: Final = APIRouter(prefix=FOLDER, include_in_schema=False)


def page_router(parts: Parts) -> APIRouter:
    """Return the addresses, which are for the page alone and not in /openapi.json."""
    from dpveil import __version__

    made = APIRouter(include_in_schema=False)
    ledger = parts.jobs.budget.ledger is not None
    for path, name in PAGES.items():
        text = page(path, version=__version__, keys=parts.keys is not None, ledger=ledger)
        made.add_api_route(path, _file(text, "text/html"), name=name)
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
    return JSONResponse(await asyncio.to_thread(_words, str(made.certificate)))


def _words(text: str) -> dict[str, Any]:
    """Return a certificate in words; the first call imports what makes them, which takes a while."""
    from dpveil.release.quote import with_sentences
    from dpveil.release.words import in_short, quotation
    from dpveil.service.documents_and_clips import certificate_of, details, format_of_certificate
    from dpveil.service.page.plan_details import licence_notes, warnings

    if kind := format_of_certificate(text):
        certificate = certificate_of(kind, text)
        told = details(certificate)
    else:
        certificate = with_sentences(parse_certificate(text))
        shown = () if certificate.composition is None else certificate.composition.scope.in_the_clear
        covers = [guarantee.scope.covers for guarantee in certificate.guarantees]
        told = {"covers": covers, "in_the_clear": list(shown), "warnings": list(certificate.warnings)}
    total, signed = certificate.composition, certificate.signature
    terms: Mapping[str, str] = told.pop("terms", None) or getattr(certificate, "terms", {})
    output = getattr(certificate, "output", certificate)
    return {
        "total": "nothing is promised" if total is None else in_short(total),
        "strength": certificate.strength,
        **told,
        **warnings([*told["warnings"], *licence_notes(terms.values())], total),
        "objections": list(certificate.objections),
        "note": NOT_FORGERY if signed is None else f"The certificate is signed by {signed.signer}.",
        "quotation": quotation(total, certificate.tool, output.sha256),
    }
