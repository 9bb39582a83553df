"""The result of `verify`: the status of a release, and notes about it."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from dpveil.core.certificate import Certificate
from dpveil.core.guarantee import Guarantee
from dpveil.io.names import quoted
from dpveil.noise.bits import SECURE, UNKNOWN
from dpveil.noise.bits import SEEDED as SEEDED_BITS
from dpveil.release.found import passed_notes
from dpveil.release.origins import stays
from dpveil.release.words import bit_cautions, few_only, share, traces, verdict

UNREAD: Final = "its C2PA manifest was not looked into, which needs pip install 'dpveil[c2pa]'"


@dataclass(frozen=True)
class Verification:
    """The result of verifying one image file.

    `status` is "consistent" (image, certificate and method agree), "unprotected" (they agree that it is a
    copy without any guarantee), "missing" (there is no certificate), "unchecked" (what reads the file is not
    installed) or "inconsistent"; `problems` say why, one line each. `certificate` is None if it cannot be
    read. `few_only` says that the promise is about few pixels only. `refused` says why the release
    does not satisfy `at_least`, or is empty. `signer` is the fingerprint of the key whose signature fits the
    certificate, `trusted_as` the name of the trusted key that this is, and `untrusted` says why no trusted
    key signed it, if one was asked for; each is empty if there is none. `inside` is the file of many releases
    that holds it, if one does, and `together` what all of it promise, if it is a document.
    """

    path: Path
    status: str
    problems: tuple[str, ...] = ()
    certificate: Certificate | None = None
    few_only: bool = False
    refused: str = ""
    signer: str = ""
    trusted_as: str = ""
    untrusted: str = ""
    inside: Path | None = None
    together: str = ""

    def __bool__(self) -> bool:
        raise TypeError("a verification is neither true nor false: read status or publishable")

    def __repr__(self) -> str:
        """Return the status and the first problem in one line."""
        first = next(iter(self.problems), self.refused or self.untrusted)
        why = f": {first}" if first else ""
        return f"Verification({str(self.path)!r}, {self.status}{why})"

    @property
    def sha256(self) -> str:
        """The SHA-256 of the image file, as its certificate states it; empty unless that is so."""
        stated = None if self.certificate is None else self.certificate.output
        return "" if stated is None or self.status not in ("consistent", "unprotected") else stated.sha256

    @property
    def costs(self) -> tuple[Guarantee, ...]:
        """What the release costs, draw by draw, as its certificate states it; empty if nothing was drawn."""
        stated = None if self.certificate is None else self.certificate.composition
        return () if stated is None else (stated,)

    @property
    def publishable(self) -> bool:
        """Whether the release is `sound` and has no `objections` to publishing it."""
        return self.sound and self.certificate is not None and not self.objections

    @property
    def sound(self) -> bool:
        """Whether the release is consistent, and neither `refused` nor `untrusted`."""
        return self.status == "consistent" and not self.refused and not self.untrusted

    @property
    def in_the_clear(self) -> tuple[str, ...]:
        """What a consistent release shows of the original, in sentences."""
        total = None if self.certificate is None else self.certificate.composition
        return () if total is None or self.status != "consistent" else total.scope.in_the_clear

    @property
    def objections(self) -> tuple[str, ...]:
        """Why the release may not be published, in a few words each."""
        return () if self.certificate is None else self.certificate.objections

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes about a consistent release, recomputed, not copied from its certificate; else empty."""
        stated = self.certificate
        if self.status != "consistent" or stated is None or stated.composition is None:
            return ()
        known = stated.bits in (SECURE, SEEDED_BITS)
        notes = (*bit_cautions(stated.bits if known else UNKNOWN), *verdict(stated.composition))
        notes += traces(stated.regions)
        if self.few_only:
            notes = (*notes, few_only(stated.composition))
        if stated.output and stated.output.manifest and not find_spec("c2pa"):
            notes = (*notes, UNREAD)
        if (output := stated.output) and (part := share(stated.regions, output.width, output.height)):
            notes = (part, *notes)
        passed = map(quoted, passed_notes(stated.passed_over))
        notes = (*notes, *stays(stated.request, stated.regions), *passed)
        return (*notes, *self.signature, *filter(None, [self.together]))

    @property
    def signature(self) -> tuple[str, ...]:
        """By whom the release is signed, in words; empty if it is not."""
        if not self.signer:
            return ()
        if self.trusted_as:
            return (f"signed by {self.trusted_as} ({self.signer})",)
        return (f"signed by {self.signer}, which nobody vouched for",)
