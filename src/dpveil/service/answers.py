"""Answers about photos: a release, a job, a plan or a problem for each photo of a request."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Self

from starlette.responses import Response

from dpveil.errors import DPVeilError
from dpveil.service.guard import JSONResponse
from dpveil.service.problems import MEDIA_TYPE, problem
from dpveil.service.store import DONE, FAILED, WORKING, Result

MADE: Final = "release"
JOB: Final = "job"
PLAN: Final = "plan"
PROBLEM: Final = "problem"


@dataclass(frozen=True)
class Answer:
    """The answer to one photo: its HTTP status, what `kind` of object it is, and that.

    `where` is the address of what was made, if anything. It was `replayed` if an earlier request began it.
    """

    status: int
    kind: str
    told: dict[str, Any]
    where: str | None = None
    replayed: bool = False

    @classmethod
    def plan(cls, told: dict[str, Any]) -> Self:
        """Return the answer with a plan."""
        return cls(200, PLAN, told)

    @classmethod
    def refused(cls, error: DPVeilError) -> Self:
        """Return the answer that tells of an error."""
        return cls.problem(problem(error))

    @classmethod
    def problem(cls, told: dict[str, Any]) -> Self:
        """Return the answer with these problem details."""
        return cls(int(told["status"]), PROBLEM, told)

    @classmethod
    def of(cls, result: Result, *, replayed: bool) -> Self:
        """Return the answer with what became of a request: a release, a problem, or a job that goes on."""
        if (told := failed(result)) is not None:
            return cls.problem(told)
        if result.state == DONE:
            return cls(201, MADE, release_json(result), f"/v1/releases/{result.id}", replayed)
        return cls(202, JOB, job_json(result), f"/v1/jobs/{result.id}", replayed)

    def response(self) -> Response:
        """Return the answer to a request with this photo alone."""
        headers = {} if self.where is None else {"location": self.where}
        if self.replayed:
            headers["idempotency-replayed"] = "true"
        if "retry_after" in self.told:
            headers["retry-after"] = str(self.told["retry_after"])
        media = MEDIA_TYPE if self.kind == PROBLEM else None
        return JSONResponse(self.told, self.status, headers=headers, media_type=media)

    def entry(self) -> dict[str, Any]:
        """Return the photo's entry in the answer to a request with several."""
        replayed = {"replayed": True} if self.replayed else {}
        return {"status": self.status, self.kind: self.told, **replayed}


def together(answers: Sequence[Answer]) -> Response:
    """Return the answer to a request with these photos, in their order.

    For several its status is 202 while there is a job, 200 if some were refused or all were planned, 201 if
    all were released. If all were refused, it is the problem of the first one, with `photos` added.
    """
    if len(answers) == 1:
        return answers[0].response()
    entries = {"photos": [answer.entry() for answer in answers]}
    fine = [answer.status for answer in answers if answer.kind != PROBLEM]
    if not fine:
        return replace(answers[0], told=answers[0].told | entries).response()
    every = len(fine) == len(answers)
    return JSONResponse(entries, max(fine) if every or 202 in fine else 200)


def release_json(result: Result) -> dict[str, Any]:
    """Return what is told of a release."""
    where = f"/v1/releases/{result.id}"
    return {
        "id": result.id,
        "certificate": json.loads(result.certificate or "null"),
        "image_url": f"{where}/image",
        "certificate_url": f"{where}/certificate",
        "expires": int(result.expires),
        "notes": json.loads(result.notes or "[]"),
    }


def job_json(result: Result) -> dict[str, Any]:
    """Return what is told of a job."""
    done = result.state == DONE
    return {
        "id": result.id,
        "status": result.state if result.state in (DONE, FAILED) else WORKING,
        "job_url": f"/v1/jobs/{result.id}",
        "release_url": f"/v1/releases/{result.id}" if done else None,
        "problem": failed(result),
    }


def failed(result: Result) -> dict[str, Any] | None:
    """Return the problem of a result that was not made; None for all others."""
    return json.loads(result.problem) if result.state == FAILED and result.problem else None
