"""Releases that are put elsewhere, by URL: each waits on this disk until all of it is there.

A release is written here as for a folder, then its certificate is put, then its image; both are read back,
and then removed here. So what was paid for outlives a run that is killed, or a bucket that does not answer,
and the next run puts it. What is there already is looked at as a rerun over folders does, in a copy that is
removed.
"""

from __future__ import annotations

import errno
import hashlib
import os
import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import BinaryIO, Final

from dpveil.batch import resume
from dpveil.batch.archive_inputs import ALL, Scan, archive_of
from dpveil.batch.state import Stamp, State, stage_of
from dpveil.batch.task import Choices, Task
from dpveil.batch.tasks import ARGUMENTS, check_outputs, in_shard, photos_of, plan_tasks
from dpveil.core.certificate import Certificate, parse_certificate
from dpveil.core.envelope import MOST_BYTES
from dpveil.core.urls import Url
from dpveil.errors import CertificateError, DPVeilError, OutputError, UsageError
from dpveil.io import FORMATS, is_present, most_bytes, read_untrusted
from dpveil.io.names import released_suffix, show_path
from dpveil.io.unreadable import Refused
from dpveil.io.urls import contents, holds, object_status, put, put_file, reach, remove
from dpveil.io.writing import flush_folder, refusal
from dpveil.release.saving import SUFFIX, certificate_path

ORIGIN: Final = "origin"
"""The file that says from which shard the others in its folder are: its size, its time, and if dry `DRY`."""
DRY: Final = "dry"


def origin(folder: Path) -> str:
    """Return what is said of where the files in a folder are from; empty if nothing is."""
    try:
        return read_untrusted(folder / ORIGIN, MOST_BYTES).decode("ascii", "replace")
    except Refused:
        return ""


def origin_line(stamp: Stamp) -> str:
    """Return what `origin` says of the file with this stamp."""
    return f"{stamp[0]} {stamp[1]}"


def empty_folder(folder: Path) -> None:
    """Remove all files in a folder; raises `OSError`."""
    for path in sorted(folder.iterdir(), key=lambda path: path.name == ORIGIN):
        path.unlink()


def check(name: str, image: bytes, certificate: bytes) -> None:
    """Raise `Refused` unless a certificate can be read and states the hash of its image."""
    try:
        output = parse_certificate(certificate.decode()).output
    except (CertificateError, UnicodeDecodeError) as error:
        raise Refused(f"holds {show_path(name)} without a certificate that can be read", "") from error
    if output is None or output.sha256 != sha256(image).hexdigest():
        raise Refused(f"holds another {show_path(name)} than its certificate states", "")


def is_whole(place: Path) -> bool:
    """Whether an image and its certificate are both there."""
    return is_present(place) and is_present(certificate_path(place))


def read_gathered(path: Path, choices: Choices) -> bytes:
    """Return the contents of a file that was gathered; raises `OutputError`."""
    try:
        return read_untrusted(
            path, MOST_BYTES if path.name.endswith(SUFFIX) else most_bytes(choices.max_pixels)
        )
    except Refused as reason:
        hint = "remove it, or raise {max_pixels} if it was released with more"
        raise OutputError(
            f"{show_path(path)} {reason.problem}", hint=hint, arguments={"max_pixels": "max_pixels"}
        ) from reason


def gather(place: Path, data: bytes) -> None:
    """Write a file where releases of a shard are gathered; raises `OutputError`."""
    try:
        write(place.parent, place, lambda made: made.write(data), flush=False)
    except OSError as error:
        raise refusal(place, error) from error


def put_object(target: Url, path: Path, *, replace: bool) -> None:
    """Write a file as an object, and read it back; raises `OutputError`, also if another is there then."""
    with putting(target):
        put_file(target, path, replace=replace)
        if not holds(target, path):
            raise overwrite_error(target)


@contextmanager
def putting(target: Url) -> Iterator[None]:
    """Turn errors of putting an object into `OutputError`; its cause says whether something else is there."""
    try:
        yield
    except FileExistsError as error:
        raise refusal(target, error) from error
    except Refused as reason:
        raise write_error(target, reason) from reason


