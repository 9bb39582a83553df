"""The settings that all photos of a run share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

from dpveil.core.numbers import Json
from dpveil.core.region import Covered
from dpveil.errors import DPVeilError
from dpveil.io import MAX_PIXELS
from dpveil.mechanisms.method import Method
from dpveil.mechanisms.placement import Size
from dpveil.noise.bits import SECURE, SEEDED, BitSource, SecureBits, SeededBits
from dpveil.postprocessing import Step
from dpveil.regions import Finder
from dpveil.release.keys import SigningKey
from dpveil.release.marking import Marker
from dpveil.release.payment import Budget
from dpveil.release.quote import quote_of_sizes


class Payer(Budget, Protocol):
    """What pays for the releases of a run, as `dpveil.ledger.Ledger`."""

    @property
    def files(self) -> tuple[Path, ...]:
        """Files that nothing else in this process may open."""

    def knows(self, subject: str, sha256: str) -> bool:
        """Whether this subject paid for a file with this SHA-256."""

    def check_regions(self, covered: Covered) -> None:
        """Raise `RegionsDiffer` if a photo was released with other regions before."""


SIZE: Final[Size] = {"height": 64, "width": 64, "channels": 3}
"""A region by which it is told whether a method costs anything."""


@dataclass(frozen=True, kw_only=True)
class Choices:
    """The settings that all photos of a run share.

    `regions` are finders that the method accepts; `if_none` and `at_least` are as in `plan`, `max_pixels` and
    `trust_source` as in `read`. With a `seed`,
    the bits of each photo are a function of it and the output's name. `force` replaces existing outputs.
    `sign` is the key that signs the certificates, and `mark` adds a C2PA manifest to files, if given; they
    are no settings of a release.
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
