"""Signatures of certificates: who lacks the key cannot make one, and nothing that was signed can change."""

from __future__ import annotations

import hashlib
import json
import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

import dpveil
from dpveil.core.certificate import Certificate, parse_certificate
from dpveil.core.envelope import fingerprint
from dpveil.errors import CertificateError, InvalidParameter, NoRegion, OutputError
from dpveil.regions import Finder
from dpveil.release.keys import MOST_BYTES, PublicKey, SigningKey
from dpveil.release.verification import FORGED

RELEASE = dpveil.obfuscate(np.full((8, 8), 90, np.uint8), "dp-pix", epsilon=1, block=8)


class Nobody(Finder):
    description = "nobody"

    def __call__(self, photo):
        raise NoRegion("there is nobody in this photo")


def key(seed: int) -> SigningKey:
    private = ed25519.Ed25519PrivateKey.from_private_bytes(bytes([seed] * 32))
    return SigningKey(PublicKey(private.public_key().public_bytes_raw(), f"key {seed}"), private)


ALICE, MALLORY = key(1), key(2)


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    return RELEASE.save(tmp_path / "a.png", sign=ALICE)[0]


def beside(image: Path) -> Path:
    return Path(f"{image}.certificate.json")


def put(image: Path, certificate: Certificate) -> None:
    beside(image).write_text(certificate.to_text(), encoding="utf-8")


def stated(image: Path) -> Certificate:
    return parse_certificate(beside(image).read_text(encoding="utf-8"))


# The scheme


def test_a_signature_is_one_of_the_context_and_the_unsigned_file(saved, tmp_path):
    data = json.loads(beside(saved).read_text(encoding="utf-8"))
    signature = data.pop("signature")
    unsigned = json.dumps(data, sort_keys=True, indent=2, ensure_ascii=False) + "\n"
    said = b"dpveil certificate, signature 1\x00" + unsigned.encode()
    public, value = (bytes.fromhex(signature[name]) for name in ("public_key", "value"))
    assert signature["algorithm"] == "ed25519"
    openly = ed25519.Ed25519PublicKey.from_public_bytes(public)
    openly.verify(value, said)
    with pytest.raises(InvalidSignature):
        openly.verify(value, unsigned.encode())
    (tmp_path / "b.png").write_bytes(saved.read_bytes())
    beside(tmp_path / "b.png").write_text(unsigned, encoding="utf-8")
    assert dpveil.verify(tmp_path / "b.png").status == "consistent"
    assert data["checksum"] == stated(saved).to_json()["checksum"]


@pytest.mark.parametrize(
    "change", [{"algorithm": "rsa"}, {"extra": 1}, {"algorithm": None}, None, [], "ed25519"]
)
def test_a_signature_is_written_in_one_way(change):
    data = ALICE.sign(RELEASE.certificate).to_json()
    data["signature"] = data["signature"] | change if isinstance(change, dict) else change
    with pytest.raises(CertificateError):
        parse_certificate(json.dumps(data, sort_keys=True, indent=2, ensure_ascii=False) + "\n")


# What verify says


def test_by_whom(saved):
    found = dpveil.verify(saved)
    assert (found.status, found.publishable, found.untrusted) == ("consistent", True, "")
    assert found.signer == hashlib.sha256(ALICE.public.data).hexdigest()[:32] == ALICE.public.fingerprint
    assert found.notes[-1] == f"signed by {found.signer}, which nobody vouched for"
    known = dpveil.verify(saved, trust=[MALLORY.public, ALICE.public])
    assert (known.publishable, known.trusted_as) == (True, "key 1")
    assert known.notes[-1] == f"signed by key 1 ({found.signer})"


