"""`dpveil serve`: plans and releases over HTTP."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpveil.cli import exits, say
from dpveil.cli.options import Text
from dpveil.errors import UsageError

if TYPE_CHECKING:
    from dpveil.ledger import Ledger


def serve_command(
    host: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Where to listen; others than this machine's need keys.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(metavar="N", min=0, max=65535, help="The port; 0 chooses one.")] = 8000,
    ledger: Annotated[
        Text,
        typer.Option(metavar="URL", help="The ledger that pays for releases, such as sqlite:///budget.db."),
    ] = None,
    keys: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The API keys, which dpveil api-key new makes.")
    ] = None,
    hostname: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A name by which the service is reached; repeatable."),
    ] = None,
    results: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Keep results in this database, not in memory: a restart finds them."
        ),
    ] = None,
    workers: Annotated[
        int | None, typer.Option(metavar="N", min=1, max=1024, help="Workers; default: one for each core.")
    ] = None,
    max_pixels: Annotated[
        int, typer.Option(metavar="N", min=1, max=2**31, help="Refuse photos with more pixels.")
    ] = 50_000_000,
    keep: Annotated[
        int, typer.Option(metavar="SECONDS", min=1, max=10**7, help="How long results are kept.")
    ] = 3600,
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
    try:
        from dpveil.service.limits import Limits
        from dpveil.service.run import Setup, serve
    except ImportError as error:
        hint = "pip install 'dpveil[service]'"
        raise UsageError(f"the service needs {error.name}, which is not installed", hint=hint) from error
    limits = Limits(pixels=max_pixels, result_seconds=keep)
    setup = Setup(
        host=host,
        port=port,
        hosts=tuple(name.lower() for name in hostname or ()),
        keys=keys,
        results=results,
        workers=workers,
        limits=limits,
    )
    address = f"[{host}]" if ":" in host.strip("[]") and "[" not in host else host
    with suppress(KeyboardInterrupt):  # how it is told to stop, after which it has stopped in order
        serve(setup, _ledger(ledger), lambda port: say.note(f"dpveil serves at http://{address}:{port}"))
    return exits.DONE


def _ledger(url: Text) -> Ledger | None:
    """Return the ledger of a URL, which has to exist."""
    if url is None:
        return None
    from dpveil.ledger import Ledger

    return Ledger(url)
