"""Options that several commands share, and the method built from them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, get_args

import typer

from dpveil.cli.command import Command
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
PostProcessing = Annotated[
    list[str] | None,
    typer.Option(
        metavar="STEP",
        help="Applied to each released region: gaussian:1, median:3, non-local-means:10 or total-variation:1;"
        " free and repeatable.",
    ),
]
AtLeast = Annotated[
    Text,
    typer.Option(metavar="STRENGTH", help="Refuse anything weaker than this: weak, moderate or strong."),
]

Trust = Annotated[
    list[Path] | None,
    typer.Option(
        metavar="PUBLIC_KEY",
        help="Refuse what the owner of this key (a file of dpveil key new) did not sign; repeatable.",
    ),
]

MaxPixels = Annotated[
    int, typer.Option(metavar="N", min=1, max=2**31, help="Refuse photos with more pixels.")
]

LedgerUrl = Annotated[
    Text, typer.Option("--ledger", metavar="URL", help="The ledger, such as sqlite:///budget.db.")
]

COVER: Final = "fill"
COVERED: Final = ("text", "plates", "codes", "eyes", "irises", "detected")
"""The default method for these regions alone, as of `release.asked`."""
FLAG: Final = ""
"""The metavar of options without a value."""
NAME: Final = "dpveil.method"
OPTIONS: Final = "dpveil.options"
GIVEN: Final = "dpveil.parameters"
"""Keys of a context for the method's name, its options, and their values."""


def takes_method(command: Callable[..., int], *, free: bool = False) -> Callable[..., int]:
    """Return `command` with an option for the method's name, instead of its parameter `method`.

    `MethodCommand` adds the method's own options. `command` gets the method built from all of them; the
    default method if none is named. A command that is `free` spends nothing, and needs no budget.
    """
    del command.__annotations__["method"]  # a type that is only imported for type checkers
    words = (
        "See `dpveil methods`; with --help, shows the method's own options as well. Default: every face"
        " becomes a synthetic one."
    )
    name = Annotated[Text, typer.Option("--method", metavar="NAME", help=words)]

    def build_it(given: dict[str, Any], options: Mapping[str, Any]) -> Method:
        method, own = given.get("method"), options["context"].meta.get(GIVEN, {})
        if method is None and not any(own.values()):
            method = _method_for_objects(options.get("regions"))
        return build_method(method, **(_with_typical(method, own) if free else own))

    with_method = splice_options(command, "method", {"method": name}, build_it)
    with_method.command_class = MethodCommand  # type: ignore[attr-defined]
    return with_method


NO_OUT: Final = (
    "this command writes no release; dpveil obfuscate does, and --preview of dpveil faces draws boxes"
)


class MethodCommand(Command):
    """A command with the options of the method named by --method, or of the default one, besides its own."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the command's own options and, after --method, those of the method."""
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
            option = str(getattr(error, "option_name", ""))
            if option in ("--out", "-o"):
                raise UsageError(f"no such option: {option}", hint=NO_OUT) from error
            if refusal := _foreign(option, name, ctx):
                raise refusal from error
            raise
        ctx.meta[GIVEN] = {option.name: ctx.params.pop(option.name) for option in options}
        return rest


PRESETS: Final[Mapping[str, Sequence[str]]] = {
    "press": ("--protect", "face", "--regions", "faces"),
    "dataset": ("--protect", "head", "--regions", "faces", "--names", "number"),
    "scan": ("--regions", "faces+text+codes"),
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
        + ". Options of yours win.",
    ),
]


