"""The options for face detection that several commands share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from dpveil.errors import InvalidParameter

if TYPE_CHECKING:
    from dpveil.regions import Faces, Finder

Threshold = Annotated[
    str | None,
    typer.Option(metavar="S", help="Lowest score of a face, 0 to 1; default: the detector's own."),
]
Margin = Annotated[
    str | None,
    typer.Option(
        metavar="F",
        help="Margin on each side, relative to the face's size. Default: 0.3; not for face methods.",
    ),
]
MinFace = Annotated[str | None, typer.Option(metavar="N", help="Ignore faces with fewer pixels. Default: 1.")]
LongSide = Annotated[
    str | None,
    typer.Option(metavar="N", help="Scale the photo down to this long side for the search. Default: 1920."),
]
DetectorName = Annotated[
    str | None, typer.Option(metavar="NAME", help="centerface, dlib, yunet, or auto. Default: auto.")
]
DetectorModel = Annotated[
    Path | None, typer.Option(metavar="FILE", help="The network's file, for --detector yunet.")
]

NAMES: Final = {"exclude": "except", "model": "detector-model"}
"""Settings of `Faces` that have another name on the command line."""

Settings = Mapping[str, str | Path | None]


def faces(settings: Settings) -> Faces:
    """Return the finder of faces with the settings that were given."""
    from dpveil.regions import Faces

    whole = ("min_face", "long_side")
    given = {name: value for name, value in settings.items() if value is not None}
    return Faces(**{name: _whole(name, value) if name in whole else value for name, value in given.items()})  # type: ignore[arg-type]


def finders(specs: Sequence[str], settings: Settings) -> list[Finder]:
    """Return what was written as --regions, with the settings for faces wherever that is "faces".

    Raises `InvalidParameter` if there are settings for faces and no faces, and what `parse` does.
    """
    from dpveil.regions import parse

    given = [name for name, value in settings.items() if value is not None]
    if given and "faces" not in [spec.strip() for spec in specs]:
        option = "--" + NAMES.get(given[0], given[0]).replace("_", "-")
        raise InvalidParameter(option, None, "is only for faces", hint="add --regions faces, or leave it out")
    return [parse(faces(settings) if spec.strip() == "faces" else spec) for spec in specs]


def _whole(name: str, value: str | Path) -> int:
    text = str(value).strip()
    if not (text.isascii() and text.isdigit() and len(text) < 20):
        raise InvalidParameter(
            f"--{name.replace('_', '-')}",
            text,
            "is not a whole number of pixels",
            hint="write it as 40 or 1920",
        )
    return int(text)
