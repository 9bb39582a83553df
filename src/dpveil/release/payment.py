"""What pays for a release: a ledger, asked before a bit is drawn."""

from __future__ import annotations

import hashlib
import json
from typing import Protocol

from dpveil.core.certificate import Certificate
from dpveil.core.guarantee import Guarantee
from dpveil.core.region import CoverageDigests
from dpveil.errors import InvalidParameter
from dpveil.noise.bits import SECURE, SEEDED, BitSource, bits_kind


class Payment(Protocol):
    """A debit for one release, as `dpveil.ledger.Reservation` once it is committed."""

    def stored(self, sha256: str) -> None:
        """Note the SHA-256 of a file of the release, before that file gets its name."""


class Budget(Protocol):
    """What pays for releases, as `dpveil.ledger.Ledger`."""

    def debit(
        self,
        subject: str,
        guarantee: Guarantee,
        key: str | bytes,
        *,
        again: bool = False,
        covered: CoverageDigests | None = None,
        other_regions: bool = False,
    ) -> Payment:
        """Debit a release for good, or raise `BudgetRefused`, `AlreadyPaid` or `LedgerError`.

        On return the debit survives a loss of power, and bits may be drawn.
        """


def check_payment(
    ledger: Budget | None,
    subject: str | None,
    key: str | bytes | None,
    bits: BitSource,
    *,
    again: bool = False,
    other_regions: bool = False,
) -> None:
    """Raise `InvalidParameter` unless these arguments of a release belong together.

    With a ledger all bits but secure ones are refused: whoever knows a seed undoes the release, whatever was
    paid, and of other sources nothing is known.
    """
    if ledger is None:
        named = {"subject": subject is not None, "key": key is not None}
        for name, given in {**named, "again": again, "other_regions": other_regions}.items():
            if given:
                raise InvalidParameter(name, None, "is given without a ledger", hint="give a ledger, too")
        return
    if not callable(getattr(ledger, "debit", None)):
        hint = 'give an object with the method debit, such as dpveil.Ledger("sqlite:///budget.db")'
        raise InvalidParameter("ledger", type(ledger).__name__, "is not a ledger", hint=hint)
    if subject is None:
        raise InvalidParameter("subject", None, "is missing", hint="name who pays, such as album-7")
    if (kind := bits_kind(bits)) != SECURE:
        reason = "is reproducible" if kind == SEEDED else "is not known to be secure"
        problem = f"{reason}, and no budget pays for that"
        raise InvalidParameter("bits", type(bits).__name__, problem, hint="leave out bits, or the ledger")


def pay(
    ledger: Budget,
    subject: str | None,
    key: str | bytes | None,
    certificate: Certificate,
    covered: CoverageDigests | None,
    *,
    again: bool = False,
    other_regions: bool = False,
) -> Payment:
    """Debit the total of a certificate for good; on return, bits may be drawn.

    `covered` is the photo and what is covered of it. Without a key, the work unit is the photo's content with
    these settings, and every call draws it again; with one, only `again` does once it was stored.
    """
    total = certificate.composition
    if subject is None or total is None or covered is None:
        raise InvalidParameter("subject", None, "is missing", hint="name who pays, such as album-7")
    if key is None:
        settings = json.dumps(certificate.settings, sort_keys=True).encode()
        # the photo's content and the settings, of which a ledger keeps an HMAC only
        key, again = hashlib.sha256(hashlib.sha256(settings).digest() + covered.photo).digest(), True
    return ledger.debit(subject, total, key, again=again, covered=covered, other_regions=other_regions)
