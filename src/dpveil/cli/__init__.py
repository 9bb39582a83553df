"""The command line, a thin shell: parse, call, map errors to exit codes. Heavy imports are deferred."""

from __future__ import annotations

import gc
import os
import signal
import sys
import warnings
from collections.abc import Sequence
from functools import cache
from typing import Annotated, Any, Final

import typer

from dpveil.cli import exits, say
from dpveil.cli.command import COMMANDS, Commands, LazyCommand, placeholder_command
from dpveil.errors import DPVeilError, InstallationWarning

app = typer.Typer(
    cls=Commands,
    add_completion=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for _name, (_, _words) in COMMANDS.items():
    app.command(_name, cls=LazyCommand, short_help=_words)(placeholder_command)

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
  dpveil obfuscate photo.jpg --out private.jpg
  dpveil verify private.jpg

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
    gc.disable()  # loading modules makes no garbage, and looking for it takes a fifth of the time
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    warnings.formatwarning = _one_line
    warnings.filterwarnings("ignore", module=r"PIL\.")  # about odd files, which are read or refused
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
        from dpveil.cli.options import help_page

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
