"""Data sets on disk: pictures, a contact sheet and one certificate, written together; and checking them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, Protocol

import numpy as np

from dpveil.accounting.meaning import strength
from dpveil.codecs.base import Crops
from dpveil.core.array_types import UInt8
from dpveil.core.certificate import SEEDED
from dpveil.core.envelope import PUBLISHABLE, Envelope, Signature, this_tool
from dpveil.core.guarantee import Guarantee
from dpveil.core.rationals import Json
from dpveil.core.strict_json import Hash, Parameters, one_of, read_object
from dpveil.errors import INTACT, CertificateError, OutputError
from dpveil.io.folders import DATA_SET
from dpveil.io.names import escape_text, show_path
from dpveil.io.unreadable import Refused
from dpveil.io.untrusted_files import is_present, read_untrusted
from dpveil.io.writing import encode, make_folder, only_picture, write_together
from dpveil.noise.bits import SECURE, BitSource, bits_kind
from dpveil.noise.bits import SEEDED as SEEDED_BITS
from dpveil.synthesis.plan import ACCOUNTANT, SHEET, SetPlan, picture_name

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

    plan: SetPlan
    bits: str
    files: Mapping[str, str]
    tool: str = field(default_factory=this_tool)
    signature: Signature | None = None

    @property
    def composition(self) -> Guarantee:
        return self.plan.guarantee

    @property
    def strength(self) -> str:
        return strength(self.plan.guarantee)

    @property
    def objections(self) -> tuple[str, ...]:
        reasons = {"practically none": self.strength not in PUBLISHABLE, "seeded bits": self.bits != SECURE}
        return tuple(reason for reason, holds in reasons.items() if holds)

    @property
    def warnings(self) -> tuple[str, ...]:
        due = {LEARNED: True, LABELS: True, FAINT: self.plan.faint, SEEDED: self.bits == SEEDED_BITS}
        return tuple(text for text, holds in due.items() if holds)

    def members(self) -> dict[str, Json]:
        return {
            "method": METHOD,
            "parameters": self.plan.parameters(),
            "composition": self.composition.numbers(),
            "strength": self.strength,
            "accountant": ACCOUNTANT,
            "bits": self.bits,
            "files": dict(self.files),
        }

    @property
    def sha256(self) -> str:
        """The SHA-256 of the canonical text, by which a ledger knows the set."""
        return hashlib.sha256(self.to_text().encode()).hexdigest()

    @classmethod
    def of_members(cls, data: Mapping[str, Any]) -> SetCertificate:
        stated = read_object(_Stated, data)
        plan = SetPlan.stated(stated.parameters)
        if sorted(stated.files) != sorted([SHEET, *map(picture_name, range(1, plan.pictures + 1))]):
            raise CertificateError("the certificate lists other files than its pictures", hint=INTACT)
        about = {"tool": stated.tool, "signature": stated.signature}
        return cls(plan=plan, bits=stated.bits, files=stated.files, **about)  # type: ignore[arg-type]


@dataclass(frozen=True)
class _Stated:
    """A data set's certificate as it is written; what follows from its parameters is not read."""

    parameters: Parameters
    bits: Annotated[str, one_of(SECURE, SEEDED_BITS)]
    files: Mapping[str, Hash]
    tool: str
    method: Any
    composition: Any
    strength: Any
    accountant: Any
    signature: Signature | None = None


ACROSS: Final = 16  # pictures in a row of the contact sheet
DOWN: Final = 16  # most rows of the contact sheet
MOST_FILE_BYTES: Final = 1 << 26  # largest file of a set, in bytes


class Payment(Protocol):
    """What paid for a set, as `dpveil.ledger.Reservation`."""

    def stored(self, sha256: str) -> None:
        """Note the SHA-256 of a file, before that file gets its name."""


def check_new(folder: Path) -> None:
    """Raise `OutputError` unless `folder` does not exist, or is an empty folder."""
    if not is_present(folder):
        return
    if folder.is_symlink() or not folder.is_dir():
        raise OutputError(
            f"{show_path(folder)} is no folder", hint="choose another {out}", arguments={"out": "out"}
        )
    if is_present(folder / DATA_SET):
        problem = f"{show_path(folder)} holds a data set already"
        hint = "dpveil verify checks it; choose another {out} for another set, which costs again"
        raise OutputError(problem, hint=hint, arguments={"out": "out"})
    if any(folder.iterdir()):
        problem = f"{show_path(folder)} is not empty, and a data set is written to a folder of its own"
        raise OutputError(problem, hint="choose another {out}", arguments={"out": "out"})


def save(
    folder: Path, plan: SetPlan, pictures: Crops, bits: BitSource, paid: Payment | None = None
) -> SetCertificate:
    """Write a data set to a new folder: all of it or nothing; return its certificate.

    `bits` is the source that everything was drawn from. A ledger that `paid` knows the SHA-256 of the
    certificate before any file has its name. Raises `OutputError` and `LedgerError`; nothing is written then.
    """
    check_new(folder)
    files = {picture_name(number): encode(picture, "png") for number, picture in enumerate(pictures, 1)}
    files[SHEET] = encode(sheet(pictures), "png")
    hashes = {name: hashlib.sha256(contents).hexdigest() for name, contents in files.items()}
    certificate = SetCertificate(plan=plan, bits=bits_kind(bits), files=hashes)
    make_folder(folder)
    written = [(folder / DATA_SET, certificate.to_text().encode())]
    written += [(folder / name, data) for name, data in files.items()]
    known = None if paid is None else partial(paid.stored, certificate.sha256)
    write_together(written, replace=False, before=known)
    return certificate


def sheet(pictures: Crops) -> UInt8[np.ndarray, "H W 3"]:
    """Return the contact sheet: the first pictures in rows, white where there are no more."""
    some = pictures[: ACROSS * DOWN]
    rows = -(-len(some) // ACROSS)
    height, width, channels = some.shape[1:]
    cells = np.full((rows * ACROSS, height, width, channels), 255, np.uint8)
    cells[: len(some)] = some
    lines = cells.reshape(rows, ACROSS, height, width, channels).swapaxes(1, 2)
    return np.ascontiguousarray(lines.reshape(rows * height, ACROSS * width, channels))


def set_problems(folder: Path, certificate: SetCertificate) -> Iterator[str]:
    """Yield in what the folder of a data set is not what its certificate describes; raises nothing.

    The promise was computed again from the settings. Every file is compared with its hash, and one that is
    not listed is a problem.
    """
    if not certificate.signature_fits():
        yield "its signature is not one of this certificate by the key that it names"
    try:
        names = sorted(path.name for path in folder.iterdir())
    except OSError as error:
        yield f"the folder cannot be read ({error.strerror})"
        return
    for name in names:
        if name != DATA_SET and name not in certificate.files:
            yield f"{escape_text(name)} is not part of the set"
    for name, digest in sorted(certificate.files.items()):
        try:
            contents = read_untrusted(folder / name, MOST_FILE_BYTES) if is_present(folder / name) else None
        except Refused as refusal:
            yield f"{name} {refusal.problem}"
            continue
        if contents is None:
            yield f"{name} is missing"
        elif hashlib.sha256(contents).hexdigest() != digest:
            yield f"{name} was changed: its SHA-256 is not the one in the certificate"
        elif not only_picture(contents, "png"):
            yield f"{name} holds more than a picture, or is not as dpveil writes it"
