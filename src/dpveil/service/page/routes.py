"""The addresses of the page, beside those of the service that it uses."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from fastapi import APIRouter, Request
from fastapi.responses import Response

from dpveil.core.certificate import parse_certificate
from dpveil.service.addresses import Addresses
from dpveil.service.guard import JSONResponse
from dpveil.service.page.files import FOLDER, HEADERS, PAGES, TABLE, contents, page

READ: Final = ["GET", "HEAD"]
NOT_FORGERY: Final = (
    "The certificate is not signed: it shows whether picture and promise belong together, not who made them."
)


class Page:
    """The functions behind the addresses; those of the service are taken from `service`."""

    def __init__(self, service: Addresses, *, keys: bool) -> None:
        from dpveil import __version__

        self.service, self.desk = service, service.desk
        ledger = service.desk.budget.ledger is not None
        told = {"version": __version__, "keys": keys, "ledger": ledger}
        self._pages = {path: page(path, **told) for path in PAGES}

    def router(self) -> APIRouter:
        """Return the addresses, which are for the page alone and not in /openapi.json."""
        router = APIRouter(include_in_schema=False)
        for path in PAGES:
            router.add_api_route(path, self._page(path), methods=READ, name=PAGES[path])
        router.add_api_route(f"{FOLDER}/plan", self.plan, methods=["POST"])
        router.add_api_route(f"{FOLDER}/offers", self.offers, methods=READ)
        router.add_api_route(f"{FOLDER}/budget", self.budget, methods=READ)
        router.add_api_route(f"{FOLDER}/releases/{{id}}", self.words, methods=READ)
        for name in TABLE:
            router.add_api_route(f"{FOLDER}/{name}", self._file(name), methods=READ, name=name)
        return router

    def _page(self, path: str) -> Any:
        async def whole() -> Response:
            return Response(self._pages[path], media_type="text/html", headers=dict(HEADERS))

        return whole

    def _file(self, name: str) -> Any:
        async def file() -> Response:
            return Response(contents(name), media_type=TABLE[name], headers=dict(HEADERS))

        return file

    async def plan(self, request: Request) -> Response:
        """Return the plan of `/v1/plan` with outlines and sentences; nothing is drawn or spent."""
        return await self.service.planned(request, "page-plan")

    async def offers(self) -> Response:
        """Return what can be chosen."""
        return JSONResponse(await self.desk.ask("page-offers", {}))  # asked anew, as `Addresses.methods`

    async def budget(self, request: Request, subject: str | None = None) -> Response:
        """Return what is left for a subject, and whether releases at the prices of plans can be paid.

        The query repeats `price`, and `paid` for prices that were paid; the answer is null without a ledger.
        """
        ledger = self.desk.budget.ledger
        if ledger is None:
            return JSONResponse(None)
        from dpveil.service.page.account import prices, told

        asked, paid = (prices(request.query_params.getlist(name)) for name in ("price", "paid"))
        caller = request.state.caller
        return JSONResponse(await self.desk.payments(told, ledger, caller, subject or None, asked, paid))

    async def words(self, request: Request, id: str) -> Response:  # noqa: A002  the path's word
        """Return the certificate of a release in words."""
        found = await self.service.done(request, id)
        return JSONResponse(await asyncio.to_thread(_words, str(found.certificate)))


def _words(text: str) -> dict[str, Any]:
    """Return a certificate in words; the first call imports what makes them, which takes a while."""
    from dpveil.release.quote import with_sentences
    from dpveil.service.page.people import warnings

    certificate = with_sentences(parse_certificate(text))
    total, signed = certificate.composition, certificate.signature
    return {
        "total": "no guarantee" if total is None else str(total),
        "strength": certificate.strength,
        "covers": [guarantee.scope.covers for guarantee in certificate.guarantees],
        "in_the_clear": list(() if total is None else total.scope.in_the_clear),
        **warnings(certificate.warnings, total),
        "objections": list(certificate.objections),
        "note": NOT_FORGERY if signed is None else f"The certificate is signed by {signed.signer}.",
    }
