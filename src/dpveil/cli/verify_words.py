"""What `dpveil verify` says that a release promises, and what that is worth."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dpveil.release.verified import Verification


def called(result: Verification) -> str:
    """Return the name of a file, or of a page with that of its document."""
    from dpveil.io.document import PDF
    from dpveil.io.names import shown
    from dpveil.release.documents import number_of

    document = result.inside
    if document is None or document == result.path or document.suffix.lower() != PDF:
        return shown(result.path)
    return f"{shown(document)}, page {number_of(result.path.name):,}"


def promise(result: Verification) -> str | None:
    """Return the total of a release in words, or None."""
    composition = None if result.certificate is None else result.certificate.composition
    return None if composition is None else str(composition)


def standing(result: Verification, least: str | None) -> str:
    """Return the strength of the total, and whether and why the release may be published or not.

    It may be with a strength of `least` or more, and without one with any that has a name.
    """
    from dpveil.accounting.meaning import NONE, STRENGTHS
    from dpveil.release.words import worth

    stated = result.certificate
    if stated is None or stated.composition is None:
        return ""
    standard = least or [*STRENGTHS][-1]
    reasons = [reason for reason in result.objections if reason != str(stated.composition)]
    against = [f"below {standard}" if reason == NONE else reason for reason in reasons]
    why = f" ({', '.join(against)})" if against else ""
    grade = f"{worth(stated.composition, str(stated.strength))}: " if stated.composition.formal else ""
    return grade + (f"publishable (at least {standard})" if result.publishable else f"not publishable{why}")


def block(result: Verification) -> tuple[str, ...]:
    """Return what is said of a clip, a line for each question, recomputed from data; empty for photos."""
    from dpveil.io.names import quoted
    from dpveil.release.saving import is_clip

    if not is_clip(result.path):
        return ()
    from dpveil.video.verification import ClipVerification
    from dpveil.video.words import lines

    if not isinstance(result, ClipVerification) or result.certificate is None:
        return ()
    sound = result.status == "consistent"
    return tuple(map(quoted, lines(result.certificate.quote))) if sound else ()
