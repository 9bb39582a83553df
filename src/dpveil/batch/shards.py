"""Shards, Parquet files and documents of a run: releases are gathered in a folder for each, then written.

What a shard already holds is first unpacked into its folder, so that reruns, crashes and payments are those
of a run over folders; what was packed is removed from it once the new shard has its name. A file beside it
says from which shard it was unpacked, so that none that was put in its place since goes back.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import BinaryIO, Final

from dpveil.batch.archive_inputs import Release, Shard
from dpveil.batch.document import pack, released_pages
from dpveil.batch.remote_output import (
    DRY,
    ORIGIN,
    check,
    empty_folder,
    gather,
    is_whole,
    origin,
    origin_line,
    overwrite_error,
    read_gathered,
    write,
    write_error,
)
from dpveil.batch.report import NO_REGION, RELEASED, SKIPPED, UNTRIED, UNWRITABLE, Entry, Report
from dpveil.batch.resume import is_paid_release
from dpveil.batch.state import Stamp
from dpveil.batch.task import Choices, Task, check_apart
from dpveil.core.urls import Url
from dpveil.errors import DPVeilError, OutputError
from dpveil.io import is_present, make_folder, most_bytes
from dpveil.io.folders import is_folder
from dpveil.io.locking import hold_lock
from dpveil.io.names import show_path
from dpveil.io.unreadable import Refused
from dpveil.io.untrusted import open_untrusted
from dpveil.io.urls import object_status
from dpveil.io.writing import refusal
from dpveil.release.documents import number_of
from dpveil.release.saving import certificate_path, tidy

LOCK: Final = "lock"
WAITING: Final = (
    "{} is not written yet: what is done waits in {} (keep it) until a run over all of its photos ends"
)
LEFT: Final = "not in {}: {}, which this run did not release{}; what was gathered of it stays in {}"
STAYS: Final = "{} stays as it was, with {}, as this run released nothing for it: delete it if need be"
UNPROVEN: Final = ", or find there as released, signed and paid for as it asks"
MOST_NAMED: Final = 3
ALL_OR_NONE: Final = "{} is not written, as {} was not released: a document is all of its pages, or none"
COPIES: Final = (
    "; with {0} others+copy, as --preset scan has it, a page on which nothing is found stays an unprotected"
    " copy, and with {0} others+whole the whole page is replaced"
)
WAITS: Final = "; what is done waits in {} (keep it) for another run"


@dataclass
class Shards:
    """The shards of a run: the places of their photos among the tasks, and the files gathered for each.

    `names` are what these files are called in the shard, in its order; `held` are those that were in it, and
    `unpacked` those of them that are from there; `stamps` are those of the shards that were there.
    """

    tasks: Sequence[Task]
    choices: Choices
    photos: dict[Shard, list[int]] = field(default_factory=dict)
    names: dict[Shard, dict[Path, str]] = field(default_factory=dict)
    held: dict[Shard, set[Path]] = field(default_factory=dict)
    unpacked: dict[Shard, set[Path]] = field(default_factory=dict)
    stamps: dict[Shard, Stamp] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for place, task in enumerate(self.tasks):
            if task.inside is not None and task.shard is not None:
                self.photos.setdefault(task.shard, []).append(place)
                self.names.setdefault(task.shard, {})[task.output] = task.inside.name
        for task in self.tasks:  # as other photos in the shard may once have let it be called
            if task.inside is not None and task.shard is not None:
                for former, name in zip(task.elsewhere, task.inside.others, strict=True):
                    self.names[task.shard].setdefault(former, name)

    def unpack(self) -> None:
        """Put what existing shards hold where it is gathered, except what is there already.

        Raises `OutputError` if one holds anything but images with certificates that state their hashes,
        unless all are to be released anew, or has taken the place of the one from which what waits was
        unpacked, and holds another release; and `UsageError` if one belongs to the ledger, or a file lacks a
        column that is to be kept.
        """
        if self.choices.ledger is not None:
            check_apart(self.choices.ledger.files, [path for task in self.tasks for path in task.paths])
        for shard in self.photos if self.choices.columns else ():
            with suppress(Refused):  # a file that cannot be read is reported with its photos
                shard.archive.columns(shard.path, shard.stamp, self.choices.columns)
        for shard in self.photos:
            tidy(shard.folder)
            try:
                if origin(shard.folder).endswith(DRY):  # a dry run was killed: it unpacked all that is there
                    empty_folder(shard.folder)
                if is_present(shard.target):
                    self._unpack(shard)
                elif shard.scan is not None and not self.choices.force:
                    check_gone(shard)
            except OSError as error:
                raise refusal(shard.folder, error) from error

    def _unpack(self, shard: Shard) -> None:
        if is_folder(shard.target):
            raise OSError(errno.EISDIR, "is a folder")
        most = most_bytes(self.choices.max_pixels)
        try:
            with open_untrusted(shard.target) as (file, status):
                size, stamp = status.st_size, (status.st_size, status.st_mtime_ns)
                self.stamps[shard] = stamp
                for take in (self._compare, self._put):
                    take(shard, releases_in(shard, [*self.names[shard].values()], file, size, most), stamp)
        except Refused as reason:
            if self.choices.force:
                return
            raise OutputError(
                f"{show_path(shard.target)} exists, and is no {shard.kind_name} of"
                f" releases: it {reason.problem}",
                hint="choose another {out}, or {force}, which replaces it",
                arguments={"out": "out", "force": "force=True"},
            ) from reason

    def _compare(self, shard: Shard, releases: Iterable[Release], stamp: Stamp) -> None:
        """Refuse a shard of which a release is none, or another than the one that waits in the folder.

        If that was unpacked from this very shard, it is newer, and stays.
        """
        newer = origin(shard.folder) == origin_line(stamp)
        for name, image, certificate in releases:
            check(name, image, certificate)
            place = shard.place(name)
            if newer or not is_whole(place):
                continue
            waiting = (
                read_gathered(place, self.choices),
                read_gathered(certificate_path(place), self.choices),
            )
            if waiting != (image, certificate):
                raise OutputError(
                    f"{show_path(shard.target)} holds another {show_path(name)} than what waits for it in"
                    f" {show_path(shard.folder)}",
                    hint="move one of the two elsewhere, or choose another {out}",
                    arguments={"out": "out"},
                )

    def _put(self, shard: Shard, releases: Iterable[Release], stamp: Stamp) -> None:
        make_folder(shard.folder)
        dry = f" {DRY}" if self.choices.dry and not any(shard.folder.iterdir()) else ""
        gather(shard.folder / ORIGIN, f"{origin_line(stamp)}{dry}".encode())
        for name, image, certificate in releases:
            place = shard.place(name)
            self.names[shard].setdefault(place, name)
            self.held.setdefault(shard, set()).add(place)
            if not is_whole(place):
                gather(certificate_path(place), certificate)
                gather(place, image)
                self.unpacked.setdefault(shard, set()).add(place)

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
                    report.notes.append(WAITING.format(show_path(shard.target), show_path(shard.folder)))
                self._name(report, shard, waits=shard.scan is not None)
                continue
            if unreleased := lacking(shard, [report.entries[n] for n in places], report.options):
                report.notes.append(unreleased)
                self._name(report, shard, waits=True)
                continue
            try:
                notes, said = self._pack(shard, {self.tasks[n].output: report.entries[n] for n in places})
                report.notes += notes
                report.documents += [f"{show_path(shard.target)}: {said}"] * bool(said)
            except (OSError, DPVeilError) as error:
                why = refusal(shard.target, error) if isinstance(error, OSError) else error
                waiting = WAITING.format(show_path(shard.target), show_path(shard.folder))
                report.notes.append(f"{why.message_and_hint(report.options)[0]}; {waiting}")
                report.stopped = report.stopped or UNWRITABLE
                self._name(report, shard, waits=shard.scan is not None)
                continue
            self._name(report, shard)

    def _pack(self, shard: Shard, entries: dict[Path, Entry]) -> tuple[list[str], str]:
        """Write a shard if anything in it is new, and remove what it holds from where it was gathered.

        Returns what to note: of the rest, which stays there, and of a shard that stays although all of it was
        to be released anew; and what a document that was written promises.
        """
        whole = {place: name for place, name in self.names[shard].items() if is_whole(place)}
        good = {place: name for place, name in whole.items() if self._belongs(shard, place, entries)}
        unpacked = self.unpacked.get(shard, set())
        drawn = {place for place, entry in entries.items() if entry.status == RELEASED}
        stay, said = set[Path](), ""
        if good.keys() - (unpacked - drawn):
            if not isinstance(shard.target, Url):
                make_folder(shard.target.parent)
            said = write_releases(shard, good, self.choices, over=self._replaces(shard))
            rest = whole.keys() - good.keys()
        else:  # the shard stays, with all that it holds
            rest = whole.keys() - good.keys() - unpacked
            stay = unpacked - good.keys() if self.choices.force else stay
        self._remove(shard, whole.keys() - rest)
        target, folder = show_path(shard.target), show_path(shard.folder)
        why = "" if self.choices.force else UNPROVEN
        notes = [LEFT.format(target, _names_text(whole, rest), why, folder)] if rest else []
        return [*notes, *[STAYS.format(target, _names_text(whole, stay))] * bool(stay)], said

    def _name(self, report: Report, shard: Shard, *, waits: bool = False) -> None:
        """Name releases in a report as they are in the shard, or as what `waits` for a document."""
        for place in self.photos[shard]:
            entry, task = report.entries[place], self.tasks[place]
            report.entries[place] = name_entry(entry, task, self.names[shard], waits=waits)

    def _replaces(self, shard: Shard) -> bool:
        """Whether a shard takes the place of one; by URL, only of the very one that was unpacked.

        Raises `OutputError` if that is another now.
        """
        if self.choices.force or not isinstance(shard.target, Url):
            return True
        before = self.stamps.get(shard)
        try:
            now = object_status(shard.target)
        except Refused as reason:
            raise write_error(shard.target, reason) from reason
        if before is not None and now not in (None, before):
            raise overwrite_error(shard.target)
        return before is not None and now is not None

    def _belongs(self, shard: Shard, place: Path, entries: dict[Path, Entry]) -> bool:
        """Whether a release is of this run, or found by it; or was in the shard and was paid for.

        The latter is of a photo that failed, or has left; none is kept if all are to be released anew.
        """
        if place in entries and entries[place].status in (RELEASED, SKIPPED):
            return True
        held = place in self.held.get(shard, ())
        return held and not self.choices.force and is_paid_release(place, self.choices)

    def _remove(self, shard: Shard, places: Iterable[Path]) -> None:
        for place in places:
            place.unlink()
            certificate_path(place).unlink()
        with suppress(OSError):  # there may be none, and what belongs to no photo stays in it
            if [path.name for path in shard.folder.iterdir()] == [ORIGIN]:
                empty_folder(shard.folder)
            shard.folder.rmdir()


@contextmanager
def gather_shards(tasks: Sequence[Task], choices: Choices) -> Iterator[Shards]:
    """Yield the shards of a run, whose folders no other run uses meanwhile; raises `OutputError`.

    A dry run makes no folder: where there is none, nothing is gathered.
    """
    shards = Shards(tasks, choices)
    with ExitStack() as stack:
        for stage in sorted({shard.stage for shard in shards.photos}):
            if choices.dry and not is_present(stage.parent):
                continue
            try:
                stack.callback(_remove, stage)
                stack.enter_context(hold_lock(stage / LOCK))
            except OSError as error:
                raise refusal(stage.parent, error) from error
        yield shards


def _names_text(names: dict[Path, str], places: Collection[Path]) -> str:
    """Return the first of these names, and how many more there are."""
    told = [show_path(name) for place, name in names.items() if place in places]
    more = f" and {len(told) - MOST_NAMED} more" if len(told) > MOST_NAMED else ""
    return ", ".join(told[:MOST_NAMED]) + more


def _remove(folder: Path) -> None:
    with suppress(OSError):  # a run that has just begun, or what waits for one
        folder.rmdir()


def releases_in(
    shard: Shard, names: Sequence[str], file: BinaryIO, size: int, most: int
) -> Iterator[Release]:
    """Yield what is in a shard or document that was written before, of the size; raises `Refused`.

    A document has to have the pages with these names, and no other.
    """
    if shard.scan is None:
        yield from shard.archive.releases(file, size, most)
    else:
        yield from released_pages(shard.target, shard.scan.dpi, [number_of(name) for name in names], most)


def check_gone(shard: Shard) -> None:
    """Raise `OutputError` if there is a certificate without its document, of which no page waits."""
    if is_present(certificate_path(shard.target)) and not any(shard.folder.glob("*.png")):
        raise OutputError(
            f"{show_path(shard.target)} is gone and its certificate is still there, so"
            " it was released before",
            hint="bring it back, or choose another {out}; or {force}, which makes another",
            arguments={"out": "out", "force": "force=True"},
        )


def lacking(shard: Shard, entries: Sequence[Entry], options: Mapping[str, str]) -> str:
    """Return why a document is not written, if a page of it was not released; else an empty text.

    `options` are a command line's names of arguments.
    """
    bad = [entry for entry in entries if entry.status not in (RELEASED, SKIPPED)]
    if shard.scan is None or not bad:
        return ""
    words = ALL_OR_NONE.format(show_path(shard.target), show_path(bad[0].source))
    if any(entry.status == NO_REGION for entry in bad):
        words += COPIES.format(options.get("if_none", "if_none"))
    return words if len(bad) == len(entries) else words + WAITS.format(show_path(shard.folder))


def name_entry(entry: Entry, task: Task, names: Mapping[Path, str], *, waits: bool = False) -> Entry:
    """Return an entry in which releases are called as in their shard, and a page as its document.

    A page that `waits` for a document, which is not written, has no output.
    """
    if task.inside is None or task.shard is None:
        return entry
    shard = task.shard
    places = re.compile(f"{re.escape(show_path(shard.folder))}/[0-9a-f]+[.][A-Za-z]+")

    def name(found: re.Match[str]) -> str:
        if shard.scan is not None:
            there = is_present(shard.target)
            return show_path(shard.target) if there else f"a page that waits for {show_path(shard.target)}"
        return show_path(f"{shard.target}/{names.get(Path(found[0]), found[0])}")

    failure = entry.failure
    if failure is not None:
        failure = replace(
            failure, message=places.sub(name, failure.message), hint=places.sub(name, failure.hint)
        )
    output = None if entry.output is None or waits else task.inside.target
    warnings = tuple(
        text if places.search(text) is None else places.sub(name, text) for text in entry.warnings
    )
    beside = None if waits else task.inside.certificate
    return replace(entry, output=output, failure=failure, warnings=warnings, certificate=beside)


def write_releases(shard: Shard, releases: Mapping[Path, str], choices: Choices, *, over: bool) -> str:
    """Write a shard or document of releases, which are at these places and have these names.

    Returns what the pages of a document promise together. A shard by URL takes the place of one only if it
    may be put `over` it. Raises `OSError` and `OutputError`.
    """
    read = partial(read_gathered, choices=choices)
    if shard.scan is not None:
        pages = [
            (number_of(name), partial(read, place), partial(read, certificate_path(place)))
            for place, name in releases.items()
        ]
        return pack(shard.folder, shard.target, shard.scan.dpi, pages, choices.sign)
    all_of = ((name, read(place), read(certificate_path(place))) for place, name in releases.items())
    columns = None
    try:
        if choices.columns:
            columns = shard.archive.columns(shard.path, shard.stamp, choices.columns)
        write(
            shard.folder, shard.target, lambda file: shard.archive.write(file, all_of, columns), replace=over
        )
    except Refused as reason:
        raise OutputError(f"{show_path(shard.path)} {reason.problem}", hint=reason.remedy) from reason
    return ""
