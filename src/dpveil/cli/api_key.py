"""`dpveil api-key`: the keys with which others may use the service."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer

from dpveil.cli import exits, say
from dpveil.cli.command import Command
from dpveil.cli.options import AsJson
from dpveil.errors import InvalidParameter
from dpveil.service.keys import Keys, alone
from dpveil.service.settings import PARALLEL

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
    with alone(keys):
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
    if json:
        shown = ("number", "name", "rate", "parallel", "subjects")
        rows = [{name: getattr(caller, name) for name in shown} for caller in found]
        say.document({"keys": rows})
        return exits.DONE
    for caller in found:
        subjects = ", ".join(caller.subjects or ())
        limits = f"{caller.rate} a minute, {caller.parallel} at once"
        say.answer(f"{caller.number}  {caller.name}: {limits}; {subjects}")
    return exits.DONE


def remove_command(name: NAME, keys: FILE) -> int:
    """Remove a key: a service that runs refuses it at once.

    \b
    Example:
      dpveil api-key remove shop --keys keys.json
    """
    with alone(keys):
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
