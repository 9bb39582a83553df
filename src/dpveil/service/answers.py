"""Answers: releases, jobs, plans, problems and files."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Self
from zipfile import ZipFile, ZipInfo

from starlette import responses
from starlette.responses import Response, StreamingResponse

from dpveil.errors import DPVeilError
from dpveil.service.problems import MEDIA_TYPE, PHOTO, problem
from dpveil.service.store import DONE, FAILED, WORKING, Result

JSON: Final = "application/json"
MADE: Final = "release"
JOB: Final = "job"
PLAN: Final = "plan"
PROBLEM: Final = "problem"
CHUNK: Final = 1 << 20
"""Bytes of an image that are sent at a time, so that none has to be in memory as a whole."""
ZIP: Final = "application/zip"
MOST: Final = (1 << 31) - 1
"""Most bytes of an archive: beyond, its format is another one."""
LAST: Final = 22
"""Bytes of the end of an archive."""
HEADERS: Final = 30 + 16 + 46
"""Bytes of the three headers of a file in an archive, beside its name, which is there twice."""


def encode_json(content: Any) -> bytes:
    """Return a value as JSON in ASCII: whatever text a worker or a plug-in tells, it can be sent."""
    return json.dumps(content, allow_nan=False, separators=(",", ":")).encode()


class JSONResponse(responses.JSONResponse):
    """JSON as `encode_json`."""

    def render(self, content: Any) -> bytes:
        """Return the bytes of a value."""
        return encode_json(content)


def refusal(error: DPVeilError) -> Response:
    """Return the answer that tells of an error."""
    told = problem(error)
    headers = {"www-authenticate": "Bearer"} if told["status"] == 401 else {}
    if "retry_after" in told:
        headers["retry-after"] = str(told["retry_after"])
    return JSONResponse(told, told["status"], headers=headers, media_type=MEDIA_TYPE)


@dataclass(frozen=True)
class Answer:
    """The answer to one photo: its HTTP status, what `kind` of object it is, and what is `told` in that.

    `where` is the address of what was made, if anything, and `made` the release. It was `replayed` if an
    earlier request began it. `more` are members of the object that are JSON already.
    """

    status: int
    kind: str
    told: dict[str, Any]
    where: str | None = None
    replayed: bool = False
    made: Result | None = None
    more: Mapping[str, bytes] = field(default_factory=dict)

    @classmethod
    def plan(cls, told: dict[str, Any]) -> Self:
        """Return the answer with a plan."""
        return cls(200, PLAN, told)

    @classmethod
    def from_error(cls, error: DPVeilError) -> Self:
        """Return the answer that tells of an error."""
        return cls.problem(problem(error))

    @classmethod
    def problem(cls, told: dict[str, Any]) -> Self:
        """Return the answer with these problem details."""
        return cls(int(told["status"]), PROBLEM, told)

    @classmethod
    def of(cls, result: Result, *, replayed: bool) -> Self:
        """Return the answer with what became of a request: a release, a problem, or a job that goes on."""
        if (told := failure_problem(result)) is not None:
            return cls.problem(told)
        if result.state == DONE:
            where = f"/v1/releases/{result.id}"
            return cls(201, MADE, _release_json(result), where, replayed, result, _texts(result))
        return cls(202, JOB, job_json(result), f"/v1/jobs/{result.id}", replayed)

    def with_members(self, more: Mapping[str, Any]) -> Answer:
        """Return the answer with these members beside its own."""
        return replace(self, told={**self.told, **more})

    @property
    def headers(self) -> dict[str, str]:
        """Headers of the answer to a request with this photo alone."""
        headers = {} if self.where is None else {"location": self.where}
        if self.replayed:
            headers["idempotency-replayed"] = "true"
        if "retry_after" in self.told:
            headers["retry-after"] = str(self.told["retry_after"])
        return headers

    def response(self) -> Response:
        """Return the answer to a request with this photo alone."""
        media = MEDIA_TYPE if self.kind == PROBLEM else JSON
        return Response(with_texts(self.told, self.more), self.status, self.headers, media)

    def entry(self) -> bytes:
        """Return the photo's entry in the answer to a request with several, as JSON."""
        replayed = {"replayed": True} if self.replayed else {}
        return with_texts({"status": self.status, **replayed}, {self.kind: with_texts(self.told, self.more)})

    def about(self, number: int, count: int) -> Answer:
        """Return the answer to the photo of this number of several: a problem with it says which it is."""
        if self.kind != PROBLEM or self.told.get("about") != PHOTO:
            return self
        title = f"photo {number} of {count}: {self.told['title']}"
        return replace(self, told={**self.told, "title": title})


