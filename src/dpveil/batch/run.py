"""Releasing many photos: one bad file does not stop the others, and no photo is paid for twice."""

from __future__ import annotations

import errno
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Protocol

from dpveil.batch.remote_output import deliver, discard, find_finished, matching_certificate
from dpveil.batch.report import RELEASED, SKIPPED, UNPAYABLE, UNWRITABLE, Report, Untried
from dpveil.batch.resume import output_taken
from dpveil.batch.state import Stamp, State
from dpveil.batch.tasks import KEEP, Choices, Task, check_apart
from dpveil.core.certificate import Certificate
from dpveil.errors import DPVeilError, LedgerError, NoRegion, OutputError
from dpveil.io import make_folder
from dpveil.io.folders import identity
from dpveil.io.names import show_path
from dpveil.io.reading import read_metadata
from dpveil.release.plan import Plan, plan
from dpveil.release.saving import Budget, Payment, Release, is_release, tidy


class Around(Protocol):
    """The run around a photo, seen from the process that releases it."""

    def stop_reason(self, task: Task) -> str:
        """Return why the photo must not be drawn any more; an empty text if it may be, and then is."""

    def stop(self, reason: str) -> None:
        """Let no other photo be drawn."""


@dataclass
class Shared:
    """The run itself."""

    reason: str = ""

    def stop_reason(self, task: Task) -> str:
        """Return why nothing is drawn any more, if so."""
        return self.reason

    def stop(self, reason: str) -> None:
        """Let no other photo be drawn; the first reason stays."""
        self.reason = self.reason or reason


ONE_FILE_ONLY: Final = frozenset({errno.ENAMETOOLONG, errno.EEXIST, errno.EISDIR})
"""Errors that affect one output only; the next may still be written."""
ITSELF: Final = (
    "it is a release already, as the certificate beside it says: for its original, the costs of both add"
)
FORGOTTEN: Final = "a rerun will not notice if it is replaced: {}"


@dataclass(frozen=True)
class _Ready:
    plan: Plan
    stamp: Stamp | None
    texts: Mapping[str, str]


@dataclass(frozen=True)
class _Payer:
    """A ledger that notes an output as `paid` once it has debited it, also if its draw fails then."""

    ledger: Budget
    paid: set[Path]
    output: Path

    def debit(self, *given: Any, **more: Any) -> Payment:
        """Debit a release, as `Budget.debit`."""
        payment = self.ledger.debit(*given, **more)
        self.paid.add(self.output)
        return payment


