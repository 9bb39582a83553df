"""`dpveil ledger`: budgets of subjects, their history, and proofs that nothing was released unpaid."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, date, datetime
from functools import partial
from hashlib import sha256
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from dpveil.cli import exits, say
from dpveil.cli.command import Command
from dpveil.cli.options import AsJson, Text
from dpveil.core.guarantee import RELATIONS, Guarantee, Relation, count_noun
from dpveil.errors import (
    BudgetRefused,
    DPVeilError,
    InvalidParameter,
    PhotoError,
    UnknownName,
    UsageError,
    suggestion,
)
from dpveil.io import write_together
from dpveil.io.folders import MANY, is_link, walk
from dpveil.io.names import escape_text, show_path
from dpveil.io.unreadable import COPY, LINK, Refused
from dpveil.io.untrusted import open_untrusted
from dpveil.ledger import Account, Ledger, Limit
from dpveil.ledger.amounts import Total, read_relation
from dpveil.ledger.database import is_server, target_of
from dpveil.ledger.entries import Debit, Entry, LimitSet, Open, Stored
from dpveil.ledger.limits import amounts_in_words, check_subject
from dpveil.release.saving import certificate_path, image_path, is_release

if TYPE_CHECKING:
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
    with Ledger(ledger, restored=restored) as opened:
        asked, bare = _releases_to_check(opened, releases or [])
        found = opened.check(head)
        files = [each for one in asked.items() for each in _looked_up(opened, *one)]
    failed = [each for each in files if "error" in each]
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
        say.document({"paid": [each for each in files if "error" not in each], "failed": failed, **counts})
    else:
        say.answer(f"head {found.head}")
        inside = Counter[tuple[str, str]]()
        for each in files:
            told = each.get("error") or f"paid by {', '.join(each['paid_by'])}"
            if "inside" in each and "error" not in each:  # a file of many releases has few lines
                inside[each["inside"], told] += 1
            else:
                say.answer(escape_text(f"{show_path(each['output'])}: {told}"))
        for (file, told), count in inside.items():
            many = f"{count_noun(count, 'release')}: {escape_text(told)}"
            say.answer(f"{escape_text(show_path(file))}  {many}")
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


def _releases_to_check(ledger: Ledger, releases: list[Path]) -> tuple[dict[Path, str], int]:
    """Return the images and data sets to look up, each with a problem if it has one, and how many other
    images a folder has.

    In folders these are images with a certificate, files of many, and whatever cannot be searched. Raises
    `PhotoError` if there is none, and `UsageError` for files of the ledger.
    """
    from dpveil.batch.task import check_apart
    from dpveil.cli.verify import sets_among, targets

    sets, others = sets_among(releases)
    asked, bare = dict.fromkeys(sets, ""), set()
    for path, problem in targets(others, sets):
        image = image_path(path) or path
        if problem or path in releases or is_release(image) or path.suffix.lower() in MANY:
            asked[image] = problem
        else:
            bare.add(image)
    if releases and not asked:
        raise PhotoError("no release is there to look up", hint="name released images, or folders of them")
    check_apart(ledger.files, [place for path in asked for place in (path, certificate_path(path))])
    check_apart(ledger.files, [place for path in sets for place, _ in walk(path, hidden=True)])
    return asked, len(bare)


def _looked_up(ledger: Ledger, path: Path, problem: str) -> Iterator[dict[str, Any]]:
    """Yield who paid for a file, or for each release in a file of many."""
    from dpveil.batch.document import verify_inside

    if problem or path.suffix.lower() not in MANY:
        yield _of_file(ledger, path, problem)
        return
    for found in verify_inside(path):
        told = {"output": str(found.path), "inside": str(path)}
        _, problem = _of_release(found)
        if problem:
            yield told | {"error": problem, "hint": UNPAID}
        else:
            yield told | _payment_of(ledger, found.sha256, partial(_of_release, found), NOBODY)


def _of_file(ledger: Ledger, path: Path, problem: str) -> dict[str, Any]:
    """Return who paid for a file, by its own hash, or why it is not as it was paid for."""
    from dpveil.cli.verify import of_a_set
    from dpveil.synthesis.saving import is_set
    from dpveil.verifying import verify

    told: dict[str, Any] = {"output": str(path)}
    if problem:
        return told | {"error": problem, "hint": "name what it stands for, or look at it yourself"}
    try:
        digest = digest_of(path)
    except Refused as refusal:
        return told | {"error": f"the file {refusal.problem}", "hint": refusal.remedy}

    def read_promise() -> Promise:
        return _of_set(path) if is_set(path) else _of_release(verify(path))

    return told | _payment_of(ledger, digest, read_promise, of_a_set(path) or NOBODY)


def _payment_of(ledger: Ledger, digest: str, promised: Callable[[], Promise], unpaid: str) -> dict[str, Any]:
    """Return who paid for a release by its hash, or why it is not as it was paid for."""
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
    from dpveil.synthesis.plan import NAME
    from dpveil.synthesis.saving import is_set

    path = release / NAME if is_set(release) else release
    if is_link(path):
        raise Refused(LINK, COPY)
    digest = sha256()
    with open_untrusted(path) as (file, _):
        while part := file.read(PIECE):
            digest.update(part)
    return digest.hexdigest()


def _of_set(release: Path) -> Promise:
    from dpveil.synthesis.saving import read_set

    made, problems = read_set(release)
    return [] if made is None else [made.composition], "; ".join(problems)


def _of_release(found: Verification) -> Promise:
    if found.status == "consistent" and found.costs:
        return found.costs, ""
    return [], next(iter(found.problems), UNPROTECTED)


Url = Annotated[str, typer.Option("--ledger", metavar="URL", help="The ledger, such as sqlite:///budget.db.")]


def place_of(url: str) -> str:
    """Return the URL of a ledger without a password, as it may be shown."""
    return target_of(url)[1] if is_server(url) else say.escape_controls(url)


def account_of(ledger: Ledger, subject: str) -> Account:
    """Return the account of a subject; raises `UnknownName`, with a name that is like it, if there is none
    and no limit is on its path.
    """
    account = ledger.show(subject)
    if not account.known and not account.limited:
        hint = f"{_similar_name(ledger, account.subject)}dpveil ledger subjects lists those of the ledger"
        raise UnknownName("subject", account.subject, (), hint=hint)
    return account


def check_limited(ledger: Ledger, subject: str) -> None:
    """Raise `BudgetRefused` if no limit is on the path of a subject, with a name that is like it."""
    if not ledger.show(subject).limited:
        hint = f"{_similar_name(ledger, subject)}dpveil ledger limit sets one"
        raise BudgetRefused(f"{subject} has no limit, so nothing may be spent for it", hint=hint)


def _similar_name(ledger: Ledger, subject: str) -> str:
    return suggestion(subject, ledger.subjects())


class Joined:
    """Which files the debits among these entries paid for, and which debit each file is of."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        self._files: dict[tuple[str, int], list[str]] = {}
        self._debits: dict[tuple[str, int], int] = {}
        for entry in entries:
            if entry.kind == "debit":
                self._debits[entry.event.unit, entry.event.draw] = entry.number
            elif entry.kind == "stored":
                self._files.setdefault((entry.event.unit, entry.event.draw), []).append(entry.event.sha256)

    def of(self, entry: Entry) -> dict[str, Any]:
        """Return the SHA-256 of each known file of a debit as `files`, or the number of a file's `debit`."""
        if entry.kind == "debit":
            return {"files": self._files.get((entry.event.unit, entry.event.draw), [])}
        if entry.kind != "stored":
            return {}
        debit = self._debits.get((entry.event.unit, entry.event.draw))
        return {} if debit is None else {"debit": debit}

    def in_words(self, entry: Entry) -> str:
        """Return the same in words, after those of the entry itself."""
        told = self.of(entry)
        if "debit" in told:
            return f"  paid by entry {told['debit']}"
        return "".join(f"  {say.hash_in_short(sha256)}" for sha256 in told.get("files", ()))


