"""The settings that all photos of a run share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dpveil.core.numbers import Json
from dpveil.io import MAX_PIXELS
from dpveil.mechanisms.method import Method
from dpveil.noise.bits import SECURE, SEEDED, BitSource, SecureBits, SeededBits
from dpveil.postprocessing import Step
from dpveil.regions import Finder


@dataclass(frozen=True, kw_only=True)
class Choices:
    """Everything that is the same for all photos of a run.

    `regions` are finders as the method accepts them; `if_none` and `at_least` are as in `plan`. With `seed`
    bits follow from it and each output's name. `force` replaces outputs that exist.
    """

    method: Method
    regions: Sequence[Finder]
    post_processing: Sequence[Step] = ()
    if_none: str | None = None
    at_least: str | None = None
    seed: int | None = None
    max_pixels: int = MAX_PIXELS
    force: bool = False

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
