"""What all certificates have in common: one envelope of canonical JSON, its checksum, signature and parser.

A photo, a clip, a document and a data set differ in `kind` and in the members that describe them. A
certificate holds data alone; sentences are made of it by the version that shows them.
"""

from __future__ import annotations

import hashlib
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from typing import Annotated, Any, ClassVar, Final, Self, TypeVar

from dpveil.core.rationals import Json
from dpveil.core.strict_json import MOST_SHOWN, matching, of_type, one_of, read_object
from dpveil.errors import INTACT, CertificateError, DPVeilError, InvalidParameter, MissingPlugin

CONTEXT: Final = b"dpveil certificate, signature 1\0"
"""Begins every signed message, so that a signature of a certificate is not one of anything else."""
KEY_BYTES: Final = 32


def fingerprint(public_key: bytes) -> str:
    """Return the first 32 hexadecimal digits of the SHA-256 of a public key's 32 bytes."""
    return hashlib.sha256(public_key).hexdigest()[:32]


@dataclass(frozen=True)
class Signature:
    """A certificate's signature: the signer's public key (32 bytes) and the signature's value (64 bytes).

    Both are lower-case hexadecimal.
    """

    public_key: Annotated[str, matching("[0-9a-f]{64}", "public key in hexadecimal")]
    value: Annotated[str, matching("[0-9a-f]{128}", "signature in hexadecimal")]
    algorithm: Annotated[str, one_of("ed25519")] = "ed25519"

    @property
    def signer(self) -> str:
        return fingerprint(bytes.fromhex(self.public_key))

    def fits(self, text: str) -> bool:
        """Return whether whoever has the private key signed `text`, a certificate's unsigned form."""
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

        key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(self.public_key))
        try:
            key.verify(bytes.fromhex(self.value), message(text))
        except InvalidSignature:
            return False
        return True


def message(text: str) -> bytes:
    """Return the bytes that are signed for a certificate with the unsigned form `text`."""
    return CONTEXT + text.encode()


SCHEMA: Final = "dpveil.certificate/1"
TOOL: Final = re.compile(r"dpveil [0-9][0-9A-Za-z.+!-]{0,60}")  # the name and version of this program
COMPUTED: Final = ("schema", "kind", "publishable", "checksum")  # members that are never read
PUBLISHABLE: Final = frozenset({"strong", "moderate", "weak"})
"""Strengths of the composed guarantee with which a release may be published."""
MOST_BYTES: Final = 1 << 24  # largest certificate in bytes; 10 000 regions take up to 10 MB


@cache
def this_tool() -> str:
    """Return the name and version of this program, as certificates state it."""
    return f"dpveil {version('dpveil')}"


class Envelope(ABC):
    """A certificate of one kind: frozen data, of which `to_text` is the canonical form, byte for byte.

    `signature` is None for a certificate that is not signed: it shows inconsistency, not forgery.
    """

    kind: ClassVar[str]
    tool: str
    signature: Signature | None

    @property
    @abstractmethod
    def objections(self) -> tuple[str, ...]:
        """Why the release should not be published, in a few words each; empty if it may be."""

    @abstractmethod
    def members(self) -> dict[str, Json]:
        """Return what is stated about this kind of release."""

    @classmethod
    def of_members(cls, data: Mapping[str, Any]) -> Self:
        """Return the certificate with these members, which anybody may have written, and opens nothing.

        Raises `InvalidParameter`. Members that follow from others are not read: the text is compared.
        """
        return read_object(cls, data)

    @classmethod
    def from_json(cls, data: Any, where: str = "") -> Self:
        """Return the certificate of a received object; raises `CertificateError` and `InvalidParameter`."""
        given = of_type(dict, data, where)
        if given.get("schema") != SCHEMA:
            hint = f"this version reads {SCHEMA}; a newer one may read it"
            raise CertificateError("the certificate has another schema", hint=hint)
        if given.get("kind") != cls.kind:
            raise CertificateError(f"the certificate is not that of a {cls.kind}", hint=INTACT)
        if not TOOL.fullmatch(str(given.get("tool"))):
            raise CertificateError("the certificate was not written by dpveil", hint=INTACT)
        return cls.of_members({name: each for name, each in given.items() if name not in COMPUTED})

    @property
    def publishable(self) -> bool:
        return not self.objections

    def to_json(self) -> dict[str, Json]:
        data: dict[str, Json] = {"schema": SCHEMA, "kind": self.kind, "tool": self.tool}
        data |= {"publishable": self.publishable, **self.members()}
        if self.signature is not None:
            data["signature"] = dict(vars(self.signature))
        return data | {"checksum": checksum(data)}

    def to_text(self) -> str:
        return canonical(self.to_json())

    def unsigned_text(self) -> str:
        """Return the canonical text without the signature: that which is signed."""
        return canonical({name: value for name, value in self.to_json().items() if name != "signature"})

    def signature_fits(self) -> bool:
        """Whether the certificate is not signed, or by the key that its signature names."""
        return self.signature is None or self.signature.fits(self.unsigned_text())


Sealed = TypeVar("Sealed", bound=Envelope)


def parse(text: str, kind: type[Sealed]) -> Sealed:
    """Return the certificate of which `text`, which anybody may have written, is the canonical form.

    It is written again and compared, so that no member is left over, missing or not what the others give.
    Raises `CertificateError` for any other text, and `MissingPlugin`. Who reads a file limits it to
    MOST_BYTES.
    """
    try:
        built = kind.from_json(json.loads(text))
        as_written = built.to_text()
    except (CertificateError, MissingPlugin):
        raise
    except (DPVeilError, ValueError, ArithmeticError, RecursionError, MemoryError) as error:
        raise malformed_error(error) from error
    if as_written != text:
        raise CertificateError(
            "the certificate was edited: its text or checksum is not what dpveil wrote",
            hint=f"do not rely on it; {INTACT}",
        )
    return built


def malformed_error(error: Exception) -> CertificateError:
    """Return the error of a certificate that cannot be read; a value is told if its reader made it short."""
    why = "it is not the JSON of one"
    if isinstance(error, InvalidParameter):
        given = "" if error.value is None else f", and is {error.value!r}"
        why = f"its {error.name} {error.problem}" + given * (len(given) <= 2 * MOST_SHOWN)
    return CertificateError(f"the certificate is malformed: {why}", hint=INTACT)


def checksum(data: Mapping[str, Json]) -> str:
    """Return the SHA-256 in hexadecimal of a certificate's canonical form without `checksum` and `signature`.

    It detects edits of fields that no number depends on, such as a block size. It is not a signature:
    anybody can recompute it. It is the same whether the certificate is signed or not.
    """
    rest = {name: value for name, value in data.items() if name not in ("checksum", "signature")}
    return hashlib.sha256(canonical(rest).encode()).hexdigest()


def canonical(data: Mapping[str, Json]) -> str:
    """Return the canonical JSON text: sorted keys, indented by two spaces, one newline at the end.

    Raises `ValueError` for NaN and infinities, and `TypeError` for what is no JSON.
    """
    return json.dumps(data, sort_keys=True, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
