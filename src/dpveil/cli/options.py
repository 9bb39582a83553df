"""Options that several commands share, and the method that they build."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from dpveil.errors import InvalidParameter

if TYPE_CHECKING:
    from dpveil.mechanisms.method import Method

Text = str | None

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
PostProcessing = Annotated[
    list[str] | None,
    typer.Option(
        metavar="STEP",
        help="Then, within each region: gaussian:1, median:3, non-local-means:10 or total-variation:1;"
        " free and repeatable.",
    ),
]

FLAG: Final = ""
ALL: Final = "all"
"""The word for a neighbourhood of every pixel, any-image."""
PARAMETERS: Final = {
    "epsilon": ("E", "What each region may cost. No default."),
    "delta": ("D", "δ, for methods that take it."),
    "rho": ("R", "ρ, for methods that take it."),
    "block": ("B", "Side of a block in pixels."),
    "window": ("P", "Side of a window in blocks."),
    "levels": ("K", "How many grey levels may be shown."),
    "wavelet": ("K", "Groups of 2^K × 2^K pixels are transformed together."),
    "drop_coarse": (FLAG, "Leave the means of groups out."),
    "constant_time": (FLAG, "Draw in a time that no pixel changes."),
    "neighbourhood": ("M", "Pixels in which neighbours differ, or all; default: all."),
    "rank": ("I", "Singular values that are kept."),
    "keep": ("SHARE", "Refused, with the reason: a share of the energy is private."),
    "coefficients": ("K", "Frequencies that are kept; default: those with the least expected error."),
    "raw": (FLAG, "Leave noisy coefficients as they are."),
    "clusters": ("K", "How many clusters of intensities; dp-samp."),
    "private_clusters": (FLAG, "Pay for clusters and counts with epsilon; dp-samp."),
    "rate": ("Q", "The most a pixel may be shown, as probability; dp-samp with private clusters."),
    "sigma": ("S", "Standard deviation of a blur in pixels."),
    "level": ("L", "Grey level of a fill, 0 to 255; default: 0, black."),
    "guarantee": ("KIND", "pure, metric or zcdp: chooses a mechanism; latent."),
    "mechanism": ("NAME", "How a code is drawn anew; latent."),
    "metric": ("NAME", "The distance that epsilon is for one unit of, with a metric guarantee; latent."),
    "clip": ("P", "Per cent of public codes that each side of the box leaves out; latent."),
    "allocation": ("RULE", "equal or optimal: how a budget is divided over a code; latent."),
    "ratio": ("R", "Noise of a component, beside its deviation, at most; default: 1.5; latent."),
    "codec": ("FILE", "The model of dpveil train, or default; latent."),
    "attributes": ("LIST", "What is kept, such as gender=4,age=2 with their budgets, or none; attributes."),
    "gallery": ("FILE", "The faces of nobody that are shown, or default; gallery and attributes."),
    "near": ("T", "How many of the nearest faces get the higher chance; gallery."),
    "law": ("NAME", "two-level, exponential or permute-and-flip: how chances fall with the rank; gallery."),
    "model": ("FILE", "The model of dpveil train attributes that reads faces, or default; attributes."),
    "protect": ("WHAT", "box or head: what is replaced around a face."),
    "placing": ("RULE", "auto, landmarks or box: how another face is put into place."),
    "inpainting": ("FILE", "A network that fills what a head leaves free, or telea; default: telea."),
}
"""Every parameter of every method: what stands for its value in the help, nothing for a flag; what it is."""


def may_take_method(command: Callable[..., int]) -> Callable[..., int]:
    """Return `command` as `takes_method` does; without --method it gets None."""
    return takes_method(command, required=False)


def takes_method(command: Callable[..., int], *, required: bool = True) -> Callable[..., int]:
    """Return `command` with an option for the method's name and one for each parameter of any method.

    The command gets them as one argument, `method`, ready-made.
    """
    del command.__annotations__["method"]  # a type that is only imported once it is used
    given = inspect.signature(command, eval_str=True)
    options = [_option("method", "NAME", "See `dpveil methods`.")]
    options += [_option(name, metavar, words) for name, (metavar, words) in PARAMETERS.items()]

    @wraps(command)
    def with_method(**arguments: Any) -> int:
        parameters = {name: arguments.pop(name) for name in PARAMETERS}
        name = arguments.pop("method")
        without = name is None and not required and not any(parameters.values())
        return command(method=None if without else build_method(name, **parameters), **arguments)

    kept = [parameter for parameter in given.parameters.values() if parameter.name != "method"]
    before = [parameter for parameter in kept if parameter.default is inspect.Parameter.empty]
    after = [parameter for parameter in kept if parameter.default is not inspect.Parameter.empty]
    with_method.__signature__ = given.replace(parameters=[*before, *options, *after])  # type: ignore[attr-defined]
    return with_method


def _option(name: str, metavar: str, words: str) -> inspect.Parameter:
    written = "--" + name.replace("_", "-")
    annotation: Any = Annotated[Text, typer.Option(metavar=metavar, help=words)]
    if metavar == FLAG:
        annotation = Annotated[bool | None, typer.Option(written, help=words)]
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    return inspect.Parameter(name, kind, default=None, annotation=annotation)


def build_method(name: Text, **options: Text | bool) -> Method:
    """Return the method of that name with the options that were given."""
    from dpveil.catalogue import TABLE, build

    if name is None:
        raise InvalidParameter(
            "--method", None, "is missing", hint=f"choose from {', '.join(TABLE)} (see dpveil methods)"
        )
    if str(options.get("neighbourhood")).strip() == ALL:
        del options["neighbourhood"]
    given = {key: value for key, value in options.items() if value is not None}
    return build(name, {key: number(v) if isinstance(v, str) else v for key, v in given.items()})


def number(text: str) -> int | str:
    """Return a whole number as an int; anything else stays text, so that it stays exact."""
    stripped = text.strip()
    digits = stripped.removeprefix("-").removeprefix("+")
    return int(stripped) if digits.isascii() and digits.isdigit() and len(digits) < 20 else text
