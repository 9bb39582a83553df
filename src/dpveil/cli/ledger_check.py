"""`dpveil ledger check`: proofs from the entries, and who paid for a file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from dpveil.cli import exits, say
from dpveil.cli.ledger_words import Url
from dpveil.cli.options import AsJson, Text
from dpveil.errors import DPVeilError, PhotoError

if TYPE_CHECKING:
    from dpveil.core.guarantee import Guarantee
    from dpveil.ledger import Ledger
    from dpveil.release.verification import Verification

PIECE: Final = 1 << 20
"""Bytes that are hashed at a time."""
Promise = tuple[Sequence["Guarantee"], str]
"""What a release costs, draw by draw, and why it is not what its certificate describes."""
UNPAID: Final = "do not publish it"
NOBODY: Final = "nobody paid for it from this ledger"
UNPROTECTED: Final = "it is an unprotected copy"


def check_command(
    ledger: Url,
    releases: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[RELEASE]...", help="Released files, data sets, or folders of them."),
    ] = None,
    head: Annotated[
        Text, typer.Option(metavar="NUMBER:SHA256", help="A head that was kept: finds older copies.")
    ] = None,
    restored: Annotated[
        bool, typer.Option("--restored", help="Accept an older copy, such as a backup, if it holds.")
    ] = False,
    json: AsJson = False,
) -> int:
    """Recompute the ledger from its entries, and look up who paid for released files.

    \b
    Examples:
      dpveil ledger check --ledger sqlite:///budget.db
      dpveil ledger check private --ledger sqlite:///budget.db

    Prints the head, which is also kept in your state folder: a copy without that entry is refused from then
    on, unless --restored accepts it. Exit code 4: the ledger does not
    hold. Exit code 1: nobody paid for a file, or another amount than its certificate states.
    """
    from dpveil.cli.entries import Entries, print_document
    from dpveil.core.guarantee import counted
    from dpveil.ledger import Ledger

    with Ledger(ledger, restored=restored) as opened, Entries(kept=json) as good, Entries(kept=json) as bad:
        asked, bare = _asked(opened, releases or [])
        found = opened.check(head)
        if not json:
            say.answer(f"head {found.head}")
        files = (each for one in asked.items() for each in _looked_up(opened, *one))
        for each in files if json else _told(files):
            (bad if "error" in each else good).add(each)
        failed = len(bad) > 0
        if json:
            counts = {
                "head": found.head,
                "entries": found.entries,
                "debits": found.debits,
                "files": found.files,
                "unstored": found.unstored,
                "other_regions": found.other_regions,
                "head_kept": found.kept,
            }
            print_document({"paid": good, "failed": bad}, counts)
    told = f"{found.debits:,} debits, all within their limits; {found.files:,} stored files, all paid for"
    say.note(f"{told}; {found.unstored:,} debits without a stored file")
    if not found.kept:
        say.note("the head is not kept, for want of a state folder: older copies are found by --head alone")
    if bare:
        say.note(f"not looked up, for want of a certificate: {counted(bare, 'picture')}")
    if found.other_regions:
        many = f"{found.other_regions:,} debits" if found.other_regions > 1 else "1 debit"
        say.note(f"{many} of a photo with other regions than before: its sum holds for what all cover")
    return exits.INCOMPLETE if failed else exits.DONE


def _asked(ledger: Ledger, releases: list[Path]) -> tuple[dict[Path, str], int]:
    """Return the images and data sets to look up, each with a problem if it has one, and how many other
    images a folder has.

    In folders these are images with a certificate, files of many, and whatever cannot be searched. Raises
    `PhotoError` if there is none, and `UsageError` for files of the ledger.
    """
    from dpveil.batch import check_apart, holds_many
    from dpveil.cli.verify import targets
    from dpveil.cli.verify_set import split
    from dpveil.io.folders import walk
    from dpveil.release.saving import certificate_path, image_path, is_release

    sets, others = split(releases)
    asked, bare = dict.fromkeys(sets, ""), set()
    for path, problem in targets(others, sets):
        image = image_path(path) or path
        if problem or path in releases or is_release(image) or holds_many(path):
            asked[image] = problem
        else:
            bare.add(image)
    if releases and not asked:
        raise PhotoError("no release is there to look up", hint="name released images, or folders of them")
    check_apart(ledger.files, [place for path in asked for place in (path, certificate_path(path))])
    check_apart(ledger.files, [place for path in sets for place, _ in walk(path, hidden=True)])
    return asked, len(bare)


def _told(files: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield files when a line is printed for each, and few for the releases in a file of many."""
    from dpveil.cli.verify_inside import Folded
    from dpveil.io.names import quoted, shown

    folded = Folded("")
    for each in files:
        told = each.get("error") or f"paid by {', '.join(each['paid_by'])}"
        line = quoted(f"{shown(each['output'])}: {told}")
        if "inside" not in each:
            folded.end()
            say.answer(line)
        elif "error" in each:
            folded.bad(Path(each["inside"]), line)
        else:
            folded.good(Path(each["inside"]), quoted(told))
        yield each
    folded.end()


