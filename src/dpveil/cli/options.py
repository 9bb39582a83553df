"""Options that several commands share, and the method and the finders built from them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, get_args

import typer

from dpveil.cli.command import Command
from dpveil.core.registry import DETECTORS
from dpveil.errors import InvalidParameter, UnknownName, UsageError

if TYPE_CHECKING:
    from dpveil.catalogue import MethodRow
    from dpveil.mechanisms.method import Method
    from dpveil.regions import Faces, Finder


Text = str | None

Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")]
Silent = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Print all details.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
Force = Annotated[bool, typer.Option("--force", help="Replace existing files.")]
PostProcessing = Annotated[
    list[str] | None,
    typer.Option(
        metavar="STEP",
        help="Smooth what was released, at no cost: gaussian:1, median:3 or non-local-means:10. Repeatable.",
    ),
]
AtLeast = Annotated[
    Text, typer.Option(metavar="STRENGTH", help="Refuse what is weaker: weak, moderate or strong.")
]
Trust = Annotated[
    list[Path] | None,
    typer.Option(
        metavar="PUBLIC_KEY",
        help="Refuse what the owner of this key did not sign (dpveil key new). Repeatable.",
    ),
]
Sign = Annotated[
    Path | None, typer.Option(metavar="KEY", help="Sign certificates with this key (dpveil key new).")
]
MaxPixels = Annotated[
    int, typer.Option(metavar="N", min=1, max=2**31, help="Refuse photos with more pixels.")
]
LedgerUrl = Annotated[
    Text, typer.Option("--ledger", metavar="URL", help="Pay from this ledger, such as sqlite:///budget.db.")
]
Payer = Annotated[Text, typer.Option(metavar="NAME", help="Who pays, such as studio/album-7.")]
OtherRegions = Annotated[
    bool,
    typer.Option(
        "--other-regions",
        help="With --ledger: take photos of which earlier releases replaced something else. The sum of their"
        " costs holds for what all of them replaced.",
    ),
]
Seed = Annotated[
    int | None, typer.Option(metavar="N", min=0, help="Repeat the same draw. NOT FOR PUBLICATION.")
]

COVER: Final = "fill"
COVERED: Final = ("text", "plates", "codes", "eyes", "irises", "detected")
"""The default method for these regions alone, as of `release.plan`."""
NAME: Final = "dpveil.method"
OPTIONS: Final = "dpveil.options"
GIVEN: Final = "dpveil.parameters"  # keys of a context for the method's name, its options, and their values
METHOD: Final = Annotated[
    Text,
    typer.Option(
        "--method",
        metavar="NAME",
        help="How regions are replaced (dpveil methods). With --help, shows its options. Default: every face"
        " becomes a synthetic one.",
    ),
]


def takes_method(command: Callable[..., int], *, free: bool = False) -> Callable[..., int]:
    """Return `command` with an option for the method's name, instead of its parameter `method`.

    `MethodCommand` adds the method's own options. `command` gets the method built from all of them; the
    default method if none is named. A command that is `free` spends nothing, and needs no budget.
    """
    del command.__annotations__["method"]  # a type that is only imported for type checkers

    def build_it(given: dict[str, Any], options: Mapping[str, Any]) -> Method:
        method, own = given.get("method"), options["context"].meta.get(GIVEN, {})
        if method is None and not any(own.values()):
            specs = [part.strip() for spec in options["regions"].specs for part in spec.split("+")]
            method = COVER if specs and set(specs).issubset(COVERED) else None
        return build_method(method, **(_with_typical(method, own) if free else own))

    with_method = splice_options(command, "method", {"method": METHOD}, build_it)
    with_method.command_class = MethodCommand  # type: ignore[attr-defined]
    return with_method


class MethodCommand(Command):
    """A command with the options of the method named by --method, or of the default one, besides its own."""

    def get_params(self, ctx: Any) -> list[Any]:
        shown = super().get_params(ctx)
        place = 1 + next(i for i, param in enumerate(shown) if param.name == "method")
        return [*shown[:place], *ctx.meta.get(OPTIONS, ()), *shown[place:]]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments; raises `UsageError`, which names the methods, for options of other methods."""
        if any(param.name == "preset" for param in self.params):
            args = with_preset(args)
        name = ctx.meta[NAME] = last_value("--method", args)
        own = {param.name for param in self.params}
        options = [o for o in method_options(name) if o.name not in own]
        ctx.meta[OPTIONS] = options
        try:
            rest: list[str] = super().parse_args(ctx, args)
        except Exception as error:
            if type(error).__name__ != "NoSuchOption":  # a class that Typer does not export
                raise
            if refusal := _option_of_others(str(error.option_name), name, ctx.command_path):  # type: ignore[attr-defined]
                raise refusal from error
            raise
        ctx.meta[GIVEN] = {option.name: ctx.params.pop(option.name) for option in options}
        return rest