def with_preset(arguments: Sequence[str]) -> list[str]:
    """Return a command line with the options of its --preset before its own, but for those it has.

    Raises `UnknownName`.

    >>> with_preset(["a.png", "--preset", "dataset", "--protect", "box"])[:4]
    ['--regions', 'faces', '--names', 'number']
    """
    name = last_value("--preset", arguments)
    if name is None:
        return [*arguments]
    if name not in PRESETS:
        raise UnknownName("preset", name, PRESETS)
    given = {word.partition("=")[0] for word in arguments}
    given |= {"--protect"} if "--method" in given else set()  # an option of the default method
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
    """Return the options of one method, from its parameters, or of the default method.

    Raises `UnknownName`.
    """
    from dpveil.catalogue import DEFAULT
    from dpveil.core.registry import METHODS

    if name is not None and name not in METHODS:
        raise UnknownName("method", name, METHODS)

    def carrier(**parameters: Any) -> None:
        """Carry a signature."""

    options = [_option(each, *told) for each, told in parameter_help(METHODS[name or DEFAULT]).items()]
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

    value, (usual, *others) = row["parameters"].get(name), row["budgets"] or [[]]
    if value == REQUIRED:
        instead = "".join(f", or {_names(other)}" for other in others if name not in other)
        return f"  [required{instead}]"
    if budget := next((budget for budget in others if name in budget), None):
        beside = [each for each in budget if each != name]
        return f"  [with {_names(beside)}]" if beside else f"  [instead of {_names(usual)}]"
    return "" if value is None or value is False else f"  [default: {value}]"


def _names(parameters: Sequence[str]) -> str:
    return " and ".join(map(_option_name, parameters))


def _foreign(option: str, name: str | None, context: Any) -> UsageError | None:
    """Return the error for an option of other methods, which names them; None for an unknown option."""
    from dpveil.catalogue import options
    from dpveil.core.registry import METHODS

    parameter = option.removeprefix("--").replace("-", "_")
    owners = [each for each, kind in METHODS.usable() if parameter in options(kind)]
    if not owners:
        return None
    others = f" and {len(owners) - 1} more" if len(owners) > 1 else ""
    if name is None:
        return UsageError(
            f"{option} is an option of {owners[0]}{others}, and no method is named",
            hint=f"add --method {'and one of ' * (len(owners) > 1)}{', '.join(owners)}, or leave it out",
        )
    return UsageError(
        f"{option} is an option of {owners[0]}{others}, not of {name}",
        hint=f"see {context.command_path} --method {owners[0]} --help",
    )


def _option(name: str, metavar: str, words: str) -> inspect.Parameter:
    flag, written = metavar == FLAG, _option_name(name)
    kind = typer.Option(written, help=words) if flag else typer.Option(written, metavar=metavar, help=words)
    annotation: Any = Annotated[bool | None if flag else Text, kind]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)


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
    kind = METHODS[name]
    row = row_of(kind)
    needed = [each for each, value in row["parameters"].items() if value == REQUIRED]
    if any(given.get(each) is not None for budget in row["budgets"] for each in budget):
        needed = [each for each in needed if not any(each in budget for budget in row["budgets"])]
    usual: dict[str, Text | bool] = {each: str(kind.typical.get(each, 1)) for each in needed}
    return {**usual, **{each: value for each, value in given.items() if value is not None}}


