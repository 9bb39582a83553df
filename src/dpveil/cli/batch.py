"""Releasing many photos: one bad file never stops the rest, and nothing is paid for twice."""

from __future__ import annotations

import errno
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any, Final

from dpveil.cli import exits, say
from dpveil.cli.inputs import Task, identity
from dpveil.cli.prefetch import prefetch
from dpveil.core.numbers import Json
from dpveil.errors import BudgetExceeded, DPVeilError, NoRegion, OutputError, PhotoError
from dpveil.io import make_folder, read, sole_writer
from dpveil.io.names import shown
from dpveil.mechanisms.method import Method
from dpveil.noise.bits import SECURE, SEEDED, BitSource, SecureBits, SeededBits
from dpveil.postprocessing import Step
from dpveil.regions import Finder
from dpveil.release.plan import Plan, plan
from dpveil.release.saving import Release, certificate_path, tidy
from dpveil.release.verification import verify

ONE_FILE_ONLY: Final = frozenset({errno.ENAMETOOLONG, errno.EEXIST, errno.EISDIR})
"""Why one output cannot be written although the next one can."""


@dataclass(frozen=True)
class Choices:
    """Everything that is the same for all photos of a run."""

    method: Method
    regions: Sequence[Finder]
    if_none: str | None
    seed: int | None
    max_pixels: int
    force: bool
    post_processing: Sequence[Step] = ()

    def bits(self, name: str) -> BitSource:
        """Return the bit source for the photo that is written to `name`."""
        return SecureBits() if self.seed is None else SeededBits(self.seed, name)

    @property
    def settings(self) -> dict[str, Json]:
        """Return what the certificate of a finished release says was chosen."""
        return {
            "method": self.method.name,
            "parameters": self.method.parameters(),
            "request": [finder.description for finder in self.regions],
            "post_processing": [step.description for step in self.post_processing],
            "bits": SECURE if self.seed is None else SEEDED,
        }


@dataclass
class Report:
    """What became of every input: each is in exactly one of the four lists."""

    released: list[dict[str, str]] = field(default_factory=list)
    failed: list[dict[str, str]] = field(default_factory=list)
    skipped: list[dict[str, str]] = field(default_factory=list)
    no_region: list[dict[str, str]] = field(default_factory=list)
    promises: dict[str, str] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    errors: list[type[BaseException]] = field(default_factory=list)
    untried: int = 0
    stopped: int | None = None
    folders: dict[Path, object] = field(default_factory=dict)

    def fail(self, task: Task, error: BaseException) -> None:
        """Note that nothing was written for this photo, and why."""
        self.errors.append(type(error))
        error.__traceback__ = None  # its frames would hold the photo as long as something holds the error
        known = isinstance(error, DPVeilError)
        message = error.message if isinstance(error, DPVeilError) else say.one_line(error)
        hint = (
            error.hint if isinstance(error, DPVeilError) else "nothing was written for it; please report this"
        )
        entry = {"input": str(task.source), "error": message, "hint": hint}
        (self.no_region if known and isinstance(error, NoRegion) else self.failed).append(entry)

    def to_json(self) -> dict[str, list[dict[str, str]]]:
        """Return the JSON document of a run."""
        return {name: getattr(self, name) for name in ("released", "failed", "skipped", "no_region")}

    @property
    def count(self) -> int:
        """Return how many inputs are accounted for, in the order of the tasks."""
        return sum(map(len, self.to_json().values()))

    @property
    def exit_code(self) -> int:
        """Return what the run as a whole amounts to."""
        if self.stopped is not None:
            return self.stopped
        if BudgetExceeded in self.errors:
            return exits.BUDGET
        fruitless = self.errors and not self.released and not self.skipped
        if fruitless and any(
            all(issubclass(error, kind) for error in self.errors) for kind in (PhotoError, OutputError)
        ):
            return exits.IMPOSSIBLE
        return exits.INCOMPLETE if self.errors else exits.DONE


def release_all(
    tasks: Sequence[Task], choices: Choices, *, step: Callable[[], None] = lambda: None
) -> Report:
    """Release every photo, calling `step` after each, and return what became of them.

    Goes on after every failure of a single photo; stops where nothing can be written any more, and where it
    is interrupted. Then the rest is reported as failed.
    """
    report = Report()
    try:
        for folder in sorted({task.output.parent for task in tasks}):
            tidy(folder)
        at_once = min(finder.at_once for finder in choices.regions)
        with prefetch(partial(_prepare, choices=choices), tasks, at_once=at_once) as prepared:
            for task, waiting in prepared:
                if _try(task, waiting, choices, report) is not None:
                    return _stop(report, tasks, exits.IMPOSSIBLE, "the output cannot be written")
                step()
    except KeyboardInterrupt:
        _stop(report, tasks, exits.INTERRUPTED, "the run was interrupted")
    return report


