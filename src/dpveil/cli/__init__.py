"""The command line, a thin shell: parse, call, map errors to exit codes. Heavy imports are deferred."""

from __future__ import annotations

import os
import signal
import sys
import warnings
from collections.abc import Sequence
from functools import cache
from typing import Annotated, Any, Final

import typer

from dpveil.cli import exits, say
from dpveil.cli.api_key import api_key_app
from dpveil.cli.card import card_command
from dpveil.cli.command import Command, Commands, Packaged, elsewhere
from dpveil.cli.compare import compare_command
from dpveil.cli.demo import demo_command
from dpveil.cli.evaluate import evaluate_command
from dpveil.cli.explain import explain_command
from dpveil.cli.faces import faces_command
from dpveil.cli.install import install_command
from dpveil.cli.key import key_app
from dpveil.cli.ledger import ledger_app
from dpveil.cli.mechanism import mechanism_app
from dpveil.cli.methods import methods_command
from dpveil.cli.obfuscate import obfuscate_command
from dpveil.cli.options import MethodCommand, help_page
from dpveil.cli.serve import serve_command
from dpveil.cli.synthesize import synthesize_command
from dpveil.cli.verify import verify_command
from dpveil.cli.video import video_app
from dpveil.errors import DPVeilError, InstallationWarning

app = typer.Typer(
    cls=Commands,
    add_completion=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command(
    "obfuscate", cls=MethodCommand, short_help="Release photos, clips, scans, each with a certificate."
)(obfuscate_command)
app.command(
    "explain", cls=MethodCommand, short_help="State what a method would promise, before any budget is spent."
)(explain_command)
app.command("compare", cls=Command, short_help="Show one photo under several methods and budgets.")(
    compare_command
)
app.command("methods", cls=Command, short_help="List every method and its parameters.")(methods_command)
app.command("verify", cls=Command, short_help="Check releases against their certificates.")(verify_command)
app.command("faces", cls=MethodCommand, short_help="Find the faces of a photo and number them.")(
    faces_command
)
app.command("evaluate", cls=Command, short_help="Attack releases of people's photos, and compare methods.")(
    evaluate_command
)
app.command("synthesize", cls=Command, short_help="Make a synthetic data set of faces, private as a set.")(
    synthesize_command
)
app.command("card", cls=Command, short_help="Write a data-set card of releases, per person and per file.")(
    card_command
)
app.command("train", cls=Packaged, short_help="Learn a model of faces from public images.")(elsewhere)
app.command("audit", cls=Packaged, short_help="Check that the code keeps what it promises.")(elsewhere)
app.command("install", cls=Command, short_help="Install what finds faces and their landmarks.")(
    install_command
)
app.command("demo", cls=Command, short_help="Release a public photograph at several budgets.")(demo_command)
app.command("serve", cls=Command, short_help="Plan and release photos over HTTP.")(serve_command)
app.add_typer(video_app, cls=Commands, name="video", short_help="Plan a clip, and release it by its plan.")
app.add_typer(
    api_key_app, cls=Commands, name="api-key", short_help="Keys with which others may use the service."
)
app.add_typer(
    ledger_app, cls=Commands, name="ledger", short_help="Keep the privacy budgets of people or albums."
)
app.add_typer(
    mechanism_app, cls=Commands, name="mechanism", short_help="Release numbers that stay in their range."
)
app.add_typer(
    key_app, cls=Commands, name="key", short_help="Make keys that sign certificates, and show whose they are."
)

USAGE_ERROR: Final[type[Exception]] = typer.BadParameter.__bases__[0]
"""Click's error of usage, whose class Typer does not export."""
AS_PYTHON: Final = warnings.formatwarning
EMPTY: Final[dict[str, dict[str, list[str]]]] = {
    "obfuscate": {"released": [], "failed": [], "skipped": [], "no_region": [], "untried": []},
    "verify": {"verified": [], "failed": []},
    "card": {"people": [], "without_person": []},
    "faces": {"faces": []},
    "audit": {"audited": []},
    "compare": {"compared": []},
    "evaluate": {"results": []},
    "synthesize": {"synthesized": [], "failed": []},
    "train": {"trained": [], "failed": []},
}
"""Keys of the JSON document of each command, for calls that fail before there is any result."""

CODES: Final = "\n".join(f"  {code:<3}  {text}" for code, text in exits.MEANING.items())
"""The table of exit codes in the help text."""


def _version(wanted: bool) -> None:
    if wanted:
        from dpveil import __version__

        say.answer(f"dpveil {__version__}")
        raise typer.Exit


HELP: Final = f"""Provably private photos: release regions of photos, with a certificate beside each.

\b
Example:
  dpveil obfuscate photo.jpg --out private.png
  dpveil verify private.png

\b
Exit codes:
{CODES}
"""


@app.callback(help=HELP)
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Handle the options before a command."""


def main() -> None:
    """Run the command line and exit the process with its exit code."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    warnings.formatwarning = _one_line
    say.never_break_on_letters()
    code = run(sys.argv[1:])
    try:
        sys.stdout.flush()
    except OSError:
        # The failure was reported already: the interpreter's last flush must not change the exit code.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, signal.SIG_DFL)  # all is told, and from here on an interrupt would be a traceback
    sys.exit(code)


def _one_line(
    message: Warning | str, category: type[Warning], filename: str, lineno: int, line: str | None = None
) -> str:
    """Return a warning as Python formats it, but those about what is installed in one line, without code."""
    if not issubclass(category, InstallationWarning):
        return AS_PYTHON(message, category, filename, lineno, line)
    return f"warning: {' '.join(str(message).split())}\n"


@cache
def _program() -> Any:
    """Return all commands, which take longer to put together than most of them to run."""
    return typer.main.get_command(app)


def run(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code; an error is one line on stderr."""
    if not arguments:
        run(["--help"])
        return exits.USAGE
    try:
        code = _program().main(list(arguments), prog_name="dpveil", standalone_mode=False)
        sys.stdout.flush()
    except USAGE_ERROR as error:
        page = help_page(getattr(error, "ctx", None))
        text = error.format_message() if hasattr(error, "format_message") else str(error)
        return _refuse(arguments, " ".join(text.split()).rstrip("."), f"see {page}", exits.USAGE)
    except DPVeilError as error:
        return _refuse(arguments, error.message, error.hint, error.exit_code)
    except KeyboardInterrupt:
        code = exits.INTERRUPTED
    except BrokenPipeError:
        # The reader of the output has gone: redirect the interpreter's last flush to nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return exits.INCOMPLETE
    except OSError as error:
        return _refuse((), f"cannot go on: {error.strerror or error}", "", exits.IMPOSSIBLE)
    if code == exits.INTERRUPTED:
        say.note("dpveil: interrupted; finished outputs are complete, and no other photo was written")
    return int(code or exits.DONE)


def _refuse(arguments: Sequence[str], message: str, hint: str, code: int) -> int:
    say.note(f"dpveil: {message}" + (f": {hint}" if hint else ""))
    if "--json" in arguments:
        say.document({**EMPTY.get(arguments[0], {}), "error": message, "hint": hint})
    return code