def _method_for_objects(regions: Any) -> Text:
    """Return the method for regions of text and the like alone; None for the default method."""
    specs = [part.strip() for spec in getattr(regions, "specs", ()) for part in spec.split("+")]
    return COVER if specs and all(spec in COVERED for spec in specs) else None


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
        help="whole, faces, text, plates, codes, eyes, irises, faces+text, detected (with --detector-model),"
        " x,y,w,h, object:x,y,w,h, or a mask image; repeatable. Default: by the method.",
    ),
]
RUNS_ON: Final = Annotated[
    str | None,
    typer.Option(
        metavar="auto|cpu|NAME",
        help="Run networks on this: cuda, coreml, directml, openvino or cpu. Default: auto, the first of them"
        " that onnxruntime has.",
    ),
]
SEARCH: Final[Mapping[str, Any]] = {
    "threshold": Annotated[
        str | None,
        typer.Option(metavar="S", help="Lowest score of a face, 0 to 1; default: the detector's own."),
    ],
    "margin": Annotated[
        str | None,
        typer.Option(
            metavar="F",
            help="Margin on each side, relative to the face's size. Default: 0.3; not for face methods.",
        ),
    ],
    "min_face": Annotated[
        str | None,
        typer.Option(metavar="N", help="Ignore faces with fewer pixels. Default: 1."),
    ],
    "long_side": Annotated[
        str | None,
        typer.Option(
            metavar="N", help="Scale the photo down to this long side for the search. Default: 1920."
        ),
    ],
    "smallest": Annotated[
        str | None,
        typer.Option(
            metavar="N",
            help="Look for faces from N pixels of height, in tiles: 12 at least with CenterFace."
            " Default: 24, more above 16 megapixels.",
        ),
    ],
    "detector": Annotated[
        str | None, typer.Option(metavar="NAME", help="centerface, dlib, or auto. Default: auto.")
    ],
    "detector_model": Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="An ONNX file (YOLO, RT-DETR) for --regions detected.",
        ),
    ],
    "text_like": Annotated[
        str | None,
        typer.Option(
            metavar="RULE",
            help="Of --regions text, let lines stay that clearly say something else than names, numbers, or"
            " what a regular expression finds.",
        ),
    ],
    "classes": Annotated[
        str | None,
        typer.Option(metavar="NAME,NAME", help="What --regions detected looks for, by name. Default: all."),
    ],
}
"""Options of the search for faces, and for other things where no faces are searched for."""
CHOICE: Final[Mapping[str, Any]] = {
    "only": Annotated[str | None, typer.Option(metavar="N,N", help="Protect only these faces.")],
    "except_": Annotated[
        str | None, typer.Option("--except", metavar="N,N", help="Protect all faces but these.")
    ],
    "keep_like": Annotated[
        list[Path] | None,
        typer.Option(
            metavar="PHOTO",
            help="Protect all faces but those that are clearly of the person in this photo; repeatable.",
        ),
    ],
    "replace_like": Annotated[
        list[Path] | None,
        typer.Option(
            metavar="PHOTO",
            help="Protect the person in this photo, and all who are not clearly somebody else; repeatable.",
        ),
    ],
}
"""Options that select among the detected faces."""
NAMES: Final = {"except_": "exclude", "detector_model": "model", "text_like": "like"}
"""Parameters of `Faces` for options whose names differ."""
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
OWN: Final = ("detector_model", "classes", "text_like")
"""Those that they take beside faces, too."""
WHOLE_NUMBERS: Final = ("min_face", "long_side", "smallest")
"""Options whose values are integers."""


