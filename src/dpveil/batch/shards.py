"""Shards, Parquet files and documents of a run: releases are gathered in a folder for each, then written.

What a shard already holds is first unpacked into its folder, so that reruns, crashes and payments are those
of a run over folders; what was packed is removed from it once the new shard has its name.
"""

from __future__ import annotations

import errno
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from dpveil.batch.archive_inputs import Shard
from dpveil.batch.remote_output import is_whole, read_gathered, write
from dpveil.batch.report import FAILED, NO_REGION, RELEASED, SKIPPED, UNTRIED, UNWRITABLE, Entry, Report
from dpveil.batch.resume import output_taken
from dpveil.batch.tasks import RunSettings, Task
from dpveil.core.certificate import parse_certificate
from dpveil.core.envelope import MOST_BYTES
from dpveil.core.urls import Url
from dpveil.errors import CertificateError, DPVeilError, NoRegion, OutputError
from dpveil.io.folders import is_folder
from dpveil.io.locking import hold_lock
from dpveil.io.names import show_path
from dpveil.io.reading import most_bytes
from dpveil.io.unreadable import Refused
from dpveil.io.untrusted_files import is_present, open_untrusted
from dpveil.io.writing import as_output_error, make_folder, write_error
from dpveil.regions.other_finders import ARGUMENTS as WITHOUT
from dpveil.regions.other_finders import NOTHING_FOUND_HINT
from dpveil.release.saving import certificate_path, remove_leftovers

LOCK: Final = "lock"
WAITING: Final = (
    "{} is not written yet: what is done waits in {} (keep it) until a run over all of its photos ends"
)
ALL_OR_NONE: Final = "{} is not written, as {} was not released: a document is all of its pages, or none"
WAITS: Final = "; what is done waits in {} (keep it) for another run"