def test_unsigned_and_wrongly_signed_releases_are_not_trusted(saved, tmp_path):
    other = dpveil.verify(saved, trust=MALLORY.public)
    assert (other.status, other.sound, other.publishable) == ("consistent", False, False)
    assert other.untrusted == f"it is signed by {ALICE.public.fingerprint}, which is not a trusted key"
    RELEASE.save(tmp_path / "b.png")
    none = dpveil.verify(tmp_path / "b.png", trust=MALLORY.public)
    assert (none.status, none.sound, none.signer) == ("consistent", False, "")
    assert none.untrusted == "it is not signed, and only a trusted signature was to pass"
    assert dpveil.verify(tmp_path / "b.png").signature == ()
    assert dpveil.verify(tmp_path / "c.png", trust=MALLORY.public).untrusted.startswith(
        "the file does not exist"
    )
    assert repr(other).endswith("which is not a trusted key)")


def test_taking_the_signature_away_is_visible(saved):
    put(saved, replace(stated(saved), signature=None))
    assert dpveil.verify(saved).status == "consistent"
    assert not dpveil.verify(saved, trust=ALICE.public).sound


def test_whatever_is_signed_cannot_be_edited(saved):
    """Any edit that leaves the text canonical, with a fitting checksum."""
    certificate = stated(saved)
    edits = {
        "tool": "dpveil 9.9",
        "bits": "seeded",
        "missing": ("faces",),
        "strength": "weak",
        "parameters": {**certificate.parameters, "block": 4},
        "output": replace(certificate.output, sha256="0" * 64),
    }
    for name, value in edits.items():
        put(saved, replace(certificate, **{name: value}))
        found = dpveil.verify(saved, trust=ALICE.public)
        assert found.status == "inconsistent", name
        assert found.problems[0] == FORGED, name


def test_the_picture_is_bound_by_its_hash(saved):
    contents = bytearray(saved.read_bytes())
    contents[-20] ^= 1
    saved.write_bytes(contents)
    found = dpveil.verify(saved, trust=ALICE.public)
    assert (found.status, found.sound) == ("inconsistent", False)
    assert "SHA-256" in found.problems[0]


def test_an_unprotected_copy_stays_one_whoever_signs_it(tmp_path):
    photo = np.full((8, 8), 90, np.uint8)
    copy = dpveil.obfuscate(photo, "dp-pix", epsilon=1, block=8, regions=Nobody(), if_none="copy")
    image = copy.save(tmp_path / "a.png", sign=ALICE)[0]
    found = dpveil.verify(image, trust=ALICE.public)
    assert (found.status, found.sound, found.publishable) == ("unprotected", False, False)


# Keys and their files


def test_keys_are_files_that_openssl_reads(tmp_path):
    made = SigningKey.generate()
    public = made.write(tmp_path / "k")
    assert public == tmp_path / "k.pub"
    assert (tmp_path / "k").stat().st_mode & 0o777 == 0o600
    assert public.stat().st_mode & 0o777 == 0o644
    assert SigningKey.read(tmp_path / "k").public == made.public
    assert PublicKey.read(public) == PublicKey(made.public.data, "k")
    theirs = made.private.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    assert public.read_bytes() == theirs
    assert fingerprint(made.public.data) in repr(made)
    assert SigningKey.generate().public != made.public


def test_no_key_is_overwritten(tmp_path):
    for name in ("k", "k.pub"):
        (tmp_path / name).write_text("mine", encoding="utf-8")
        with pytest.raises(OutputError, match="never overwritten"):
            ALICE.write(tmp_path / "k")
        assert [path.name for path in tmp_path.iterdir()] == [name]
        assert (tmp_path / name).read_text(encoding="utf-8") == "mine"
        (tmp_path / name).unlink()
    (tmp_path / "k").symlink_to(tmp_path / "nowhere")
    with pytest.raises(OutputError, match="never overwritten"):
        ALICE.write(tmp_path / "k")


def test_a_private_key_is_neither_shown_nor_pickled(tmp_path):
    ALICE.write(tmp_path / "k")
    secret = bytes([1] * 32).hex()
    assert secret not in repr(ALICE) + str(ALICE) + repr(vars(ALICE))
    with pytest.raises(TypeError):
        pickle.dumps(ALICE)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o601])
