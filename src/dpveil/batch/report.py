"""The outcome of every input of a run, as data; the caller prints it and chooses the exit code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from dpveil.batch.tasks import Task
from dpveil.core.certificate import Certificate
from dpveil.core.guarantee import Guarantee
from dpveil.core.origin import FACE
from dpveil.errors import DPVeilError, NoRegion
from dpveil.release.saving import certificate_path

RELEASED: Final = "released"
FAILED: Final = "failed"
SKIPPED: Final = "skipped"
NO_REGION: Final = "no_region"
STATUSES: Final = (RELEASED, FAILED, SKIPPED, NO_REGION)
INTERRUPTED: Final = "the run was interrupted"
UNWRITABLE: Final = "the output cannot be written"


@dataclass(frozen=True)
class Promise:
    """What a release promises: one of `guarantees` for each region; `total` is None for a copy."""

    guarantees: tuple[Guarantee, ...]
    total: Guarantee | None
    strength: str | None
    faces: bool

    @classmethod
    def of(cls, certificate: Certificate) -> Promise:
        """Return what a certificate states."""
        return cls(
            guarantees=certificate.guarantees,
            total=certificate.composition,
            strength=certificate.strength,
            faces=all(record.origin.kind == FACE for record in certificate.regions),
        )

    def to_json(self) -> dict[str, Any]:
        """Return the JSON of an entry: how many regions, and guarantees as certificates state them."""
        return {
            "regions": len(self.guarantees),
            "guarantee": None if self.total is None else self.total.to_json(),
            "guarantees": [guarantee.to_json() for guarantee in self.guarantees],
            "strength": self.strength,
        }


@dataclass(frozen=True)
class Failure:
    """Why nothing was written for a photo. `kind` is the error's class; nothing of its frames is kept."""

    kind: type[BaseException]
    message: str
    hint: str

    @classmethod
    def of(cls, error: BaseException) -> Failure:
        """Return what an error says; one that nobody foresaw is named by its type."""
        if isinstance(error, DPVeilError):
            return cls(type(error), error.message, error.hint)
        detail = " ".join(str(error).split())
        message = f"unexpected {type(error).__name__}" + (f": {detail}" if detail else "")
        return cls(type(error), message, "nothing was written for it; please report this")


@dataclass(frozen=True)
class Entry:
    """What became of one input. `tried` is false where the run ended before its turn."""

    status: str
    source: Path
    output: Path | None = None
    promise: Promise | None = None
    warnings: tuple[str, ...] = ()
    failure: Failure | None = None
    tried: bool = True

    def to_json(self) -> dict[str, Any]:
        """Return the JSON object of a run's document."""
        if self.failure is not None:
            return {"input": str(self.source), "error": self.failure.message, "hint": self.failure.hint}
        places: dict[str, Any] = {"input": str(self.source)}
        if self.output is not None:
            places |= {"output": str(self.output), "certificate": str(certificate_path(self.output))}
        promise = {} if self.promise is None else self.promise.to_json()
        return {**places, **promise, "warnings": list(self.warnings)}


@dataclass
class Report:
    """What became of every input, in the order of the tasks.

    `stopped` says why the run ended early, if it did; `notes` what concerns no single photo.
    """

    entries: list[Entry] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    stopped: str | None = None

    def of(self, status: str) -> list[Entry]:
        """Return the entries with one of the `STATUSES`."""
        return [entry for entry in self.entries if entry.status == status]

    @property
    def released(self) -> list[Entry]:
        """What was released now."""
        return self.of(RELEASED)

    @property
    def failed(self) -> list[Entry]:
        """What was not released; what has no region is beside it."""
        return self.of(FAILED)

    @property
    def skipped(self) -> list[Entry]:
        """What an earlier run had released with the same settings."""
        return self.of(SKIPPED)

    @property
    def no_region(self) -> list[Entry]:
        """Photos without what was to be protected."""
        return self.of(NO_REGION)

    @property
    def untried(self) -> list[Entry]:
        """What the run did not come to."""
        return [entry for entry in self.entries if not entry.tried]

    @property
    def errors(self) -> list[type[BaseException]]:
        """The classes of everything that went wrong."""
        return [entry.failure.kind for entry in self.entries if entry.failure is not None]

    def done(
        self, status: str, task: Task, output: Path, certificate: Certificate, warnings: Sequence[str] = ()
    ) -> None:
        """Note a release, made now or earlier."""
        self.entries.append(
            Entry(status, task.source, output, Promise.of(certificate), (*certificate.warnings, *warnings))
        )

    def fail(self, task: Task, error: BaseException, *, tried: bool = True) -> None:
        """Note that nothing was written for this photo, and why."""
        error.__traceback__ = None  # its frames would hold the photo as long as something holds the error
        status = NO_REGION if isinstance(error, NoRegion) else FAILED
        self.entries.append(Entry(status, task.source, failure=Failure.of(error), tried=tried))

    def to_json(self) -> dict[str, list[dict[str, Any]]]:
        """Return the JSON document of a run."""
        return {status: [entry.to_json() for entry in self.of(status)] for status in STATUSES}
