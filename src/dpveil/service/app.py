"""The application: what its addresses do, who may ask, and how errors are answered."""

from __future__ import annotations

import re
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, FastAPI, Header, Request, Security
from fastapi.responses import Response, StreamingResponse
from fastapi.security import HTTPBearer
from starlette.exceptions import HTTPException

from dpveil.errors import DPVeilError, InvalidParameter
from dpveil.release.saving import SUFFIX
from dpveil.service import schemas
from dpveil.service.answers import (
    JSONResponse,
    job_json,
    problem_response,
    refusal_response,
    release_text,
    result_response,
)
from dpveil.service.guard import FAILURE, Rates, RequestLoad, UploadMemory
from dpveil.service.jobs import Jobs, Order
from dpveil.service.keys import LOCAL, Caller, KeyFile
from dpveil.service.metrics import Metrics
from dpveil.service.problems import CONCERNS, SETTINGS, ServiceError, error_kind, problem
from dpveil.service.store import DONE, Result
from dpveil.service.uploads import of_query, receive

ABOUT: Final = (
    "Provably private photos. Regions of a photo are replaced by a method with a stated guarantee; each"
    " release has a certificate, and a ledger pays for it before anything is drawn. Errors are problem+json."
)
KEY_WORDS: Final = "What dpveil api-key new printed; not needed where the service has no keys."
KEY: Final = HTTPBearer(scheme_name="key", description=KEY_WORDS, auto_error=False)
"""What /openapi.json says of keys; `KeyFile` reads the header, and says what is wrong with it."""
ID: Final = re.compile(r"[A-Za-z0-9_-]{32}")
IDEMPOTENCY_KEY: Final = re.compile(r"^[\x21-\x7e]{1,255}$")
ASYNCHRONOUS: Final = "respond-async"
CHUNK: Final = 1 << 20
"""Bytes of an image that are sent at a time, so that none has to be in memory as a whole."""
MEDIA: Final = {
    **{name: f"image/{name}" for name in ("png", "jpeg", "webp", "tiff", "bmp")},
    "pdf": "application/pdf",
    "mp4": "video/mp4",
}
ASKING: Final = (401, 429, 503)  # what requests may be refused with that need a key, where there are keys
SENDING: Final = (*ASKING, 408, 413, 415, 422)
FINDING: Final = (*ASKING, 404, 422)
router: Final = APIRouter()


@dataclass(frozen=True)
class Parts:
    """What the addresses use. With `keys` every address of releases needs one."""

    jobs: Jobs
    held: UploadMemory
    rates: Rates
    metrics: Metrics
    keys: KeyFile | None


async def _parts(request: Request) -> Parts:
    parts: Parts = request.app.state.parts
    return parts


Using = Annotated[Parts, Depends(_parts)]


async def _caller(request: Request, parts: Using, _: Annotated[Any, Security(KEY)]) -> Caller:
    """Return whose key came with a request; raises "Unauthorised", and "TooMany" if it asks too often."""
    caller = request.state.caller = LOCAL
    if parts.keys is not None:
        caller = request.state.caller = parts.keys.caller(request.headers.get("authorization", ""))
        parts.rates.check(caller, time.monotonic())
    return caller


def address(
    name: str,
    answers: Mapping[int, tuple[str, Any]],
    refusals: Sequence[int] = (),
    extra: Mapping[str, Any] = MappingProxyType({}),
) -> dict[str, Any]:
    """Return what FastAPI is told of an address, for /openapi.json.

    `answers` by status are described by a model, or by content of a media type; `refusals` are problems.
    """
    told = schemas.problems(*refusals)
    for status, (words, kind) in answers.items():
        told[status] = {"description": words, "content" if isinstance(kind, dict) else "model": kind}
    # FastAPI adds this to the key: a service of this machine alone has none
    security: dict[str, Any] = {"security": [{}]} if 401 in refusals else {}
    as_json = not any(isinstance(kind, dict) for _, kind in answers.values())
    return {
        "operation_id": name,
        "status_code": next(iter(answers)),
        "responses": told,
        "openapi_extra": {**extra, **security},
        "response_class": JSONResponse if as_json else Response,
    }


Object = dict[str, Any]
Asking = Annotated[Caller, Depends(_caller)]


