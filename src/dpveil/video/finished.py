"""Reruns over clips: a release with the same settings is there, something else is, or nothing."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Protocol

from dpveil.batch.resume import ARGUMENTS, LACKS, taken
from dpveil.core.numbers import Json
from dpveil.errors import DPVeilError
from dpveil.io.names import shown
from dpveil.noise.bits import SECURE, SEEDED
from dpveil.release.keys import SigningKey
from dpveil.release.saving import certificate_path
from dpveil.video.certificate import VideoCertificate
from dpveil.video.quote import ClipQuote
from dpveil.video.state import folder_of
from dpveil.video.verification import verify_clip

ELSE: Final = "choose another {out}; or {force}, which replaces it"


class Knows(Protocol):
    """What knows who paid for a file, as `dpveil.ledger.Ledger`."""

    def knows(self, subject: str, sha256: str) -> bool:
        """Whether this subject paid for a file with this SHA-256."""


def finished(
    output: Path,
    settings: Mapping[str, Json],
    *,
    quote: ClipQuote | None = None,
    seed: int | None = None,
    ledger: Knows | None = None,
    subject: str | None = None,
    sign: SigningKey | None = None,
) -> VideoCertificate | None:
    """Return the certificate of the clip `output` if it is a release with these settings, and this `quote`.

    None if nothing is there, or a process that was killed has not given both files their names yet. Raises
    `DPVeilError` if it is something else, or a release that `sign` did not sign or that `subject` did not pay
    for from `ledger`.
    """
    beside = certificate_path(output)
    there = [os.path.lexists(path) for path in (output, beside)]
    if not any(there) or (there == [False, True] and folder_of(output).is_dir()):
        return None
    found = verify_clip(output)
    stated = found.certificate
    kind = SECURE if seed is None else SEEDED
    if stated is None or found.status != "consistent" or stated.settings != settings or stated.bits != kind:
        raise taken(output)
    if quote is not None and stated.quote != quote:
        raise taken(output)
    signer = None if stated.signature is None else stated.signature.public_key
    if sign is not None and signer != sign.public.data.hex():
        text = f"{shown(output)} is a release with these settings, and {LACKS['sign']}"
        raise DPVeilError(text, hint=f"leave out {{sign}} to keep it, or {ELSE}", arguments=ARGUMENTS)
    if ledger is not None and subject is not None and not ledger.knows(subject, stated.output.sha256):
        text = f"{shown(output)} exists, and {subject} did not pay for it from this ledger"
        raise DPVeilError(text, hint=ELSE, arguments=ARGUMENTS)
    return stated
