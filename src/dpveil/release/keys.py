"""Keys that sign certificates, and those that are trusted to: Ed25519, in PEM files as OpenSSL's."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

from dpveil.core.envelope import KEY_BYTES, Envelope, Sealed, Signature, fingerprint, message
from dpveil.errors import InvalidParameter, OutputError
from dpveil.io.names import check_path, show_path
from dpveil.io.unreadable import Refused
from dpveil.io.untrusted_files import is_present, read_untrusted
from dpveil.io.writing import write_together

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey


SUFFIX: Final = ".pub"
MOST_BYTES: Final = 1 << 14  # largest key file in bytes
MOST_TRUSTED: Final = 1000  # most keys that one verification trusts
LABEL: Final = re.compile(rb"\s*-----BEGIN ([A-Z0-9 ]{1,40})-----")
LOCKED: Final = b"ENCRYPTED PRIVATE KEY"
OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO  # permissions that a private key's file must not give
NOT_PRIVATE: Final = "is not a private key in PEM (PKCS #8)"
MAKE: Final = "make one with dpveil key new"
OWNER: Final = "run this as the user whose it is, who has to be allowed to read it and its folder"
SEND: Final = "name the signer's public key, the file that ends in .pub"


@dataclass(frozen=True)
class PublicKey:
    """A public key of 32 bytes that is trusted to sign, under the `name` by which `verify` calls its owner.

    `read` makes it from a file. Raises `InvalidParameter` for other than 32 bytes.
    """

    data: bytes
    name: str = ""

    def __post_init__(self) -> None:
        if len(self.data) != KEY_BYTES:
            raise InvalidParameter("public key", None, f"does not have {KEY_BYTES} bytes")

    @classmethod
    def read(cls, path: str | Path, *, argument: str = "trust") -> Self:
        """Return the key in a PEM file of at most 16 kB, named by the file's name without `.pub`.

        Raises `InvalidParameter` about `argument`.
        """
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
        from cryptography.hazmat.primitives.serialization import load_pem_public_key

        contents = public_contents(path, argument)
        if _label(contents).endswith(b"PRIVATE KEY"):
            problem = "is a private key, and only its public half may be trusted"
            raise _key_error(argument, path, problem, SEND)
        try:
            key = load_pem_public_key(contents)
        except (ValueError, UnsupportedAlgorithm):
            key = None
        if not isinstance(key, Ed25519PublicKey):
            raise _key_error(argument, path, "is not an Ed25519 public key in PEM", SEND)
        return cls(key.public_bytes_raw(), show_path(Path(path).name.removesuffix(SUFFIX)))

    @property
    def fingerprint(self) -> str:
        """The first 32 hexadecimal digits of the SHA-256 of the key's 32 bytes."""
        return fingerprint(self.data)

    @property
    def pem(self) -> bytes:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
        from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

        key = Ed25519PublicKey.from_public_bytes(self.data)
        return key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


@dataclass(frozen=True, eq=False)
class SigningKey:
    """An Ed25519 private key, which signs certificates: `release.save(path, sign=key)`.

    `read` makes it from a file. It is shown by the fingerprint of its public half only.

    >>> key = SigningKey.generate()
    >>> len(key.public.data), key.public.fingerprint in repr(key)
    (32, True)
    """

    public: PublicKey
    private: Ed25519PrivateKey = field(repr=False)

    def __repr__(self) -> str:
        """Return the fingerprint only: a representation ends up in logs."""
        return f"SigningKey({self.public.fingerprint})"

    def __reduce__(self) -> str:
        raise TypeError("a private key is not pickled: read its file again")

    @classmethod
    def generate(cls) -> Self:
        """Return a new key, from the operating system's random generator."""
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        return cls._of(Ed25519PrivateKey.generate())

    @classmethod
    def read(cls, path: str | Path, passphrase: str | None = None, *, argument: str = "sign") -> Self:
        """Return the key in a PEM file (PKCS #8), which only its owner may be allowed to read.

        `passphrase` opens an encrypted file, and is ignored for another. Raises `InvalidParameter` about
        `argument` for anything else.
        """
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        private = private_key(path, passphrase, argument=argument)
        if not isinstance(private, Ed25519PrivateKey):
            raise _key_error(argument, path, "is a key of another kind than Ed25519", MAKE)
        return cls._of(private)

    @classmethod
    def _of(cls, private: Ed25519PrivateKey) -> Self:
        return cls(PublicKey(private.public_key().public_bytes_raw()), private)

    def sign(self, certificate: Sealed) -> Sealed:
        """Return the certificate with this key's signature, in the place of any other."""
        value = self.private.sign(message(certificate.unsigned_text())).hex()
        return replace(certificate, signature=Signature(self.public.data.hex(), value))  # type: ignore[type-var]

    def has_signed(self, certificate: Envelope) -> bool:
        """Return whether the certificate names this key as its signer; `verify` checks its signature."""
        stated = certificate.signature
        return stated is not None and stated.public_key == self.public.data.hex()

    def write(self, path: str | Path, passphrase: str | None = None) -> Path:
        """Write the private key to `path`, for its owner alone, and the public one beside it; return that.

        With a `passphrase` the private key is encrypted. Raises `OutputError` for an existing file.
        """
        from cryptography.hazmat.primitives import serialization as pem

        target = Path(check_path(path, "give the name of a file, such as releases.key"))
        public = Path(f"{target}{SUFFIX}")
        for place in (target, public):
            if is_present(place):
                hint = "choose another name; a key is never overwritten"
                raise OutputError(f"{show_path(place)} exists already", hint=hint)
        lock = pem.NoEncryption() if passphrase is None else pem.BestAvailableEncryption(passphrase.encode())
        kept = self.private.private_bytes(pem.Encoding.PEM, pem.PrivateFormat.PKCS8, lock)
        write_together([(target, kept), (public, self.public.pem)], replace=False, private=True)
        with suppress(OSError):  # a disk without permissions
            public.chmod(0o644)
        return public


