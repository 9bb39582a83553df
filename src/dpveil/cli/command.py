"""The class of all commands, which reports the library's errors in terms of command-line options."""

from __future__ import annotations

import gc
from collections.abc import Mapping
from functools import cached_property
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Final

import typer.main
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

COMMANDS: Final = {
    "obfuscate": ("obfuscate:obfuscate_command", "Release photos, clips, scans, each with a certificate."),
    "explain": ("explain:explain_command", "State what a method would promise, before any budget is spent."),
    "compare": ("compare:compare_command", "Show one photo under several methods and budgets."),
    "methods": ("explain:methods_command", "List every method and its parameters."),
    "verify": ("verify:verify_command", "Check releases against their certificates."),
    "faces": ("faces:faces_command", "Find the faces of a photo and number them."),
    "evaluate": ("evaluate:evaluate_command", "Attack releases of people's photos, and compare methods."),
    "synthesize": ("synthesize:synthesize_command", "Make a synthetic data set of faces, private as a set."),
    "card": ("card:card_command", "Write a data-set card of releases, per person and per file."),
    "train": ("", "Learn a model of faces from public images."),
    "audit": ("", "Check that the code keeps what it promises."),
    "install": ("install:install_command", "Install what finds faces and their landmarks."),
    "demo": ("demo:demo_command", "Release a public photograph at several budgets."),
    "serve": ("serve:serve_command", "Plan and release photos over HTTP."),
    "video": ("video:video_app", "Plan a clip, and release it by its plan."),
    "api-key": ("serve:api_key_app", "Keys with which others may use the service."),
    "ledger": ("ledger:ledger_app", "Keep the privacy budgets of people or albums."),
    "mechanism": ("mechanism:mechanism_app", "Release numbers that stay in their range."),
    "key": ("key:key_app", "Make keys that sign certificates, and show whose they are."),
}
"""Where each command is, and what it does; one without a place is a distribution of its own."""
PACKAGED: Final = "dpveil.commands"  # the group of entry points by which distributions bring commands

OTHERWISE: Final = {"anonymize": "obfuscate", "attack": "evaluate", "check": "verify", "release": "obfuscate"}
"""Commands by words that are not like their names."""


FIRST: Final = (
    "out preset method protect attributes epsilon regions except_ if_none at_least review dry_run force quiet"
    " verbose json help"
)
"""The options that are used most, which come first in the help of commands with many."""
MANY: Final = 20  # number of options from which on help has sections
SECTIONS: Final[Mapping[str, Mapping[str, str]]] = {
    "": {
        "Options of the method": "",
        "What is replaced": (
            "only keep_like replace_like text_like threshold margin min_face long_side smallest detector"
            " detector_model classes device"
        ),
        "What is shown": "placing gallery model outside link post_processing",
        "Files": (
            "names format_ labels new_points keep_metadata keep_columns manifest jobs engine max_pixels"
            " trust_source"
        ),
        "Documents and clips": "dpi pages keep_audio every keep sheet clip",
        "Budgets and proofs": "ledger subject other_regions sign c2pa c2pa_key seed",
    },
    "evaluate": {
        "Methods": "method epsilon delta block neighbourhood metric regions",
        "Attackers": "attack split releases",
        "Size of the run": "full people photos jobs seed",
    },
    "query": {
        "Values and groups": (
            "missing bins equals above below q groups categories by by_categories delimiter"
        ),
        "Noise": "mechanism relation step",
        "Budgets and proofs": "ledger subject seed",
    },
}
"""The sections of help by command, and of all other commands; options of none are those of a method."""


class Commands(TyperGroup):
    """A group of commands that suggests one for a name that it does not know."""

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """Return the name and the command that `args` begin with, and the rest; raises `UsageError`."""
        if args[0] in self.commands or args[0].startswith("-"):
            return super().resolve_command(ctx, args)
        from dpveil.io.names import show_path

        other = OTHERWISE.get(args[0])
        near = other if other in self.commands else nearest(args[0], self.commands)
        hint = f"did you mean {near}? " if near else ""
        if Path(args[0]).exists():
            near = f"obfuscate {show_path(args[0])} --out private{Path(args[0]).suffix}"
            hint = f"did you mean {ctx.command_path} {near}? "
        raise UsageError(f"no such command {show_path(args[0])}", hint=f"{hint}see {ctx.command_path} --help")