def write_error(target: Url, reason: Refused) -> OutputError:
    """Return why an object is not written, or not looked for."""
    return OutputError(
        f"{show_path(target)} {reason.problem}", hint=reason.remedy, arguments=reason.arguments
    )


def overwrite_error(target: Url) -> OutputError:
    """Return that an object is another than the one that was put."""
    problem = f"{show_path(target)} is not what this run put there: another one puts releases there, too"
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


WAITING: Final = "releases that could not be put wait in {folder}, {number} of them: run it again"


def plan_remote_tasks(
    inputs: Iterable[Path],
    out: Path,
    *,
    names: str = "keep",
    format: str | None = None,  # noqa: A002  the field's word
    scan: Scan = ALL,
) -> list[Task]:
    """Return the tasks for files, folders and URLs, as `plan_tasks`; places by URL are made by `place`.

    With a URL as `out`, a photo is called like its input, with another suffix behind it if its release has
    one, as in `a.heic.png`: nothing there tells whose release `a.png` would be.
    Lists what is below URLs, and reads shards there. Raises what `plan_tasks` raises, `PhotoError` for a URL
    that cannot be listed, and `OutputError` for such an `out`.
    """
    given = list(inputs)
    if not isinstance(out, Url):
        return plan_tasks(given, out, names=names, format=format, scan=scan)
    _check_out(given, out, names)
    if archive_of(out) is not None:
        return check_outputs(in_shard(given[0], out, out.parent, names), given)
    tasks, photos = [], sorted(photos_of(given, out), key=lambda pair: str(pair[1]))
    for source, relative in photos:
        if archive_of(source) is not None:
            tasks += in_shard(source, out / relative, out, names)
        else:
            tasks.append(_put_below(out, source, relative, format))
    _check_apart(tasks, photos)
    return check_outputs(tasks, [source for source, _ in photos])


def _check_out(given: Sequence[Path], out: Url, names: str) -> None:
    """Raise `UsageError` for a wrong call, and `OutputError` if what is below `out` cannot be listed."""
    one, usual = archive_of(out), "name a prefix, such as s3://bucket/out/"
    if names != "keep":
        problem = "outputs by URL are named like inputs, and {names} would change that"
        raise UsageError(problem, hint="leave out {names}", arguments=ARGUMENTS)
    if one is not None and (len(given) != 1 or archive_of(given[0]) is not one):
        problem = f"{{out}} {show_path(out)} is the name of one {one.called}, and the inputs are not one"
        raise UsageError(problem, hint=usual, arguments=ARGUMENTS)
    if out.suffix.lower() in FORMATS or out in given:
        problem = f"{{out}} {show_path(out)} is " + (
            "the input" if out in given else "the name of one picture"
        )
        raise UsageError(problem, hint=usual, arguments=ARGUMENTS)
    try:
        reach(out if one is None else out.parent)
    except Refused as reason:
        raise write_error(out, reason) from reason


def _put_below(out: Url, source: Path, relative: Path, format_: str | None) -> Task:
    suffix = released_suffix(relative, format_)
    name = f"{relative.as_posix()}{'' if suffix == relative.suffix else suffix}"
    waiting = hashlib.blake2b(os.fsencode(name), digest_size=16, person=b"dpveil.away").hexdigest()
    return Task(source, stage_of(out) / f"{waiting}{suffix}", name, remote=out / name)


def _check_apart(tasks: Sequence[Task], photos: Sequence[tuple[Path, Path]]) -> None:
    """Raise `UsageError` if something would be put in the place of an input."""
    sources = {source for source, _ in photos}
    places: list[Path] = [task.remote for task in tasks if task.remote is not None]
    places += [task.shard.target for task in tasks if task.shard is not None]
    for target in places:
        if target in sources or certificate_path(target) in sources:
            problem = f"{show_path(target)} is one of the inputs"
            raise UsageError(problem, hint="choose another {out}", arguments=ARGUMENTS)


def check_shared(tasks: Sequence[Task], jobs: int) -> None:
    """Raise `UsageError` if other processes would not see what they are to read or write."""
    shards = {task.shard for task in tasks if task.shard is not None}
    places: list[Path | None] = [place for shard in shards for place in (shard.path, shard.target)]
    places += [place for task in tasks for place in (task.source, task.remote)]
    if jobs > 1 and any(isinstance(place, Url) and not place.is_shared for place in places):
        hint = "give {jobs} as 1"
        raise UsageError("memory:// is that of one process", hint=hint, arguments={"jobs": "jobs"})


