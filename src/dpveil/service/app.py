"""The application: what its addresses do, who may ask, and how errors are answered."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, FastAPI, Header, Request, Security
from fastapi.responses import Response
from fastapi.routing import APIRoute
from fastapi.security import HTTPBearer
from starlette.exceptions import HTTPException

from dpveil.errors import DPVeilError, InvalidParameter
from dpveil.service import schemas
from dpveil.service.answers import (
    CHUNK,
    JSON,
    MOST,
    PLAN,
    ZIP,
    Answer,
    File,
    JSONResponse,
    archive_size,
    combine_answers,
    download,
    job_json,
    refusal,
    release_text,
    stream_archive,
    wants_archive,
)
from dpveil.service.guard import FAILURE, Held, Rates, Share
from dpveil.service.jobs import Jobs, Order
from dpveil.service.keys import LOCAL, Caller, KeyFile
from dpveil.service.log import Metrics
from dpveil.service.problems import (
    CONCERNS,
    SETTINGS,
    BadRequest,
    NotFound,
    NotKept,
    Refusal,
    ServiceError,
    kind_of,
)
from dpveil.service.store import DONE, FAILED, Result
from dpveil.service.uploads import of_query, read_settings, receive

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
Begun = tuple[Result, bool] | DPVeilError
"""What came of a photo that was handed in: its result and whether it is new, or why there is none."""
CERTIFICATE: Final = ".certificate.json"
"""What is behind the name of an image in that of its certificate, as on a disk."""
MEDIA: Final = {
    **{name: f"image/{name}" for name in ("png", "jpeg", "webp", "tiff", "bmp")},
    "pdf": "application/pdf",
    "mp4": "video/mp4",
}
ASKING: Final = (401, 429, 503)
"""What requests may be refused with that need a key, where there are keys."""
SENDING: Final = (*ASKING, 408, 413, 415, 422)
FINDING: Final = (*ASKING, 404, 422)
router: Final = APIRouter()


@dataclass(frozen=True)
class Parts:
    """What the addresses use. With `keys` every address of releases needs one."""

    jobs: Jobs
    held: Held
    rates: Rates
    metrics: Metrics
    keys: KeyFile | None


async def _parts(request: Request) -> Parts:
    parts: Parts = request.app.state.parts
    return parts


Using = Annotated[Parts, Depends(_parts)]


async def _caller(
    request: Request,
    parts: Using,
    _: Annotated[Any, Security(KEY)],
) -> Caller:
    """Return whose key came with a request; raises `Unauthorised`, and `TooMany` if it asks too often."""
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
        {
            201: ("The release of each photo.", schemas.PaidRelease | schemas.Several),
            202: ("A job makes a photo's release.", schemas.Job | schemas.Several),
            200: ("Of several photos some were released and the others refused.", schemas.Several),
        },
        (*SENDING, 409, 410),
        schemas.UPLOAD | {"responses": {"201": {"content": schemas.ARCHIVE}}},
    ),
)
async def release(
    request: Request,
    parts: Using,
    caller: Asking,
    idempotency_key: Annotated[
        str | None,
        Header(
            description="A word of your own for this request: a retry with it gets the same release of each"
            " photo, and pays nothing for it.",
            json_schema_extra={"pattern": IDEMPOTENCY_KEY.pattern},
        ),
    ] = None,
    prefer: Annotated[str | None, Header(description="respond-async: answer with a job at once.")] = None,
) -> Response:
    """Replace the regions of a photo, or of each of several, and certify what is promised: a retry with
    the same Idempotency-Key gets the same releases. What takes longer is a job.
    """
    if idempotency_key is not None and not IDEMPOTENCY_KEY.fullmatch(idempotency_key):
        raise BadRequest("the Idempotency-Key is no word of 1 to 255 letters", hint="a UUID will do")
    jobs = parts.jobs
    seconds = 0 if ASYNCHRONOUS in (prefer or "") else jobs.limits.answer_seconds
    with jobs.turns.request(caller), parts.held.share(caller) as share:
        orders = await _orders(request, parts, caller, share, idempotency_key)
        begun = [await _begin_order(jobs, order, share.part(len(order.photo))) for order in orders]
    answers = await asyncio.gather(*(_answer(jobs, caller, each, seconds) for each in begun))
    if wants_archive(request.headers.get("accept", "")) and all(each.made for each in answers):
        with suppress(NotFound):  # one was deleted meanwhile; the others have their answers
            if (archive := await _archive(jobs, caller, answers)) is not None:
                return archive
    return combine_answers(await asyncio.gather(*map(partial(_with_costs, jobs), orders, answers)))


async def _orders(
    request: Request, parts: Parts, caller: Caller, share: Share, key: str | None
) -> list[Order]:
    """Return an order for each photo of a request; each photo has a key of its own from the request's.

    Raises errors that are problems.
    """
    jobs = parts.jobs
    sent = await receive(request, jobs.limits, share)
    arrived = jobs.moments.now()
    parts.rates.more(caller, len(sent.photos) - 1, time.monotonic())
    settings = read_settings(sent.settings)
    subject = settings.pop("subject", None)
    if not isinstance(subject, str | None):
        raise BadRequest("the subject is no text", hint='such as "album-7"')
    if subject is not None and jobs.budget.ledger is None:
        problem = "pays for nothing, as the service has no ledger"
        hint = "leave it out, or start the service with --ledger"
        raise InvalidParameter("subject", subject, problem, hint=hint)
    payer = caller.subject(subject)
    return [
        Order(photo, settings, payer, caller, _key(key, place), digest, arrived)
        for place, (photo, digest) in enumerate(zip(sent.photos, sent.digests, strict=True))
    ]


def _key(key: str | None, place: int) -> str | None:
    """Return the key of the photo at a place of a request: that of the request for the first one.

    No client can send that of another.
    """
    return key if key is None or not place else f"{key}\0{place}"


async def _begin_order(jobs: Jobs, order: Order, share: Share) -> Begun:
    """Return the result of an order and whether it is new, or why it was not begun."""
    new = False
    try:
        result, new = await jobs.begin(order, share)
    except DPVeilError as error:
        return error
    finally:
        if not new:
            order.photo = b""  # else whoever makes the release has it
            share.free()
    return result, new


async def _answer(jobs: Jobs, caller: Caller, begun: Begun, seconds: float) -> Answer:
    """Wait so many seconds, and return the answer to a photo."""
    if isinstance(begun, DPVeilError):
        return Answer.from_error(begun)
    result, new = begun
    alone, made = await jobs.wait(result.id, seconds) if seconds else (False, None)
    try:
        found = made or await _find_result(jobs, caller, result.id)
    except DPVeilError as error:  # the other photos have their answers all the same
        return Answer.from_error(error)
    if alone and found.state == FAILED:  # nobody else was told where it is
        with suppress(NotKept):
            await jobs.results(jobs.store.delete, found.id)
    return Answer.of(found, replayed=not new)


async def _archive(jobs: Jobs, caller: Caller, answers: Sequence[Answer]) -> Response | None:
    """Return all releases of a request and their certificates as one file; None if it is too large."""
    files = list[File]()
    made = [answer.made for answer in answers if answer.made is not None]
    for number, each in enumerate(made, 1):
        name = f"{number}.{each.format}"
        certificate = (each.certificate or "").encode()
        size, parts = await _image(jobs, caller, each.id, at_once=0)  # several wait for slow clients
        files.append(File(name, size, parts))
        files.append(File(name + CERTIFICATE, len(certificate), _stream_once(certificate)))
    if (size := archive_size(files)) > MOST:
        return None
    headers = answers[0].headers if len(answers) == 1 else {}
    headers["content-disposition"] = 'attachment; filename="releases.zip"'

    def note_fetched() -> None:
        for each in made:
            jobs.note(jobs.store.note_fetched, each.id)

    return download(size, stream_archive(files), note_fetched, ZIP, headers, 201)


async def _stream_once(contents: bytes) -> AsyncIterator[bytes]:
    yield contents


async def _with_costs(jobs: Jobs, order: Order, answer: Answer) -> Answer:
    """Return an answer with what was paid for its release and what is left, if it has a release."""
    if answer.made is None:
        return answer
    key = order.key or answer.made.id
    return answer.with_members(await jobs.costs(jobs.budget.account, order.caller, order.subject, key))


@router.get("/v1/releases/{id}", **address("found", {200: ("The release.", schemas.Release)}, FINDING))
async def get_release(parts: Using, caller: Asking, id: str) -> Response:  # noqa: A002  the path's word
    """Return a release: its certificate, and where its image is."""
    return Response(release_text(await finished_release(parts.jobs, caller, id)), media_type=JSON)


@router.get("/v1/releases/{id}/image", **address("image", {200: ("The picture.", schemas.IMAGE)}, FINDING))
async def image(request: Request, parts: Using, caller: Asking, id: str) -> Response:  # noqa: A002
    """Return the image of a release, or its document or clip."""
    jobs, made = parts.jobs, await finished_release(parts.jobs, caller, id)
    size, contents = await _image(jobs, caller, made.id)
    media, headers = MEDIA[str(made.format)], _download_header(made)
    if request.method == "HEAD":  # nothing is sent, so nothing was downloaded
        return Response(media_type=media, headers={**headers, "content-length": str(size)})
    return download(size, contents, partial(jobs.note, jobs.store.note_fetched, made.id), media, headers)


async def _image(
    jobs: Jobs, caller: Caller, id_: str, at_once: int = CHUNK
) -> tuple[int, AsyncIterator[bytes]]:
    """Return how many bytes the image of a caller's release has, and these, part by part.

    The first of them, so many, are read at once; the others when they are asked for.
    """
    store, owner = jobs.store, caller.number
    size, first = await jobs.results(store.opening, owner, id_, at_once)

    async def parts() -> AsyncIterator[bytes]:
        yield first
        for start in range(len(first), size, CHUNK):
            yield await jobs.results(store.part, owner, id_, start, min(CHUNK, size - start))

    return size, parts()


@router.get("/v1/releases/{id}/certificate", **address("certificate", {200: ("The file.", Object)}, FINDING))
async def certificate(parts: Using, caller: Asking, id: str) -> Response:  # noqa: A002
    """Return the certificate of a release as the file that `dpveil verify` reads."""
    made = await finished_release(parts.jobs, caller, id)
    return Response(made.certificate, headers=_download_header(made, CERTIFICATE), media_type=JSON)


def _download_header(result: Result, ending: str = "") -> dict[str, str]:
    """Return the header that names a download: the service knows no name of the photo, and tells none."""
    name = f"release-{result.id[:8]}.{result.format}{ending}"
    return {"content-disposition": f'attachment; filename="{name}"'}


@router.delete(
    "/v1/releases/{id}", **address("delete_releases", {204: ("It is forgotten.", None)}, (*FINDING, 409))
)
@router.delete("/v1/jobs/{id}", **address("delete_jobs", {204: ("It is cancelled.", None)}, (*FINDING, 409)))
async def delete(parts: Using, caller: Asking, id: str) -> Response:  # noqa: A002
    """Cancel a job that is not paid for, or forget a release; nothing that was paid is given back."""
    await parts.jobs.cancel(caller, (await _find_result(parts.jobs, caller, id)).id)
    return Response(status_code=204)


@router.get("/v1/jobs/{id}", **address("job", {200: ("The job.", schemas.Job)}, FINDING))
async def job(parts: Using, caller: Asking, id: str) -> Response:  # noqa: A002
    """Tell what became of a job: working, done or failed."""
    return JSONResponse(job_json(await _find_result(parts.jobs, caller, id), parts.jobs.progress(id)))


async def _find_result(jobs: Jobs, caller: Caller, id_: str) -> Result:
    """Return a caller's result; raises `NotFound`."""
    result = await jobs.find(caller, id_) if ID.fullmatch(id_) else None
    if result is None:
        raise NotFound("there is nothing of this name, or no longer", hint="results expire")
    return result


