"""Options about clips, for every command that takes some."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final

import typer

from dpveil.cli.options import Text, splice_options
from dpveil.errors import InvalidParameter

COMMON: Final[Mapping[str, Any]] = {
    "keep_audio": Annotated[
        bool,
        typer.Option("--keep-audio", help="Of clips: keep the sound, which tells who speaks; else dropped."),
    ],
}
"""What every command that takes clips has."""
PLANNING: Final[Mapping[str, Any]] = {
    "every": Annotated[
        Text,
        typer.Option(
            metavar="SECONDS",
            help="Search a frame each time so many seconds have passed, and follow between; 0: every frame."
            "  [default: 0.2]",
        ),
    ],
    "keep": Annotated[
        Text,
        typer.Option(metavar="N,N", help="Leave these tracks as they are, by their numbers on the sheet."),
    ],
    "link": Annotated[
        list[str] | None,
        typer.Option(metavar="N,N", help="These tracks are one person, as you say; repeatable."),
    ],
}
"""What a command has besides that plans a clip."""


@dataclass(frozen=True)
class ClipOptions:
    """The values of these options by name, of those that were given."""

    values: Mapping[str, Any]

    def settings(self) -> dict[str, Any]:
        """Return the values as arguments of `video.analyze`; raises `InvalidParameter`."""
        values = dict(self.values)
        if "keep" in values:
            values["keep"] = numbers(values["keep"], "keep")
        if "link" in values:
            values["link"] = [numbers(text, "link", fewest=2) for text in values["link"]]
        return values


NO_CLIPS: Final = ClipOptions({})


def numbers(text: str, option: str, *, fewest: int = 1) -> tuple[int, ...]:
    """Return the numbers of tracks in a text; raises `InvalidParameter`.

    >>> numbers("1, 4", "link")
    (1, 4)
    """
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() and len(part) < 10 for part in parts):
        raise InvalidParameter(option, text, "is no list of tracks", hint="write numbers such as 1,4")
    found = tuple(dict.fromkeys(int(part) for part in parts))
    if len(found) < fewest:
        raise InvalidParameter(option, text, f"names fewer than {fewest} tracks", hint="such as 1,4")
    return found


def takes_clips(command: Callable[..., int], *, planning: bool = False) -> Callable[..., int]:
    """Return `command` with these options instead of its parameter `clip`, which gets a `ClipOptions`."""
    table = {**COMMON, **(PLANNING if planning else {})}
    return splice_options(command, "clip", table, lambda given, _: ClipOptions(given))
