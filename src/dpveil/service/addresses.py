"""What the addresses of the service do."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Annotated, Final

from fastapi import Header, Request
from fastapi.responses import Response

from dpveil.errors import DPVeilError, InvalidParameter
from dpveil.service import costs, documented, upload
from dpveil.service.answers import PLAN, Answer, job_json, release_text, together
from dpveil.service.archive import MOST, ZIP, File, archived, is_wanted, size_of
from dpveil.service.desk import Desk
from dpveil.service.download import CHUNK, Download
from dpveil.service.explained import TRY
from dpveil.service.guard import JSON, JSONResponse
from dpveil.service.keys import Caller
from dpveil.service.metrics import Metrics
from dpveil.service.orders import Order
from dpveil.service.problems import (
    CONCERNS,
    SETTINGS,
    BadRequest,
    NotFound,
    NotKept,
    Refusal,
    kind_of,
)
from dpveil.service.quotas import Rates
from dpveil.service.reading import of_query, read_settings
from dpveil.service.store import DONE, FAILED, Result

ID: Final = re.compile(r"[A-Za-z0-9_-]{32}")
KEY: Final = re.compile(r"^[\x21-\x7e]{1,255}$")
ASYNCHRONOUS: Final = "respond-async"
Begun = tuple[Result, bool] | DPVeilError
"""What came of a photo that was handed in: its result and whether it is new, or why there is none."""
CERTIFICATE: Final = ".certificate.json"
"""What is behind the name of an image in that of its certificate, as on a disk."""
MEDIA: Final = {name: f"image/{name}" for name in ("png", "jpeg", "webp", "tiff", "bmp")}


class Addresses:
    """The functions behind the addresses."""

    def __init__(self, desk: Desk, held: upload.Held, rates: Rates, metrics: Metrics) -> None:
        self.desk, self.held, self.rates, self.metrics = desk, held, rates, metrics

    async def release(
        self,
        request: Request,
        idempotency_key: Annotated[
            str | None, Header(description=documented.IDEMPOTENCY, json_schema_extra={"pattern": KEY.pattern})
        ] = None,
        prefer: Annotated[str | None, Header(description=documented.PREFER)] = None,
    ) -> Response:
        """Replace the regions of a photo, or of each of several, and certify what is promised: a retry with
        the same Idempotency-Key gets the same releases. What takes longer is a job.
        """
        if idempotency_key is not None and not KEY.fullmatch(idempotency_key):
            raise BadRequest("the Idempotency-Key is no word of 1 to 255 letters", hint="a UUID will do")
        seconds = 0 if ASYNCHRONOUS in (prefer or "") else self.desk.limits.answer_seconds
        caller = _caller(request)
        with self.desk.turns.request(caller), self.held.share(caller) as share:
            orders = await self._orders(request, share, idempotency_key)
            begun = [await self._begun(order, share.part(len(order.photo))) for order in orders]
        answers = await asyncio.gather(*(self._answer(request, each, seconds) for each in begun))
        if is_wanted(request.headers.get("accept", "")) and all(each.made for each in answers):
            with suppress(NotFound):  # one was deleted meanwhile; the others have their answers
                if (archive := await self._archive(request, answers)) is not None:
                    return archive
        return together(await asyncio.gather(*map(partial(costs.of_release, self.desk), orders, answers)))

    async def _archive(self, request: Request, answers: Sequence[Answer]) -> Response | None:
        """Return all releases of a request and their certificates as one file; None if it is too large."""
        owner, store, files = _caller(request).number, self.desk.store, list[File]()
        made = [answer.made for answer in answers if answer.made is not None]
        for number, each in enumerate(made, 1):
            name = f"{number}.{each.format}"
            certificate = (each.certificate or "").encode()
            size, parts = await self._image(owner, each.id, at_once=0)  # several wait for slow clients
            files.append(File(name, size, parts))
            files.append(File(name + CERTIFICATE, len(certificate), _once(certificate)))
        if (size := size_of(files)) > MOST:
            return None
        headers = answers[0].headers if len(answers) == 1 else {}
        headers["content-disposition"] = 'attachment; filename="releases.zip"'

        def taken() -> None:
            for each in made:
                self.desk.note(store.fetched, each.id)

        return Download(size, archived(files), taken, ZIP, 201, headers)

    async def _begun(self, order: Order, share: upload.Share) -> Begun:
        """Return the result of an order and whether it is new, or why it was not begun."""
        new = False
        try:
            result, new = await self.desk.begin(order, share)
        except DPVeilError as error:
            return error
        finally:
            if not new:
                order.photo = b""  # else whoever makes the release has it
                share.free()
        return result, new

    async def _answer(self, request: Request, begun: Begun, seconds: float) -> Answer:
        """Wait so many seconds, and return the answer to a photo."""
        if isinstance(begun, DPVeilError):
            return Answer.refused(begun)
        result, new = begun
        alone, made = await self.desk.wait(result.id, seconds) if seconds else (False, None)
        try:
            found = made or await self._found(request, result.id)
        except DPVeilError as error:  # the other photos have their answers all the same
            return Answer.refused(error)
        if alone and found.state == FAILED:  # nobody else was told where it is
            with suppress(NotKept):
                await self.desk.results(self.desk.store.delete, found.id)
        return Answer.of(found, replayed=not new)

    async def plan(self, request: Request) -> Response:
        """Find the regions of a photo, or of each of several, and state what a release would promise; nothing
        is drawn or spent.
        """
        return await self.planned(request, PLAN)

    async def planned(self, request: Request, do: str) -> Response:
        """Return what workers answer to photos and settings that ask them to `do` something."""
        with self.desk.turns.request(_caller(request)):  # until its moment: else that tells how long it took
            with self.held.share(_caller(request)) as share:
                orders = await self._orders(request, share, None)
                answers = await asyncio.gather(*(self._plan(do, order) for order in orders))
                response, arrived = together(answers), orders[0].arrived
                del orders
            await self.desk.moments.due(arrived)
        return response

    async def _plan(self, do: str, order: Order) -> Answer:
        try:
            async with self.desk.turns.turn(order.caller):
                told = await self.desk.ask(do, order.settings, order.photo, order.digest)
            return Answer.plan(await costs.of_plan(self.desk, order, told) if do == PLAN else told)
        except DPVeilError as error:
            return Answer.refused(error)

    async def explain(self, request: Request) -> Response:
        """State what a method promises for a region of a size: the query has its parameters, size and
        channels.
        """
        try:
            settings = of_query(request.query_params.multi_items())
            with self.desk.turns.request(_caller(request)):
                return JSONResponse(await self.desk.ask("explain", settings))
        except DPVeilError as error:
            if CONCERNS.get(kind_of(error)) != SETTINGS:
                raise
            works = f"a query that works is {TRY}, and /openapi.json has all parameters"
            hint = f"{error.hint}; {works}" if error.hint else works
            raise Refusal(kind_of(error), error.message, hint) from error

    async def methods(self) -> Response:
        """List every method with its parameters."""
        return JSONResponse(await self.desk.ask("methods", {}))  # not kept: a worker may have been taken over

    async def job(self, request: Request, id: str) -> Response:  # noqa: A002  the path's word
        """Tell what became of a job: working, done or failed."""
        found = await self._found(request, id)
        return JSONResponse(job_json(found))

    async def found(self, request: Request, id: str) -> Response:  # noqa: A002
        """Return a release: its certificate, and where its image is."""
        return Response(release_text(await self.done(request, id)), media_type=JSON)

    async def image(self, request: Request, id: str) -> Response:  # noqa: A002
        """Return the image of a release."""
        found = await self.done(request, id)
        size, parts = await self._image(_caller(request).number, found.id)
        media, headers = MEDIA[str(found.format)], _named(found)
        if request.method == "HEAD":  # nothing is sent, so nothing was downloaded
            return Response(media_type=media, headers={**headers, "content-length": str(size)})
        taken = partial(self.desk.note, self.desk.store.fetched, found.id)
        return Download(size, parts, taken, media, headers=headers)

    async def _image(self, owner: str, id_: str, at_once: int = CHUNK) -> tuple[int, AsyncIterator[bytes]]:
        """Return how many bytes the image of a caller's release has, and these, part by part.

        The first of them, so many, are read at once; the others when they are asked for.
        """
        desk, store = self.desk, self.desk.store
        size, first = await desk.results(store.opening, owner, id_, at_once)

        async def parts() -> AsyncIterator[bytes]:
            yield first
            for start in range(len(first), size, CHUNK):
                yield await desk.results(store.part, owner, id_, start, min(CHUNK, size - start))

        return size, parts()

    async def certificate(self, request: Request, id: str) -> Response:  # noqa: A002
        """Return the certificate of a release as the file that `dpveil verify` reads."""
        found = await self.done(request, id)
        return Response(found.certificate, headers=_named(found, CERTIFICATE), media_type=JSON)

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
            result = await self.desk.find(_caller(request), id_)
        if result is None:
            raise NotFound("there is nothing of this name, or no longer", hint="results expire")
        return result

    async def done(self, request: Request, id_: str) -> Result:
        """Return a release; raises `NotFound`."""
        result = await self._found(request, id_)
        if result.state != DONE:
            raise NotFound("there is no release of this name yet", hint=f"see /v1/jobs/{result.id}")
        return result

    async def _orders(self, request: Request, share: upload.Share, key: str | None) -> list[Order]:
        """Return an order for each photo of a request; each photo has a key of its own from the request's.

        Raises errors that are problems.
        """
        sent = await upload.receive(request, self.desk.limits, share)
        arrived, caller = self.desk.moments.now(), _caller(request)
        self.rates.more(caller, len(sent.photos) - 1, time.monotonic())
        settings = read_settings(sent.settings)
        subject = settings.pop("subject", None)
        if not isinstance(subject, str | None):
            raise BadRequest("the subject is no text", hint='such as "album-7"')
        if subject is not None and self.desk.budget.ledger is None:
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


async def _once(contents: bytes) -> AsyncIterator[bytes]:
    yield contents


def _named(result: Result, ending: str = "") -> dict[str, str]:
    """Return the header that names a download: the service knows no name of the photo, and tells none."""
    name = f"release-{result.id[:8]}.{result.format}{ending}"
    return {"content-disposition": f'attachment; filename="{name}"'}


def _caller(request: Request) -> Caller:
    caller: Caller = request.state.caller
    return caller