def private_key(path: str | Path, passphrase: str | None, *, argument: str) -> object:
    """Return the private key, of any kind, in a PEM file; raises `InvalidParameter` as `SigningKey.read`."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    contents = _private_contents(path, argument)
    locked = _label(contents) == LOCKED
    if locked and passphrase is None:
        raise _key_error(argument, path, "is encrypted, and there is no passphrase", "give its passphrase")
    try:
        return load_pem_private_key(contents, password=str(passphrase).encode() if locked else None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        if locked:
            raise _key_error(argument, path, "does not open with this passphrase", "try again") from error
        raise _key_error(argument, path, NOT_PRIVATE, MAKE) from error


def signing_key(key: SigningKey | str | Path) -> SigningKey:
    """Return a key as it is, or the one in an unencrypted file of that name; raises `InvalidParameter`."""
    return key if isinstance(key, SigningKey) else SigningKey.read(check_path(key, "give a key file's name"))


def trusted_keys(
    trust: PublicKey | str | Path | Sequence[PublicKey | str | Path] | None,
) -> tuple[PublicKey, ...] | None:
    """Return the keys to trust, from objects and names of files; None if none are asked for.

    Raises `InvalidParameter` for what is no public key, and for an empty list, which nothing could satisfy.
    """
    if trust is None:
        return None
    listed: list[Any] = list(trust) if isinstance(trust, list | tuple) else [trust]
    if not 0 < len(listed) <= MOST_TRUSTED:
        hint = f"name from one to {MOST_TRUSTED:,} public keys"
        raise InvalidParameter("trust", None, f"has {len(listed):,} keys", hint=hint)
    return tuple(key if isinstance(key, PublicKey) else PublicKey.read(key) for key in listed)


def _label(contents: bytes) -> bytes:
    found = LABEL.match(contents)
    return b"" if found is None else found[1]


def needs_passphrase(path: str | Path, *, argument: str = "sign") -> bool:
    """Return whether a file's private key is encrypted; raises `InvalidParameter` as `SigningKey.read`."""
    return _label(_private_contents(path, argument)) == LOCKED


def is_private(path: str | Path, *, argument: str) -> bool:
    """Return whether a file says that it is a private key; raises `InvalidParameter` as `SigningKey.read`."""
    return _label(public_contents(path, argument)).endswith(b"PRIVATE KEY")


def _private_contents(path: str | Path, argument: str) -> bytes:
    contents = public_contents(path, argument)
    if not _label(contents).endswith(b"PRIVATE KEY"):
        raise _key_error(argument, path, NOT_PRIVATE, MAKE if argument == "sign" else "name a PEM file")
    if os.name == "posix" and Path(path).stat().st_mode & OTHERS:
        raise _key_error(argument, path, "may be read by other users", f"chmod 600 {show_path(path)}")
    return contents


def public_contents(path: str | Path, argument: str) -> bytes:
    """Return a small plain file; raises `InvalidParameter` about `argument`."""
    try:
        if not is_present(Path(path)):
            raise Refused("does not exist", "check the name")
        return read_untrusted(Path(os.path.realpath(path)), MOST_BYTES)
    except Refused as refusal:
        hint = {"sign": MAKE, "trust": SEND}.get(argument, "name a PEM file")
        hint = OWNER if isinstance(refusal.__cause__, PermissionError) else hint
        raise _key_error(argument, path, refusal.problem, hint) from refusal


def _key_error(argument: str, path: str | Path, problem: str, hint: str) -> InvalidParameter:
    return InvalidParameter(argument, str(path), problem, hint=hint)