def _option_of_others(option: str, name: str | None, command: str) -> UsageError | None:
    """Return the error for an option of other methods, which names them; None for an unknown option."""
    from dpveil.catalogue import options
    from dpveil.core.registry import METHODS

    parameter = option.removeprefix("--").replace("-", "_")
    if option.removeprefix("--") in METHODS:
        hint = f"did you mean --method {option.removeprefix('--')}? See {command} --help"
        return UsageError(f"there is no option {option}", hint=hint)
    owners = [each for each, kind in METHODS.usable() if parameter in options(kind)]
    if not owners:
        return None
    others = f" and {len(owners) - 1} more" if len(owners) > 1 else ""
    instead = f"not of {name}" if name else "and no method is named"
    hint = f"see {command} --method {owners[0]} --help"
    return UsageError(f"{option} is an option of {owners[0]}{others}, {instead}", hint=hint)


PRESETS: Final[Mapping[str, Sequence[str]]] = {
    "press": ("--gallery", "heads", "--outside", "none", "--protect", "face", "--regions", "faces"),
    "dataset": ("--protect", "head", "--regions", "faces", "--names", "number"),
    "scan": ("--regions", "faces+text+codes", "--if-none", "others"),
    "street": ("--regions", "faces+plates+codes", "--if-none", "others+copy", "--smallest", "12"),
    "strict": ("--protect", "box", "--regions", "faces+text+plates+codes", "--if-none", "others+whole"),
}
"""Options by the name of what photos are for; what is given by itself wins."""
Preset = Annotated[
    Text,
    typer.Option(
        metavar="|".join(PRESETS),
        help="Options for a purpose: "
        + "; ".join(f"{name} is {' '.join(options)}" for name, options in PRESETS.items())
        + ". Yours win.",
    ),
]


def with_preset(arguments: Sequence[str]) -> list[str]:
    """Return a command line with the options of its --preset before its own, but for those it has.

    >>> with_preset(["a.png", "--preset", "dataset", "--protect", "box"])[:4]
    ['--regions', 'faces', '--names', 'number']
    """
    name = last_value("--preset", arguments)
    if name is None:
        return [*arguments]
    if name not in PRESETS:
        raise UnknownName("preset", name, PRESETS)
    given = {word.partition("=")[0] for word in arguments}
    given |= {"--protect", "--gallery", "--outside"} if "--method" in given else set()  # of the default
    pairs = zip(PRESETS[name][::2], PRESETS[name][1::2], strict=True)
    return [word for flag, value in pairs if flag not in given for word in (flag, value)] + [*arguments]


def help_page(context: Any) -> str:
    """Return the command line that shows the help for a context, with its --method if it has one."""
    if context is None:
        return "dpveil --help"
    name = context.meta.get(NAME)
    return f"{context.command_path}{'' if name is None else f' --method {name}'} --help"


def is_default(context: Any) -> bool:
    """Return whether a command line has neither --method nor an option of the default method."""
    return context.meta.get(NAME) is None and not any(context.meta.get(GIVEN, {}).values())