@dataclass
class Run:
    """One run: its settings, the states of its output folders, and the outcomes so far.

    `released` is called with each release, and in a dry run with each plan, without one. `around` is what is
    decided for all photos together, `paid` has the outputs whose draws a ledger paid for, and `folders` what
    each output folder was at its first use.
    """

    choices: Choices
    report: Report
    released: Callable[[Task, Plan, Release | None], None]
    around: Around = field(default_factory=Shared)
    states: dict[Path, State] = field(default_factory=dict)
    paid: set[Path] = field(default_factory=set)
    folders: dict[Path, object] = field(default_factory=dict)

    def begin(self, tasks: Sequence[Task]) -> None:
        """Clean up after killed runs (if not dry), read the folders' states."""
        if self.choices.ledger is not None:
            check_apart(self.choices.ledger.files, [path for task in tasks for path in task.paths])
        for folder in sorted({task.output.parent for task in tasks}):
            if not self.choices.dry:
                tidy(folder)
            state = self.states[folder] = State.read(folder)
            if state.problem:
                self.report.notes.append(f"{state.problem}: inputs that were replaced may go unnoticed")

    def prepare(self, task: Task) -> tuple[Path, Certificate] | _Ready:
        """Return the release of an earlier run with the same settings, or the plan for a new one.

        If the input cannot be inspected, reading it reports the error before the output is considered.
        """
        choices, stamp = self.choices, task.stamp
        if (there := self._there(task, stamp)) is not None:
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
            if_none=KEEP if keeps else choices.if_none,
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
        return _Ready(planned, stamp, texts)

    def _there(self, task: Task, stamp: Stamp | None) -> tuple[Path, Certificate] | None:
        if self.choices.force or stamp is None:
            return None
        return find_finished(task, self.choices, self._state(task), stamp)

    def _state(self, task: Task) -> State:
        """Return the state of the folder of a photo's output, which a worker reads when it needs it."""
        folder = task.output.parent
        if folder not in self.states:
            self.states[folder] = State.read(folder)
        return self.states[folder]

    def turn(self, task: Task, waiting: Callable[[], tuple[Path, Certificate] | _Ready]) -> str:
        """Draw and write one release by its plan, or record that it is there or its error; return why the run
        cannot continue, if so.

        Another run may have released the photo since it was planned, so that is looked for before it is paid.
        """
        choices = self.choices
        try:
            prepared = waiting()
            if isinstance(prepared, _Ready):
                prepared = self._there(task, prepared.stamp) or prepared
            if not isinstance(prepared, _Ready):
                if not choices.dry:
                    deliver(task, choices)
                kept = task.keeps(choices)
                self.report.record_release(SKIPPED, task, *prepared, _notes_on(task), keeps=kept)
            elif choices.dry:
                covered = prepared.plan.coverage
                if choices.ledger is not None and covered is not None and not choices.other_regions:
                    choices.ledger.check_regions(covered)
                self.released(task, prepared.plan, None)
                self.report.price(task, prepared.plan, _notes_on(task), keeps=task.keeps(choices))
            elif reason := self.around.stop_reason(task):
                raise Untried(reason)
            else:
                paying = choices.paying
                if prepared.plan.quote is None and task.keeps(choices):
                    paying = {}  # a page that is kept as it is costs nothing
                elif choices.ledger is not None:
                    paying["ledger"] = _Payer(choices.ledger, self.paid, task.output)
                release = prepared.plan.release(bits=choices.bits(task.name), **paying)
                self._write(task, prepared, release)
        except LedgerError as error:
            self.around.stop(UNPAYABLE)
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

    def stop(self, tasks: Sequence[Task], reason: str, error: DPVeilError | None = None) -> None:
        """Record all photos that were not reached, and why."""
        for task in tasks[len(self.report.entries) :]:
            self.report.fail(task, error or Untried(reason), tried=False)
        self.report.stopped = reason

    def _write(self, task: Task, ready: _Ready, release: Release) -> None:
        if ready.plan.quote is None and task.keeps(self.choices) and task.inside is not None:
            # it waits until another page of its document is known to have a region
            task = replace(task, output=task.inside.shard.place(task.inside.name))
        folder = task.output.parent
        if folder not in self.folders:
            make_folder(folder)
        if self.folders.setdefault(folder, identity(folder)) != identity(folder):  # its disk was unmounted
            problem = f"cannot write {show_path(folder)}: it was removed or replaced since the run began"
            hint = "check that its disk is still there, and run the same command again"
            raise OutputError(problem, hint=hint)
        try:
            self._save(task, ready, release)
        except OutputError as error:
            if self.choices.force or _errno(error) != errno.EEXIST:
                raise
            there = matching_certificate(task, self.choices)
            if there is None:
                raise output_taken(task.output) from error
            discard(task)
            # Another run over the same photos was faster: its release stays, and ours is discarded.
            self.report.record_release(SKIPPED, task, task.output, there, _notes_on(task))
        else:
            self.released(task, ready.plan, release)

    def _save(self, task: Task, ready: _Ready, release: Release) -> None:
        chosen = self.choices
        stated = replace(release.certificate, columns=chosen.columns)
        certificate = replace(release, certificate=stated).write(
            task.output,
            replace=chosen.force or (task.keeps(chosen) and ready.plan.quote is None),
            sign=chosen.sign,
            mark=chosen.mark,
            metadata=ready.texts,
        )
        stored = self._remember(task, certificate, ready.stamp)
        deliver(task, chosen)
        notes = (*release.notes, *_notes_on(task), *stored)
        self.report.record_release(
            RELEASED, task, task.output, certificate, notes, ready.plan.doubtful, keeps=task.keeps(chosen)
        )

    def _remember(self, task: Task, certificate: Certificate, stamp: Stamp | None) -> tuple[str, ...]:
        if certificate.output is None or stamp is None:
            return (FORGOTTEN.format("its file cannot be inspected"),)
        try:
            self._state(task).note_release(certificate.output.sha256, stamp)
        except OSError as error:
            return (FORGOTTEN.format(error.strerror or error),)
        return ()


def _notes_on(task: Task) -> tuple[str, ...]:
    return (ITSELF,) * is_release(task.source)


def _errno(error: OutputError) -> int | None:
    return getattr(error.__cause__, "errno", None)
