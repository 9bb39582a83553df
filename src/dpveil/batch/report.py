"""The outcome of every input of a run, as data; the caller prints it and chooses the exit code."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from dpveil.batch.tasks import Task, check_written, is_beside_output, places_of
from dpveil.core.certificate import Certificate
from dpveil.core.guarantee import Guarantee
from dpveil.core.notes import Caution, notes_with_options
from dpveil.core.region import Region
from dpveil.errors import DPVeilError, NoRegion, UnknownName, UsageError
from dpveil.io.names import show_path
from dpveil.io.writing import write_together
from dpveil.release.plan import Plan
from dpveil.release.saving import certificate_path

RELEASED: Final = "released"
FAILED: Final = "failed"
SKIPPED: Final = "skipped"
NO_REGION: Final = "no_region"
UNTRIED: Final = "untried"
PRICED: Final = "priced"
STATUSES: Final = (RELEASED, FAILED, SKIPPED, NO_REGION, UNTRIED)
INTERRUPTED: Final = "the run was interrupted"
UNWRITABLE: Final = "the output cannot be written"
UNPAYABLE: Final = "the ledger cannot be used"
UNAFFORDABLE: Final = "all photos together cost more than is left"
UNSTARTED: Final = "its processes cannot start, or go on"


LOST: Final = "it was paid for, and its release was lost, because {}"


class Untried(DPVeilError):
    """A photo was not reached, as the run had been stopped for this `reason`."""

    def __init__(self, reason: str) -> None:
        hint = "run the same command again, which skips what is finished"
        super().__init__(f"not tried, because {reason}", hint=hint)
        self.reason = reason


@dataclass(frozen=True)
class Promise:
    """The guarantees of a release: one for each region and their `total`, which is None for a copy.

    `kinds` has the kind of each region. `kept` names what was kept of the original's EXIF, or of its sample
    in a shard or Parquet file.
    """

    guarantees: tuple[Guarantee, ...]
    total: Guarantee | None
    strength: str | None
    kinds: tuple[str, ...]
    kept: tuple[str, ...] = ()

    @classmethod
    def of(cls, certificate: Certificate) -> Promise:
        return cls(
            guarantees=certificate.guarantees,
            total=certificate.composition,
            strength=certificate.strength,
            kinds=tuple(record.origin.kind for record in certificate.regions),
            kept=(*(certificate.output.metadata if certificate.output else ()), *certificate.columns),
        )

    def to_json(self) -> dict[str, Any]:
        return {
            "regions": len(self.guarantees),
            "guarantee": None if self.total is None else self.total.to_json(),
            "guarantees": [guarantee.to_json() for guarantee in self.guarantees],
            "strength": self.strength,
        }


@dataclass(frozen=True)
class Failure:
    """Why nothing was written for a photo: the error's nearest class of dpveil, its message and hint."""

    kind: type[BaseException]
    message: str
    hint: str

    @classmethod
    def of(cls, error: BaseException, options: Mapping[str, str]) -> Failure:
        own = (DPVeilError.__module__, BaseException.__module__)  # what every process of a run has
        kind = next(kind for kind in type(error).__mro__ if kind.__module__ in own)
        if isinstance(error, DPVeilError):
            return cls(kind, *error.message_and_hint(options))
        detail = " ".join(str(error).split())
        message = f"unexpected {type(error).__name__}" + (f": {detail}" if detail else "")
        return cls(kind, message, "nothing was written for it; please report this")