def event_in_words(event: Any) -> str:
    """Return what an entry says."""
    if isinstance(event, Open):
        return f"opened {event.name}"
    if isinstance(event, LimitSet):
        return f"{event.subject}  {'removed' if event.removed else 'set'} limit {event.limit.in_words()}"
    if isinstance(event, Debit):
        others = "  other regions" * (event.part is not None and event.part.other_regions)
        amounts = amounts_in_words(event.cost)
        return f"{event.subject}  debit {amounts}  unit {event.unit[:12]} draw {event.draw}{others}"
    return f"{event.subject}  stored {event.sha256}" if isinstance(event, Stored) else ""


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
    json: AsJson = False,
) -> int:
    """List limits, debits and stored files in order.

    \b
    Example:
      dpveil ledger history album-7 --ledger sqlite:///budget.db

    A debit shows by which SHA-256 its files are known, as `dpveil verify --verbose` shows that of a file.
    """
    with Ledger(ledger) as opened:
        entries = list(opened.history(subject))
    joined = Joined(entries)
    if json:
        say.document({"entries": [entry.to_json() | joined.of(entry) for entry in entries]})
    for entry in () if json else entries:
        moment = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(min(entry.time, 2**36)))
        say.answer(f"{entry.number}  {moment}  {event_in_words(entry.event)}{joined.in_words(entry)}")
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
    from dpveil.batch.task import check_apart

    with Ledger(ledger) as opened:
        check_apart(opened.files, [out])
        lines = [dumps({"text": entry.text, "sha256": entry.head}) + "\n" for entry in opened.history()]
    write_together([(out, "".join(lines).encode())], replace=force, private=True)
    say.note(f"wrote {len(lines):,} entries to {say.escape_controls(str(out))}")
    return exits.DONE


ledger_app.command("check", cls=Command, short_help="Prove from the entries that nothing was unpaid.")(
    check_command
)


def _limit(
    epsilon: Text, delta: Text, rho: Text, concentrated: bool, relation: Text, window: tuple[Text, Text]
) -> Limit:
    """Return the limit that the options describe."""
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
