"""The options that choose regions, for all commands that have them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from dpveil.errors import InvalidParameter

if TYPE_CHECKING:
    from dpveil.regions import Faces, Finder

REGIONS: Final = Annotated[
    list[str] | None,
    typer.Option(
        "--regions",
        metavar="SPEC",
        help="whole, faces, x,y,w,h, object:x,y,w,h, or a mask image; repeatable. Default: by the method.",
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
        str | None, typer.Option(metavar="NAME", help="centerface, dlib, yunet, or auto. Default: auto.")
    ],
    "detector_model": Annotated[
        Path | None, typer.Option(metavar="FILE", help="The network's file, for --detector yunet.")
    ],
}
"""Options of the search for faces."""
CHOICE: Final[Mapping[str, Any]] = {
    "only": Annotated[str | None, typer.Option(metavar="N,N", help="Protect only these faces.")],
    "except_": Annotated[
        str | None, typer.Option("--except", metavar="N,N", help="Protect all faces but these.")
    ],
}
"""Options that select among the detected faces."""
NAMES: Final = {"except_": "exclude", "detector_model": "model"}
"""Parameters of `Faces` for options whose names differ."""
WHOLE_NUMBERS: Final = ("min_face", "long_side", "smallest")
"""Options whose values are integers."""


@dataclass(frozen=True)
class Chosen:
    """The values of these options: `specs` of --regions, and the `settings` of the others by name."""

    specs: Sequence[str]
    settings: Mapping[str, str | Path]

    @property
    def given(self) -> tuple[str, ...]:
        """The options that were given, such as --regions."""
        return (*["--regions"] * bool(self.specs), *map(_written, self.settings))

    def faces(self) -> Faces:
        """Return the finder of faces with these settings; raises `InvalidParameter`."""
        from dpveil.regions import Faces

        given = {n: _whole(n, v) if n in WHOLE_NUMBERS else v for n, v in self.settings.items()}
        return Faces(**{NAMES.get(name, name): value for name, value in given.items()})  # type: ignore[arg-type]

    def finders(self, usual: Sequence[str]) -> list[Finder]:
        """Return the finders for --regions, or without it for the `usual` regions.

        The settings apply to "faces"; raises `InvalidParameter` if they are given without it, and as `parse`.
        """
        from dpveil.regions import parse

        specs = [spec.strip() for spec in self.specs or usual]
        if self.settings and "faces" not in specs:
            option = _written(next(iter(self.settings)))
            instead = f"use --regions faces in place of {', '.join(specs)}"
            hint = f"{instead if self.specs else 'add --regions faces'}, or leave it out"
            raise InvalidParameter(option, None, "is only for faces", hint=hint)
        return [parse(self.faces() if spec == "faces" else spec) for spec in specs]


NOTHING: Final = Chosen((), {})


def takes_regions(command: Callable[..., int], *, faces_only: bool = False) -> Callable[..., int]:
    """Return `command` with these options instead of its parameter `regions`, which gets a `Chosen`.

    With `faces_only` there is no --regions.
    """
    given = inspect.signature(command, eval_str=True)
    settings = {**CHOICE, **SEARCH}
    table = settings if faces_only else {"regions": REGIONS, **settings}

    @wraps(command)
    def with_regions(*arguments: Any, **options: Any) -> int:
        specs = options.pop("regions", None)
        chosen = {name: options.pop(name) for name in settings}
        found = Chosen(specs or (), {name: value for name, value in chosen.items() if value is not None})
        return command(*arguments, regions=found, **options)

    own = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind)
        for name, kind in table.items()
    ]
    kept = list(given.parameters.values())
    place = next(n for n, parameter in enumerate(kept) if parameter.name == "regions")
    after = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in kept[place + 1 :]]
    with_regions.__signature__ = given.replace(  # type: ignore[attr-defined]
        parameters=[*kept[:place], *own, *after]
    )
    return with_regions


def _written(name: str) -> str:
    return "--" + name.rstrip("_").replace("_", "-")


def _whole(name: str, value: str | Path) -> int:
    text = str(value).strip()
    if not (text.isascii() and text.isdigit() and len(text) < 20):
        hint = "write it as 40 or 1920"
        raise InvalidParameter(name, text, "is not a whole number of pixels", hint=hint)
    return int(text)
