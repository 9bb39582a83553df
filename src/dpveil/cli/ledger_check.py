"""`dpveil ledger check`: proofs from the entries, and who paid for a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from dpveil.cli import exits, say
from dpveil.cli.ledger_words import Url
from dpveil.cli.options import AsJson, Text
from dpveil.errors import DPVeilError

if TYPE_CHECKING:
    from dpveil.ledger import Ledger

MOST_BYTES: Final = 1 << 30
"""Largest released file that is looked up, in bytes."""
UNPAID: Final = "do not publish it"


def check_command(
    ledger: Url,
    releases: Annotated[
        list[Path] | None, typer.Argument(metavar="[RELEASE]...", help="Released images to look up.")
    ] = None,
    head: Annotated[
        Text, typer.Option(metavar="NUMBER:SHA256", help="A head that was kept: finds older copies.")
    ] = None,
    json: AsJson = False,
) -> int:
    """Recompute the ledger from its entries, and look up who paid for released files.

    \b
    Examples:
      dpveil ledger check --ledger sqlite:///budget.db
      dpveil ledger check private/*.png --ledger sqlite:///budget.db

    Prints the head: keep it where nobody can change it with the ledger. Exit code 4: the ledger does not
    hold. Exit code 1: nobody paid for a file, or another amount than its certificate states.
    """
    from dpveil.batch import check_apart
    from dpveil.io.names import quoted, shown
    from dpveil.ledger import Ledger
    from dpveil.release.saving import certificate_path

    with Ledger(ledger) as opened:
        check_apart(
            opened.files, [place for path in releases or () for place in (path, certificate_path(path))]
        )
        found = opened.check(head)
        files = [_looked_up(opened, path) for path in releases or ()]
    bad = [each for each in files if "error" in each]
    counts = {
        "entries": found.entries,
        "debits": found.debits,
        "files": found.files,
        "unstored": found.unstored,
        "other_regions": found.other_regions,
    }
    if json:
        good = [each for each in files if "error" not in each]
        say.document({"head": found.head, **counts, "paid": good, "failed": bad})
    else:
        say.answer(f"head {found.head}")
        for each in files:
            told = each.get("error") or f"paid by {', '.join(each['paid_by'])}"
            say.answer(quoted(f"{shown(each['output'])}: {told}"))
    told = f"{found.debits:,} debits, all within their limits; {found.files:,} stored files, all paid for"
    say.note(f"{told}; {found.unstored:,} debits without a stored file")
    if found.other_regions:
        many = f"{found.other_regions:,} debits" if found.other_regions > 1 else "1 debit"
        say.note(f"{many} of a photo with other regions than before: its sum holds for what all cover")
    return exits.INCOMPLETE if bad else exits.DONE


def _looked_up(ledger: Ledger, path: Path) -> dict[str, Any]:
    """Return who paid for a file, by its own hash, or why it is not as it was paid for."""
    from hashlib import sha256

    from dpveil.io import received
    from dpveil.io.refused import Refused
    from dpveil.ledger.rules import priced
    from dpveil.release.verification import verify

    told: dict[str, Any] = {"output": str(path)}
    try:
        digest = sha256(received(path, MOST_BYTES)).hexdigest()
    except Refused as refusal:
        return told | {"error": f"the file {refusal.problem}", "hint": refusal.remedy}
    paid = ledger.paid_for(digest)
    told |= {"sha256": digest, "paid_by": [each.subject for each in paid]}
    if not paid:
        return told | {"error": "nobody paid for it from this ledger", "hint": UNPAID}
    found = verify(path)
    if found.status != "consistent" or found.certificate is None or found.certificate.composition is None:
        problem = next(iter(found.problems), "it is an unprotected copy")
        return told | {"error": f"it was paid for, but {problem}", "hint": UNPAID}
    try:
        stated = priced(found.certificate.composition)
    except DPVeilError as error:
        return told | {"error": error.message, "hint": error.hint}
    if all(each.cost != stated for each in paid):  # several may have drawn the very same file
        return told | {"error": "its certificate states another amount than was paid", "hint": UNPAID}
    return told
