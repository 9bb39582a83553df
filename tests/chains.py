"""X.509 chains as C2PA asks for, made up: a root, and a signer's certificate for signing documents."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

BEGAN = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
USES = ("digital_signature", "content_commitment", "key_encipherment", "data_encipherment", "key_agreement")
USES = (*USES, "key_cert_sign", "crl_sign", "encipher_only", "decipher_only")


@dataclass(frozen=True)
class Chain:
    """A signer's certificate with its root, in PEM, and the signer's private key."""

    pem: bytes
    root: bytes
    key: Any

    def write(self, folder: Path, name: str = "signer") -> tuple[Path, Path]:
        """Write the chain and the key; return both paths."""
        chain, key = folder / f"{name}.pem", folder / f"{name}.key.pem"
        chain.write_bytes(self.pem)
        key.write_bytes(self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
        key.chmod(0o600)
        return chain, key


def chain(*, curve: bool = False, years: int = 50, purpose: bool = True) -> Chain:
    root, key = ed25519.Ed25519PrivateKey.generate(), ed25519.Ed25519PrivateKey.generate()
    if curve:
        key = ec.generate_private_key(ec.SECP256R1())  # type: ignore[assignment]
    above = _made("root", root, "root", root, years, 1, "key_cert_sign", [])
    uses = [x509.ExtendedKeyUsage([ExtendedKeyUsageOID.EMAIL_PROTECTION])] if purpose else []
    own = _made("signer", key, "root", root, years, 2, "digital_signature", uses)
    return Chain(own + above, above, key)


def _made(
    name: str, key: Any, above: str, by: Any, years: int, serial: int, use: str, more: list[Any]
) -> bytes:
    public = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    usage = x509.KeyUsage(**{each: each == use for each in USES})
    builder = x509.CertificateBuilder(_name(above), _name(name), key.public_key(), serial)
    builder = builder.not_valid_before(BEGAN)
    builder = builder.not_valid_after(BEGAN + datetime.timedelta(days=365 * years + 1))
    builder = builder.add_extension(x509.BasicConstraints(ca=use == "key_cert_sign", path_length=None), True)
    builder = builder.add_extension(usage, True).add_extension(public, False)
    builder = builder.add_extension(
        x509.AuthorityKeyIdentifier.from_issuer_public_key(by.public_key()), False
    )
    for extension in more:
        builder = builder.add_extension(extension, False)
    return builder.sign(by, None).public_bytes(Encoding.PEM)


def _name(name: str) -> x509.Name:
    return x509.Name(
        [x509.NameAttribute(NameOID.ORGANIZATION_NAME, "Test"), x509.NameAttribute(NameOID.COMMON_NAME, name)]
    )