async def finished_release(jobs: Jobs, caller: Caller, id_: str) -> Result:
    """Return a caller's release; raises `NotFound`."""
    result = await _find_result(jobs, caller, id_)
    if result.state != DONE:
        raise NotFound("there is no release of this name yet", hint=f"see /v1/jobs/{result.id}")
    return result


@router.post(
    "/v1/plan",
    **address(
        "plan", {200: ("The plan of each photo.", schemas.Plan | schemas.Several)}, SENDING, schemas.UPLOAD
    ),
)
async def plan(request: Request, parts: Using, caller: Asking) -> Response:
    """Find the regions of a photo, or of each of several, and state what a release would promise; nothing
    is drawn or spent.
    """
    return await answer_plans(request, parts, caller, PLAN)


async def answer_plans(request: Request, parts: Parts, caller: Caller, do: str) -> Response:
    """Return what workers answer to photos and settings that ask them to `do` something."""
    jobs = parts.jobs
    with jobs.turns.request(caller):  # until its moment: else that tells how long it took
        with parts.held.share(caller) as share:
            orders = await _orders(request, parts, caller, share, None)
            answers = await asyncio.gather(*(_plan(jobs, do, order) for order in orders))
            response, arrived = combine_answers(answers), orders[0].arrived
            del orders
        await jobs.moments.wait(arrived)
    return response


