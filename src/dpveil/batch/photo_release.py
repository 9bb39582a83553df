"""Releasing one photo of a run: looked for, planned, paid, drawn, written and reported, or only priced.

One bad file does not stop the others, and no photo is paid for twice. The same code runs in the process of
the run and in its workers.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from dpveil.batch.remote_output import deliver, discard, release_place
from dpveil.batch.report import RELEASED, SKIPPED, UNPAYABLE, UNWRITABLE, Report, Untried
from dpveil.batch.resume import find_finished, matching_certificate, output_taken
from dpveil.batch.state import Stamp, State
from dpveil.batch.tasks import KEEP_PAGES, RunSettings, Task
from dpveil.core.certificate import Certificate
from dpveil.errors import DPVeilError, LedgerError, NoRegion, OutputError
from dpveil.io.reading import read_metadata
from dpveil.io.writing import make_folder
from dpveil.release.plan import Budget, Plan, plan
from dpveil.release.saving import Payment, Release, remove_leftovers

ONE_FILE_ONLY: Final = frozenset({errno.ENAMETOOLONG, errno.EEXIST, errno.EISDIR})
"""Errors that affect one output only; the next may still be written."""
FORGOTTEN: Final = "a rerun will not notice if it is replaced: {}"


@dataclass(frozen=True)
class PlannedPhoto:
    """A photo that is not released yet: its plan, its file's stamp, and the texts that are kept of it."""

    plan: Plan
    stamp: Stamp | None
    texts: Mapping[str, str]


Prepared = tuple[Path, Certificate] | PlannedPhoto
"""A release of an earlier run with the same settings, or what is to be released."""


@dataclass(frozen=True)
class _NotingLedger:
    """A ledger that notes an output as `paid` once it has debited it, also if its draw fails then."""

    ledger: Budget
    paid: set[Path]
    output: Path

    def debit(self, *given: Any, **more: Any) -> Payment:
        payment = self.ledger.debit(*given, **more)
        self.paid.add(self.output)
        return payment