def last_value(option: str, arguments: Sequence[str]) -> str | None:
    """Return the last value of an option in a command line, or None.

    >>> last_value("--method", ["a.png", "--method=blur", "--method", "dp-pix", "--", "--method=fill"])
    'dp-pix'
    """
    value, words = None, list(arguments)
    for place, word in enumerate(words[: words.index("--")] if "--" in words else words):
        if word == option and place + 1 < len(words):
            value = words[place + 1]
        elif word.startswith(f"{option}="):
            value = word.partition("=")[2]
    return value


def method_options(name: str | None) -> list[Any]:
    """Return the options of one method, from its parameters, or of the default method."""
    from dpveil.catalogue import DEFAULT
    from dpveil.core.registry import METHODS

    if name is not None and name not in METHODS:
        raise UnknownName("method", name, METHODS)

    def carrier(**parameters: Any) -> None:
        """Carry a signature, of which Typer makes options."""

    options = []
    for each, (metavar, words) in parameter_help(METHODS[name or DEFAULT]).items():
        more: Any = {"metavar": metavar} if metavar else {}  # without a placeholder it is a flag
        kind: Any = Annotated[Text if metavar else bool | None, typer.Option(_flag(each), help=words, **more)]
        options.append(inspect.Parameter(each, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind))
    carrier.__signature__ = inspect.Signature(options)  # type: ignore[attr-defined]
    app = typer.Typer(add_completion=False)
    app.command()(carrier)
    return list(typer.main.get_command(app).params)


def parameter_help(kind: type[Method]) -> dict[str, tuple[str, str]]:
    """Return the placeholder (empty for a flag) and the help text of every parameter of a method, by name.

    The text ends in the default, or in what is required.
    """
    from dpveil.catalogue import options, row_of

    row = row_of(kind)
    return {name: (metavar, words + _mark(name, row)) for name, (metavar, words) in options(kind).items()}


def _mark(name: str, row: MethodRow) -> str:
    """Return the end of a parameter's help text: its default, or that it is required.

    If the method has several sets of budget parameters, the first is required unless another one is given.
    """
    from dpveil.catalogue import REQUIRED

    def flags(parameters: Sequence[str]) -> str:
        return " and ".join(map(_flag, parameters))

    value, (usual, *others) = row["parameters"].get(name), row["budgets"] or [[]]
    if value == REQUIRED:
        return f"  [required{''.join(f', or {flags(other)}' for other in others if name not in other)}]"
    if budget := next((budget for budget in others if name in budget), None):
        beside = [each for each in budget if each != name]
        return f"  [with {flags(beside)}]" if beside else f"  [instead of {flags(usual)}]"
    return "" if value is None or value is False else f"  [default: {value}]"


def build_method(name: Text, /, **options: Text | bool) -> Method:
    """Return the method of that name, or the default one, with the options that were given."""
    from dpveil.catalogue import build

    given = {key: value for key, value in options.items() if value is not None}
    return build(name, {key: number(v) if isinstance(v, str) else v for key, v in given.items()})


def _with_typical(name: Text, given: Mapping[str, Text | bool]) -> dict[str, Text | bool]:
    """Return the options of a method with values for those that are required and were not given."""
    from dpveil.catalogue import REQUIRED, row_of
    from dpveil.core.registry import METHODS

    if name is None:
        return {**given}
    row = row_of(METHODS[name])
    needed = {each for each, value in row["parameters"].items() if value == REQUIRED}
    budget = {each for names in row["budgets"] for each in names}
    if any(given.get(each) is not None for each in budget):
        needed -= budget
    usual: dict[str, Text | bool] = {each: str(METHODS[name].typical.get(each, 1)) for each in needed}
    return usual | {each: value for each, value in given.items() if value is not None}


def number(text: str) -> int | str:
    """Return an integer as int, and anything else as text, which keeps decimals exact."""
    stripped = text.strip()
    digits = stripped.removeprefix("-").removeprefix("+")
    return int(stripped) if digits.isascii() and digits.isdigit() and len(digits) < 20 else text