class CommandLineError(DPVeilError):
    """A `DPVeilError` whose message and hint name options of the command line."""

    def __init__(self, error: DPVeilError, options: Mapping[str, str]) -> None:
        message, hint = error.message_and_hint(options)
        super().__init__(message, hint=hint)
        self.exit_code = error.exit_code


class Command(TyperCommand):
    """A command whose error messages name options instead of Python arguments."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments; usage errors get the context, so that they can name the command's help."""
        try:
            values, _, given = self.make_parser(ctx).parse_args(args=list(args))
            for option in given:
                named = option.opts[0] if option.opts[0].startswith("-") else option.human_readable_name
                if getattr(option.type, "name", "") == "path":
                    from dpveil.core.urls import check_local

                    value = values.get(str(option.name))
                    for each in value if isinstance(value, list | tuple) else (value,):
                        check_local(named.strip("[]."), str(each))
                if not (option.multiple or getattr(option, "is_flag", True)) and given.count(option) > 1:
                    raise UsageError(f"{option.opts[0]} is given twice", hint="give it once")
            return super().parse_args(ctx, args)
        except Exception as error:
            if getattr(error, "ctx", ctx) is None:
                error.ctx = ctx  # type: ignore[attr-defined]
            raise

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write what the options do: those of many in sections, the commonest first."""
        shown = [(param, row) for param in self.get_params(ctx) if (row := param.get_help_record(ctx))]
        sections = SECTIONS.get(str(self.name)) or SECTIONS[""]
        place = {name: title for title, names in sections.items() for name in names.split()}
        listed: dict[str, list[Any]] = {title: [] for title in ("Arguments", "Options", *sections)}
        other = next(iter(sections)) if sections is SECTIONS[""] else "Options"
        if len(shown) > MANY and other != "Options":
            rank = {name: number for number, name in enumerate(FIRST.split())}
            place |= dict.fromkeys(rank, "Options")
            shown.sort(key=lambda each: rank.get(str(each[0].name), len(rank)))
        for param, row in shown:
            title = place.get(str(param.name), other) if len(shown) > MANY else "Options"
            listed["Arguments" if param.param_type_name == "argument" else title].append(row)
        for title, rows in listed.items():
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the words of the usage line, without Typer's braces around required arguments."""
        return [piece.strip("{}") for piece in super().collect_usage_pieces(ctx)]

    def invoke(self, ctx: Any) -> Any:
        """Run the command; raises `CommandLineError` for every `DPVeilError`."""
        if not gc.isenabled():  # by `main`
            gc.freeze()
            gc.enable()
        try:
            return super().invoke(ctx)
        except DPVeilError as error:
            raise CommandLineError(error, options_of(ctx)) from error


class LazyCommand(Command):
    """Stands for one of the `COMMANDS`, which is loaded when it is called."""

    @cached_property
    def target_command(self) -> Any:
        """The command itself; raises `UsageError` where no distribution brings it."""
        name = str(self.name)
        module, _, attribute = COMMANDS[name][0].partition(":")
        if module:
            found: Any = getattr(import_module(f"dpveil.cli.{module}"), attribute)
        else:
            found = next((point.load() for point in entry_points(group=PACKAGED, name=name)), None)
        if found is None:
            raise UsageError(
                f"`dpveil {name}` is a package of its own, which is not installed",
                hint=f"pip install dpveil-{name}",
            )
        one = typer.Typer(add_completion=False, rich_markup_mode=None)
        if isinstance(found, typer.Typer):
            one.add_typer(found, cls=Commands, name=name, short_help=self.short_help)
            return typer.main.get_command(one).commands[name]  # type: ignore[attr-defined]
        kind = getattr(found, "command_class", Command)
        one.command(name, cls=kind, short_help=self.short_help)(found)
        return typer.main.get_command(one)

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        """Return the context of the command itself."""
        return self.target_command.make_context(info_name, args, parent, **extra)


def placeholder_command() -> None:
    """Stand for the function of a command that is loaded later."""


def options_of(ctx: Any) -> dict[str, str]:
    """Return the option, such as --force, of every argument of a context's command."""
    written = [option.opts[0] for option in ctx.command.get_params(ctx) if option.opts[0].startswith("--")]
    options = {option.removeprefix("--").replace("-", "_"): option for option in written}
    others = {name: options[option] for name, option in ALIASES.items() if option in options}
    return {**ELSEWHERE, **others, **options}
