"""By whom a verified release is signed, and whether that is somebody who is trusted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final, TypeVar

from dpveil.release.keys import PublicKey
from dpveil.release.verified import Verification

UNSIGNED: Final = "it is not signed, and only a trusted signature was to pass"
UNKNOWN: Final = "it is signed by {}, which is not a trusted key"


Found = TypeVar("Found", bound=Verification)


def judged(found: Found, trusted: Sequence[PublicKey] | None) -> Found:
    """Return a verification with its signer, and why it is not `trusted`; None asks for nobody.

    The signature of a consistent release fits its certificate: others are inconsistent.
    """
    stated = found.certificate
    signature = None if stated is None or found.status == "inconsistent" else stated.signature
    signer = "" if signature is None else signature.signer
    if trusted is None:
        return replace(found, signer=signer)
    if signature is None:
        return replace(found, untrusted=next(iter(found.problems), UNSIGNED))
    for key in trusted:
        if key.data.hex() == signature.public_key:
            return replace(found, signer=signer, trusted_as=key.name or signer)
    return replace(found, signer=signer, untrusted=UNKNOWN.format(signer))