@router.post(
    "/v1/releases",
    **address(
        "release",
        {201: ("The release.", schemas.PaidRelease), 202: ("A job makes the release.", schemas.Job)},
        (*SENDING, 409, 410),
        schemas.UPLOAD,
    ),
)
async def release(
    request: Request,
    parts: Using,
    caller: Asking,
    idempotency_key: Annotated[
        str | None,
        Header(
            description="A word of your own for this request: a retry with it gets the same release, and pays"
            " nothing for it.",
            json_schema_extra={"pattern": IDEMPOTENCY_KEY.pattern},
        ),
    ] = None,
    prefer: Annotated[str | None, Header(description="respond-async: answer with a job at once.")] = None,
) -> Response:
    """Replace the regions of a photo, and certify what is promised: a retry with the same Idempotency-Key
    gets the same release. What takes longer is a job.
    """
    if idempotency_key is not None and not IDEMPOTENCY_KEY.fullmatch(idempotency_key):
        text = "the Idempotency-Key is no word of 1 to 255 letters"
        raise ServiceError("BadRequest", text, hint="a UUID will do")
    jobs, share = parts.jobs, RequestLoad(parts.held)
    new = False
    try:
        with jobs.under_way.count(caller):
            order = await read_order(request, parts, caller, share, idempotency_key)
            result, new = await jobs.begin(order)
    finally:
        if not new:  # else whoever makes the release has the photo
            share.free()
    await jobs.wait(result.id, 0 if ASYNCHRONOUS in (prefer or "") else jobs.limits.answer_seconds)
    result = await find_result(jobs, caller, result.id)
    more: dict[str, Any] = {}
    if result.state == DONE:
        key = order.key or result.id
        more = await jobs.costs(jobs.budget.account, caller, order.subject, key)
    return result_response(result, more, replayed=not new)


async def read_order(
    request: Request, parts: Parts, caller: Caller, share: RequestLoad, key: str | None
) -> Order:
    """Return what a request asks for; `share` holds its upload."""
    sent = await receive(request, parts.jobs.limits, share)
    subject = sent.settings.pop("subject", None)
    if not isinstance(subject, str | None):
        raise ServiceError("BadRequest", "the subject is no text", hint='such as "album-7"')
    if subject is not None and parts.jobs.budget.ledger is None:
        hint = "leave it out, or start the service with --ledger"
        problem_ = "pays for nothing, as the service has no ledger"
        raise InvalidParameter("subject", subject, problem_, hint=hint)
    return Order(sent.photo, sent.settings, caller.subject(subject), caller, key, sent.digest, share)


@router.get("/v1/releases/{id}", **address("found", {200: ("The release.", schemas.Release)}, FINDING))
async def get_release(parts: Using, caller: Asking, id: str) -> Response:  # noqa: A002  the path's word
    """Return a release: its certificate, and where its image is."""
    return Response(release_text(await finished_release(parts.jobs, caller, id)), media_type=schemas.JSON)


@router.get("/v1/releases/{id}/image", **address("image", {200: ("The picture.", schemas.IMAGE)}, FINDING))
async def image(parts: Using, caller: Asking, id: str) -> Response:  # noqa: A002
    """Return the image of a release, or its document or clip."""
    jobs, made = parts.jobs, await finished_release(parts.jobs, caller, id)
    store, owner = jobs.store, caller.number
    size = await jobs.results(store.size, owner, made.id)

    async def contents() -> AsyncIterator[bytes]:
        for start in range(0, size, CHUNK):
            yield await jobs.results(store.part, owner, made.id, start, min(CHUNK, size - start))
        await jobs.results(store.note_fetched, made.id)  # by a client that took all of it

    headers = {**_download_header(made), "content-length": str(size)}
    return StreamingResponse(contents(), headers=headers, media_type=MEDIA[str(made.format)])


@router.get("/v1/releases/{id}/certificate", **address("certificate", {200: ("The file.", Object)}, FINDING))
async def certificate(parts: Using, caller: Asking, id: str) -> Response:  # noqa: A002
    """Return the certificate of a release as the file that `dpveil verify` reads."""
    made = await finished_release(parts.jobs, caller, id)
    return Response(made.certificate, headers=_download_header(made, SUFFIX), media_type=schemas.JSON)


def _download_header(result: Result, ending: str = "") -> dict[str, str]:
    name = f"release-{result.id[:8]}.{result.format}{ending}"
    return {"content-disposition": f'attachment; filename="{name}"'}


@router.delete(
    "/v1/releases/{id}", **address("delete_releases", {204: ("It is forgotten.", None)}, (*FINDING, 409))
)
@router.delete("/v1/jobs/{id}", **address("delete_jobs", {204: ("It is cancelled.", None)}, (*FINDING, 409)))
async def delete(parts: Using, caller: Asking, id: str) -> Response:  # noqa: A002
    """Cancel a job that is not paid for, or forget a release; nothing that was paid is given back."""
    await parts.jobs.cancel((await find_result(parts.jobs, caller, id)).id)
    return Response(status_code=204)


@router.get("/v1/jobs/{id}", **address("job", {200: ("The job.", schemas.Job)}, FINDING))
async def job(parts: Using, caller: Asking, id: str) -> Response:  # noqa: A002
    """Tell what became of a job: working, done or failed."""
    return JSONResponse(job_json(await find_result(parts.jobs, caller, id), parts.jobs.progress(id)))