async def _plan(jobs: Jobs, do: str, order: Order) -> Answer:
    try:
        async with jobs.turns.turn(order.caller):
            told = await jobs.ask(do, order.settings, order.photo, order.digest)
        if do == PLAN:
            told |= await jobs.costs(jobs.budget.forecast, order.caller, order.subject, told.get("total"))
        return Answer.plan(told)
    except DPVeilError as error:
        return Answer.from_error(error)


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
    """State what a method promises for a region of a size: the query has its parameters, size and
    channels.
    """
    try:
        settings = of_query(request.query_params.multi_items())
        with parts.jobs.turns.request(caller):
            return JSONResponse(await parts.jobs.ask("explain", settings))
    except DPVeilError as error:
        if CONCERNS.get(kind_of(error)) != SETTINGS:
            raise
        works = f"a query that works is {schemas.TRY}, and /openapi.json has all parameters"
        hint = f"{error.hint}; {works}" if error.hint else works
        raise Refusal(kind_of(error), error.message, hint) from error


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
    ready = parts.jobs.pool.ready and not parts.jobs.closing
    return JSONResponse({"status": "ready" if ready else "not ready"}, 200 if ready else 503)


@router.get("/metrics", **address("figures", {200: ("Figures.", schemas.TEXT)}, ASKING))
async def figures(parts: Using, caller: Asking) -> Response:
    """Return figures for Prometheus."""
    return Response(parts.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")


async def _answer_refusal(request: Request, error: Exception) -> Response:
    if isinstance(error, DPVeilError):
        return refusal(error)
    raise error


async def _http(request: Request, error: Exception) -> Response:
    if not isinstance(error, HTTPException):
        raise error
    words = {404: "there is nothing at this address", 405: "this address does not take that method"}
    made = ServiceError(words.get(error.status_code, "the request is malformed"), hint="see /openapi.json")
    made.status = error.status_code
    response = refusal(made)
    if error.status_code == 405:  # a route knows its own method alone
        route = request.scope["route"]
        others = (each for each in router.routes if isinstance(each, APIRoute) and each.path == route.path)
        response.headers["allow"] = ", ".join(
            sorted(route.methods.union(*(each.methods or () for each in others)))
        )
    return response


async def _answer_unexpected(request: Request, error: Exception) -> Response:
    """Answer what nobody expected; the error goes on to `Guard`, which logs it."""
    return refusal(FAILURE)


def _answer_head() -> None:
    """Answer HEAD wherever GET is answered, which is not told in /openapi.json."""
    for route in [*router.routes]:
        if isinstance(route, APIRoute) and "GET" in (route.methods or ()):
            router.add_api_route(route.path, route.endpoint, methods=["HEAD"], include_in_schema=False)


_answer_head()


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
        exception_handlers={
            DPVeilError: _answer_refusal,
            HTTPException: _http,
            Exception: _answer_unexpected,
        },
    )
    app.state.parts = parts
    app.include_router(router)
    return app
