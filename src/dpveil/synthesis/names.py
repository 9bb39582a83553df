"""Names of the files of a data set."""

from __future__ import annotations

from typing import Final

NAME: Final = "dataset.certificate.json"
"""The certificate of the whole set."""
SHEET: Final = "sheet.png"
"""The contact sheet."""


def picture_name(number: int) -> str:
    """Return the file name of a picture by its number from 1.

    >>> picture_name(7)
    '000007.png'
    """
    return f"{number:06}.png"
