"""Shards and Parquet files of a run: releases are gathered in a folder for each, then written as one file.

What a shard already holds is first unpacked into its folder, so that reruns, crashes and payments are those
of a run over folders; the folder is removed once the new shard has its name.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import BinaryIO, Final

from dpveil.batch.choices import Choices
from dpveil.batch.inside import STAGE, Shard
from dpveil.batch.private import check_apart
from dpveil.batch.report import RELEASED, UNTRIED, UNWRITABLE, Entry, Report
from dpveil.batch.tasks import Task
from dpveil.core.certificate import MOST_BYTES
from dpveil.errors import DPVeilError, OutputError
from dpveil.io import is_present, make_folder, most_bytes, received
from dpveil.io.folders import is_folder
from dpveil.io.locking import alone
from dpveil.io.names import shown
from dpveil.io.received import opened
from dpveil.io.refused import Refused
from dpveil.io.writing import refusal
from dpveil.release.saving import SUFFIX, certificate_path, tidy

LOCK: Final = "lock"
WAITING: Final = "releases for {} wait in {} until a run over all of its photos ends"


@dataclass
class Shards:
    """The shards of a run: the places of their photos among the tasks, and the files gathered for each.

    `names` are what these files are called in the shard, in its order; `unpacked` are those that were in it.
    """

    tasks: Sequence[Task]
    choices: Choices
    photos: dict[Shard, list[int]] = field(default_factory=dict)
    names: dict[Shard, dict[Path, str]] = field(default_factory=dict)
    unpacked: dict[Shard, set[Path]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for place, task in enumerate(self.tasks):
            if task.inside is not None:
                self.photos.setdefault(task.inside.shard, []).append(place)
                self.names.setdefault(task.inside.shard, {})[task.output] = task.inside.name
        for task in self.tasks:  # as other photos in the shard may once have let it be called
            if task.inside is not None:
                for former, name in zip(task.elsewhere, task.inside.others, strict=True):
                    self.names[task.inside.shard].setdefault(former, name)

    def unpack(self) -> None:
        """Put what existing shards hold where it is gathered, except what is there already.

        Raises `OutputError` if one holds anything but releases with their certificates, unless all are to be
        released anew, and `UsageError` if one belongs to the ledger.
        """
        if self.choices.ledger is not None:
            check_apart(self.choices.ledger.files, [path for task in self.tasks for path in task.paths])
        for shard in self.photos:
            tidy(shard.folder)
            try:
                if is_present(shard.target):
                    self._unpack(shard)
            except OSError as error:
                raise refusal(shard.folder, error) from error

    def _unpack(self, shard: Shard) -> None:
        if is_folder(shard.target):
            raise OSError(errno.EISDIR, "is a folder")
        most = most_bytes(self.choices.max_pixels)
        try:
            with opened(shard.target) as (file, status):
                for name, image, certificate in shard.archive.releases(file, status.st_size, most):
                    place = shard.place(name)
                    self.names[shard].setdefault(place, name)
                    if not _is_whole(place):
                        make_folder(shard.folder)
                        _put(certificate_path(place), certificate)
                        _put(place, image)
                        self.unpacked.setdefault(shard, set()).add(place)
        except Refused as reason:
            if self.choices.force:
                return
            raise OutputError(
                f"{shown(shard.target)} exists, and is no {shard.archive.called} of releases: it"
                f" {reason.problem}",
                hint="choose another {out}, or {force}, which replaces it",
                arguments={"out": "out", "force": "force=True"},
            ) from reason

    def pack(self, report: Report) -> None:
        """Write every shard whose photos were all tried, and name releases in the report as they are there.

        A shard that cannot be written is noted, and what was gathered for it stays for another run. A dry run
        removes what it unpacked.
        """
        for shard, places in self.photos.items():
            if self.choices.dry:
                self._remove(shard, self.unpacked.get(shard, ()))
                continue
            if any(report.entries[place].status == UNTRIED for place in places):
                if is_present(shard.folder):
                    report.notes.append(WAITING.format(shown(shard.target), shown(shard.folder)))
                continue
            try:
                self._pack(shard, anew=any(report.entries[place].status == RELEASED for place in places))
            except (OSError, DPVeilError) as error:
                told = refusal(shard.target, error) if isinstance(error, OSError) else error
                waiting = WAITING.format(shown(shard.target), shown(shard.folder))
                report.notes.append(f"{told.told(report.options)[0]}; {waiting}")
                report.stopped = report.stopped or UNWRITABLE
                continue
            for place in places:
                report.entries[place] = self._named(report.entries[place], self.tasks[place])

    def _pack(self, shard: Shard, *, anew: bool) -> None:
        """Write a shard, unless it holds what was gathered already, and remove the latter."""
        whole = {place: name for place, name in self.names[shard].items() if _is_whole(place)}
        if whole and (anew or whole.keys() != self.unpacked.get(shard)):
            make_folder(shard.target.parent)
            releases = (
                (name, _held(place, self.choices), _held(certificate_path(place), self.choices))
                for place, name in whole.items()
            )
            _write(shard.folder, shard.target, lambda file: shard.archive.write(file, releases))
        self._remove(shard, whole)

    def _remove(self, shard: Shard, places: Iterable[Path]) -> None:
        for place in places:
            place.unlink()
            certificate_path(place).unlink()
        with suppress(OSError):  # what belongs to no photo any more stays in it
            shard.folder.rmdir()

    def _named(self, entry: Entry, task: Task) -> Entry:
        """Return an entry in which releases are called as in the shard."""
        if task.inside is None:
            return entry
        shard, names = task.inside.shard, self.names[task.inside.shard]
        places = re.compile(f"{re.escape(shown(shard.folder))}/[0-9a-f]+[.]png")

        def within(text: str) -> str:
            found = places.search(text)
            return text if found is None else places.sub(name, text)

        def name(found: re.Match[str]) -> str:
            return shown(f"{shard.target}/{names.get(Path(found[0]), found[0])}")

        failure = entry.failure
        if failure is not None:
            failure = replace(failure, message=within(failure.message), hint=within(failure.hint))
        output = None if entry.output is None else task.inside.target
        return replace(entry, output=output, failure=failure, warnings=tuple(map(within, entry.warnings)))


@contextmanager
def gathered(tasks: Sequence[Task], choices: Choices) -> Iterator[Shards]:
    """Yield the shards of a run, whose folders no other run uses meanwhile; raises `OutputError`.

    A dry run makes no folder: where there is none, nothing is gathered.
    """
    shards = Shards(tasks, choices)
    with ExitStack() as stack:
        for root in sorted({shard.root for shard in shards.photos}):
            if choices.dry and not is_present(root):
                continue
            try:
                stack.callback(_remove, root / STAGE)
                stack.enter_context(alone(root / STAGE / LOCK))
            except OSError as error:
                raise refusal(root, error) from error
        yield shards


def _remove(folder: Path) -> None:
    with suppress(OSError):  # a run that has just begun, or what waits for one
        folder.rmdir()


def _is_whole(place: Path) -> bool:
    return is_present(place) and is_present(certificate_path(place))


def _held(path: Path, choices: Choices) -> bytes:
    """Return the contents of a file that was gathered; raises `OutputError`."""
    try:
        return received(path, MOST_BYTES if path.name.endswith(SUFFIX) else most_bytes(choices.max_pixels))
    except Refused as reason:
        hint = "remove it, or raise {max_pixels} if it was released with more"
        raise OutputError(
            f"{shown(path)} {reason.problem}", hint=hint, arguments={"max_pixels": "max_pixels"}
        ) from reason


def _put(place: Path, contents: bytes) -> None:
    try:
        _write(place.parent, place, lambda made: made.write(contents), flush=False)
    except OSError as error:
        raise refusal(place, error) from error


def _write(folder: Path, target: Path, write: Callable[[BinaryIO], object], *, flush: bool = True) -> None:
    """Write a file under a temporary name in `folder`, and then give it its name; raises `OSError`."""
    temporary = folder / f".dpveil-{secrets.token_hex(8)}.tmp"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    try:
        with os.fdopen(os.open(temporary, flags, 0o666), "wb") as file:
            write(file)
            file.flush()
            if flush:
                os.fsync(file.fileno())
        if target.is_dir():
            raise OSError(errno.EISDIR, "is a folder")
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)
