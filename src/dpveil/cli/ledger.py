"""`dpveil ledger`: budgets of subjects, their history, and proofs that nothing was released unpaid."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from dpveil.cli import exits, say
from dpveil.cli.command import Command
from dpveil.cli.options import AsJson, Text
from dpveil.core.guarantee import RELATIONS, Relation, count_noun
from dpveil.errors import (
    BudgetRefused,
    DPVeilError,
    InvalidParameter,
    PhotoError,
    UnknownName,
    UsageError,
    suggestion,
)
from dpveil.io.folders import is_data_set, walk
from dpveil.io.names import escape_text, show_path
from dpveil.io.reading import MAX_PIXELS
from dpveil.ledger import Ledger, Limit
from dpveil.ledger.amounts import Total, read_relation
from dpveil.ledger.database import is_server, target_of
from dpveil.ledger.entries import Debit, LimitSet, Open
from dpveil.ledger.limits import amounts_in_words, check_subject
from dpveil.release.saving import certificate_path, image_path

if TYPE_CHECKING:
    from dpveil.release.verification import Verification


COUNTS: Final = ("head", "entries", "debits", "files", "unstored", "other_regions")
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
    with Ledger(ledger, restored=restored) as opened:
        looked = _verified(opened, releases or [])
        found = opened.check(head)
        bare, files = 0, []
        for one in looked:
            if one.status == "missing" and os.path.lexists(one.path) and one.path not in (releases or ()):
                bare += 1  # another picture in a folder
            else:
                files.append(_payment_of(opened, one))
        if releases and not files:
            hint = "name released images, or folders of them"
            raise PhotoError("no release is there to look up", hint=hint)
    failed = [each for each in files if "error" in each]
    if json:
        counts = {name: getattr(found, name) for name in COUNTS} | {"head_kept": found.kept}
        say.document({"paid": [each for each in files if "error" not in each], "failed": failed, **counts})
    else:
        say.answer(f"head {found.head}")
        inside = Counter[str]()
        for each in files:
            told = each.get("error") or f"paid by {', '.join(each['paid_by'])}"
            within = "inside" in each and "error" not in each  # a file of many releases has few lines
            name = show_path(each["inside" if within else "output"])
            inside[f"{name}: {told}"] += 1
        for line, count in inside.items():
            say.answer(escape_text(line if count == 1 else f"{line} ({count_noun(count, 'release')})"))
    told = f"{found.debits:,} debits, all within their limits; {found.files:,} stored files, all paid for"
    say.note(f"{told}; {found.unstored:,} debits without a stored file")
    if not found.kept:
        say.note("the head is not kept, for want of a state folder: older copies are found by --head alone")
    if bare:
        say.note(f"not looked up, for want of a certificate: {count_noun(bare, 'picture')}")
    if found.other_regions:
        many = f"{found.other_regions:,} debits" if found.other_regions > 1 else "1 debit"
        say.note(f"{many} of a photo with other regions than before: its sum holds for what all cover")
    return exits.INCOMPLETE if failed else exits.DONE


def _verified(ledger: Ledger, releases: list[Path]) -> Iterator[Verification]:
    """Return the verification of every release in files and folders; the ledger's own are a `UsageError`."""
    from dpveil.batch.tasks import check_apart
    from dpveil.cli.verify import results, targets

    for path, _ in targets(releases):
        file = image_path(path) or path
        inside = [place for place, _ in walk(file, hidden=True)] if is_data_set(file) else []
        check_apart(ledger.files, [file, certificate_path(file), *inside])
    return results(releases, MAX_PIXELS, None, None)


def _payment_of(ledger: Ledger, found: Verification) -> dict[str, Any]:
    """Return who paid for a release by the hash of its file, or why it is not as it was paid for."""
    told: dict[str, Any] = {"output": str(found.path)}
    if found.inside is not None:
        told["inside"] = str(found.inside)
    if found.status != "consistent" or not found.costs:
        return told | {"error": next(iter(found.problems), UNPROTECTED), "hint": UNPAID}
    paid = ledger.paid_for(found.sha256)
    subjects = list(dict.fromkeys(each.subject for each in paid))
    told |= {"sha256": found.sha256, "paid_by": subjects}
    if not paid:
        return told | {"error": NOBODY, "hint": UNPAID}
    try:
        stated = Counter(map(Total.of, found.costs))
    except DPVeilError as error:
        return told | {"error": error.message, "hint": error.hint}
    # one may have paid for several draws of the very same file
    if not any(stated <= Counter(each.cost for each in paid if each.subject == one) for one in subjects):
        return told | {"error": "its certificate states another amount than was paid", "hint": UNPAID}
    return told


Url = Annotated[str, typer.Option("--ledger", metavar="URL", help="The ledger, such as sqlite:///budget.db.")]


def place_of(url: str) -> str:
    """Return the URL of a ledger without a password, as it may be shown."""
    return target_of(url)[1] if is_server(url) else say.escape_controls(url)


def check_limited(ledger: Ledger, subject: str) -> None:
    """Raise `BudgetRefused` if no limit is on the path of a subject, with a name that is like it."""
    if not ledger.show(subject).limited:
        hint = f"{_similar_name(ledger, subject)}dpveil ledger limit sets one"
        raise BudgetRefused(f"{subject} has no limit, so nothing may be spent for it", hint=hint)


def _similar_name(ledger: Ledger, subject: str) -> str:
    return suggestion(subject, ledger.subjects())