def _looked_up(ledger: Ledger, path: Path, problem: str) -> Iterator[dict[str, Any]]:
    """Yield who paid for a file, or for each release in a file of many."""
    from dpveil.batch import holds_many, verify_inside

    if problem or not holds_many(path):
        yield _of_file(ledger, path, problem)
        return
    for found in verify_inside(path):
        told = {"output": str(found.path), "inside": str(path)}
        _, problem = _of_release(found)
        if problem:
            yield told | {"error": problem, "hint": UNPAID}
        else:
            yield told | _paid(ledger, found.sha256, partial(_of_release, found), NOBODY)


def _of_file(ledger: Ledger, path: Path, problem: str) -> dict[str, Any]:
    """Return who paid for a file, by its own hash, or why it is not as it was paid for."""
    from dpveil.cli.verify_set import of_a_set
    from dpveil.io.refused import Refused
    from dpveil.synthesis.saving import is_set
    from dpveil.verifying import verify

    told: dict[str, Any] = {"output": str(path)}
    if problem:
        return told | {"error": problem, "hint": "name what it stands for, or look at it yourself"}
    try:
        digest = digest_of(path)
    except Refused as refusal:
        return told | {"error": f"the file {refusal.problem}", "hint": refusal.remedy}

    def promised() -> Promise:
        return _of_set(path) if is_set(path) else _of_release(verify(path))

    return told | _paid(ledger, digest, promised, of_a_set(path) or NOBODY)


def _paid(ledger: Ledger, digest: str, promised: Callable[[], Promise], unpaid: str) -> dict[str, Any]:
    """Return who paid for a release by its hash, or why it is not as it was paid for."""
    from dpveil.ledger.amounts import Total

    paid = ledger.paid_for(digest)
    subjects = list(dict.fromkeys(each.subject for each in paid))
    told: dict[str, Any] = {"sha256": digest, "paid_by": subjects}
    if not paid:
        return told | {"error": unpaid, "hint": UNPAID}
    promise, problem = promised()
    if problem or not promise:
        return told | {"error": f"it was paid for, but {problem or UNPROTECTED}", "hint": UNPAID}
    try:
        stated = Counter(map(Total.of, promise))
    except DPVeilError as error:
        return told | {"error": error.message, "hint": error.hint}
    # one may have paid for several draws of the very same file
    if not any(stated <= Counter(each.cost for each in paid if each.subject == one) for one in subjects):
        return told | {"error": "its certificate states another amount than was paid", "hint": UNPAID}
    return told


def digest_of(release: Path) -> str:
    """Return the SHA-256 that a ledger knows a release by: of its file, or of a data set's certificate.

    Raises `Refused` for what cannot be read.
    """
    from hashlib import sha256

    from dpveil.io.folders import is_link
    from dpveil.io.received import opened
    from dpveil.io.refused import COPY, LINK, Refused
    from dpveil.synthesis.plan import NAME
    from dpveil.synthesis.saving import is_set

    path = release / NAME if is_set(release) else release
    if is_link(path):
        raise Refused(LINK, COPY)
    digest = sha256()
    with opened(path) as (file, _):
        while part := file.read(PIECE):
            digest.update(part)
    return digest.hexdigest()


def paying_for(ledger: Ledger, release: Path) -> set[int]:
    """Return the numbers of the debits that paid for a release, by its own hash.

    Raises `PhotoError` for what cannot be read, and `UsageError` for files of the ledger.
    """
    from dpveil.batch import check_apart
    from dpveil.io.refused import Refused
    from dpveil.synthesis.plan import NAME

    check_apart(ledger.files, [release, release / NAME])
    try:
        digest = digest_of(release)
    except Refused as refusal:
        raise PhotoError(f"the file {refusal.problem}", hint=refusal.remedy) from refusal
    return {each.entry for each in ledger.paid_for(digest)}


def _of_set(release: Path) -> Promise:
    from dpveil.synthesis.saving import read_set

    made, problems = read_set(release)
    return [] if made is None else [made.composition], "; ".join(problems)


def _of_release(found: Verification) -> Promise:
    if found.status == "consistent" and found.costs:
        return found.costs, ""
    return [], next(iter(found.problems), UNPROTECTED)
