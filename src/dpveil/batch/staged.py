"""The files of a folder in which the releases of a shard are gathered: they are put, compared and removed."""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO, Final

from dpveil.batch.choices import Choices
from dpveil.batch.state import Stamp
from dpveil.core.certificate import parse_certificate
from dpveil.core.envelope import MOST_BYTES
from dpveil.core.urls import Url
from dpveil.errors import CertificateError, OutputError
from dpveil.io import is_present, most_bytes, received
from dpveil.io.names import shown
from dpveil.io.refused import Refused
from dpveil.io.urls import holds, put_file
from dpveil.io.writing import flush_folder, refusal
from dpveil.release.saving import SUFFIX, certificate_path

ORIGIN: Final = "origin"
"""The file that says from which shard the others in its folder are: its size, its time, and if dry `DRY`."""
DRY: Final = "dry"


def origin(folder: Path) -> str:
    """Return what is said of where the files in a folder are from; empty if nothing is."""
    try:
        return received(folder / ORIGIN, MOST_BYTES).decode("ascii", "replace")
    except Refused:
        return ""


def told(stamp: Stamp) -> str:
    """Return what `origin` says of the file with this stamp."""
    return f"{stamp[0]} {stamp[1]}"


def empty(folder: Path) -> None:
    """Remove all files in a folder; raises `OSError`."""
    for path in sorted(folder.iterdir(), key=lambda path: path.name == ORIGIN):
        path.unlink()


def check(name: str, image: bytes, certificate: bytes) -> None:
    """Raise `Refused` unless a certificate can be read and states the hash of its image."""
    try:
        output = parse_certificate(certificate.decode()).output
    except (CertificateError, UnicodeDecodeError) as error:
        raise Refused(f"holds {shown(name)} without a certificate that can be read", "") from error
    if output is None or output.sha256 != sha256(image).hexdigest():
        raise Refused(f"holds another {shown(name)} than its certificate states", "")


def is_whole(place: Path) -> bool:
    """Whether an image and its certificate are both there."""
    return is_present(place) and is_present(certificate_path(place))


def held(path: Path, choices: Choices) -> bytes:
    """Return the contents of a file that was gathered; raises `OutputError`."""
    try:
        return received(path, MOST_BYTES if path.name.endswith(SUFFIX) else most_bytes(choices.max_pixels))
    except Refused as reason:
        hint = "remove it, or raise {max_pixels} if it was released with more"
        raise OutputError(
            f"{shown(path)} {reason.problem}", hint=hint, arguments={"max_pixels": "max_pixels"}
        ) from reason


def put(place: Path, contents: bytes) -> None:
    """Write a file; raises `OutputError`."""
    try:
        write(place.parent, place, lambda made: made.write(contents), flush=False)
    except OSError as error:
        raise refusal(place, error) from error


def put_object(target: Url, path: Path, *, replace: bool) -> None:
    """Write a file as an object, and read it back; raises `OutputError`, also if another is there then."""
    with putting(target):
        put_file(target, path, replace=replace)
        if not holds(target, path):
            raise overwritten(target)


@contextmanager
def putting(target: Url) -> Iterator[None]:
    """Turn errors of putting an object into `OutputError`; its cause says whether something else is there."""
    try:
        yield
    except FileExistsError as error:
        raise refusal(target, error) from error
    except Refused as reason:
        raise unwritten(target, reason) from reason


def unwritten(target: Url, reason: Refused) -> OutputError:
    """Return why an object is not written, or not looked for."""
    return OutputError(f"{shown(target)} {reason.problem}", hint=reason.remedy, arguments=reason.arguments)


def overwritten(target: Url) -> OutputError:
    """Return that an object is another than the one that was put."""
    problem = f"{shown(target)} is not what this run put there: another one puts releases there, too"
    hint = "let one run at a time put them; remove this one there and run it again: it puts what waits"
    return OutputError(problem, hint=hint)


def write(
    folder: Path,
    target: Path,
    write: Callable[[BinaryIO], object],
    *,
    flush: bool = True,
    replace: bool = True,
) -> None:
    """Write a file under a temporary name in `folder`, and then give it its name, or put it as an object.

    Without `replace`, it is put only if there is none. Raises `OSError` and `OutputError`.
    """
    temporary = folder / f".dpveil-{secrets.token_hex(8)}.tmp"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    try:
        with os.fdopen(os.open(temporary, flags, 0o666), "wb") as file:
            write(file)
            file.flush()
            if flush:
                os.fsync(file.fileno())
        if isinstance(target, Url):
            put_object(target, temporary, replace=replace)
            return
        if target.is_dir():
            raise OSError(errno.EISDIR, "is a folder")
        temporary.replace(target)
        if flush:  # what was gathered is removed next, and its only other copy must not be
            flush_folder(target.parent)
    finally:
        temporary.unlink(missing_ok=True)