def event_in_words(event: Any) -> str:
    match event:
        case Open():
            return f"opened {event.name}"
        case LimitSet():
            return f"{event.subject}  {'removed' if event.removed else 'set'} limit {event.limit.in_words()}"
        case Debit():
            others = "  other regions" * (event.part is not None and event.part.other_regions)
            amounts = amounts_in_words(event.cost)
            return f"{event.subject}  debit {amounts}  unit {event.unit[:12]} draw {event.draw}{others}"
        case _:
            return f"{event.subject}  stored {event.sha256}  unit {event.unit[:12]} draw {event.draw}"


Subject = Annotated[str, typer.Argument(metavar="SUBJECT", help="A path, such as studio/album-7.")]
Some = Annotated[Text, typer.Argument(metavar="[SUBJECT]", help="Only this one and those below it.")]
ledger_app = typer.Typer(add_completion=False, rich_markup_mode=None)


@ledger_app.callback()
def _root() -> None:
    """Keep the privacy budgets of people, albums or data sets: what releases cost together, and may cost.

    \b
    Examples:
      dpveil ledger limit album-7 --epsilon 3 --ledger sqlite:///budget.db
      dpveil obfuscate photos --out private --ledger sqlite:///budget.db --subject album-7
      dpveil ledger show album-7 --ledger sqlite:///budget.db
    """


@ledger_app.command("limit", cls=Command, short_help="Set a limit; makes the ledger if there is none.")
def limit_command(
    subject: Subject,
    ledger: Url,
    epsilon: Annotated[Text, typer.Option(metavar="E", help="The most that all releases cost.")] = None,
    delta: Annotated[
        Text, typer.Option(metavar="D", help="With --epsilon: the most of their deltas.")
    ] = None,
    rho: Annotated[Text, typer.Option(metavar="R", help="Instead: the most of zero-concentrated DP.")] = None,
    concentrated: Annotated[
        bool, typer.Option("--concentrated", help="Turn --epsilon and --delta into the largest --rho.")
    ] = False,
    relation: Annotated[
        Text, typer.Option(metavar="NAME", help="Neighbours, such as any-image or m-pixels:16; default: any.")
    ] = None,
    remove: Annotated[bool, typer.Option("--remove", help="Remove the limit of this kind instead.")] = False,
) -> int:
    """Set what all releases about a subject, and about those below it, may cost together.

    \b
    Example:
      dpveil ledger limit album-7 --epsilon 3 --ledger sqlite:///budget.db

    A limit replaces one of the same kind and relation. Several all hold. Nothing that was spent comes back,
    also not with a new limit. Nothing may be spent for a subject without a limit on its path.
    """
    if (epsilon is None) == (rho is None):
        raise UsageError("a limit is on --epsilon, or on --rho", hint="give one of them, such as --epsilon 3")
    about = None if relation is None else _relation(relation)
    if concentrated:
        if epsilon is None or delta is None:
            raise UsageError("--concentrated needs --epsilon and --delta", hint="or give --rho itself")
        wanted = Limit.concentrated(epsilon, delta, about)
    else:
        kind = "zcdp" if rho is not None else "pure" if delta is None else "approximate"
        wanted = Limit(kind, epsilon=epsilon, delta=delta, rho=rho, relation=about)
    check_subject(subject)
    with Ledger(ledger, create=not remove) as opened:
        if opened.created:
            say.note(f"there was no ledger: made {place_of(ledger)}")
        (opened.remove_limit if remove else opened.set_limit)(subject, wanted)
        say.answer(opened.show(subject).in_words())
    return exits.DONE


@ledger_app.command("show", cls=Command, short_help="Show what subjects spent, and what is left.")
def show_command(
    ledger: Url,
    subject: Annotated[Text, typer.Argument(metavar="[SUBJECT]", help="One alone; default: all.")] = None,
    json: AsJson = False,
) -> int:
    """Show what was spent for a subject and is reserved, and the limits of its path; or for all subjects.

    \b
    Example:
      dpveil ledger show album-7 --ledger sqlite:///budget.db --json
    """
    with Ledger(ledger) as opened:
        accounts = [opened.show(name) for name in (opened.subjects() if subject is None else [subject])]
        if subject is not None and not (accounts[0].known or accounts[0].limited):
            hint = f"{_similar_name(opened, subject)}dpveil ledger show lists those of the ledger"
            raise UnknownName("subject", subject, (), hint=hint)
    if json:
        every = [account.to_json() for account in accounts]
        say.document({"subjects": every} if subject is None else every[0])
    for account in () if json else accounts:
        say.answer(account.in_words())
    return exits.DONE


@ledger_app.command("history", cls=Command, short_help="List what happened, in order.")
def history_command(ledger: Url, subject: Some = None, json: AsJson = False) -> int:
    """List limits, debits and stored files in order.

    \b
    Example:
      dpveil ledger history album-7 --ledger sqlite:///budget.db

    Debits and the files that they paid for have the same unit and draw. With --json every entry has its text
    and the SHA-256 of the hash before (64 zeros at first), a newline, and the text.
    """
    with Ledger(ledger) as opened:
        entries = list(opened.history(subject))
    if json:
        hashed = [{**entry.to_json(), "text": entry.text, "hash": entry.head} for entry in entries]
        say.document({"entries": hashed})
    for entry in () if json else entries:
        moment = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(min(entry.time, 2**36)))
        say.answer(f"{entry.number}  {moment}  {event_in_words(entry.event)}")
    return exits.DONE


ledger_app.command("check", cls=Command, short_help="Prove from the entries that nothing was unpaid.")(
    check_command
)


def _relation(text: str) -> Relation:
    try:
        return read_relation(text)
    except ValueError as error:
        names = ", ".join(f"{name}:16" if name == "m-pixels" else name for name in RELATIONS)
        raise InvalidParameter("relation", text, "is unknown", hint=f"one of {names}") from error
