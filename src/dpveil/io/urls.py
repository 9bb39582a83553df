"""Objects by URL, by fsspec: how they are listed and read, and how whole ones are written.

Credentials are the libraries' own business: none is in a URL, and no text of their errors is told.
"""

from __future__ import annotations

import errno
import hashlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO, Final

from dpveil.core.urls import CREDENTIALS, Status, Url, is_ambiguous, rebuild_url
from dpveil.errors import DPVeilError
from dpveil.io.unreadable import COPY_AGAIN, LIMIT, Refused

AHEAD: Final = 1 << 20
"""Bytes that are read ahead where a part of an object follows on another."""
PART: Final = 1 << 24
"""Bytes of an object that are compared at a time."""
CHANGED: Final = ("has changed since the run began", "run it again")
INSTALL: Final = "pip install 'dpveil[remote]'"
REACH: Final = "check the network, the region and AWS_ENDPOINT_URL, and run it again"
REASONS: Final[tuple[tuple[frozenset[str], str, str], ...]] = (
    (frozenset({"NoCredentialsError", "PartialCredentialsError"}), "needs credentials", CREDENTIALS),
    (frozenset({"ProfileNotFound", "TokenRetrievalError"}), "needs other credentials", CREDENTIALS),
    (frozenset({"PermissionError"}), "is not allowed (403)", CREDENTIALS),
    (frozenset({"FileNotFoundError", "NoSuchBucket"}), "does not exist (404)", "check the name"),
    (frozenset({"FileExpired"}), *CHANGED),
    (frozenset({"TimeoutError", "ConnectTimeoutError", "ReadTimeoutError"}), "does not answer", REACH),
    (frozenset({"EndpointConnectionError", "ConnectionError", "HTTPClientError"}), "is not reached", REACH),
    (frozenset({"ImportError"}), "is read by fsspec and s3fs, which are not installed", INSTALL),
)
"""Problem and remedy by the name of an error's class; no text of an error is told, which may hold secrets."""


@dataclass(frozen=True)
class _Scheme:
    """How fsspec is asked for one, how an object is looked for, and how a prefix is listed."""

    options: Mapping[str, Any]
    look: Callable[[Any, str], Mapping[str, Any]]
    pages: Callable[[Any, str], Iterator[Mapping[str, Any]]]


def _look(system: Any, key: str) -> Mapping[str, Any]:
    found: Mapping[str, Any] = system.info(key)
    if found["type"] == "directory":
        raise FileNotFoundError(errno.ENOENT, "is a prefix")
    return found


def _head(system: Any, key: str) -> Mapping[str, Any]:
    """Look for an object in S3 by one request, where fsspec would also list it as a prefix."""
    bucket, _, name = key.partition("/")
    if not name:
        raise FileNotFoundError(errno.ENOENT, "is a bucket")
    found = system.call_s3("head_object", Bucket=bucket, Key=name)
    return {"size": found["ContentLength"], "ETag": found["ETag"]}


def _find_objects(system: Any, prefix: str) -> Iterator[Mapping[str, Any]]:
    yield from system.find(prefix, detail=True).values()


def _listed_pages(system: Any, prefix: str) -> Iterator[Mapping[str, Any]]:
    """Yield the objects of a prefix in S3, of which a page is in memory; one that is cut off is an error."""
    bucket, _, start = prefix.partition("/")
    more: dict[str, str] = {}
    while True:
        page = system.call_s3("list_objects_v2", Bucket=bucket, Prefix=start, **more)
        for each in page.get("Contents", ()):
            yield {"name": f"{bucket}/{each['Key']}", "size": each["Size"], "ETag": each["ETag"]}
        if not page["IsTruncated"]:
            return
        more = {"ContinuationToken": page["NextContinuationToken"]}


S3: Final = {
    "use_listings_cache": False,
    "config_kwargs": {
        "connect_timeout": 10,
        "read_timeout": 60,
        "retries": {"total_max_attempts": 3, "mode": "standard"},
    },
}
SYSTEMS: Final = {"memory": _Scheme({}, _look, _find_objects), "s3": _Scheme(S3, _head, _listed_pages)}
"""How each scheme of `dpveil.core.urls` is reached."""


def object_status(url: Url) -> Status | None:
    """Return the status of an object, None if there is none; raises `Refused` if that cannot be told."""
    with _as_refusal():
        try:
            return _status(SYSTEMS[url.scheme].look(_system(url.scheme), url.key))
        except FileNotFoundError:
            return None


def reach(url: Url) -> None:
    """Raise `Refused` if what is below a prefix cannot be listed, before anything is read or paid for."""
    with _as_refusal():
        next(iter(SYSTEMS[url.scheme].pages(_system(url.scheme), f"{url.key}/")), None)


def objects(start: Url) -> Iterator[Url]:
    """Yield the objects below a prefix, each with its status; the one itself, if there is no such prefix.

    One whose name is no plain path has a `problem`, and a number instead. Raises `Refused` if any page of the
    list is missing.
    """
    with _as_refusal():
        status = None if start.prefix else object_status(start)
        if status is not None:
            yield rebuild_url(str(start), status, False, None)
            return
        system, empty = _system(start.scheme), True
        for number, found in enumerate(SYSTEMS[start.scheme].pages(system, f"{start.key}/"), 1):
            name = str(found["name"]).removeprefix("/")
            if name.endswith("/"):
                continue
            empty = False
            if is_ambiguous(name) or not name.startswith(f"{start.key}/"):
                problem = ("is the number of an object whose name is no plain path", "rename it")
                yield rebuild_url(f"{start}/#{number}", None, False, problem)
            else:
                yield rebuild_url(f"{start.scheme}://{name}", _status(found), False, None)
        if empty and not start.prefix:
            yield rebuild_url(str(start), None, False, ("does not exist", "check the name"))


