"""The class of all commands, which reports the library's errors in terms of command-line options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Final

from typer.core import TyperCommand, TyperGroup

from dpveil.errors import DPVeilError, UsageError, nearest

ALIASES: Final = {
    "replace": "force",
    "exclude": "except",
    "box": "regions",
    "detector model": "detector_model",
    "mark": "c2pa",
}
"""Options of Python arguments whose names differ."""
ELSEWHERE: Final = {"if_none": "dpveil obfuscate --if-none"}
"""Options that messages name and that one command alone has."""

TABLES: Final = ("--people",)
"""Options whose value is a path or a word."""

PACKAGED: Final = "dpveil.commands"
"""The group of entry points by which distributions of their own bring commands."""

OTHERWISE: Final = {"anonymize": "obfuscate", "attack": "evaluate", "check": "verify", "release": "obfuscate"}
"""Commands by words that are not like their names."""


class Commands(TyperGroup):
    """A group of commands that suggests one for a name that it does not know."""

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """Return the name and the command that `args` begin with, and the rest; raises `UsageError`."""
        if args[0] in self.commands or args[0].startswith("-"):
            return super().resolve_command(ctx, args)
        from dpveil.io.names import shown

        other = OTHERWISE.get(args[0])
        near = other if other in self.commands else nearest(args[0], self.commands)
        hint = f"did you mean {near}? " if near else ""
        raise UsageError(f"no such command {shown(args[0])}", hint=f"{hint}see {ctx.command_path} --help")


class Refusal(DPVeilError):
    """A `DPVeilError` whose message and hint name options of the command line."""

    def __init__(self, error: DPVeilError, options: Mapping[str, str]) -> None:
        message, hint = error.told(options)
        super().__init__(message, hint=hint)
        self.exit_code = error.exit_code


class Command(TyperCommand):
    """A command whose error messages name options instead of Python arguments."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments, attaching the context to usage errors so that they can name the command's
        help.

        Raises `UsageError` if an option with a single value is given twice, and for an empty path, which
        would be the current folder.
        """
        try:
            values, _, given = self.make_parser(ctx).parse_args(args=list(args))
            for option in given:
                named = option.opts[0] if option.opts[0].startswith("-") else option.human_readable_name
                _check_paths(named, option, _several(values.get(str(option.name))))
                if not (option.multiple or getattr(option, "is_flag", True)) and given.count(option) > 1:
                    raise UsageError(f"{option.opts[0]} is given twice", hint="give it once")
            return super().parse_args(ctx, args)
        except Exception as error:
            if getattr(error, "ctx", ctx) is None:
                error.ctx = ctx  # type: ignore[attr-defined]
            raise

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the words of the usage line, without Typer's braces around required arguments."""
        return [piece.strip("{}") for piece in super().collect_usage_pieces(ctx)]

    def invoke(self, ctx: Any) -> Any:
        """Run the command; raises `Refusal` for every `DPVeilError`."""
        try:
            return super().invoke(ctx)
        except DPVeilError as error:
            raise Refusal(error, options_of(ctx)) from error


class Packaged(Command):
    """A command from a distribution of its own, `dpveil-NAME`, which is loaded when it is called."""

    @cached_property
    def loaded(self) -> Any:
        """The command itself, by its entry point; raises `UsageError` where nothing brings it."""
        from importlib.metadata import entry_points

        import typer.main

        for found in entry_points(group=PACKAGED, name=str(self.name)):
            one = typer.Typer(add_completion=False, rich_markup_mode=None)
            one.command(self.name, cls=Command, short_help=self.short_help)(found.load())
            return typer.main.get_command(one)
        raise UsageError(
            f"`dpveil {self.name}` is a package of its own, which is not installed",
            hint=f"pip install dpveil-{self.name}",
        )

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        """Return the context of the command itself."""
        return self.loaded.make_context(info_name, args, parent, **extra)


def elsewhere() -> None:
    """Stand for the function of a `Packaged` command."""


def _check_paths(named: str, option: Any, values: Sequence[Any]) -> None:
    """Raise `UsageError` for an empty path, and for a URL in the place of a path, which is not told."""
    kind = getattr(option.type, "name", "")
    if kind in ("path", "place") and "" in values:
        raise UsageError(f"{named} is empty", hint="name a file or a folder")
    if kind == "path" or named in TABLES:
        from dpveil.core.urls import check_local

        for value in values:
            check_local(named.strip("[]."), str(value))


def _several(value: Any) -> Sequence[Any]:
    """Return the values of an option or argument, which may have one or several."""
    return value if isinstance(value, list | tuple) else (value,)


def options_of(ctx: Any) -> dict[str, str]:
    """Return the option, such as --force, of every argument of a context's command."""
    written = [option.opts[0] for option in ctx.command.get_params(ctx) if option.opts[0].startswith("--")]
    options = {option.removeprefix("--").replace("-", "_"): option for option in written}
    others = {name: options[option] for name, option in ALIASES.items() if option in options}
    return {**ELSEWHERE, **others, **options}
