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
        help="whole, faces, text, plates, faces+text, detected (with --detector-model), x,y,w,h,"
        " object:x,y,w,h, or a mask image; repeatable. Default: by the method.",
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
        Path | None,
        typer.Option(
            metavar="FILE",
            help="The network's file: for --detector yunet, or an ONNX file (YOLO, RT-DETR) for --regions"
            " detected.",
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
}
"""Options that select among the detected faces."""
NAMES: Final = {"except_": "exclude", "detector_model": "model"}
"""Parameters of `Faces` for options whose names differ."""
FACES: Final = "faces"
OTHERS: Final[Mapping[str, Sequence[str]]] = {
    "text": ("threshold", "margin", "smallest"),
    "plates": ("threshold", "margin", "smallest"),
    "detected": ("threshold", "margin", "detector_model", "classes"),
}
"""The options of finders of what is no face."""
OWN: Final = ("detector_model", "classes")
"""Those that "detected" takes beside faces, too."""
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

    def named(self, name: str) -> Finder:
        """Return the finder of that name with these settings, as far as they are for it."""
        from dpveil.regions import Detected, Plates, Text

        if name == "faces":
            return self.faces()
        given = {n: v for n, v in self.settings.items() if n in OTHERS[name]}
        if "smallest" in given:
            given["smallest"] = _whole("smallest", given["smallest"])  # type: ignore[assignment]
        kinds: dict[str, Any] = {"text": Text, "plates": Plates, "detected": Detected}
        found: Finder = kinds[name](**{NAMES.get(n, n): value for n, value in given.items()})
        return found

    def finders(self, usual: Sequence[str]) -> list[Finder]:
        """Return the finders for --regions, or without it for the `usual` regions.

        The settings apply to faces where these are among the regions, and else to what is searched for.
        `classes`, and the model of "detected", are for that alone. Raises `InvalidParameter` for settings of
        nothing, and as `parse`.
        """
        from dpveil.regions import parse
        from dpveil.regions.spec import several

        specs = [str(part) for spec in self.specs or usual for part in several(spec.strip())]
        takes = {spec: self._for(spec, specs) for spec in specs if spec in (FACES, *OTHERS)}
        for name in self.settings:
            if not any(name in taken for taken in takes.values()):
                kind = "detected" if name == "classes" else FACES
                instead = f"use --regions {kind} in place of {', '.join(specs)}"
                hint = f"{instead if self.specs else f'add --regions {kind}'}, or leave it out"
                raise InvalidParameter(_written(name), None, f"is only for {kind}", hint=hint)
        given = {spec: {n: v for n, v in self.settings.items() if n in own} for spec, own in takes.items()}
        return [parse(Chosen((), given[s]).named(s) if s in given else s) for s in specs]

    def _for(self, spec: str, specs: Sequence[str]) -> Sequence[str]:
        """Return the settings that one of the chosen regions takes."""
        beside = FACES in specs
        if spec != FACES:
            return [n for n in OTHERS[spec] if not beside or n in OWN]
        yunet = self.settings.get("detector") == "yunet"
        model = () if "detected" not in specs or yunet else ("detector_model",)
        return [n for n in (*CHOICE, *SEARCH) if n not in ("classes", *model)]


NOTHING: Final = Chosen((), {})


def takes_regions(command: Callable[..., int], *, faces_only: bool = False) -> Callable[..., int]:
    """Return `command` with these options instead of its parameter `regions`, which gets a `Chosen`.

    With `faces_only` there is no --regions.
    """
    given = inspect.signature(command, eval_str=True)
    settings = {n: kind for n, kind in {**CHOICE, **SEARCH}.items() if not (faces_only and n == "classes")}
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
