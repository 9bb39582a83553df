"""Releases that are put elsewhere, by URL: each waits on this disk until all of it is there.

A release is written here as for a folder, then its certificate is put, then its image, and then it is removed
here. So what was paid for outlives a run that is killed, or a silent bucket, and the next run puts it.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final

from dpveil.batch.archive_inputs import ALL, PageSettings, archive_of
from dpveil.batch.state import name_hash, stage_of
from dpveil.batch.tasks import ARGUMENTS, RunSettings, Task, check_outputs, in_shard, photos_of, plan_tasks
from dpveil.core.envelope import MOST_BYTES
from dpveil.core.urls import Url, rebuild_url
from dpveil.errors import OutputError, UsageError
from dpveil.io.names import FORMATS, released_suffix, show_path
from dpveil.io.reading import most_bytes
from dpveil.io.unreadable import Refused
from dpveil.io.untrusted_files import is_present, read_untrusted
from dpveil.io.urls import check_listable, contents, object_status, put, remove
from dpveil.io.writing import flush_folder, temporary_path, write_error
from dpveil.release.saving import SUFFIX, certificate_path

WAITING: Final = "releases that could not be put wait in {folder}, {number} of them: run it again"


def is_whole(place: Path) -> bool:
    """Whether an image and its certificate are both there."""
    return is_present(place) and is_present(certificate_path(place))


def read_gathered(path: Path, choices: RunSettings) -> bytes:
    """Return the contents of a file that was gathered; raises `OutputError`."""
    most = MOST_BYTES if path.name.endswith(SUFFIX) else most_bytes(choices.max_pixels)
    try:
        return read_untrusted(path, most)
    except Refused as reason:
        hint = "remove it, or raise {max_pixels} if it was released with more"
        problem = f"{show_path(path)} {reason.problem}"
        raise OutputError(problem, hint=hint, arguments={"max_pixels": "max_pixels"}) from reason


@contextmanager
def putting(target: Url) -> Iterator[None]:
    """Turn errors of putting an object, or looking for one, into `OutputError`.

    Its cause says whether something else is there.
    """
    try:
        yield
    except FileExistsError as error:
        raise write_error(target, error) from error
    except Refused as reason:
        problem = f"{show_path(target)} {reason.problem}"
        raise OutputError(problem, hint=reason.remedy, arguments=reason.arguments) from reason


def write(
    folder: Path,
    target: Path,
    data: bytes | Callable[[BinaryIO], object],
    *,
    flush: bool = True,
    replace: bool = True,
) -> None:
    """Write a file under a temporary name in `folder`, and then give it its name, or put it as an object.

    `data` may be what writes them. Without `replace`, an object is put only if there is none. Raises
    `OSError` and `OutputError`.
    """
    temporary = temporary_path(folder)
    try:
        with temporary.open("xb") as file:
            file.write(data) if isinstance(data, bytes) else data(file)
            file.flush()
            if flush:
                os.fsync(file.fileno())
        if isinstance(target, Url):
            with putting(target):
                put(target, temporary, replace=replace)
            return
        if target.is_dir():
            raise OSError(errno.EISDIR, "is a folder")
        temporary.replace(target)
        if flush:  # what was gathered is removed next, and its only other copy must not be
            flush_folder(target.parent)
    finally:
        temporary.unlink(missing_ok=True)


def plan_remote_tasks(
    inputs: Iterable[Path],
    out: Path,
    *,
    names: str = "keep",
    format: str | None = None,  # noqa: A002  the field's word
    scan: PageSettings = ALL,
) -> list[Task]:
    """Return the tasks for files, folders and URLs, as `plan_tasks`; places by URL are made by `place`.

    With a URL as `out`, a photo is called like its input, with another suffix behind it if its release has
    one, as in `a.heic.png`: nothing there tells whose release `a.png` would be.
    Lists what is below URLs, and reads shards there. Raises what `plan_tasks` raises, `PhotoError` for a URL
    that cannot be listed, and `OutputError` for such an `out`.
    """
    given = list(inputs)
    if isinstance(out, Url):
        return _plan_url(given, out, names, format)
    return plan_tasks(given, out, names=names, format=format, scan=scan)


def _plan_url(given: list[Path], out: Url, names: str, format_: str | None) -> list[Task]:
    one, problem, hint = archive_of(out), "", "name a prefix, such as s3://bucket/out/"
    if names != "keep":
        problem, hint = "outputs by URL are named like inputs, and {names} would change that", "leave it out"
    elif one is not None and (len(given) != 1 or archive_of(given[0]) is not one):
        problem = f"{{out}} {show_path(out)} is the name of one {one.called}, and the inputs are not one"
    elif out in given:
        problem = f"{{out}} {show_path(out)} is the input"
    elif out.suffix.lower() in FORMATS:
        problem = f"{{out}} {show_path(out)} is the name of one picture"
    if problem:
        raise UsageError(problem, hint=hint, arguments=ARGUMENTS)
    with putting(out):
        check_listable(out if one is None else out.parent)
    if one is not None:
        return check_outputs(in_shard(given[0], out, out.parent), given)
    tasks, photos = [], sorted(photos_of(given, out), key=lambda pair: str(pair[1]))
    for source, relative in photos:
        if archive_of(source) is not None:
            tasks += in_shard(source, out / relative, out)
            continue
        suffix = released_suffix(relative, format_)
        name = f"{relative.as_posix()}{'' if suffix == relative.suffix else suffix}"
        waiting = stage_of(out) / f"{name_hash(name, b'dpveil.away')}{suffix}"
        tasks.append(Task(source, waiting, name, remote=out / name))
    return check_outputs(tasks, [source for source, _ in photos])


def check_shared(tasks: Sequence[Task], jobs: int) -> None:
    """Raise `UsageError` if other processes would not see what they are to read or write."""
    places = [place for task in tasks for place in (task.source, task.remote, *task.paths)]
    if jobs > 1 and any(isinstance(place, Url) and not place.is_shared for place in places):
        hint = "give {jobs} as 1"
        raise UsageError("memory:// is that of one process", hint=hint, arguments={"jobs": "jobs"})


def beside_url(target: Url) -> Url:
    """Return where the certificate of an object is."""
    return rebuild_url(f"{target}{SUFFIX}", None, False, None)


def release_place(task: Task) -> Path:
    """Return where a release of a photo is, or would be: it may wait here for where it belongs."""
    if task.remote is None:
        return task.output
    with putting(task.remote):
        there = object_status(task.remote) is not None
        there |= not is_whole(task.output) and object_status(beside_url(task.remote)) is not None
    return task.remote if there else task.output


def deliver(task: Task, choices: RunSettings) -> None:
    """Put a release that waits here where it belongs, the certificate first, and remove it here.

    Does nothing for one that stays here. Raises `OutputError`, whose cause is a `FileExistsError` if
    something else is there, which only `force` replaces.
    """
    if task.remote is None or not is_whole(task.output):
        return
    target, beside = task.remote, beside_url(task.remote)
    text, image = read_gathered(certificate_path(task.output), choices), read_gathered(task.output, choices)
    with putting(target):
        if choices.force:  # no old image is seen beside a new certificate
            remove(target)
        # The certificate may be ours, of a run that was killed before it put the image.
        ours = object_status(beside) is not None and contents(beside, MOST_BYTES) == text
        if choices.force or not ours:
            put(beside, text, replace=choices.force)
        put(target, image, replace=choices.force)
    discard(task)


def discard(task: Task) -> None:
    """Remove what waits here, of which there is a release where it belongs."""
    if task.remote is not None:
        task.output.unlink(missing_ok=True)
        certificate_path(task.output).unlink(missing_ok=True)
