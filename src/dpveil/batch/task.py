"""A photo of a run, and where its release goes."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

from dpveil.batch.archive_inputs import Inside, Shard
from dpveil.batch.state import Stamp, stamp_of
from dpveil.core.numbers import Json
from dpveil.core.photo import Photo
from dpveil.core.region import Covered
from dpveil.core.urls import Url
from dpveil.errors import DPVeilError, OutputError, UsageError
from dpveil.io import MAX_PIXELS, read
from dpveil.io.folders import identity, real
from dpveil.io.names import show_path
from dpveil.io.writing import refusal
from dpveil.mechanisms.method import Method, Size
from dpveil.noise.bits import SECURE, SEEDED, BitSource, SecureBits, SeededBits
from dpveil.postprocessing import Step
from dpveil.regions import Finder
from dpveil.release.keys import SigningKey
from dpveil.release.marking import Marker
from dpveil.release.quote import quote_of_sizes
from dpveil.release.saving import Budget, certificate_path


class Payer(Budget, Protocol):
    """What pays for the releases of a run, as `dpveil.ledger.Ledger`."""

    @property
    def files(self) -> tuple[Path, ...]:
        """Files that nothing else in this process may open."""

    def knows(self, subject: str, sha256: str) -> bool:
        """Whether this subject paid for a file with this SHA-256."""

    def check_regions(self, covered: Covered) -> None:
        """Raise `RegionsDiffer` if a photo was released with other regions before."""


KEEP: Final = "others+copy"
"""What becomes of pages of a document without a region, unless the user says: they are kept as they are."""
SIZE: Final[Size] = {"height": 64, "width": 64, "channels": 3}
"""A region by which it is told whether a method costs anything."""


@dataclass(frozen=True, kw_only=True)
class Choices:
    """The settings that all photos of a run share.

    `regions` are finders that the method accepts; `if_none` and `at_least` are as in `plan`, `max_pixels` and
    `trust_source` as in `read`. With a `seed`,
    the bits of each photo are a function of it and the output's name. `force` replaces existing outputs.
    `sign` is the key that signs the certificates, `mark` adds a C2PA manifest to files, if given, and
    `metadata` names what of the originals' EXIF is kept (`dpveil.io.exif.NAMES`), and `columns` what else of
    samples in shards and Parquet files (`parse_columns`); they are no settings of a release.
    With a `ledger`, `subject` pays for every release; `other_regions` is as in `Plan.release`. A run that is
    `dry` tells what its releases would cost, and draws none.
    """

    method: Method
    regions: Sequence[Finder]
    post_processing: Sequence[Step] = ()
    if_none: str | None = None
    at_least: str | None = None
    seed: int | None = None
    max_pixels: int = MAX_PIXELS
    trust_source: str | None = None
    force: bool = False
    sign: SigningKey | None = None
    mark: Marker | None = None
    metadata: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    ledger: Payer | None = None
    subject: str | None = None
    other_regions: bool = False
    dry: bool = False

    def bits(self, name: str) -> BitSource:
        """Return the bit source for the photo that is written to `name`."""
        return SecureBits() if self.seed is None else SeededBits(self.seed, name)

    @property
    def free(self) -> bool:
        """Whether the method costs nothing, so that releasing a photo again does not either."""
        try:
            return quote_of_sizes(self.method, [SIZE]).total.free
        except DPVeilError:
            return False

    @property
    def paying(self) -> dict[str, Any]:
        """Return how a release is paid, as arguments of `Plan.release`."""
        return {"ledger": self.ledger, "subject": self.subject, "other_regions": self.other_regions}

    @property
    def settings(self) -> dict[str, Json]:
        """Return the settings as a release's certificate states them (`Certificate.settings`)."""
        return {
            "method": self.method.name,
            "parameters": self.method.parameters(),
            "request": [finder.description for finder in self.regions],
            "post_processing": [step.description for step in self.post_processing],
            "bits": SECURE if self.seed is None else SEEDED,
        }