def _prepare(task: Task, choices: Choices) -> Path | Plan:
    """Return the output of an earlier run with the same settings, or how the photo will be released."""
    if not choices.force and (there := _finished(task, choices)) is not None:
        return there
    photo = read(task.source, max_pixels=choices.max_pixels)
    return plan(
        photo,
        choices.method,
        regions=choices.regions,
        if_none=choices.if_none,
        post_processing=choices.post_processing,
    )


def _try(
    task: Task, waiting: Callable[[], Path | Plan], choices: Choices, report: Report
) -> OutputError | None:
    """Release one photo, or note why not; return an error that the next photo would meet as well."""
    try:
        prepared = waiting()
        if isinstance(prepared, Path):
            report.skipped.append({"input": str(task.source), "output": str(prepared)})
        else:
            _one(task, prepared, choices, report)
    except OutputError as error:
        report.fail(task, error)
        if _errno(error) not in ONE_FILE_ONLY:
            return error
    except Exception as error:  # noqa: BLE001  one photo must not stop the rest, and nothing was written
        report.fail(task, error)
    return None


def _errno(error: OutputError) -> int | None:
    return getattr(error.__cause__, "errno", None)


def _stop(report: Report, tasks: Sequence[Task], code: int, reason: str) -> Report:
    for task in tasks[report.count :]:
        report.fail(task, DPVeilError(f"not tried, because {reason}", hint="run the same command again"))
        report.untried += 1
    report.stopped = code
    return report


def _one(task: Task, planned: Plan, choices: Choices, report: Report) -> None:
    release = planned.release(bits=choices.bits(task.name))
    _ready(task.output.parent, report)
    try:
        with uninterrupted():
            _save(task, release, choices, report)
    except OutputError as error:
        if choices.force or _errno(error) != errno.EEXIST or not _same(task.output, choices):
            raise
        # Another run over the same photos was faster: its release stands, and ours was never shown.
        report.skipped.append({"input": str(task.source), "output": str(task.output)})


def _ready(folder: Path, report: Report) -> None:
    """Make the folder for its first output; if it is another one for a later output, its disk has gone."""
    if folder not in report.folders:
        make_folder(folder)
        report.folders[folder] = identity(folder)
    elif report.folders[folder] != identity(folder):
        raise OutputError(
            f"cannot write {shown(folder)}: it was removed or replaced since the run began",
            hint="see whether its disk is still there, and run the same command again",
        )


def _save(task: Task, release: Release, choices: Choices, report: Report) -> None:
    image, certificate = release.save(task.output, replace=choices.force)
    entry = {"input": str(task.source), "output": str(image), "certificate": str(certificate)}
    report.released.append(entry)
    composition = release.certificate.composition
    each = release.certificate.guarantees
    text = "UNPROTECTED COPY" if composition is None else str(composition)
    report.promises[entry["output"]] = f"{len(each)} regions, together {text}" if len(each) > 1 else text
    report.warnings += release.certificate.warnings
    report.warnings += (f"{shown(task.source)}: {note}" for note in release.notes)


def _finished(task: Task, choices: Choices) -> Path | None:
    """Return the output of an earlier run with the same settings, None if there is nothing, or raise."""
    if _exists(task.output):
        if _same(task.output, choices):
            return task.output
        raise DPVeilError(
            f"{shown(task.output)} exists and is not a release with these settings",
            hint="choose another --out, or replace it with --force",
        )
    if task.former is None or not _exists(task.former):
        return None
    # A name with both suffixes can only come from this photo; a name without may come from a sibling.
    if len(task.former.name) > len(task.output.name) and _same(task.former, choices):
        return task.former
    raise DPVeilError(
        f"{shown(task.former)} may be an earlier release of it, so releasing it again would cost twice",
        hint=f"if it is, rename it (and its certificate) to {shown(task.output.name)}; if not, use --force",
    )


def _exists(output: Path) -> bool:
    return any(os.path.lexists(path) for path in (output, certificate_path(output)))


def _same(output: Path, choices: Choices) -> bool:
    found = verify(output, max_pixels=choices.max_pixels)
    if found.status == "inconsistent":  # another run may be writing it, or was killed while it did
        tidy(output.parent)
        with suppress(OSError), sole_writer([output.parent]):
            found = verify(output, max_pixels=choices.max_pixels)
    if found.certificate is None:
        return False
    if found.status == "unprotected":  # what an earlier run copied, where it was told to
        asked = list(found.certificate.request) == choices.settings["request"]
        return choices.if_none == "copy" and asked
    return found.certificate.settings == choices.settings and found.status == "consistent"


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Hold back Ctrl-C and termination until the block is done, so that no pair of files is torn."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    held: list[int] = []

    def hold(number: int, frame: FrameType | None) -> None:
        held.append(number)

    before: dict[int, Any] = {}
    try:
        for each in (signal.SIGINT, signal.SIGTERM):
            if signal.getsignal(each) not in (signal.SIG_IGN, None):  # a job in the background, an embedder
                before[each] = signal.signal(each, hold)
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if held:  # whatever became of the block: an interrupt is never forgotten
            raise KeyboardInterrupt