def test_a_private_key_that_others_may_read_is_refused(tmp_path, mode):
    ALICE.write(tmp_path / "k")
    (tmp_path / "k").chmod(mode)
    with pytest.raises(InvalidParameter, match="may be read by other users"):
        RELEASE.save(tmp_path / "a.png", sign=tmp_path / "k")
    assert not (tmp_path / "a.png").exists()
    (tmp_path / "link").symlink_to(tmp_path / "k")
    with pytest.raises(InvalidParameter, match="may be read by other users"):
        SigningKey.read(tmp_path / "link")
    (tmp_path / "k").chmod(0o600)
    assert SigningKey.read(tmp_path / "link").public.data == ALICE.public.data


def test_encrypted_keys_open_with_their_passphrase_alone(tmp_path):
    ALICE.write(tmp_path / "k", "hörst du")
    assert b"ENCRYPTED" in (tmp_path / "k").read_bytes()
    assert SigningKey.read(tmp_path / "k", "hörst du").public.data == ALICE.public.data
    for passphrase, problem in ((None, "there is no passphrase"), ("", "passphrase"), ("x", "does not open")):
        with pytest.raises(InvalidParameter, match=problem):
            SigningKey.read(tmp_path / "k", passphrase)


def pem(private: object, lock: object = NoEncryption()) -> bytes:
    return private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, lock)  # type: ignore[attr-defined]


RSA = rsa.generate_private_key(65537, 1024)  # noqa: S505  only to be refused
CURVE = ec.generate_private_key(ec.SECP256R1())
PUBLIC = ALICE.public.pem
BODY = PUBLIC.splitlines()[1]


def public_pem(private: object) -> bytes:
    return private.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)  # type: ignore[attr-defined]


STRANGE_PUBLIC = {
    "empty": b"",
    "garbage": bytes(range(256)) * 10,
    "huge": b"-----BEGIN PUBLIC KEY-----\n" + b"A" * MOST_BYTES,
    "rsa": public_pem(RSA),
    "curve": public_pem(CURVE),
    "private": pem(ALICE.private),
    "locked": pem(ALICE.private, BestAvailableEncryption(b"x")),
    "cut": PUBLIC[:60],
    "longer": PUBLIC.replace(BODY, BODY[:-1] + b"AAA="),
    "shorter": PUBLIC.replace(BODY, BODY[:-8]),
    "no base64": PUBLIC.replace(BODY, b"=" * 60),
    "certificate": b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
}
STRANGE_PRIVATE = {
    "empty": b"",
    "garbage": bytes(range(256)) * 10,
    "huge": b"-----BEGIN PRIVATE KEY-----\n" + b"A" * MOST_BYTES,
    "rsa": pem(RSA),
    "curve": pem(CURVE),
    "public": PUBLIC,
    "cut": pem(ALICE.private)[:70],
    "not pkcs8": b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
    "openssh": b"-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n-----END OPENSSH PRIVATE KEY-----\n",
}


@pytest.mark.parametrize("name", STRANGE_PUBLIC)
def test_only_one_public_key_can_be_trusted(saved, name):
    file = saved.parent / "strange.pub"
    file.write_bytes(STRANGE_PUBLIC[name])
    with pytest.raises(InvalidParameter) as caught:
        dpveil.verify(saved, trust=file)
    assert caught.value.name == "trust"
    assert len(str(caught.value)) < 300 + len(str(file))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", STRANGE_PRIVATE)
def test_only_a_private_key_signs(tmp_path, name):
    (tmp_path / "k").write_bytes(STRANGE_PRIVATE[name])
    (tmp_path / "k").chmod(0o600)
    with pytest.raises(InvalidParameter) as caught:
        RELEASE.save(tmp_path / "a.png", sign=tmp_path / "k")
    assert caught.value.name == "sign"
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "a.png").exists()