@contextmanager
def opened_url(url: Url, *, ahead: int = AHEAD) -> Iterator[tuple[BinaryIO, Status]]:
    """Open an object to read parts of it, and yield it with its status; `ahead` bytes are read ahead.

    Raises `Refused`, also for errors in reading it within the context, and if it is another than was listed,
    or changes meanwhile.
    """
    with _as_refusal():
        file, status = start_reading(url, ahead=ahead)
        with file:
            yield file, status
        if (
            url.scheme != "s3" and object_status(url) != status
        ):  # S3 answers each request for this very version
            raise Refused(*CHANGED)


def start_reading(url: Url, *, ahead: int = AHEAD) -> tuple[BinaryIO, Status]:
    """Return an open object with its status, for who closes it; raises `Refused`."""
    if url.problem is not None:
        raise Refused(*url.problem)
    with _as_refusal():
        system = _system(url.scheme)
        how = {"block_size": ahead, "cache_type": "readahead"} if ahead else {"cache_type": "none"}
        file = system.open(url.key, "rb", **how)
        file.name, file.mode = str(url), "rb"  # as every binary file has them
        try:
            status = _status(getattr(file, "details", None) or system.info(url.key))
            if url.listed not in (None, status):
                raise Refused(*CHANGED)
        except BaseException:
            file.close()
            raise
    return file, status


def contents(url: Url, most: int) -> bytes:
    """Return the bytes of an object of at most `most`; raises `Refused`."""
    with opened_url(url, ahead=0) as (file, status):
        if status.st_size > most:
            problem = f"has {status.st_size:,} bytes, more than any photo within the limit of pixels"
            raise Refused(problem, "raise {max_pixels} if it is a photo", LIMIT)
        found = file.read(status.st_size)
    if len(found) != status.st_size:
        raise Refused("ends early", COPY_AGAIN)
    return found


def put(url: Url, data: bytes, *, replace: bool) -> None:
    """Write an object, which appears whole or not at all; without `replace`, only if there is none.

    The same bytes may be there already, as from a request whose answer was lost. Raises `FileExistsError` if
    others are, and `Refused`. A service that does not know If-None-Match overwrites what another process puts
    at the same moment: who must not lose it asks `holds` then.
    """
    with _as_refusal():
        _create(url, data, _system(url.scheme).pipe_file, (url.key, data), replace=replace)


def put_file(url: Url, path: Path, *, replace: bool) -> None:
    """Write a file as an object, as `put`."""
    with _as_refusal():
        _create(url, path, _system(url.scheme).put_file, (str(path), url.key), replace=replace)


def _create(
    url: Url, wanted: bytes | Path, write: Callable[..., Any], given: tuple[Any, ...], *, replace: bool
) -> None:
    if replace:
        write(*given)
    elif not _is_there(url, wanted):
        try:
            write(*given, mode="create")
        except OSError:
            if not _is_there(url, wanted):
                raise


def _is_there(url: Url, wanted: bytes | Path) -> bool:
    """Whether an object is there; raises `FileExistsError` if it is another."""
    if object_status(url) is None:
        return False
    if not holds(url, wanted):
        raise FileExistsError(errno.EEXIST, "exists")
    return True


def holds(url: Url, wanted: bytes | Path) -> bool:
    """Whether an object is there and has these bytes, or those of a file, of which a part is in memory.

    Raises `Refused` if that cannot be told, or the object changes meanwhile.
    """
    size = len(wanted) if isinstance(wanted, bytes) else wanted.stat().st_size
    opened = BytesIO(wanted) if isinstance(wanted, bytes) else wanted.open("rb")
    try:
        with opened as file, opened_url(url, ahead=0) as (there, status):
            if status.st_size != size:
                return False
            while part := file.read(PART):
                if there.read(len(part)) != part:
                    return False
    except Refused as reason:
        if isinstance(reason.__cause__, FileNotFoundError):
            return False
        raise
    return True


def remove(url: Url) -> None:
    """Remove an object, if there is one; raises `Refused`."""
    with _as_refusal(), suppress(FileNotFoundError):
        _system(url.scheme).rm_file(url.key)


@cache
def _system(scheme: str) -> Any:
    import fsspec

    return fsspec.filesystem(scheme, **SYSTEMS[scheme].options)


def _status(found: Mapping[str, Any]) -> Status:
    size, version = found.get("size"), found.get("ETag") or found.get("created")
    if not isinstance(size, int) or size < 0 or version is None:
        raise Refused("does not say its size and version", COPY_AGAIN)
    told = str(version.timestamp()) if isinstance(version, datetime) else str(version).strip('"')
    digest = hashlib.blake2b(told.encode(), digest_size=8, person=b"dpveil.url")
    return Status(size, int.from_bytes(digest.digest()) >> 1)


@contextmanager
def _as_refusal() -> Iterator[None]:
    """Raise any error but dpveil's own, and that something exists, as a `Refused` that tells none of it."""
    try:
        yield
    except (Refused, DPVeilError, FileExistsError):
        raise
    except Exception as error:
        names = {kind.__name__ for kind in type(error).__mro__}
        for known, problem, remedy in REASONS:
            if known & names:
                raise Refused(problem, remedy) from error
        raise Refused(f"cannot be read or written ({type(error).__name__})", REACH) from error