async def find_result(jobs: Jobs, caller: Caller, id_: str) -> Result:
    """Return a caller's result; raises "NotFound"."""
    found = await jobs.results(jobs.store.find, caller.number, id_) if ID.fullmatch(id_) else None
    if found is None:
        raise ServiceError("NotFound", "there is nothing of this name, or no longer", hint="results expire")
    return found


async def finished_release(jobs: Jobs, caller: Caller, id_: str) -> Result:
    """Return a caller's release; raises "NotFound"."""
    made = await find_result(jobs, caller, id_)
    if made.state != DONE:
        raise ServiceError("NotFound", "there is no release of this name yet", hint=f"see /v1/jobs/{made.id}")
    return made


@router.post("/v1/plan", **address("plan", {200: ("The plan.", schemas.Plan)}, SENDING, schemas.UPLOAD))
async def plan(request: Request, parts: Using, caller: Asking) -> Response:
    """Find the regions of a photo, and state what a release would promise; nothing is drawn or spent."""
    return await answer_plan(request, parts, caller, "plan")


async def answer_plan(request: Request, parts: Parts, caller: Caller, do: str) -> Response:
    """Return what a worker answers to a photo and settings that ask it to `do` something."""
    jobs, share = parts.jobs, RequestLoad(parts.held)
    try:
        with jobs.under_way.count(caller):
            order = await read_order(request, parts, caller, share, None)
            told = await jobs.ask(do, order.settings, order.photo)
    finally:
        share.free()
    if do == "plan":
        told |= await jobs.costs(jobs.budget.forecast, caller, order.subject, told.get("total"))
    return JSONResponse(told)


@router.get(
    "/v1/explain",
    **address(
        "explain",
        {200: ("What it promises.", schemas.Explanation)},
        (*ASKING, 422),
        {"parameters": schemas.QUERY},
    ),
)
async def explain(request: Request, parts: Using, caller: Asking) -> Response:
    """State what a method promises for a region: the query has its parameters, size and channels."""
    try:
        settings = of_query(request.query_params.multi_items())
        with parts.jobs.under_way.count(caller):
            return JSONResponse(await parts.jobs.ask("explain", settings))
    except DPVeilError as error:
        if CONCERNS.get(error_kind(error)) != SETTINGS:
            raise
        works = f"a query that works is {schemas.TRY}, and /openapi.json has all parameters"
        hint = f"{error.hint}; {works}" if error.hint else works
        raise ServiceError(error_kind(error), error.message, hint=hint) from error


@router.get("/v1/methods", **address("methods", {200: ("The methods.", Object)}, ASKING))
async def methods(parts: Using, caller: Asking) -> Response:
    """List every method with its parameters."""
    return JSONResponse(await parts.jobs.ask("methods", {}))  # not kept: a worker may have been taken over


@router.get("/healthz", **address("health", {200: ("It runs.", Object)}, ()))
async def health() -> Response:
    """Tell that the service runs."""
    return JSONResponse({"status": "ok"})


@router.get("/readyz", **address("ready", {200: ("Ready.", Object), 503: ("Not ready.", Object)}))
async def ready(parts: Using) -> Response:
    """Tell whether the service takes requests: 503 while it starts or stops."""
    ready = parts.jobs.workers.ready and not parts.jobs.closing
    return JSONResponse({"status": "ready" if ready else "not ready"}, 200 if ready else 503)


@router.get("/metrics", **address("figures", {200: ("Figures.", schemas.TEXT)}, ASKING))
async def figures(parts: Using, caller: Asking) -> Response:
    """Return figures for Prometheus."""
    return Response(parts.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")


async def _answer(request: Request, error: Exception) -> Response:
    return refusal_response(error if isinstance(error, DPVeilError) else FAILURE)


async def _http(request: Request, error: Any) -> Response:
    words = {404: "there is nothing at this address", 405: "this address does not take that method"}
    made = ServiceError("ServiceError", words.get(error.status_code, "the request is malformed"))
    response = problem_response(problem(made, error.status_code) | {"hint": "see /openapi.json"})
    response.headers.update(error.headers or {})
    return response


def application(parts: Parts, lifespan: Any = None) -> FastAPI:
    """Return the application with all addresses; its documentation is /openapi.json alone."""
    from dpveil import __version__

    app = FastAPI(
        title="dpveil",
        version=__version__,
        description=ABOUT,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        lifespan=lifespan,
        exception_handlers={DPVeilError: _answer, HTTPException: _http, Exception: _answer},
    )
    app.state.parts = parts
    app.include_router(router)
    return app