def combine_answers(answers: Sequence[Answer]) -> Response:
    """Return the answer to a request with these photos, in their order.

    For several its status is 202 while there is a job, 200 if some were refused or all were planned, 201 if
    all were released. If all were refused, it is the problem of the first one, with `photos` added.
    """
    if len(answers) == 1:
        return answers[0].response()
    answers = [answer.about(number, len(answers)) for number, answer in enumerate(answers, 1)]
    entries = {"photos": b"[" + b",".join(answer.entry() for answer in answers) + b"]"}
    fine = [answer.status for answer in answers if answer.kind != PROBLEM]
    if not fine:
        return replace(answers[0], more=entries).response()
    every = len(fine) == len(answers)
    return Response(with_texts({}, entries), max(fine) if every or 202 in fine else 200, media_type=JSON)


def with_texts(told: Mapping[str, Any], more: Mapping[str, bytes]) -> bytes:
    """Return an object as JSON, with more members that are JSON already: none of them is parsed.

    >>> with_texts({"id": "a"}, {"notes": b"[]"}), with_texts({}, {})
    (b'{"id":"a","notes":[]}', b'{}')
    """
    members = [encode_json(dict(told))[1:-1]] if told else []
    members += [encode_json(name) + b":" + text for name, text in more.items()]
    return b"{" + b",".join(members) + b"}"


def release_text(result: Result) -> bytes:
    """Return what is told of a release as JSON."""
    return with_texts(_release_json(result), _texts(result))


def _release_json(result: Result) -> dict[str, Any]:
    where = f"/v1/releases/{result.id}"
    return {
        "id": result.id,
        "image_url": f"{where}/image",
        "certificate_url": f"{where}/certificate",
        "expires": int(result.expires),
    }


def _texts(result: Result) -> dict[str, bytes]:
    """Return what may be long: it is not parsed, as nobody else is served meanwhile."""
    return {
        "certificate": (result.certificate or "null").encode(),
        "notes": (result.notes or "[]").encode(),
    }


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


def download(
    size: int,
    parts: AsyncIterator[bytes],
    taken: Callable[[], object],
    media_type: str,
    headers: Mapping[str, str],
    status: int = 200,
) -> Response:
    """Return the answer with a file of `size` bytes; calls `taken` once the client took all of its parts."""

    async def sent() -> AsyncIterator[bytes]:
        async for part in parts:
            yield part
        taken()

    return StreamingResponse(sent(), status, {**headers, "content-length": str(size)}, media_type)


def wants_archive(accept: str) -> bool:
    """Whether a client's Accept header names ZIP files, not only a range of types.

    >>> wants_archive("image/png, application/zip"), wants_archive("application/zip;q=0")
    (True, False)
    """
    for each in accept.split(","):
        kind, *parameters = (part.strip().lower() for part in each.split(";"))
        refused = any(re.fullmatch(r"q=0([.]0*)?", parameter) for parameter in parameters)
        if kind == ZIP and not refused:
            return True
    return False


@dataclass(frozen=True)
class File:
    """A file of an archive: its name in ASCII, its size in bytes, and its contents part by part."""

    name: str
    size: int
    parts: AsyncIterator[bytes]


def archive_size(files: Sequence[File]) -> int:
    """Return the bytes of an archive, before any is written."""
    return LAST + sum(HEADERS + 2 * len(file.name) + file.size for file in files)


class _Written:
    """What `ZipFile` has written and nobody has sent yet; it cannot go back in that."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self.size = 0

    def write(self, data: bytes) -> int:
        self.parts.append(bytes(data))
        self.size += len(data)
        return len(data)

    def flush(self) -> None:
        """Do nothing."""

    def take(self) -> bytes:
        taken = b"".join(self.parts)
        self.parts, self.size = [], 0
        return taken


async def stream_archive(files: Sequence[File]) -> AsyncIterator[bytes]:
    """Yield an archive of files as they are, uncompressed and without times, about 1 MiB at a time."""
    made = _Written()
    with ZipFile(made, "w") as archive:  # type: ignore[call-overload]
        for file in files:
            with archive.open(ZipInfo(file.name), "w") as entry:
                async for part in file.parts:
                    entry.write(part)
                    if made.size >= CHUNK:
                        yield made.take()
    yield made.take()
