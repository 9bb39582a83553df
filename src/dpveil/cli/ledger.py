"""`dpveil ledger`: budgets of subjects, their history, and proofs that nothing was released unpaid."""

from __future__ import annotations

import time
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from dpveil.cli import exits, say
from dpveil.cli.command import Command
from dpveil.cli.ledger_check import check_command, paying_for
from dpveil.cli.ledger_words import Joined, Url, account_of, event_in_words, place_of
from dpveil.cli.options import AsJson, Text
from dpveil.errors import InvalidParameter, UsageError

if TYPE_CHECKING:
    from dpveil.core.guarantee import Relation
    from dpveil.ledger import Limit

DAY: Final = 86_400
"""Seconds of a day in UTC."""
Subject = Annotated[str, typer.Argument(metavar="SUBJECT", help="A path, such as studio/album-7.")]
Some = Annotated[Text, typer.Argument(metavar="[SUBJECT]", help="Only this one and those below it.")]
Moment = Annotated[Text, typer.Option(metavar="TIME", help="Such as 2027-01-31 or 2027-01-31T18:00, in UTC.")]

Until = Annotated[Text, typer.Option(metavar="TIME", help="The same; a day counts to its end.")]

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
    not_before: Moment = None,
    not_after: Until = None,
    remove: Annotated[bool, typer.Option("--remove", help="Remove the limit of this kind instead.")] = False,
) -> int:
    """Set what all releases about a subject, and about those below it, may cost together.

    \b
    Example:
      dpveil ledger limit album-7 --epsilon 3 --ledger sqlite:///budget.db

    A limit replaces one of the same kind and relation. Several all hold. Nothing that was spent comes back,
    also not with a new limit. Nothing may be spent for a subject without a limit on its path.
    """
    from dpveil.ledger import Ledger
    from dpveil.ledger.subjects import check_subject

    wanted = _limit(epsilon, delta, rho, concentrated, relation, (not_before, not_after))
    check_subject(subject)
    with Ledger(ledger, create=not remove) as opened:
        if opened.created:
            say.note(f"there was no ledger: made {place_of(ledger)}")
        (opened.remove_limit if remove else opened.set_limit)(subject, wanted)
        say.answer(opened.show(subject).in_words())
    return exits.DONE


@ledger_app.command("show", cls=Command, short_help="Show what a subject spent, and what is left.")
def show_command(subject: Subject, ledger: Url, json: AsJson = False) -> int:
    """Show what was spent for a subject and is reserved, and the limits of its path.

    \b
    Example:
      dpveil ledger show album-7 --ledger sqlite:///budget.db --json
    """
    from dpveil.ledger import Ledger

    with Ledger(ledger) as opened:
        account = account_of(opened, subject)
    if json:
        say.document(account.to_json())
    else:
        say.answer(account.in_words())
    return exits.DONE


@ledger_app.command("subjects", cls=Command, short_help="List all subjects.")
def subjects_command(ledger: Url, json: AsJson = False) -> int:
    """List all subjects with what they spent and their limits.

    \b
    Example:
      dpveil ledger subjects --ledger sqlite:///budget.db
    """
    from dpveil.ledger import Ledger

    with Ledger(ledger) as opened:
        accounts = [opened.show(name) for name in opened.subjects()]
    if json:
        say.document({"subjects": [account.to_json() for account in accounts]})
    for account in () if json else accounts:
        say.answer(account.in_words())
    return exits.DONE


