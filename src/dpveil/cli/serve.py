"""`dpveil serve`: plans and releases over HTTP."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from dpveil.cli import exits, say
from dpveil.cli.command import Command
from dpveil.cli.key import read_key
from dpveil.cli.ledger import place_of
from dpveil.cli.options import AsJson, LedgerUrl, MaxPixels, Sign
from dpveil.core.guarantee import count_noun
from dpveil.errors import InvalidParameter, UsageError
from dpveil.service.keys import Keys
from dpveil.service.limits import PARALLEL, Limits

if TYPE_CHECKING:
    from dpveil.service.run import Service, Setup


RATE: Final = 60
SHOWN_ONCE: Final = "this key is shown once, and can be read nowhere again: keep it where its user gets it"
FILE = Annotated[Path, typer.Option("--keys", metavar="FILE", readable=False, help="The file of keys.")]
NAME = Annotated[str, typer.Argument(metavar="NAME", help="A name for the key, such as shop.")]


def new_command(
    name: NAME,
    keys: FILE,
    subject: Annotated[
        list[str] | None,
        typer.Option(metavar="SUBJECT", help="Whose budget it may spend, and all below; repeatable."),
    ] = None,
    rate: Annotated[int, typer.Option(metavar="N", min=1, help="Requests, and photos, a minute.")] = RATE,
    parallel: Annotated[
        int, typer.Option(metavar="N", min=1, help="Requests and jobs that may be under way at once.")
    ] = PARALLEL,
) -> int:
    """Make a key, add it to the file, and print it: it is shown once, and the file holds its hash alone.

    \b
    Example:
      dpveil api-key new shop --keys keys.json --subject studio/shop
    """
    if not subject:
        raise InvalidParameter("subject", None, "is missing", hint="name whose budget the key may spend")
    known = Keys.read(keys) if keys.exists() else Keys()
    changed, key = known.new(name, subject, rate, parallel)
    changed.write(keys)
    say.answer(key)
    say.note(SHOWN_ONCE)
    return exits.DONE


def list_command(keys: FILE, json: AsJson = False) -> int:
    """List the keys: number, name, rate, how many at once, and subjects.

    \b
    Example:
      dpveil api-key list --keys keys.json
    """
    found = Keys.read(keys).callers
    shown = ("number", "name", "rate", "parallel", "subjects")
    if json:
        say.document({"keys": [{name: getattr(caller, name) for name in shown} for caller in found]})
    for caller in () if json else found:
        limits = f"{caller.rate} a minute, {caller.parallel} at once"
        say.answer(f"{caller.number}  {caller.name}: {limits}; {', '.join(caller.subjects or ())}")
    return exits.DONE


def remove_command(name: NAME, keys: FILE) -> int:
    """Remove a key: a service that runs refuses it at once.

    \b
    Example:
      dpveil api-key remove shop --keys keys.json
    """
    Keys.read(keys).without(name).write(keys)
    return exits.DONE


api_key_app = typer.Typer(add_completion=False, rich_markup_mode=None)
api_key_app.command("new", cls=Command, short_help="Make a key.")(new_command)
api_key_app.command("list", cls=Command, short_help="List the keys.")(list_command)
api_key_app.command("remove", cls=Command, short_help="Remove a key.")(remove_command)


@api_key_app.callback()
def _root() -> None:
    """Make, list and remove the keys with which others may use `dpveil serve`.

    \b
    Example:
      dpveil api-key new shop --keys keys.json --subject studio/shop
    """


def serve_command(
    host: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Where to listen; others than this machine's need keys.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(metavar="N", min=0, max=65535, help="The port; 0 chooses one.")] = 8000,
    ledger: LedgerUrl = None,
    keys: Annotated[
        Path | None,
        typer.Option(metavar="FILE", readable=False, help="The API keys, which dpveil api-key new makes."),
    ] = None,
    hostname: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A name by which the service is reached. Repeatable."),
    ] = None,
    results: Annotated[
        Path | None,
        typer.Option(metavar="FILE", readable=False, help="Keep results in this database, not in memory."),
    ] = None,
    workers: Annotated[
        int | None, typer.Option(metavar="N", min=1, max=1024, help="Workers; default: one more than cores.")
    ] = None,
    max_pixels: MaxPixels = 50_000_000,
    keep: Annotated[
        int, typer.Option(metavar="SECONDS", min=1, max=10**7, help="How long results are kept.")
    ] = 3600,
    sign: Sign = None,
) -> int:
    """Plan and release photos over HTTP, for applications on this machine, or with keys for others.

    \b
    Examples:
      dpveil serve
      dpveil serve --ledger sqlite:///budget.db --results results.db
      dpveil serve --host 0.0.0.0 --hostname photos.example.org --keys keys.json --ledger sqlite:///budget.db

    Without --ledger nothing remembers what was spent. It speaks HTTP: others reach it through a proxy with
    TLS. SIGTERM and Ctrl-C stop it; what was paid for is finished first.
    """
    from dpveil.ledger import Ledger

    say.note("starting the service, which takes a few seconds")  # for imports
    try:
        from dpveil.service.run import Setup, serve
    except ImportError as error:
        hint = "pip install 'dpveil[service]'"
        raise UsageError(f"the service needs {error.name}, which is not installed", hint=hint) from error
    setup = Setup(
        host=host,
        port=port,
        hosts=tuple(name.lower() for name in hostname or ()),
        keys=keys,
        results=results,
        workers=workers,
        limits=Limits(pixels=max_pixels, result_seconds=keep),
        sign=None if sign is None else read_key(sign),
    )
    address = f"[{host}]" if ":" in host.strip("[]") and "[" not in host else host

    def begins(service: Service) -> None:
        for name, text in _about(setup, ledger, service).items():
            say.note(f"{name}: {text}")

    serve(
        setup,
        None if ledger is None else Ledger(ledger),
        begins,
        lambda port: say.note(f"dpveil serves the page and the API at http://{address}:{port}"),
    )
    say.note("dpveil has stopped; what was paid for was finished, and all else was cancelled at no cost")
    return exits.DONE


def _about(setup: Setup, ledger: str | None, service: Service) -> dict[str, str]:
    kept = f"kept for {setup.limits.result_seconds:g} s"
    sign, none = setup.sign, "none, so nobody remembers what is spent; --ledger names one"
    nobody = "none is needed on this machine; nobody else reaches the service"
    return {
        "ledger": f"{place_of(ledger)}, which pays for every release" if ledger else none,
        "results": f"{setup.results or 'in memory'}, {kept}",
        "keys": nobody if setup.keys is None else f"{setup.keys}: {count_noun(service.keys or 0, 'key')}",
        "certificates": "not signed" if sign is None else f"signed by {sign.public.fingerprint}",
        "workers": f"{service.jobs.workers.count}, which start when they are needed",
    }
