"""The application: which address does what, and how errors are answered."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, FastAPI, Request
from fastapi.responses import Response
from starlette.exceptions import HTTPException

from dpveil.errors import DPVeilError
from dpveil.service import documented
from dpveil.service.addresses import Addresses
from dpveil.service.guard import FAILURE, answer
from dpveil.service.problems import ServiceError


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
    if "allow" in response.headers:  # a route knows its own method alone
        path = request.scope["route"].path
        methods = {row.method for row in documented.ADDRESSES if row.path == path}
        response.headers["allow"] = ", ".join(sorted({*methods, *response.headers["allow"].split(", ")}))
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
        does = getattr(addresses, row.name)
        if row.method == "GET":
            router.add_api_route(row.path, does, methods=["HEAD"], include_in_schema=False)
        router.add_api_route(
            row.path,
            does,
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
