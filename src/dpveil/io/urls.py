"""Objects by URL, by fsspec: how they are listed and read, and how whole ones are written.

Credentials are the libraries' own business: none is in a URL, and no text of their errors is told.
"""

from __future__ import annotations

import errno
import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO, Final

from dpveil.core.urls import CREDENTIALS, Status, Url, is_ambiguous, rebuild_url
from dpveil.errors import DPVeilError
from dpveil.io.unreadable import COPY_AGAIN, LIMIT, Refused

AHEAD: Final = 1 << 20  # bytes that are read ahead where a part of an object follows on another
CHANGED: Final = ("has changed since the run began", "run it again")
INSTALL: Final = "pip install 'dpveil[remote]'"
REACH: Final = "check the network, the region and AWS_ENDPOINT_URL, and run it again"
REASONS: Final[tuple[tuple[frozenset[str], str, str], ...]] = (
    (frozenset({"NoCredentialsError", "PartialCredentialsError"}), "needs credentials", CREDENTIALS),
    (frozenset({"PermissionError"}), "is not allowed (403)", CREDENTIALS),
    (frozenset({"FileNotFoundError", "NoSuchBucket"}), "does not exist (404)", "check the name"),
    (frozenset({"FileExpired"}), *CHANGED),
    (frozenset({"ImportError"}), "is read by fsspec and s3fs, which are not installed", INSTALL),
)
"""Problem and remedy by the name of an error's class; no text of an error is told, which may hold secrets."""


S3: Final = {
    "use_listings_cache": False,
    "config_kwargs": {
        "connect_timeout": 10,
        "read_timeout": 60,
        "retries": {"total_max_attempts": 3, "mode": "standard"},
    },
}
OPTIONS: Final[Mapping[str, Mapping[str, Any]]] = {"memory": {}, "s3": S3}
"""How fsspec is asked for each scheme of `dpveil.core.urls`."""


def object_status(url: Url) -> Status | None:
    """Return the status of an object, None if there is none; raises `Refused` if that cannot be told."""
    with _as_refusal():
        try:
            found = _system(url.scheme).info(url.key)
        except FileNotFoundError:
            return None
        return None if found["type"] == "directory" else _status(found)


def check_listable(url: Url) -> None:
    """Raise `Refused` if what is below a prefix cannot be listed, before anything is read or paid for."""
    if url.scheme == "s3":
        bucket, _, start = url.key.partition("/")
        with _as_refusal():  # fsspec does not tell a missing bucket from a prefix without objects
            _system(url.scheme).call_s3("list_objects_v2", Bucket=bucket, Prefix=start, MaxKeys=1)


def objects(start: Url) -> Iterator[Url]:
    """Yield the objects below a prefix, each with its status; the one itself, if there is no such prefix.

    Raises `Refused` if any page of the list is missing, or for a name that is no plain path.
    """
    with _as_refusal():
        status = None if start.prefix else object_status(start)
        if status is not None:
            yield rebuild_url(str(start), status, False, None)
            return
        listed = _system(start.scheme).find(start.key, detail=True)
        names = [name for name in sorted(listed) if not str(name).endswith("/")]
        for name in names:
            key = str(name).removeprefix("/")
            if is_ambiguous(key) or not key.startswith(f"{start.key}/"):
                raise Refused("holds an object whose name is no plain path", "rename it")
            yield rebuild_url(f"{start.scheme}://{key}", _status(listed[name]), False, None)
        if not names and not start.prefix:
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
        return file.read(status.st_size)


def put(url: Url, data: bytes | Path, *, replace: bool) -> None:
    """Write bytes, or a file, as an object, which appears whole or not at all.

    Raises `Refused`, and without `replace` `FileExistsError` if there is one. A service that does not know
    If-None-Match overwrites what another process puts at the same moment.
    """
    how = {} if replace else {"mode": "create"}
    with _as_refusal():
        if not replace and object_status(url) is not None:
            raise FileExistsError(errno.EEXIST, "exists")
        system = _system(url.scheme)
        if isinstance(data, Path):
            system.put_file(str(data), url.key, **how)
        else:
            system.pipe_file(url.key, data, **how)


def remove(url: Url) -> None:
    """Remove an object, if there is one; raises `Refused`."""
    with _as_refusal(), suppress(FileNotFoundError):
        _system(url.scheme).rm_file(url.key)


@cache
def _system(scheme: str) -> Any:
    import fsspec

    return fsspec.filesystem(scheme, **OPTIONS[scheme])


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
