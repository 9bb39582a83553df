"""C2PA manifests within released files: they say that, and how, a picture is made by a machine.

A manifest names the kind of source (IPTC's digital source type) and this program, and is signed with the key
of an X.509 certificate. It holds no thumbnail, no ingredient and no time, and making it takes no network.
Source: C2PA specification 2.4; IPTC NewsCodes, digitalsourcetype; Regulation (EU) 2024/1689, article 50(2).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any, Final, Self

import numpy as np

from dpveil.catalogue import method_from_certificate
from dpveil.core.certificate import Certificate
from dpveil.core.envelope import this_tool
from dpveil.errors import DPVeilError, InvalidParameter, OutputError, UsageError
from dpveil.io.writing import encode
from dpveil.mechanisms.method import ALTERED, DRAWN, TRAINED
from dpveil.release.keys import private_key, public_contents

VOCABULARY: Final = "http://cv.iptc.org/newscodes/digitalsourcetype/"
TERMS: Final = {
    (TRAINED, True): "trainedAlgorithmicMedia",
    (TRAINED, False): "compositeWithTrainedAlgorithmicMedia",
    (DRAWN, True): "algorithmicMedia",
    (DRAWN, False): "composite",
    (ALTERED, True): "algorithmicallyEnhanced",
    (ALTERED, False): "algorithmicallyEnhanced",
}
"""IPTC's term by how what is shown was made, and whether it is the whole picture. `algorithmicMedia` is what
owes nothing to a photo; a photo with noise is algorithmically altered media (`algorithmicallyEnhanced`)."""
SETTINGS: Final = {
    "builder": {
        "thumbnail": {"enabled": False},
        "actions": {
            "auto_created_action": {"enabled": False},
            "auto_opened_action": {"enabled": False},
            "auto_placed_action": {"enabled": False},
        },
    },
    "verify": {"remote_manifest_fetch": False, "ocsp_fetch": False, "verify_after_sign": True},
    "core": {"allowed_network_hosts": []},
}
"""Settings of the C2PA library: nothing is added, and nothing is fetched."""
MARKED: Final = ("png", "jpeg", "webp")  # formats that have a place for a manifest, and are written
NEEDED: Final = "C2PA manifests need the package c2pa-python"
CHAIN_HINT: Final = "give the signer's X.509 certificate and those up to its root, in PEM, the signer's first"


def source_type(certificate: Certificate) -> str:
    """Return IPTC's term for the picture that a certificate with its `output` is about.

    Raises `DPVeilError` for an unprotected copy, of which nothing is made.
    """
    output = certificate.output
    if output is None or not certificate.guarantees:
        hint = "leave {mark} out, or protect what was not found"
        problem = "an unprotected copy gets no C2PA manifest: nothing in it is made"
        raise DPVeilError(problem, hint=hint, arguments={"mark": "mark"})
    everything = (0, 0, output.width, output.height)
    whole = any(
        record.masked is None and (record.box.x, record.box.y, record.box.w, record.box.h) == everything
        for record in certificate.regions
    )
    return TERMS[method_from_certificate(certificate.method, certificate.parameters).made, whole]


@dataclass(frozen=True, eq=False)
class Marker:
    """Adds a C2PA manifest to files: `release.save(path, mark=marker)`.

    `chain` is the signer's certificate in PEM and those above it; `sign` returns the signature of some bytes
    by the algorithm that `algorithm` names in the C2PA library.
    """

    chain: str
    algorithm: str
    sign: Callable[[bytes], bytes]

    def __repr__(self) -> str:
        """Return the algorithm only: a representation ends up in logs."""
        return f"Marker({self.algorithm})"

    @classmethod
    def read(cls, chain: str | Path, key: str | Path, passphrase: str | None = None) -> Self:
        """Return a marker by a file of certificates (PEM) and one with the private key of the first.

        The key is Ed25519 or ECDSA on the curve P-256, and may be read by its owner only. A picture of one
        pixel is marked as a trial, so that an expired certificate, or one for other purposes, is noticed
        here. Raises `InvalidParameter` about `c2pa` or `c2pa_key`, and `UsageError` without c2pa-python.
        """
        _library()
        text = public_contents(chain, "c2pa").decode("ascii", "replace")
        algorithm, sign = _signer(private_key(key, passphrase, argument="c2pa_key"), key)
        made = cls(text, algorithm, sign)
        try:
            made._embed(encode(np.zeros((1, 1), np.uint8), "png"), "png", TERMS[ALTERED, True])
        except OutputError as error:
            problem = f"cannot sign with {{c2pa_key}}: {error.message}"
            arguments = {"c2pa_key": "c2pa_key"}
            raise InvalidParameter(
                "c2pa", str(chain), problem, hint=CHAIN_HINT, arguments=arguments
            ) from error
        return made

    def check(self, format_: str) -> None:
        """Raise `OutputError` if files of this format can have no manifest."""
        if format_ not in MARKED:
            hint = "write png, jpeg or webp"
            raise OutputError(f"a {format_} file gets no C2PA manifest", hint=hint)

    def embed_manifest(self, contents: bytes, format_: str, certificate: Certificate) -> bytes:
        """Return the file `contents` of a release with a manifest; the picture in it stays the same.

        Raises `DPVeilError` for an unprotected copy, and `OutputError`.
        """
        self.check(format_)
        return self._embed(contents, format_, source_type(certificate))

    def _embed(self, contents: bytes, format_: str, term: str) -> bytes:
        library: Any = _library()
        name, version = this_tool().split(" ", 1)
        action = {"action": "c2pa.created", "digitalSourceType": VOCABULARY + term}
        manifest = {
            "claim_generator_info": [{"name": name, "version": version}],
            "assertions": [{"label": "c2pa.actions.v2", "data": {"actions": [action]}}],
        }
        marked = BytesIO()
        try:
            algorithm = library.C2paSigningAlg[self.algorithm]
            signer = library.Signer.from_callback(self.sign, algorithm, self.chain)
            builder = library.Builder(manifest, context=library.Context.from_dict(SETTINGS))
            builder.sign(signer, f"image/{format_}", BytesIO(contents), marked)
        except library.C2paError as error:
            said = " ".join(str(error).split())[:200]
            raise OutputError(f"no C2PA manifest was made ({said})", hint=CHAIN_HINT) from error
        return marked.getvalue()


def _signer(private: object, path: str | Path) -> tuple[str, Callable[[bytes], bytes]]:
    from cryptography.hazmat.primitives.asymmetric.ec import ECDSA, SECP256R1, EllipticCurvePrivateKey
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
    from cryptography.hazmat.primitives.hashes import SHA256

    if isinstance(private, Ed25519PrivateKey):
        return "ED25519", private.sign
    if isinstance(private, EllipticCurvePrivateKey) and isinstance(private.curve, SECP256R1):

        def sign(data: bytes) -> bytes:
            """Return a signature as two numbers of 32 bytes (RFC 9053 §2.1)."""
            two = decode_dss_signature(private.sign(data, ECDSA(SHA256())))
            return b"".join(number.to_bytes(32, "big") for number in two)

        return "ES256", sign
    hint = "use an Ed25519 key, or one on the curve P-256"
    raise InvalidParameter("c2pa_key", str(path), "is a key of another kind", hint=hint)


def _library() -> Any:
    try:
        import c2pa
    except ImportError as error:
        raise UsageError(NEEDED, hint="pip install 'dpveil[c2pa]'") from error
    return c2pa
