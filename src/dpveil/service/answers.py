"""Answers: releases, jobs and problems."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from starlette import responses
from starlette.responses import Response

from dpveil.errors import DPVeilError
from dpveil.service.problems import MEDIA_TYPE, problem
from dpveil.service.schemas import JSON
from dpveil.service.store import DONE, FAILED, WORKING, Result


def encode_json(content: Any) -> bytes:
    """Return a value as JSON in ASCII: whatever text a worker or a plug-in tells, it can be sent."""
    return json.dumps(content, allow_nan=False, separators=(",", ":")).encode()


class JSONResponse(responses.JSONResponse):
    """JSON as `encode_json`."""

    def render(self, content: Any) -> bytes:
        return encode_json(content)


def refusal_response(error: DPVeilError) -> Response:
    return problem_response(problem(error))


def problem_response(told: Mapping[str, Any]) -> Response:
    headers = {"www-authenticate": "Bearer"} if told["status"] == 401 else {}
    if "retry_after" in told:
        headers["retry-after"] = str(told["retry_after"])
    return JSONResponse(told, told["status"], headers=headers, media_type=MEDIA_TYPE)


def result_response(result: Result, more: Mapping[str, Any], *, replayed: bool) -> Response:
    """Return the answer to a request with what became of it: a release, a problem, or a job that goes on.

    `more` are members of a release; it was `replayed` if an earlier request began it.
    """
    if (told := failure_problem(result)) is not None:
        return problem_response(told)
    headers = {"idempotency-replayed": "true"} if replayed else {}
    if result.state != DONE:
        headers["location"] = f"/v1/jobs/{result.id}"
        return JSONResponse(job_json(result), 202, headers)
    headers["location"] = f"/v1/releases/{result.id}"
    return Response(release_text(result, more), 201, headers, JSON)


def release_text(result: Result, more: Mapping[str, Any] | None = None) -> bytes:
    """Return what is told of a release as JSON.

    The certificate and the notes, which may be long, are not parsed: nobody else is served meanwhile.
    """
    where = f"/v1/releases/{result.id}"
    told = {
        "id": result.id,
        "image_url": f"{where}/image",
        "certificate_url": f"{where}/certificate",
        "expires": int(result.expires),
        **(more or {}),
    }
    texts = f',"certificate":{result.certificate or "null"},"notes":{result.notes or "[]"}}}'
    return encode_json(told)[:-1] + texts.encode()


def job_json(result: Result, progress: tuple[int, int] | None = None) -> dict[str, Any]:
    """Return what is told of a job, and its `progress` as parts that are done, and of how many."""
    done = result.state == DONE
    told = {} if progress is None else {"progress": {"done": progress[0], "of": progress[1]}}
    return {
        **told,
        "id": result.id,
        "status": result.state if result.state in (DONE, FAILED) else WORKING,
        "job_url": f"/v1/jobs/{result.id}",
        "release_url": f"/v1/releases/{result.id}" if done else None,
        "problem": failure_problem(result),
    }


def failure_problem(result: Result) -> dict[str, Any] | None:
    """Return the problem of a result that was not made; None for all others."""
    return json.loads(result.problem) if result.state == FAILED and result.problem else None