@dataclass
class Shards:
    """The shards of a run: the places of their photos among the tasks, and the files gathered for each.

    `names` are what these files are called in the shard, in its order; `held` are those that were in it, and
    `unpacked` those of them that are from there.
    """

    tasks: Sequence[Task]
    choices: RunSettings
    photos: dict[Shard, list[int]] = field(default_factory=dict)
    names: dict[Shard, dict[Path, str]] = field(default_factory=dict)
    held: set[Path] = field(default_factory=set)
    unpacked: set[Path] = field(default_factory=set)

    def __post_init__(self) -> None:
        for place, task in enumerate(self.tasks):
            if task.inside is not None:
                self.photos.setdefault(task.inside.shard, []).append(place)
                self.names.setdefault(task.inside.shard, {})[task.output] = task.inside.name

    def unpack(self) -> None:
        """Put what existing shards hold where it is gathered, except what is there already.

        Raises `OutputError` if one holds anything but images with certificates that state their hashes, or
        another release than what waits, unless all are to be released anew; and `UsageError` if a file
        lacks a column that is to be kept.
        """
        for shard in self.photos if self.choices.columns else ():
            with suppress(Refused):  # a file that cannot be read is reported with its photos
                shard.archive.columns(shard.path, shard.stamp, self.choices.columns)
        for shard in self.photos:
            remove_leftovers(shard.folder)
            beside = certificate_path(shard.target)  # as there is beside a document
            if self.choices.force:  # it is replaced, with all that it holds
                continue
            if is_present(shard.target):
                with as_output_error(shard.folder):
                    self._unpack(shard)
            elif is_present(beside) and not any(shard.folder.glob("*.png")):
                raise output_taken(shard.target)

    def _unpack(self, shard: Shard) -> None:
        if is_folder(shard.target):
            raise OSError(errno.EISDIR, "is a folder")
        try:
            if shard.scan is not None:  # its pages are looked up in its certificate
                from dpveil.batch.released_pdf import check_document
                from dpveil.release.document_certificate import number_of

                numbers = [number_of(name) for name in self.names[shard].values()]
                check_document(shard.target, shard.scan.dpi, numbers)
                return
            for gather in (False, True):  # nothing is unpacked of what is no file of releases
                for name, image, certificate in self._releases_in(shard):
                    place = shard.place(name)
                    if not gather:
                        self._check(shard, name, image, certificate)
                        continue
                    make_folder(shard.folder)
                    self.names[shard].setdefault(place, name)
                    self.held.add(place)
                    if not is_whole(place):
                        for path, data in ((certificate_path(place), certificate), (place, image)):
                            write(shard.folder, path, data, flush=False)
                        self.unpacked.add(place)
        except Refused as reason:
            called = shard.archive.called if shard.scan is None else "PDF"
            raise OutputError(
                f"{show_path(shard.target)} exists, and is no {called} of releases: it {reason.problem}",
                hint="choose another {out}, or {force}, which replaces it",
                arguments={"out": "out", "force": "force=True"},
            ) from reason

    def _releases_in(self, shard: Shard) -> Iterator[tuple[str, bytes, bytes]]:
        """Yield what is in a file that was written before; raises `Refused`."""
        most = most_bytes(self.choices.max_pixels)
        with open_untrusted(shard.target) as (file, status):
            for held in shard.archive.held(file, status.st_size):
                if held.problem or held.image is None or held.certificate is None:
                    problem = held.problem or "has no certificate, or no image"
                    raise Refused(f"holds {show_path(held.name)}, which {problem}", "")
                yield held.name, held.image(most), held.certificate(MOST_BYTES)

    def _check(self, shard: Shard, name: str, image: bytes, certificate: bytes) -> None:
        try:
            stated = parse_certificate(certificate.decode())
        except (CertificateError, UnicodeDecodeError) as error:
            raise Refused(f"holds {show_path(name)} without a certificate that can be read", "") from error
        if stated.output is None or stated.output.sha256 != sha256(image).hexdigest():
            raise Refused(f"holds another {show_path(name)} than its certificate states", "")
        if stated.columns != self.choices.columns:
            raise Refused(f"holds {show_path(name)}, beside which other columns are kept", "")
        place = shard.place(name)
        both = place, certificate_path(place)
        waiting = [read_gathered(path, self.choices) for path in both] if is_whole(place) else []
        if waiting and waiting != [image, certificate]:  # one of them would be lost, and was paid for
            raise OutputError(
                f"{show_path(shard.target)} holds another {show_path(name)} than what waits for it in"
                f" {show_path(shard.folder)}",
                hint="move one of the two elsewhere, or choose another {out}",
                arguments={"out": "out"},
            )

    def keep_pages(self, report: Report) -> None:
        """Keep the pages of documents on which nothing was found, or refuse those without a region anywhere.

        Kept pages wait where releases are gathered until it is known that another page is protected.
        """
        for shard, places in self.photos.items():
            entries = [report.entries[place] for place in places]
            protected = any(each.promise is not None and each.promise.total is not None for each in entries)
            if protected or not self.tasks[places[0]].keeps(self.choices):
                continue
            for place in (place for place in places if report.entries[place].kept):
                entry, waits = report.entries[place], self.tasks[place].output
                if not self.choices.dry:
                    waits.unlink(missing_ok=True)
                    certificate_path(waits).unlink(missing_ok=True)
                why = f"{entry.kept} was found, and no other page is protected"
                error = NoRegion(why, hint=NOTHING_FOUND_HINT, arguments=WITHOUT)
                report.entries[place] = entry.refused(error, report.options)
            if not self.choices.dry:
                self._remove(shard, ())

    def pack(self, report: Report) -> None:
        """Write every shard whose photos were all tried, and name releases in the report as they are there.

        A shard that cannot be written is noted, and what was gathered for it stays for another run. A dry run
        removes what it unpacked.
        """
        for shard, places in self.photos.items():
            entries = {self.tasks[place].output: report.entries[place] for place in places}
            bad = [each for each in entries.values() if each.status not in (RELEASED, SKIPPED)]
            waits = shard.scan is not None
            if self.choices.dry:
                self._remove(shard, self.unpacked & self.names[shard].keys())
                continue
            statuses = {entry.status for entry in entries.values()}
            # With --force nothing of an older shard is kept: it stays whole where a photo was not released.
            older = self.choices.force and shard.scan is None and is_present(shard.target)
            if UNTRIED in statuses or (older and statuses & {FAILED, NO_REGION}):
                if is_present(shard.folder):
                    report.notes.append(WAITING.format(show_path(shard.target), show_path(shard.folder)))
            elif bad and shard.scan is not None:
                words = ALL_OR_NONE.format(show_path(shard.target), show_path(bad[0].source))
                words += "" if len(bad) == len(entries) else WAITS.format(show_path(shard.folder))
                report.notes.append(words)
            else:
                try:
                    if said := self._pack(shard, entries):
                        report.documents.append(f"{show_path(shard.target)}: {said}")
                    waits = False
                except (OSError, DPVeilError) as error:
                    why = write_error(shard.target, error) if isinstance(error, OSError) else error
                    waiting = WAITING.format(show_path(shard.target), show_path(shard.folder))
                    report.notes.append(f"{why.message_and_hint(report.options)[0]}; {waiting}")
                    report.stopped = report.stopped or UNWRITABLE
            for place in places:
                report.entries[place] = _name_entry(report.entries[place], self.tasks[place], waits=waits)

    def _pack(self, shard: Shard, entries: dict[Path, Entry]) -> str:
        """Write a shard if anything in it is new; return what a document that was written promises.

        It holds what this run released or found, and what it held before, as of photos that failed or have
        left, unless all was to be released anew.
        """
        found = {place for place, entry in entries.items() if entry.status in (RELEASED, SKIPPED)}
        drawn = {place for place, entry in entries.items() if entry.status == RELEASED}
        if shard.scan is not None and not drawn and is_present(shard.target):
            self._remove(shard, filter(is_whole, self.names[shard]))
            return ""
        good = {
            place: name
            for place, name in self.names[shard].items()
            if is_whole(place) and (place in found or place in self.held)
        }
        said = ""
        if good.keys() - (self.unpacked - drawn):
            if not isinstance(shard.target, Url):
                make_folder(shard.target.parent)
            said = self._write(shard, good)
        self._remove(shard, good)
        return said

    def _write(self, shard: Shard, releases: dict[Path, str]) -> str:
        read = partial(read_gathered, choices=self.choices)
        if shard.scan is not None:
            from dpveil.batch.released_pdf import pack
            from dpveil.release.document_certificate import number_of

            pages = [
                (number_of(name), partial(read, place), partial(read, certificate_path(place)))
                for place, name in releases.items()
            ]
            return pack(shard.folder, shard.target, shard.scan.dpi, pages, self.choices.sign)
        every = ((name, read(place), read(certificate_path(place))) for place, name in releases.items())
        columns: Any = None
        try:
            if self.choices.columns:
                columns = shard.archive.columns(shard.path, shard.stamp, self.choices.columns)
            # By URL, it takes the place of one that was unpacked alone: another may have been put meanwhile.
            over = self.choices.force or bool(self.held & self.names[shard].keys())
            fill = partial(shard.archive.write, releases=every, columns=columns)
            write(shard.folder, shard.target, fill, replace=over)
        except Refused as reason:
            raise OutputError(f"{show_path(shard.path)} {reason.problem}", hint=reason.remedy) from reason
        return ""

    def _remove(self, shard: Shard, places: Iterable[Path]) -> None:
        for place in places:
            place.unlink()
            certificate_path(place).unlink()
        _remove_if_empty(shard.folder)


