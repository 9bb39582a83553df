"""The certificate of a data set: one file beside its pictures, with one promise for all of them.

Its guarantee, strength and warnings follow from the plan and the bit source, so that reading one writes it
again and compares the texts.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from dpveil.accounting.meaning import strength
from dpveil.core.certificate import PUBLISHABLE, SEEDED, canonical, checksum, this_tool
from dpveil.core.numbers import Json
from dpveil.core.stated_json import loads
from dpveil.errors import INTACT, CertificateError, DPVeilError
from dpveil.noise.bits import SECURE
from dpveil.noise.bits import SEEDED as SEEDED_BITS
from dpveil.synthesis.names import SHEET, picture_name
from dpveil.synthesis.plan import ACCOUNTANT, Plan

SCHEMA: Final = "dpveil.dataset-certificate/1"
METHOD: Final = "private-evolution"
HASH: Final = re.compile(r"[0-9a-f]{64}")
TOOL: Final = re.compile(r"dpveil [0-9][0-9A-Za-z.+!-]{0,60}")
LEARNED: Final = (
    "this promises nothing about the pictures that the codec was learned from, not even to people who are in"
    " the photos, too"
)
FAINT: Final = (
    "mostly noise: a candidate got fewer votes, on average, than their noise has as a standard deviation"
)
LABELS: Final = "pictures have no labels; whoever wants some reads them off the pictures, at no cost"


@dataclass(frozen=True, kw_only=True)
class SetCertificate:
    """What a data set promises: its `plan`, the kind of `bits`, and the SHA-256 of each of its `files`.

    `to_text` is its canonical form, byte for byte. It is not signed: it shows inconsistency, not forgery.
    """

    plan: Plan
    bits: str
    files: Mapping[str, str]
    tool: str = field(default_factory=this_tool)

    @property
    def strength(self) -> str:
        """Strong, moderate, weak or practically none."""
        return strength(self.plan.guarantee)

    @property
    def publishable(self) -> bool:
        """Whether the bits are secure and the promise is at least weak."""
        return self.bits == SECURE and self.strength in PUBLISHABLE

    @property
    def warnings(self) -> tuple[str, ...]:
        """What whoever uses the set has to know."""
        due = {LEARNED: True, LABELS: True, FAINT: self.plan.faint, SEEDED: self.bits == SEEDED_BITS}
        return tuple(text for text, holds in due.items() if holds)

    def to_json(self) -> dict[str, Json]:
        """Return the JSON object."""
        data: dict[str, Json] = {
            "schema": SCHEMA,
            "tool": self.tool,
            "method": METHOD,
            "parameters": self.plan.parameters(),
            "guarantee": self.plan.guarantee.to_json(),
            "strength": self.strength,
            "accountant": ACCOUNTANT,
            "bits": self.bits,
            "publishable": self.publishable,
            "warnings": list(self.warnings),
            "files": dict(self.files),
        }
        return data | {"checksum": checksum(data)}

    def to_text(self) -> str:
        """Return the canonical text."""
        return canonical(self.to_json())

    @property
    def sha256(self) -> str:
        """The SHA-256 of the canonical text, by which a ledger knows the set."""
        return hashlib.sha256(self.to_text().encode()).hexdigest()


def parse(text: str) -> SetCertificate:
    """Return the certificate of which `text` is the canonical form; raises `CertificateError` for any other.

    Nothing that it names is opened.
    """
    try:
        data = loads(text)
        if data["schema"] != SCHEMA:
            hint = f"this version reads {SCHEMA}"
            raise CertificateError("the certificate has another schema", hint=hint)
        found = SetCertificate(
            plan=Plan.stated(data["parameters"]),
            bits=_one_of(data["bits"], (SECURE, SEEDED_BITS)),
            files=_files(data["files"]),
            tool=_matching(data["tool"], TOOL),
        )
        written = found.to_text()
    except CertificateError:
        raise
    except (
        DPVeilError,
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        RecursionError,
        MemoryError,
    ) as error:
        raise CertificateError("the certificate is not as dpveil writes it", hint=INTACT) from error
    if written != text:
        problem = "the certificate was edited: its text is not what its settings give"
        raise CertificateError(problem, hint=f"do not rely on it; {INTACT}")
    if sorted(found.files) != sorted([SHEET, *map(picture_name, range(1, found.plan.pictures + 1))]):
        raise CertificateError("the certificate lists other files than its pictures", hint=INTACT)
    return found


def _files(value: Any) -> dict[str, str]:
    return {str(name): _matching(digest, HASH) for name, digest in value.items()}


def _matching(value: Any, pattern: re.Pattern[str]) -> str:
    if not isinstance(value, str) or not pattern.fullmatch(value):
        raise ValueError("a text is not of its form")
    return value


def _one_of(value: Any, known: tuple[str, ...]) -> str:
    if value not in known:
        raise ValueError("an unknown word")
    return str(value)
