"""Ed25519 signatures of certificates (RFC 8032), and the public keys and values that are refused."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import Final

from dpveil.core.numbers import Json
from dpveil.errors import INTACT, CertificateError

ALGORITHM: Final = "ed25519"
CONTEXT: Final = b"dpveil certificate, signature 1\0"
"""Begins every signed message, so that a signature of a certificate is not one of anything else."""
KEY_BYTES: Final = 32
VALUE_BYTES: Final = 64
HEXADECIMAL: Final = re.compile(r"[0-9a-f]*")
FINGERPRINT_BYTES: Final = 16

PRIME: Final = 2**255 - 19
"""The field of Edwards25519: y-coordinates are below it."""
ORDER: Final = 2**252 + 27742317777372353535851937790883648493
"""The order of its base point: the second half of a signature is below it (RFC 8032 §5.1.7)."""
EIGHTH: Final = int.from_bytes(
    bytes.fromhex("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05"), "little"
)
"""The y-coordinate of a point of order 8."""
SMALL: Final = frozenset({0, 1, PRIME - 1, EIGHTH, PRIME - EIGHTH})
"""The y-coordinates of all points whose order divides 8. With such a public key one signature fits many
messages, and nobody has to know a private key to make it."""


def flaw(public_key: bytes) -> str:
    """Return why these bytes are no public key that can be relied on; empty if they may be one.

    >>> flaw(bytes(32)), flaw(b"short")
    ('is a point of small order, with which anybody can sign', 'does not have 32 bytes')
    """
    if len(public_key) != KEY_BYTES:
        return f"does not have {KEY_BYTES} bytes"
    y = int.from_bytes(public_key, "little") & (2**255 - 1)
    if y >= PRIME:
        return "is not in its canonical form"
    return "is a point of small order, with which anybody can sign" if y in SMALL else ""


def fingerprint(public_key: bytes) -> str:
    """Return the first 32 hexadecimal digits of the SHA-256 of a public key's 32 bytes."""
    return hashlib.sha256(public_key).digest()[:FINGERPRINT_BYTES].hex()


@dataclass(frozen=True)
class Signature:
    """A certificate's signature: the signer's public key (32 bytes) and the signature's value (64 bytes).

    Both are lower-case hexadecimal. Raises `CertificateError` for other lengths and letters, for a value that
    is not in canonical form, and for a public key with a `flaw`.
    """

    public_key: str
    value: str

    def __post_init__(self) -> None:
        given: list[tuple[object, int]] = [(self.public_key, KEY_BYTES), (self.value, VALUE_BYTES)]
        for text, size in given:
            if not isinstance(text, str) or len(text) != 2 * size or not HEXADECIMAL.fullmatch(text):
                raise _malformed(f"does not have {size} bytes in hexadecimal")
        if why := flaw(bytes.fromhex(self.public_key)):
            raise _malformed(f"names a key that {why}")
        if int.from_bytes(bytes.fromhex(self.value)[KEY_BYTES:], "little") >= ORDER:
            raise _malformed("is not in its canonical form")

    @property
    def signer(self) -> str:
        """The fingerprint of the signer's public key."""
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

    def to_json(self) -> dict[str, Json]:
        """Return the JSON object of a certificate."""
        return {"algorithm": ALGORITHM, "public_key": self.public_key, "value": self.value}


def message(text: str) -> bytes:
    """Return the bytes that are signed for a certificate with the unsigned form `text`."""
    return CONTEXT + text.encode()


def _malformed(fault: str) -> CertificateError:
    return CertificateError(f"the certificate is malformed: its signature {fault}", hint=INTACT)
