"""Why a file is not read: a problem and its remedy; the caller adds the file name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

LINK: Final = "is a symbolic link, and links are not followed"
COPY: Final = "copy the file that it leads to"
COPY_AGAIN: Final = "get an intact copy"
LIMIT: Final = {"max_pixels": "max_pixels"}  # the arguments of a remedy that names the limit on pixels
SAVE_ANEW: Final = "open it in an image editor and save it as an 8-bit PNG"


class Refused(Exception):
    """Why a file is not read, and the remedy; `read` adds the file's name and raises a `PhotoError`.

    `arguments` are those that the remedy names in braces, as in `DPVeilError`.
    """

    def __init__(self, problem: str, remedy: str, arguments: Mapping[str, str] | None = None) -> None:
        super().__init__(problem)
        self.problem = problem
        self.remedy = remedy
        self.arguments = arguments


class Unread(Refused):
    """Nothing is known of a file, as what reads it is not installed."""


def damage_refusal(name: str) -> Refused:
    """Return the refusal of a malformed file of format `name`."""
    return Refused(f"is a truncated or damaged {name} file", COPY_AGAIN)


def overload_refusal(what: str) -> Refused:
    """Return the refusal of a file whose decoding would cost far more than its pixels, because of `what`."""
    return Refused(f"has {what}, far more than a photo needs", SAVE_ANEW)


def animation(frames: int) -> Refused:
    """Return the refusal of an animation; `frames` is 0 if their number is unknown."""
    count = {0: "", 1: " of 1 frame"}.get(frames, f" of {frames:,} frames")
    return Refused(f"is an animation{count}", "save one frame of it as a PNG")
