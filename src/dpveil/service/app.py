"""The addresses of the service."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from typing import Annotated, Any, Final

from fastapi import APIRouter, FastAPI, Header, Request
from fastapi.responses import Response, StreamingResponse
from starlette.exceptions import HTTPException

from dpveil.errors import DPVeilError, InvalidParameter
from dpveil.service import documented, upload
from dpveil.service.desk import Desk, Order, failed
from dpveil.service.guard import FAILURE, JSONResponse, answer
from dpveil.service.keys import Caller
from dpveil.service.metrics import Metrics
from dpveil.service.problems import BadRequest, NotFound, ServiceError
from dpveil.service.reading import of_query, read_settings
from dpveil.service.store import DONE, FAILED, WORKING, Result
from dpveil.service.upload import Held, Upload

ID: Final = re.compile(r"[A-Za-z0-9_-]{32}")
KEY: Final = re.compile(r"[\x21-\x7e]{1,255}")
CHUNK: Final = 1 << 20
"""Bytes of an image that are sent at a time."""
ASYNCHRONOUS: Final = "respond-async"
MEDIA: Final = {name: f"image/{name}" for name in ("png", "jpeg", "webp", "tiff", "bmp")}


class Addresses:
    """The functions behind the addresses."""

    def __init__(self, desk: Desk, held: Held, metrics: Metrics) -> None:
        self.desk, self.held, self.metrics = desk, held, metrics
        self._methods: dict[str, Any] | None = None

    async def release(
        self,
        request: Request,
        idempotency_key: Annotated[str | None, Header(description=documented.IDEMPOTENCY)] = None,
        prefer: Annotated[str | None, Header(description=documented.PREFER)] = None,
    ) -> Response:
        """Replace the regions of a photo and certify what is promised: a retry with the same Idempotency-Key
        gets the same release. What takes longer is a job.
        """
        if idempotency_key is not None and not KEY.fullmatch(idempotency_key):
            raise BadRequest("the Idempotency-Key is no word of 1 to 255 letters", hint="a UUID will do")
        share = upload.Share(self.held)
        try:
            sent = await upload.receive(request, self.desk.limits, share)
            result, new = await self.desk.begin(self._order(request, sent, idempotency_key), share)
        except BaseException:
            share.free()
            raise
        if not new:
            share.free()
        del sent
        now = ASYNCHRONOUS in (prefer or "")
        alone = not now and await self.desk.wait(result.id, self.desk.limits.answer_seconds)
        found = await self._found(request, result.id)
        if (told := failed(found)) is not None:
            if alone:  # nobody else was told where it is
                await self.desk.results(self.desk.store.delete, found.id)
            return _problem(told)
        replayed = {} if new else {"idempotency-replayed": "true"}
        if found.state == DONE:
            where = f"/v1/releases/{found.id}"
            return JSONResponse(_release(found), 201, headers={"location": where, **replayed})
        return JSONResponse(_job(found), 202, headers={"location": f"/v1/jobs/{found.id}", **replayed})

    async def plan(self, request: Request) -> Response:
        """Find the regions of a photo and state what a release would promise; nothing is drawn or spent."""
        return JSONResponse(await self.planned(request, "plan"))

    async def planned(self, request: Request, do: str) -> dict[str, Any]:
        """Return what a worker answers to a photo and settings that ask it to `do` something."""
        with self.held.share() as share:
            sent = await upload.receive(request, self.desk.limits, share)
            order = self._order(request, sent, None)
            return await self.desk.ask(do, order.settings, order.photo)

    async def explain(self, request: Request) -> Response:
        """State what a method promises for a region of a size: the query has its parameters, size and
        channels.
        """
        settings = of_query(request.query_params.multi_items())
        return JSONResponse(await self.desk.ask("explain", settings))

    async def methods(self) -> Response:
        """List every method with its parameters."""
        if self._methods is None:
            self._methods = await self.desk.ask("methods", {})
        return JSONResponse(self._methods)

    async def job(self, request: Request, id: str) -> Response:  # noqa: A002  the path's word
        """Tell what became of a job: working, done or failed."""
        found = await self._found(request, id)
        return JSONResponse(_job(found))

    async def found(self, request: Request, id: str) -> Response:  # noqa: A002
        """Return a release: its certificate, and where its image is."""
        return JSONResponse(_release(await self.done(request, id)))

    async def image(self, request: Request, id: str) -> Response:  # noqa: A002
        """Return the image of a release."""
        found = await self.done(request, id)
        desk, store, owner = self.desk, self.desk.store, _caller(request).number
        size = await desk.results(store.size, owner, found.id)

        async def chunks() -> AsyncIterator[bytes]:
            for start in range(0, size, CHUNK):
                yield await desk.results(store.part, owner, found.id, start, min(CHUNK, size - start))
            if not await request.is_disconnected():  # a client that does not read is cut off
                await desk.results(store.fetched, found.id)

        headers = {"content-length": str(size)}
        return StreamingResponse(chunks(), media_type=MEDIA[str(found.format)], headers=headers)

    async def certificate(self, request: Request, id: str) -> Response:  # noqa: A002
        """Return the certificate of a release as the file that `dpveil verify` reads."""
        found = await self.done(request, id)
        return Response(found.certificate, media_type="application/json")

    async def delete(self, request: Request, id: str) -> Response:  # noqa: A002
        """Cancel a job that is not paid for, or forget a release; nothing that was paid is given back."""
        found = await self._found(request, id)
        await self.desk.cancel(_caller(request), found.id)
        return Response(status_code=204)

    async def health(self) -> Response:
        """Tell that the service runs."""
        return JSONResponse({"status": "ok"})

    async def ready(self) -> Response:
        """Tell whether the service takes requests: 503 while it starts or stops."""
        ready = self.desk.pool.ready and not self.desk.closing
        return JSONResponse({"status": "ready" if ready else "not ready"}, 200 if ready else 503)

    async def figures(self) -> Response:
        """Return figures for Prometheus."""
        return Response(self.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")

    async def _found(self, request: Request, id_: str) -> Result:
        result = None
        if ID.fullmatch(id_):
            result = await self.desk.results(self.desk.store.find, _caller(request).number, id_)
        if result is None:
            raise NotFound("there is nothing of this name, or no longer", hint="results expire")
        return result

    async def done(self, request: Request, id_: str) -> Result:
        """Return a release; raises `NotFound`."""
        result = await self._found(request, id_)
        if result.state != DONE:
            raise NotFound("there is no release of this name yet", hint=f"see /v1/jobs/{result.id}")
        return result

    def _order(self, request: Request, sent: Upload, key: str | None) -> Order:
        settings, caller = read_settings(sent.settings), _caller(request)
        subject = settings.pop("subject", None)
        if not isinstance(subject, str | None):
            raise BadRequest("the subject is no text", hint='such as "album-7"')
        if subject is not None and self.desk.budget.ledger is None:
            problem = "pays for nothing, as the service has no ledger"
            hint = "leave it out, or start the service with --ledger"
            raise InvalidParameter("subject", subject, problem, hint=hint)
        return Order(sent.photo, settings, caller.subject(subject), caller, key, sent.digest)


def _caller(request: Request) -> Caller:
    caller: Caller = request.state.caller
    return caller


def _release(result: Result) -> dict[str, Any]:
    where = f"/v1/releases/{result.id}"
    return {
        "id": result.id,
        "certificate": json.loads(result.certificate or "null"),
        "image_url": f"{where}/image",
        "certificate_url": f"{where}/certificate",
        "expires": int(result.expires),
        "notes": json.loads(result.notes or "[]"),
    }


def _job(result: Result) -> dict[str, Any]:
    done = result.state == DONE
    return {
        "id": result.id,
        "status": result.state if result.state in (DONE, FAILED) else WORKING,
        "job_url": f"/v1/jobs/{result.id}",
        "release_url": f"/v1/releases/{result.id}" if done else None,
        "problem": failed(result),
    }


def _problem(told: dict[str, Any]) -> Response:
    headers = {"retry-after": str(told["retry_after"])} if "retry_after" in told else {}
    return JSONResponse(told, told["status"], headers=headers, media_type="application/problem+json")


async def _refused(request: Request, error: Exception) -> Response:
    if isinstance(error, DPVeilError):
        return answer(error)
    raise error


async def _http(request: Request, error: Exception) -> Response:
    if not isinstance(error, HTTPException):
        raise error
    words = {404: "there is nothing at this address", 405: "this address does not take that method"}
    made = ServiceError(words.get(error.status_code, "the request is malformed"), hint="see /openapi.json")
    made.status = error.status_code
    response = answer(made)
    response.headers.update(error.headers or {})
    return response


async def _unexpected(request: Request, error: Exception) -> Response:
    """Answer what nobody expected; the error goes on to `Guard`, which logs it."""
    return answer(FAILURE)


class _Application(FastAPI):
    """Describes keys in /openapi.json, too: `Guard` asks for them, of which FastAPI does not know."""

    def openapi(self) -> dict[str, Any]:
        """Return the description of all addresses."""
        schema = super().openapi()
        schema.setdefault("components", {})["securitySchemes"] = documented.SECURITY
        return schema


def application(addresses: Addresses) -> FastAPI:
    """Return the application with all addresses; its documentation is /openapi.json alone."""
    from dpveil import __version__

    app = _Application(
        title="dpveil",
        version=__version__,
        description=documented.ABOUT,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        exception_handlers={DPVeilError: _refused, HTTPException: _http, Exception: _unexpected},
    )
    router = APIRouter()
    for row in documented.ADDRESSES:
        router.add_api_route(
            row.path,
            getattr(addresses, row.name),
            methods=[row.method],
            name=row.name,
            operation_id=f"{row.name}_{row.path.split('/')[-2]}" if row.name == "delete" else row.name,
            response_class=Response,
            status_code=next(iter(row.answers)),
            responses=row.responses(),
            openapi_extra=row.extra(),
        )
    app.include_router(router)
    return app