@dataclass(frozen=True)
class Task:
    """One photo: its `source`, its `output`, and `name`, the output relative to the chosen folder.

    `numbered` says that the name of the output does not tell that of the input. The `source` of a photo
    `inside` of a shard names it, and nothing is at this path. One that is put elsewhere, at the URL `remote`,
    waits at its `output` until it is there. What is `earlier` may be a release of it from a run that gave it
    a shorter name, as no other photo had it.
    """

    source: Path
    output: Path
    name: str
    numbered: bool = False
    inside: Inside | None = None
    remote: Url | None = None
    earlier: Path | None = None

    @property
    def stamp(self) -> Stamp | None:
        """Size and time of the photo's file; None if it cannot be inspected."""
        return stamp_of(self.source) if self.inside is None else self.inside.stamp

    def keeps(self, choices: Choices) -> bool:
        """Whether it is a page that is kept as it is without a region, if its document has one elsewhere."""
        page = self.inside is not None and self.inside.shard.scan is not None
        return page and choices.if_none is None

    def read(self, max_pixels: int, trust_source: str | None = None) -> Photo:
        """Return the photo; raises `PhotoError`. The arguments are those of `dpveil.read`."""
        photo = self.source if self.inside is None else self.inside.read(max_pixels)
        return read(photo, max_pixels=max_pixels, trust_source=trust_source)

    @property
    def paths(self) -> list[Path]:
        """Every file that a run may open for it."""
        shard = [] if self.inside is None else [self.inside.shard.path, self.inside.shard.target]
        outputs = [self.output, *shard[1:]]
        return [self.source, *outputs, *map(certificate_path, outputs), *shard[:1]]

    @property
    def shard(self) -> Shard | None:
        """The file of many that its release becomes part of."""
        return None if self.inside is None or self.inside.shard.loose else self.inside.shard


def check_private(
    path: Path, tasks: Sequence[Task], *, what: str, start: bytes | None, replace: bool
) -> None:
    """Raise any error that would prevent writing a file about a run, before anything is drawn.

    `what` is its name in messages and `start` its first bytes: without `replace` an existing file must start
    with them, and with None no file may exist. Raises `UsageError` if the path is an input or an output of
    the run, and `OutputError` if the folder is missing or not writable, or another file exists.
    """
    taken = [place for task in tasks for place in (task.source, task.output, certificate_path(task.output))]
    if identity(path) in set(map(identity, taken)):
        raise UsageError(f"the {what} {show_path(path)} is an input or an output", hint="choose another name")
    if not path.parent.is_dir():
        raise refusal(path, FileNotFoundError(errno.ENOENT, ""))
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise refusal(path, PermissionError(errno.EACCES, ""))
    if path.exists() and (
        not path.is_file() or not (replace or (start is not None and _starts_with(path, start)))
    ):
        raise OutputError(
            f"cannot write {show_path(path)}: it exists" + ("" if start is None else f" and is not a {what}"),
            hint="choose another name, as {replace} releases every photo anew",
            arguments={"replace": "replace=True"},
        )


def check_apart(files: Sequence[Path], paths: Sequence[Path]) -> None:
    """Raise `UsageError` if one of the `paths` of a run is one of a ledger's `files`.

    Opening and closing such a file by another way takes the database's locks from this process, and a debit
    may be lost.
    """
    taken = set(map(identity, files))
    for path in paths:
        if identity(path) in taken:
            raise UsageError(f"{show_path(path)} belongs to the ledger", hint="name another file")


def is_beside_output(path: Path, task: Task) -> bool:
    """Whether `path` is in the folder of a task's output, or in one below it."""
    return real(path).is_relative_to(real(task.output.parent))


def _starts_with(path: Path, start: bytes) -> bool:
    try:
        with path.open("rb") as file:
            found = file.read(len(start))
    except OSError:
        return False
    return found in (b"", start)