@ledger_app.command("history", cls=Command, short_help="List what happened, in order.")
def history_command(
    ledger: Url,
    subject: Some = None,
    image: Annotated[
        Path | None, typer.Option(metavar="RELEASE", help="Only who paid for this image, or data set.")
    ] = None,
    json: AsJson = False,
) -> int:
    """List limits, debits and stored files in order.

    \b
    Examples:
      dpveil ledger history album-7 --ledger sqlite:///budget.db
      dpveil ledger history --image private.png --ledger sqlite:///budget.db

    A debit shows by which SHA-256 its files are known, as `dpveil verify` shows that of a file. Exit code 1:
    nobody paid for --image.
    """
    from dpveil.cli.verify_set import of_a_set
    from dpveil.ledger import Ledger

    with Ledger(ledger) as opened:
        found = None if image is None else paying_for(opened, image)
        entries = list(opened.history(subject))
    joined = Joined(entries)
    if found is not None:
        entries = [entry for entry in entries if {entry.number, joined.of(entry).get("debit")} & found]
    if json:
        say.document({"entries": [entry.to_json() | joined.of(entry) for entry in entries]})
    for entry in () if json else entries:
        moment = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(min(entry.time, 2**36)))
        say.answer(f"{entry.number}  {moment}  {event_in_words(entry.event)}{joined.in_words(entry)}")
    if image is not None and not entries:
        say.note(f"{say.still(str(image))}: {of_a_set(image) or 'nobody paid for it from this ledger'}")
        return exits.INCOMPLETE
    return exits.DONE


@ledger_app.command("export", cls=Command, short_help="Write all entries with their hashes to a file.")
def export_command(
    ledger: Url,
    out: Annotated[Path, typer.Option(metavar="FILE.jsonl", help="Where to write.")],
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
) -> int:
    """Write one JSON object for every entry: its text and the hash that chains it to the one before.

    \b
    Example:
      dpveil ledger export --out budget.jsonl --ledger sqlite:///budget.db

    The hash is SHA-256 of the hash before (64 zeros at first), a newline, and the text. The ledger's secret
    is not written.
    """
    from json import dumps

    from dpveil.batch import check_apart
    from dpveil.io import write_together
    from dpveil.ledger import Ledger

    with Ledger(ledger) as opened:
        check_apart(opened.files, [out])
        lines = [dumps({"text": entry.text, "sha256": entry.head}) + "\n" for entry in opened.history()]
    write_together([(out, "".join(lines).encode())], replace=force, private=True)
    say.note(f"wrote {len(lines):,} entries to {say.still(str(out))}")
    return exits.DONE


ledger_app.command("check", cls=Command, short_help="Prove from the entries that nothing was unpaid.")(
    check_command
)


def _limit(
    epsilon: Text, delta: Text, rho: Text, concentrated: bool, relation: Text, window: tuple[Text, Text]
) -> Limit:
    """Return the limit that the options describe."""
    from dpveil.ledger import Limit

    if (epsilon is None) == (rho is None):
        raise UsageError("a limit is on --epsilon, or on --rho", hint="give one of them, such as --epsilon 3")
    begin, end = (_moment(text, name) for text, name in zip(window, ("not_before", "not_after"), strict=True))
    more: dict[str, Any] = {"relation": _relation(relation), "not_before": begin, "not_after": end}
    if concentrated:
        if epsilon is None or delta is None:
            raise UsageError("--concentrated needs --epsilon and --delta", hint="or give --rho itself")
        return Limit.concentrated(epsilon, delta, **more)
    kind = "zcdp" if rho is not None else "pure" if delta is None else "approximate"
    return Limit(kind, epsilon=epsilon, delta=delta, rho=rho, **more)


def _relation(text: Text) -> Relation | None:
    from dpveil.core.guarantee import RELATIONS
    from dpveil.ledger.amounts import read_relation

    try:
        return None if text is None else read_relation(text)
    except ValueError as error:
        names = ", ".join(f"{name}:16" if name == "m-pixels" else name for name in RELATIONS)
        raise InvalidParameter("relation", text, "is unknown", hint=f"one of {names}") from error


def _moment(text: Text, name: str) -> int | None:
    if text is None:
        return None
    try:
        found = datetime.fromisoformat(text)
        second = int((found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp())
        return second + DAY - 1 if name == "not_after" and _is_day(text) else second
    except (ValueError, OverflowError) as error:
        raise InvalidParameter(
            name, text, "is no time", hint="write 2027-01-31 or 2027-01-31T18:00"
        ) from error


def _is_day(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True