@dataclass(frozen=True)
class Entry:
    """The outcome of one input.

    Nothing of this run is at the `output` of one that failed. `doubts` is what the detector was not sure of,
    and `left` the places that may be faces and stay. `paid` says that a dry run priced what is paid already.
    `discarded` says that a ledger paid for a draw of this run that nobody saw, as it could not be written.
    The `certificate` is in the file beside the output if it is not stated. `kept` says what was not found on
    a page of a document that is kept as it is, such as "no face".
    """

    status: str
    source: Path
    output: Path | None = None
    promise: Promise | None = None
    warnings: tuple[str, ...] = ()
    failure: Failure | None = None
    doubts: tuple[str, ...] = ()
    left: Sequence[Region] = ()
    discarded: bool = False
    paid: bool = False
    certificate: Path | None = None
    kept: str = ""

    def as_kept_page(self, missing: Sequence[str]) -> Entry:
        """Return the entry of a page on which these requests found nothing, if it is a copy."""
        if self.promise is None or self.promise.total is not None:
            return self
        from dpveil.release.document_certificate import nothing_of

        return replace(self, kept=nothing_of(missing), warnings=())

    def refused(self, error: DPVeilError, options: Mapping[str, str]) -> Entry:
        """Return the entry of the same input, of which nothing is released after all."""
        status = NO_REGION if isinstance(error, NoRegion) else FAILED
        return Entry(status, self.source, failure=Failure.of(error, options))

    def to_json(self) -> dict[str, Any]:
        lost = {"paid_and_discarded": True} if self.discarded else {}
        if self.failure is not None:
            told = {"error": self.failure.message, "hint": self.failure.hint}
            return {"input": str(self.source), **told, **lost}
        places: dict[str, Any] = {"input": str(self.source)}
        if self.output is not None:
            beside = self.certificate or certificate_path(self.output)
            places |= {"output": str(self.output), "certificate": str(beside)}
        promise = {} if self.promise is None else self.promise.to_json()
        kept = {"kept": f"{self.kept}: kept as it is"} if self.kept else {}
        return {**places, **promise, **kept, **lost, "warnings": [*self.warnings, *self.doubts]}


@dataclass
class Report:
    """The outcome of every input, in the order of the tasks.

    `options` are a command line's names of arguments. `stopped` says why the run ended early, if it did;
    `notes` concern no single photo, `wrote` names other files, and `documents` has what pages promise
    together. A run that is `dry` prices photos and releases none.
    """

    options: Mapping[str, str] = field(default_factory=dict)
    entries: list[Entry] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    wrote: list[str] = field(default_factory=list)
    documents: list[str] = field(default_factory=list)
    stopped: str | None = None
    dry: bool = False

    def of(self, status: str) -> list[Entry]:
        return [entry for entry in self.entries if entry.status == status]

    released = property(lambda self: self.of(RELEASED))
    priced = property(lambda self: self.of(PRICED))
    failed = property(lambda self: self.of(FAILED))
    skipped = property(lambda self: self.of(SKIPPED))
    no_region = property(lambda self: self.of(NO_REGION))
    untried = property(lambda self: self.of(UNTRIED))

    @property
    def discarded(self) -> list[Entry]:
        return [entry for entry in self.entries if entry.discarded]

    @property
    def errors(self) -> list[type[BaseException]]:
        return [entry.failure.kind for entry in self.entries if entry.failure is not None]

    def record_release(
        self,
        status: str,
        task: Task,
        output: Path,
        certificate: Certificate,
        warnings: Sequence[str] = (),
        left: Sequence[Region] = (),
        *,
        keeps: bool = False,
    ) -> None:
        """Record a release, made now or earlier; `keeps` says that a copy is a page that is kept so."""
        every = (*map(Caution, certificate.warnings), *notes_with_options(warnings, self.options))
        promise = Promise.of(certificate)
        entry = Entry(status, task.source, task.remote or output, promise, every, left=left)
        self.entries.append(entry.as_kept_page(certificate.missing) if keeps else entry)

    def price(self, task: Task, planned: Plan, *, keeps: bool = False) -> None:
        """Record what a release would cost, which a dry run has planned, and what is to be known of it."""
        kinds = tuple(region.origin.kind for region in planned.regions)
        promise = Promise(planned.guarantees, planned.total, planned.strength, kinds)
        every = notes_with_options((*map(Caution, planned.cautions), *planned.remarks), self.options)
        doubts = notes_with_options(planned.doubts, self.options)
        entry = Entry(PRICED, task.source, None, promise, every, doubts=doubts, left=planned.doubtful)
        self.entries.append(entry.as_kept_page(planned.missing) if keeps else entry)

    def fail(self, task: Task, error: BaseException, *, tried: bool = True) -> None:
        error.__traceback__ = None  # its frames would keep the photo in memory
        status = UNTRIED if not tried else NO_REGION if isinstance(error, NoRegion) else FAILED
        if task.remote is not None and isinstance(error, DPVeilError):
            error.rename(show_path(task.output), show_path(task.remote))
        failure = Failure.of(error, self.options)
        self.entries.append(Entry(status, task.source, task.remote or task.output, failure=failure))

    def stop(self, tasks: Sequence[Task], reason: str, error: DPVeilError | None = None) -> None:
        for task in tasks[len(self.entries) :]:
            self.fail(task, error or Untried(reason), tried=False)
        self.stopped = reason

    def discard(self, paid: Set[int]) -> None:
        """Mark the entries that were not released, of those whose places are `paid`: these were all tried."""
        for place in sorted(paid):
            entry = self.entries[place]
            if entry.status == UNTRIED:
                error = DPVeilError(LOST.format(self.stopped), hint="releasing it again costs again")
                entry = replace(entry, status=FAILED, failure=Failure.of(error, self.options))
            if entry.status != RELEASED:
                self.entries[place] = replace(entry, discarded=True)

    def to_json(self) -> dict[str, list[dict[str, Any]]]:
        statuses = (PRICED, *STATUSES) if self.dry else STATUSES
        return {status: [entry.to_json() for entry in self.of(status)] for status in statuses}