@dataclass
class PhotoReleaser:
    """Releases the photos of a run: its settings, the states of its output folders, and the outcomes so far.

    `released` is called with each release, and in a dry run with each plan, without one. `stop_reason` says
    why a photo must not be drawn any more, by an empty text that it may be, and then it is. `paid` has the
    outputs whose draws a ledger paid for.
    """

    choices: RunSettings
    report: Report
    released: Callable[[Task, Plan, Release | None], None]
    stop_reason: Callable[[Task], str] = lambda _: ""
    states: dict[Path, State] = field(default_factory=dict)
    paid: set[Path] = field(default_factory=set)

    def begin(self, tasks: Sequence[Task]) -> None:
        """Clean up after killed runs (if not dry), read the folders' states."""
        for folder in sorted({task.output.parent for task in tasks}):
            if not self.choices.dry:
                remove_leftovers(folder)
            state = self.states[folder] = State.read(folder)
            if state.problem:
                self.report.notes.append(f"{state.problem}: inputs that were replaced may go unnoticed")

    def prepare(self, task: Task) -> Prepared:
        """Return the release of an earlier run with the same settings, or the plan for a new one."""
        choices, stamp = self.choices, task.stamp
        if (there := self._find_finished(task, stamp)) is not None:
            return there
        photo = task.read(choices.max_pixels, choices.trust_source)
        texts = {}
        if choices.metadata:
            texts = read_metadata(task.source, choices.metadata, max_pixels=choices.max_pixels)
        keeps = task.keeps(choices)
        planned = plan(
            photo,
            choices.method,
            regions=choices.regions,
            if_none=KEEP_PAGES if keeps else choices.if_none,
            post_processing=choices.post_processing,
        )
        if not (keeps and planned.quote is None):
            planned.check_strength(choices.at_least)
        else:
            try:  # a page is kept where nothing is found, not where all that was found is to stay
                plan(photo, choices.method, regions=choices.regions)
            except NoRegion as error:
                if error.all_stay:
                    raise
        return PlannedPhoto(planned, stamp, texts)

    def find_release(self, task: Task) -> tuple[Path, Certificate] | None:
        """Return the release of a photo whose worker has died, if it was written before."""
        if self.choices.force:  # what is there may be an older one
            return None
        with suppress(DPVeilError):
            return find_finished(task, self.choices, self._state(task), task.stamp)
        return None

    def _find_finished(self, task: Task, stamp: Stamp | None) -> tuple[Path, Certificate] | None:
        # An input that cannot be inspected has no stamp: reading it tells why, before its output matters.
        if self.choices.force or stamp is None:
            return None
        return find_finished(task, self.choices, self._state(task), stamp)

    def _state(self, task: Task) -> State:
        return self.states[task.output.parent]

    def finish(self, task: Task, waiting: Callable[[], Prepared]) -> str:
        """Draw and write a release, or record its error, or that it is there; return what ends the run."""
        choices = self.choices
        try:
            if task.output.suffix.lower() in (".jpg", ".jpeg") and not choices.dry:
                from dpveil.io.jpeg import library

                library()  # while another thread reads and plans the photo
            prepared = waiting()
            if isinstance(prepared, PlannedPhoto):
                # Another run may have released the photo since: looked for before anything is paid.
                prepared = self._find_finished(task, prepared.stamp) or prepared
            if not isinstance(prepared, PlannedPhoto):
                if not choices.dry:
                    deliver(task, choices)
                self._record(SKIPPED, task, *prepared)
            elif choices.dry:
                covered = prepared.plan.coverage
                if choices.ledger is not None and covered is not None and not choices.other_regions:
                    choices.ledger.check_regions(covered)
                self.released(task, prepared.plan, None)
                self.report.price(task, prepared.plan, keeps=task.keeps(choices))
            elif reason := self.stop_reason(task):
                raise Untried(reason)
            else:
                self._write(task, prepared, self._draw(task, prepared.plan))
        except LedgerError as error:
            self.report.fail(task, error)
            return UNPAYABLE
        except Untried as error:
            self.report.fail(task, error, tried=False)
            return error.reason
        except OutputError as error:
            self.report.fail(task, error)
            return "" if _errno(error) in ONE_FILE_ONLY else UNWRITABLE
        except Exception as error:  # noqa: BLE001  one photo must not stop the rest, and nothing was written
            self.report.fail(task, error)
        return ""

    def _draw(self, task: Task, planned: Plan) -> Release:
        choices, paying = self.choices, self.choices.paying
        if planned.quote is None and task.keeps(choices):
            paying = {}  # a page that is kept as it is costs nothing
        elif choices.ledger is not None:
            paying["ledger"] = _NotingLedger(choices.ledger, self.paid, task.output)
        return planned.release(bits=choices.bits(task.name), **paying)

    def _record(self, status: str, task: Task, output: Path, certificate: Certificate, **more: Any) -> None:
        keeps = task.keeps(self.choices)
        self.report.record_release(status, task, output, certificate, keeps=keeps, **more)

    def _write(self, task: Task, photo: PlannedPhoto, release: Release) -> None:
        make_folder(task.output.parent)
        try:
            self._save(task, photo, release)
        except OutputError as error:
            if self.choices.force or _errno(error) != errno.EEXIST:
                raise
            there = matching_certificate(release_place(task), self.choices)
            if there is None:
                raise output_taken(task.output) from error
            discard(task)
            # Another run over the same photos was faster: its release stays, and ours is discarded.
            self._record(SKIPPED, task, task.output, there)
        else:
            self.released(task, photo.plan, release)

    def _save(self, task: Task, photo: PlannedPhoto, release: Release) -> None:
        chosen = self.choices
        stated = replace(release.certificate, columns=chosen.columns)
        certificate = replace(release, certificate=stated).write(
            task.output,
            replace=chosen.force or (task.keeps(chosen) and photo.plan.quote is None),
            sign=chosen.sign,
            mark=chosen.mark,
            metadata=photo.texts,
        )
        notes = [*release.notes]
        try:
            if certificate.output is None or photo.stamp is None:
                notes.append(FORGOTTEN.format("its file cannot be inspected"))
            else:
                self._state(task).note_release(certificate.output.sha256, photo.stamp)
        except OSError as error:
            notes.append(FORGOTTEN.format(error.strerror or error))
        deliver(task, chosen)
        told = {"warnings": notes, "left": photo.plan.doubtful}
        self._record(RELEASED, task, task.output, certificate, **told)


def _errno(error: OutputError) -> int | None:
    return getattr(error.__cause__, "errno", None)