@contextmanager
def gather_shards(tasks: Sequence[Task], choices: RunSettings) -> Iterator[Shards]:
    """Yield the shards of a run, whose folders no other run uses meanwhile; raises `OutputError`.

    A dry run makes no folder: where there is none, nothing is gathered.
    """
    shards = Shards(tasks, choices)
    with ExitStack() as stack:
        for stage in sorted({shard.stage for shard in shards.photos}):
            if choices.dry and not is_present(stage.parent):
                continue
            with as_output_error(stage.parent):
                stack.callback(_remove_if_empty, stage)
                stack.enter_context(hold_lock(stage / LOCK))
        yield shards


def _remove_if_empty(folder: Path) -> None:
    with suppress(OSError):  # there is none, or it holds another run's lock, or what waits for one
        folder.rmdir()


def _name_entry(entry: Entry, task: Task, *, waits: bool) -> Entry:
    """Return an entry in which the release is called as in its shard, and a page as its document.

    A page that `waits` for a document, which is not written, has no output.
    """
    inside = task.inside
    if inside is None:
        return entry
    failure, here, there = entry.failure, show_path(task.output), show_path(inside.target)
    if failure is not None:
        message, hint = failure.message.replace(here, there), failure.hint.replace(here, there)
        failure = replace(failure, message=message, hint=hint)
    output = None if entry.output is None or waits else inside.target
    beside = None if waits or inside.shard.scan is None else certificate_path(inside.target)
    return replace(entry, output=output, failure=failure, certificate=beside)
