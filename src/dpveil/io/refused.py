"""Why a file is not read: a problem and its remedy; the caller adds the file name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

COPY_AGAIN: Final = "get an intact copy"
LIMIT: Final = {"max_pixels": "max_pixels"}
"""How Python writes the limit that a remedy may name."""
SAVE_ANEW: Final = "open it in an image editor and save it as an 8-bit PNG"


class Refused(Exception):
    """A problem and its remedy; `read` puts the file's name in front and makes it a `PhotoError`.

    `arguments` are those that the remedy names in braces, as in `DPVeilError`.
    """

    def __init__(self, problem: str, remedy: str, arguments: Mapping[str, str] | None = None) -> None:
        super().__init__(problem)
        self.problem = problem
        self.remedy = remedy
        self.arguments = arguments


def damaged(name: str) -> Refused:
    """Return the refusal of a file of format `name` whose bytes do not fit together."""
    return Refused(f"is a truncated or damaged {name} file", COPY_AGAIN)


def overloaded(what: str) -> Refused:
    """Return the refusal of a file that would cost far more than its pixels, because of `what`."""
    return Refused(f"has {what}, far more than a photo needs", SAVE_ANEW)


def animation(frames: int) -> Refused:
    """Return the refusal of a file that holds so many pictures in turn: nobody said which one is meant."""
    count = {0: "", 1: " of 1 frame"}.get(frames, f" of {frames:,} frames")
    return Refused(f"is an animation{count}", "save one frame of it as a PNG")