def find_finished(
    task: Task, choices: Choices, state: State, stamp: Stamp | None
) -> tuple[Path, Certificate] | None:
    """Return the output and certificate of an earlier run, as `resume.finished`, wherever it is put.

    What waits here beside a release that is there is removed, unless the run is dry.
    """
    if task.remote is None:
        return resume.find_finished(task, choices, state, stamp)
    with _looked_at(task, choices) as copy:
        found = resume.find_finished(copy, choices, state, stamp)
    if found is None:
        return None
    if copy is not task and not choices.dry:
        discard(task)
    return task.output, found[1]


def matching_certificate(task: Task, choices: Choices) -> Certificate | None:
    """Return the certificate of the release that is in a task's place, as `resume.same`."""
    if task.remote is None:
        return resume.matching_certificate(task.output, choices)
    with _looked_at(task, choices) as copy:
        return resume.matching_certificate(copy.output, choices)


@contextmanager
def _looked_at(task: Task, choices: Choices) -> Iterator[Task]:
    """Yield the task with a copy of what is there as its output; itself, if nothing is, or what waits here.

    A certificate alone is what waits here if it is the same: the run was killed before it put the image.
    """
    with TemporaryDirectory(prefix="dpveil-") as folder, _rename_errors(task, Path(folder)):
        copy = replace(task, output=Path(folder, task.output.name))
        there = [_fetch(task, choices, copy, certificate=which) for which in (True, False)]
        if there == [True, False] and is_whole(task.output):
            waiting = read_gathered(certificate_path(task.output), choices)
            yield task if waiting == read_gathered(certificate_path(copy.output), choices) else copy
        else:
            yield copy if any(there) else task


def _fetch(task: Task, choices: Choices, copy: Task, *, certificate: bool) -> bool:
    """Copy an object of a release, if there is one; raises `OutputError` if that cannot be told."""
    target, place = _pair(task)[0 if certificate else 1], copy.output
    try:
        if object_status(target) is None:
            return False
        found = contents(target, MOST_BYTES if certificate else most_bytes(choices.max_pixels))
    except Refused as reason:
        raise write_error(target, reason) from reason
    (certificate_path(place) if certificate else place).write_bytes(found)
    return True


@contextmanager
def _rename_errors(task: Task, folder: Path) -> Iterator[None]:
    """Let errors name what is there, and not the copy of it."""
    try:
        yield
    except DPVeilError as error:
        error.rename(show_path(Path(folder, task.output.name)), show_path(task.remote or task.output))
        raise


def _pair(task: Task) -> tuple[Url, Url]:
    """Return where certificate and image are put."""
    if not isinstance(task.remote, Url):
        raise TypeError("the release stays on this disk")
    beside = certificate_path(task.remote)
    return (beside, task.remote) if isinstance(beside, Url) else (task.remote, task.remote)


def deliver(task: Task, choices: Choices) -> None:
    """Put a release that waits here where it belongs, the certificate first, and remove it here.

    Does nothing for one that stays here. Raises `OutputError`, whose cause is a `FileExistsError` if
    something else is there, which only `force` replaces. Not every service keeps what is there when it is
    asked to, so both are read back, and the release stays here if either is another.
    """
    if not waits(task):
        return
    beside, target = _pair(task)
    text, image = read_gathered(certificate_path(task.output), choices), read_gathered(task.output, choices)
    with putting(target):
        if choices.force:  # no old image is seen beside a new certificate
            remove(target)
        put(beside, text, replace=choices.force)
        put(target, image, replace=choices.force)
        for url, data in ((beside, text), (target, image)):
            if not holds(url, data):
                raise overwrite_error(url)
    discard(task)


def waits(task: Task) -> bool:
    """Whether a release is here that is to be put elsewhere."""
    return task.remote is not None and is_whole(task.output)


def discard(task: Task) -> None:
    """Remove what waits here, of which there is a release where it belongs."""
    if task.remote is not None:
        task.output.unlink(missing_ok=True)
        certificate_path(task.output).unlink(missing_ok=True)