REGIONS: Final = Annotated[
    list[str] | None,
    typer.Option(
        "--regions",
        metavar="SPEC",
        help="What is replaced: whole, faces, text, plates, codes, eyes, irises, faces+text, detected (with"
        " --detector-model), a box x,y,w,h or object:x,y,w,h, or a mask image. Repeatable. Default: by the"
        " method.",
    ),
]
RUNS_ON: Final = Annotated[
    Text,
    typer.Option(
        metavar="auto|cpu|NAME",
        help="Run networks on cuda, coreml, directml, openvino or cpu. Default: auto, the first that"
        " onnxruntime has.",
    ),
]
SEARCH: Final[Mapping[str, Any]] = {
    "threshold": Annotated[
        Text, typer.Option(metavar="S", help="Lowest score of a face, 0 to 1. Default: the detector's own.")
    ],
    "margin": Annotated[
        Text,
        typer.Option(
            metavar="F",
            help="Margin on each side as a share of the size; not for face methods. Default: 0.3.",
        ),
    ],
    "min_face": Annotated[
        int | None, typer.Option(metavar="N", min=0, help="Ignore faces with fewer pixels. Default: 1.")
    ],
    "long_side": Annotated[
        int | None,
        typer.Option(metavar="N", min=0, help="Search a copy with this long side. Default: 1920."),
    ],
    "smallest": Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=0,
            help="Look for faces from this height in pixels; 12 at least with CenterFace. Default: 24, more"
            " above 16 megapixels.",
        ),
    ],
    "detector": Annotated[
        Text,
        typer.Option(metavar="NAME", help=f"{', '.join(DETECTORS.rows)}, or a plug-in. Default: the first."),
    ],
    "detector_model": Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="An ONNX file (YOLO, RT-DETR) for --regions detected."),
    ],
    "text_like": Annotated[
        Text,
        typer.Option(
            metavar="RULE",
            help="Of --regions text, replace lines that may say names, numbers, or a regular expression.",
        ),
    ],
    "classes": Annotated[
        Text,
        typer.Option(metavar="NAME,NAME", help="What --regions detected looks for, by name. Default: all."),
    ],
}
"""Options of the search for faces, and for other things where no faces are searched for."""
CHOICE: Final[Mapping[str, Any]] = {
    "only": Annotated[Text, typer.Option(metavar="N,N", help="Replace these faces only.")],
    "except_": Annotated[
        Text, typer.Option("--except", metavar="N,N", help="Keep these faces (dpveil faces numbers them).")
    ],
    "keep_like": Annotated[
        list[Path] | None,
        typer.Option(metavar="PHOTO", help="Keep faces that are clearly of this person. Repeatable."),
    ],
    "replace_like": Annotated[
        list[Path] | None,
        typer.Option(
            metavar="PHOTO", help="Replace this person, and all who may be this person. Repeatable."
        ),
    ],
}
"""Options that select among the detected faces."""
NAMES: Final = {"except_": "exclude", "detector_model": "model", "text_like": "like"}
"""Parameters of finders for options whose names differ."""
FACES: Final = "faces"
OTHERS: Final[Mapping[str, Sequence[str]]] = {
    "text": ("threshold", "margin", "smallest", "text_like"),
    "plates": ("threshold", "margin", "smallest"),
    "codes": ("margin",),
    "eyes": ("margin",),
    "irises": ("margin",),
    "detected": ("threshold", "margin", "detector_model", "classes"),
}
"""The options of finders of what is no face."""
OWN: Final = ("detector_model", "classes", "text_like")  # those that they take beside faces, too


