"""The certificate of a data set: one file beside its pictures, with one promise for all of them.

Its guarantee and strength follow from the plan and the bit source, so that reading one writes it again and
compares the texts.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

from dpveil.accounting.meaning import strength
from dpveil.core.certificate import SEEDED
from dpveil.core.envelope import (
    PUBLISHABLE,
    Envelope,
    Signature,
    check_hash,
    parse,
    stated_composition,
    stated_signature,
    this_tool,
)
from dpveil.core.guarantee import Guarantee
from dpveil.core.numbers import Json
from dpveil.errors import INTACT, CertificateError
from dpveil.noise.bits import SECURE
from dpveil.noise.bits import SEEDED as SEEDED_BITS
from dpveil.synthesis.plan import ACCOUNTANT, SHEET, Plan, picture_name

METHOD: Final = "private-evolution"
LEARNED: Final = (
    "this promises nothing about the pictures that the codec was learned from, not even to people who are in"
    " the photos, too"
)
FAINT: Final = (
    "mostly noise: a candidate got fewer votes, on average, than their noise has as a standard deviation"
)
LABELS: Final = "pictures have no labels; whoever wants some reads them off the pictures, at no cost"


@dataclass(frozen=True, kw_only=True)
class SetCertificate(Envelope):
    """What a data set promises: its `plan`, the kind of `bits`, and the SHA-256 of each of its `files`.

    `to_text` is its canonical form, byte for byte. Without a signature it shows inconsistency, not forgery.
    """

    kind: ClassVar[str] = "data set"

    plan: Plan
    bits: str
    files: Mapping[str, str]
    tool: str = field(default_factory=this_tool)
    signature: Signature | None = None

    @property
    def composition(self) -> Guarantee:
        """What the set promises each person."""
        return self.plan.guarantee

    @property
    def strength(self) -> str:
        """Strong, moderate, weak or practically none."""
        return strength(self.plan.guarantee)

    @property
    def objections(self) -> tuple[str, ...]:
        """Why the set should not be published, in a few words each; empty if it may be."""
        reasons = {"practically none": self.strength not in PUBLISHABLE, "seeded bits": self.bits != SECURE}
        return tuple(reason for reason, holds in reasons.items() if holds)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What whoever uses the set has to know."""
        due = {LEARNED: True, LABELS: True, FAINT: self.plan.faint, SEEDED: self.bits == SEEDED_BITS}
        return tuple(text for text, holds in due.items() if holds)

    def members(self) -> dict[str, Json]:
        """Return what is stated about a data set."""
        return {
            "method": METHOD,
            "parameters": self.plan.parameters(),
            "composition": stated_composition(self.composition),
            "strength": self.strength,
            "accountant": ACCOUNTANT,
            "bits": self.bits,
            "files": dict(self.files),
        }

    @property
    def sha256(self) -> str:
        """The SHA-256 of the canonical text, by which a ledger knows the set."""
        return hashlib.sha256(self.to_text().encode()).hexdigest()


def parse_set(text: str) -> SetCertificate:
    """Return the certificate of a data set of which `text` is the canonical form; see `parse`."""
    return parse(text, SetCertificate, _set)


def _set(data: dict[str, Any]) -> SetCertificate:
    if data["bits"] not in (SECURE, SEEDED_BITS):
        raise ValueError("an unknown word")
    made = SetCertificate(
        plan=Plan.stated(data["parameters"]),
        bits=data["bits"],
        files={name: check_hash(digest) for name, digest in data["files"].items()},
        tool=data["tool"],
        signature=stated_signature(data),
    )
    if sorted(made.files) != sorted([SHEET, *map(picture_name, range(1, made.plan.pictures + 1))]):
        raise CertificateError("the certificate lists other files than its pictures", hint=INTACT)
    return made
