"""The outcome of every input of a run, as data; the caller prints it and chooses the exit code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from dpveil.batch.task import Task
from dpveil.core.certificate import Certificate
from dpveil.core.envelope import Caution, told
from dpveil.core.guarantee import Guarantee
from dpveil.core.origin import FACE
from dpveil.errors import DPVeilError, NoRegion
from dpveil.io.names import shown
from dpveil.release.crowd import Crowd
from dpveil.release.noisy import Noisy, noisiest
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

    `faces` says whether all regions are faces.
    """

    guarantees: tuple[Guarantee, ...]
    total: Guarantee | None
    strength: str | None
    faces: bool

    @classmethod
    def of(cls, certificate: Certificate) -> Promise:
        """Return the guarantees that a certificate states."""
        return cls(
            guarantees=certificate.guarantees,
            total=certificate.composition,
            strength=certificate.strength,
            faces=all(record.origin.kind == FACE for record in certificate.regions),
        )

    def to_json(self) -> dict[str, Any]:
        """Return the JSON object: the number of regions, and guarantees as in certificates."""
        return {
            "regions": len(self.guarantees),
            "guarantee": None if self.total is None else self.total.to_json(),
            "guarantees": [guarantee.to_json() for guarantee in self.guarantees],
            "strength": self.strength,
        }


@dataclass(frozen=True)
class Failure:
    """Why nothing was written for a photo: the error's class, message and hint, without its traceback."""

    kind: type[BaseException]
    message: str
    hint: str

    @classmethod
    def of(cls, error: BaseException, options: Mapping[str, str]) -> Failure:
        """Return an error's message and hint, with arguments written as `options`.

        An error that is not a `DPVeilError` is unexpected, and named by its type.
        """
        if isinstance(error, DPVeilError):
            return cls(type(error), *error.told(options))
        detail = " ".join(str(error).split())
        message = f"unexpected {type(error).__name__}" + (f": {detail}" if detail else "")
        return cls(type(error), message, "nothing was written for it; please report this")


@dataclass(frozen=True)
class Entry:
    """The outcome of one input; the `crowd` is known of those that this run released.

    Nothing of this run is at the `output` of one that failed. `noisy` is the noisiest region of a photo that
    a dry run priced, if it would be practically pure noise, and `doubts` what the detector was not sure of.
    `paid` says that a dry run priced what is paid already.
    `discarded` says that a ledger paid for a draw of this run that nobody saw, as it could not be written.
    The `certificate` is in the file beside the output if it is not stated.
    """

    status: str
    source: Path
    output: Path | None = None
    promise: Promise | None = None
    warnings: tuple[str, ...] = ()
    failure: Failure | None = None
    crowd: Crowd | None = None
    noisy: Noisy | None = None
    doubts: tuple[str, ...] = ()
    discarded: bool = False
    paid: bool = False
    certificate: Path | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the JSON object of this input."""
        lost = {"paid_and_discarded": True} if self.discarded else {}
        if self.failure is not None:
            told = {"error": self.failure.message, "hint": self.failure.hint}
            return {"input": str(self.source), **told, **lost}
        places: dict[str, Any] = {"input": str(self.source)}
        if self.output is not None:
            beside = self.certificate or certificate_path(self.output)
            places |= {"output": str(self.output), "certificate": str(beside)}
        promise = {} if self.promise is None else self.promise.to_json()
        crowded = {} if self.crowd is None else {"crowded": self.crowd.to_json()}
        return {**places, **promise, **crowded, **lost, "warnings": [*self.warnings, *self.doubts]}


@dataclass
class Report:
    """The outcome of every input, in the order of the tasks.

    `options` are a command line's names of arguments. `stopped` says why the run ended early, if it did;
    `notes` concern no single photo, and `wrote` has the documents with what they promise. A run that is `dry`
    prices photos and releases none.
    """

    options: Mapping[str, str] = field(default_factory=dict)
    entries: list[Entry] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    wrote: list[str] = field(default_factory=list)
    stopped: str | None = None
    dry: bool = False

    def of(self, status: str) -> list[Entry]:
        """Return the entries with one of the `STATUSES`."""
        return [entry for entry in self.entries if entry.status == status]

    @property
    def released(self) -> list[Entry]:
        """Photos released by this run."""
        return self.of(RELEASED)

    @property
    def priced(self) -> list[Entry]:
        """Photos that a dry run has planned, with their costs."""
        return self.of(PRICED)

    @property
    def failed(self) -> list[Entry]:
        """Photos that were tried and not released because of an error other than `NoRegion`."""
        return self.of(FAILED)

    @property
    def skipped(self) -> list[Entry]:
        """Photos that an earlier run released with the same settings."""
        return self.of(SKIPPED)

    @property
    def no_region(self) -> list[Entry]:
        """Photos in which a requested region was not found."""
        return self.of(NO_REGION)

    @property
    def untried(self) -> list[Entry]:
        """Photos that the run did not reach."""
        return self.of(UNTRIED)

    @property
    def discarded(self) -> list[Entry]:
        """Photos for which this run paid and released nothing."""
        return [entry for entry in self.entries if entry.discarded]

    @property
    def errors(self) -> list[type[BaseException]]:
        """The classes of all errors."""
        return [entry.failure.kind for entry in self.entries if entry.failure is not None]

    def done(
        self,
        status: str,
        task: Task,
        output: Path,
        certificate: Certificate,
        warnings: Sequence[str] = (),
        crowd: Crowd | None = None,
    ) -> None:
        """Record a release, made now or earlier."""
        every = (*map(Caution, certificate.warnings), *told(warnings, self.options))
        promise = Promise.of(certificate)
        self.entries.append(Entry(status, task.source, task.remote or output, promise, every, crowd=crowd))

    def price(self, task: Task, planned: Plan, warnings: Sequence[str] = ()) -> None:
        """Record what a release would cost, which a dry run has planned, and what is to be known of it."""
        faces = all(region.origin.kind == FACE for region in planned.regions)
        promise = Promise(planned.guarantees, planned.total, planned.strength, faces=faces)
        noise = None if planned.quote is None else noisiest(planned.quote)
        every = told((*map(Caution, planned.cautions), *planned.remarks, *warnings), self.options)
        doubts, crowd = told(planned.doubts, self.options), planned.crowd
        entry = Entry(PRICED, task.source, None, promise, every, crowd=crowd, noisy=noise, doubts=doubts)
        self.entries.append(entry)

    def fail(self, task: Task, error: BaseException, *, tried: bool = True) -> None:
        """Record that nothing was written for this photo, and why."""
        error.__traceback__ = None  # its frames would keep the photo in memory
        status = UNTRIED if not tried else NO_REGION if isinstance(error, NoRegion) else FAILED
        if task.remote is not None and isinstance(error, DPVeilError):
            error.rename(shown(task.output), shown(task.remote))
        failure = Failure.of(error, self.options)
        self.entries.append(Entry(status, task.source, task.remote or task.output, failure=failure))

    def know(self, dry: Report) -> None:
        """Take from the report of a dry run what was released earlier, of the photos that were not tried."""
        for place, entry in enumerate(dry.entries):
            if entry.status == SKIPPED and self.entries[place].status == UNTRIED:
                self.entries[place] = entry

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
        """Return the JSON document of a run."""
        statuses = (PRICED, *STATUSES) if self.dry else STATUSES
        return {status: [entry.to_json() for entry in self.of(status)] for status in statuses}