COLUMNS: Final = (
    *("status", "input", "output", "certificate", "regions"),
    *("guarantee", "strength", "warnings", "error", "hint"),
)
FORMATS: Final = (".csv", ".jsonl")
STARTS: Final = {".csv": ",".join(COLUMNS).encode(), ".jsonl": b'{"status": '}
"""First bytes of a manifest; an existing file is only replaced without being asked to if it has them."""


def check_manifest(path: Path, tasks: Sequence[Task], *, replace: bool) -> None:
    """Raise any error that would prevent writing the manifest, before anything is drawn.

    Raises `UnknownName` for another suffix, `UsageError` beside numbered releases, whose names it would
    reveal, and `OutputError` as `check_written`.
    """
    if path.suffix.lower() not in FORMATS:
        raise UnknownName("format of a manifest", path.suffix or show_path(path), FORMATS)
    if any(is_beside_output(path, task) for task in tasks if task.numbered):
        problem = (
            f"the manifest {show_path(path)} would lie beside the numbered releases, and tells their names"
        )
        raise UsageError(problem, hint="choose another folder")
    start = STARTS[path.suffix.lower()]
    check_written(path, places_of(tasks), what="the manifest", replace=replace, start=start)


def write_manifest(report: Report, path: Path) -> None:
    """Write one row for every input, in the order of the run, as CSV or JSON Lines; raises `OutputError`."""
    if path.suffix.lower() == ".csv":
        text = io.StringIO()
        table = csv.DictWriter(text, COLUMNS, lineterminator="\n")
        table.writeheader()
        table.writerows(map(_cells, report.entries))
        made = text.getvalue().encode("utf-8", "backslashreplace")
    else:
        rows = ({"status": entry.status, **entry.to_json()} for entry in report.entries)
        made = "".join(json.dumps(row) + "\n" for row in rows).encode("ascii")
    write_together([(path, made)], replace=True, private=True)


def _cells(entry: Entry) -> dict[str, Any]:
    row: dict[str, Any] = {"status": entry.status, **entry.to_json()}
    if entry.promise is not None:
        row["guarantee"] = None if entry.promise.total is None else str(entry.promise.total)
    row["warnings"] = "; ".join([*filter(None, [row.get("kept")]), *row.get("warnings", ())])
    return {name: row.get(name) for name in COLUMNS}