@dataclass(frozen=True)
class Chosen:
    """The values of these options: `specs` of --regions, and the `settings` of the others by name."""

    specs: Sequence[str]
    settings: Mapping[str, Any]

    @property
    def given_options(self) -> tuple[str, ...]:
        return (*["--regions"] * bool(self.specs), *map(_flag, self.settings))

    def faces(self) -> Faces:
        """Return the finder of faces with these settings; raises `InvalidParameter`."""
        faces: Any = _finder(FACES, self.settings)
        return faces  # type: ignore[no-any-return]

    def finders(self, usual: Sequence[str]) -> list[Finder]:
        """Return the finders for --regions, or without it for the `usual` regions.

        The settings apply to faces where these are among the regions, and else to what is searched for.
        """
        from dpveil.regions import parse
        from dpveil.regions.spec import split_choices

        specs = [str(part) for spec in self.specs or usual for part in split_choices(spec.strip())]
        beside = FACES in specs
        takes: dict[str, list[str]] = {
            spec: [name for name in own if not beside or name in OWN]
            for spec, own in OTHERS.items()
            if spec in specs
        }
        if beside:
            takes[FACES] = [name for name in (*CHOICE, *SEARCH) if name not in OWN]
        for name in self.settings:
            if not any(name in taken for taken in takes.values()):
                kind = {"classes": "detected", "text_like": "text"}.get(name, FACES)
                instead = f"use --regions {kind} in place of {', '.join(specs)}"
                hint = f"{instead if self.specs else f'add --regions {kind}'}, or leave it out"
                raise InvalidParameter(_flag(name), None, f"is only for {kind}", hint=hint)
        given = {spec: {n: v for n, v in self.settings.items() if n in own} for spec, own in takes.items()}
        return [parse(_finder(spec, given[spec]) if spec in given else spec) for spec in specs]


NO_REGIONS: Final = Chosen((), {})


def _finder(kind: str, settings: Mapping[str, Any]) -> Finder:
    from dpveil import regions

    given: dict[str, Any] = {NAMES.get(name, name): value for name, value in settings.items()}
    references = [given.pop(name, ()) for name in ("keep_like", "replace_like")]
    if any(references):
        from dpveil.faces.likeness import Likeness

        given["likeness"] = Likeness.of(*references)
    if kind == "irises":
        return regions.Eyes(iris=True, **given)
    finder: Finder = getattr(regions, kind.capitalize())(**given)  # Faces, Text, Plates, Codes, ...
    return finder


def splice_options(
    command: Callable[..., int],
    parameter: str,
    table: Mapping[str, Any],
    build: Callable[[dict[str, Any], Mapping[str, Any]], Any],
) -> Callable[..., int]:
    """Return `command` with the options of a table in the place of one parameter.

    That gets what `build` makes of the options that were given, and of all others.
    """
    given = inspect.signature(command, eval_str=True)

    @wraps(command)
    def with_options(**options: Any) -> int:
        values = {name: options.pop(name) for name in table}
        chosen = {name: value for name, value in values.items() if value not in (None, False, [])}
        return command(**{parameter: build(chosen, options)}, **options)

    only = inspect.Parameter.KEYWORD_ONLY
    own = [
        inspect.Parameter(name, only, default=False if get_args(kind)[0] is bool else None, annotation=kind)
        for name, kind in table.items()
    ]
    parameters: list[inspect.Parameter] = []
    for each in given.parameters.values():
        parameters += own if each.name == parameter else [each.replace(kind=only)]
    with_options.__signature__ = given.replace(parameters=parameters)  # type: ignore[attr-defined]
    return with_options


def takes_regions(
    command: Callable[..., int], *, faces_only: bool = False, of_clips: bool = False
) -> Callable[..., int]:
    """Return `command` with these options instead of its parameter `regions`, which gets a `Chosen`.

    With `faces_only` there is no --regions; `of_clips`, no faces are numbered.
    """
    table = {"regions": REGIONS, **CHOICE, **SEARCH, "device": RUNS_ON}
    others = ("regions", "classes", "text_like") if faces_only else (*CHOICE,) if of_clips else ()

    def build(given: dict[str, Any], _: Mapping[str, Any]) -> Chosen:
        if (device := given.pop("device", None)) is not None:
            from dpveil.assets.engines import use_device

            use_device(device)
        return Chosen(given.pop("regions", ()), given)

    own = {name: kind for name, kind in table.items() if name not in others}
    return splice_options(command, "regions", own, build)


def _flag(name: str) -> str:
    return "--" + name.rstrip("_").replace("_", "-")
