"""What the server checks of a worker's release before it keeps, signs and shows it."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any, Final

from dpveil.core.certificate import parse_certificate, parse_guarantee
from dpveil.io import FORMATS
from dpveil.io.containers import format_name
from dpveil.service.problems import WorkerEnded

if TYPE_CHECKING:
    from dpveil.release.keys import SigningKey

Message = tuple[dict[str, Any], bytes]
"""What is told, and the bytes that go with it: a photo, or a release."""
MOST_NOTES: Final = 1 << 16
"""Most bytes of a release's notes as JSON."""


def checked(
    answer: dict[str, Any],
    image: bytes,
    total: dict[str, Any] | None,
    room: int,
    sign: SigningKey | None = None,
) -> dict[str, Any]:
    """Return a worker's release with its SHA-256, signed; raises `WorkerEnded` unless it was paid for.

    It has `room` bytes at most with its notes, as the worker said before.
    What is signed has no contradiction that `dpveil verify` finds in the certificate alone.
    """
    notes = json.dumps([str(note) for note in answer["notes"]])
    if len(notes) > MOST_NOTES or len(image) + len(answer["certificate"].encode()) + len(notes) > room:
        raise WorkerEnded
    sha256, kind = hashlib.sha256(image).hexdigest(), (format_name(image[:64]) or "").lower()
    certificate = parse_certificate(answer["certificate"])
    paid = None if total is None else parse_guarantee(total)
    output = certificate.output
    stated = None if output is None else (output.sha256, output.format)
    if (stated, certificate.composition) != ((sha256, kind), paid):
        raise WorkerEnded
    if answer["format"] != kind or kind not in FORMATS.values():  # downloads are of that type
        raise WorkerEnded
    if certificate.signature is not None:  # a worker has no key
        raise WorkerEnded
    told = {"certificate": answer["certificate"], "format": kind, "sha256": sha256, "notes": notes}
    if sign is None:
        return told
    from dpveil.release.verification import contradictions

    if contradictions(certificate):
        raise WorkerEnded
    return {**told, "certificate": sign.signed(certificate).to_text()}