@dataclass(frozen=True)
class Chosen:
    """The values of these options: `specs` of --regions, and the `settings` of the others by name."""

    specs: Sequence[str]
    settings: Mapping[str, str | Path]

    @property
    def given_options(self) -> tuple[str, ...]:
        """The options that were given, such as --regions."""
        return (*["--regions"] * bool(self.specs), *map(_option_name, self.settings))

    def faces(self) -> Faces:
        """Return the finder of faces with these settings; raises `InvalidParameter`."""
        from dpveil.regions import Faces

        given: dict[str, Any] = {
            n: _parse_pixels(n, v) if n in WHOLE_NUMBERS else v for n, v in self.settings.items()
        }
        references = [given.pop(name, ()) for name in ("keep_like", "replace_like")]
        if any(references):
            from dpveil.faces.likeness import Likeness

            given["likeness"] = Likeness.of(*references)
        return Faces(**{NAMES.get(name, name): value for name, value in given.items()})

    def build_finder(self, name: str) -> Finder:
        """Return the finder of that name with these settings, as far as they are for it."""
        from dpveil.regions import Codes, Detected, Eyes, Plates, Text

        if name == "faces":
            return self.faces()
        given = {n: v for n, v in self.settings.items() if n in OTHERS[name]}
        if "smallest" in given:
            given["smallest"] = _parse_pixels("smallest", given["smallest"])  # type: ignore[assignment]
        kinds: dict[str, Any] = {"text": Text, "plates": Plates, "codes": Codes, "detected": Detected}
        kinds |= {"eyes": Eyes, "irises": partial(Eyes, iris=True)}
        found: Finder = kinds[name](**{NAMES.get(n, n): value for n, value in given.items()})
        return found

    def finders(self, usual: Sequence[str]) -> list[Finder]:
        """Return the finders for --regions, or without it for the `usual` regions.

        The settings apply to faces where these are among the regions, and else to what is searched for.
        `classes`, and the model of "detected", are for that alone. Raises `InvalidParameter` for settings of
        nothing, and as `parse`.
        """
        from dpveil.regions import parse
        from dpveil.regions.spec import split_choices

        specs = [str(part) for spec in self.specs or usual for part in split_choices(spec.strip())]
        takes = {spec: self._for(spec, specs) for spec in specs if spec in (FACES, *OTHERS)}
        for name in self.settings:
            if not any(name in taken for taken in takes.values()):
                kind = {"classes": "detected", "text_like": "text"}.get(name, FACES)
                instead = f"use --regions {kind} in place of {', '.join(specs)}"
                hint = f"{instead if self.specs else f'add --regions {kind}'}, or leave it out"
                raise InvalidParameter(_option_name(name), None, f"is only for {kind}", hint=hint)
        given = {spec: {n: v for n, v in self.settings.items() if n in own} for spec, own in takes.items()}
        return [parse(Chosen((), given[s]).build_finder(s) if s in given else s) for s in specs]

    def _for(self, spec: str, specs: Sequence[str]) -> Sequence[str]:
        """Return the settings that one of the chosen regions takes."""
        beside = FACES in specs
        if spec != FACES:
            return [n for n in OTHERS[spec] if not beside or n in OWN]
        return [n for n in (*CHOICE, *SEARCH) if n not in ("classes", "text_like", "detector_model")]


NOTHING: Final = Chosen((), {})


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

    kept, only = list(given.parameters.values()), inspect.Parameter.KEYWORD_ONLY
    place = next(n for n, each in enumerate(kept) if each.name == parameter)
    own = [
        inspect.Parameter(name, only, default=False if get_args(kind)[0] is bool else None, annotation=kind)
        for name, kind in table.items()
    ]
    after = [each.replace(kind=only) for each in kept[place + 1 :]]
    parameters = [*(each.replace(kind=only) for each in kept[:place]), *own, *after]
    with_options.__signature__ = given.replace(parameters=parameters)  # type: ignore[attr-defined]
    return with_options


def takes_regions(command: Callable[..., int], *, faces_only: bool = False) -> Callable[..., int]:
    """Return `command` with these options instead of its parameter `regions`, which gets a `Chosen`.

    With `faces_only` there is no --regions.
    """
    table = {"regions": REGIONS, **CHOICE, **SEARCH, "device": RUNS_ON}
    others = ("regions", "classes", "text_like") if faces_only else ()

    def build(given: dict[str, Any], _: Mapping[str, Any]) -> Chosen:
        if (device := given.pop("device", None)) is not None:
            from dpveil.assets.engines import use_device

            use_device(device)
        return Chosen(given.pop("regions", ()), given)

    own = {name: kind for name, kind in table.items() if name not in others}
    return splice_options(command, "regions", own, build)


def _option_name(name: str) -> str:
    return "--" + name.rstrip("_").replace("_", "-")


def _parse_pixels(name: str, value: str | Path) -> int:
    text = str(value).strip()
    if not (text.isascii() and text.isdigit() and len(text) < 20):
        hint = "write it as 40 or 1920"
        raise InvalidParameter(name, text, "is not a whole number of pixels", hint=hint)
    return int(text)
