"""Why a file is not read: a problem and its remedy; the caller adds the file name."""

from __future__ import annotations

from typing import Final

COPY_AGAIN: Final = "get an intact copy"
SAVE_ANEW: Final = "open it in an image editor and save it as an 8-bit PNG"


class Refused(Exception):
    """A problem and its remedy; `read` puts the file's name in front and makes it a `PhotoError`."""

    def __init__(self, problem: str, remedy: str) -> None:
        super().__init__(problem)
        self.problem = problem
        self.remedy = remedy


def damaged(name: str) -> Refused:
    """Return the refusal of a file of format `name` whose bytes do not fit together."""
    return Refused(f"is a truncated or damaged {name} file", COPY_AGAIN)


def overloaded(what: str) -> Refused:
    """Return the refusal of a file that would cost far more than its pixels, because of `what`."""
    return Refused(f"has {what}, far more than a photo needs", SAVE_ANEW)
