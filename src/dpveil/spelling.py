"""Names that are like a mistyped one, for the hints of errors; `dpveil.errors` exports what others use."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Final

CLOSE: Final = 0.82
"""The least difflib ratio of a suggestion: "dp-pix" is suggested for "dppix", "mean" not for "median"."""
SHORT: Final = 3
"""Letters of names that one wrong letter turns into another name, as "max" into "mad"."""


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that is most similar to `name`, or None if none is similar enough (`CLOSE`).

    One slip in typing the only such name counts as similar, and so does a word of just one name.

    >>> nearest("dppix", ["dp-pix"]), nearest("svd", ["dp-pix", "dp-svd"]), nearest("median", ["mean"])
    ('dp-pix', 'dp-svd', None)
    >>> nearest("tella", ["telea"]), nearest("yunte", ["dlib", "yunet"])
    ('telea', 'yunet')
    """
    names = list(known)
    found = get_close_matches(name, names, n=1, cutoff=CLOSE)
    slipped = [known for known in names if len(known) > SHORT and _slip(name, known)]
    holding = [known for known in names if name in known.split("-")]
    return next((one[0] for one in (found, slipped, holding) if len(one) == 1), None)


def _slip(typed: str, name: str) -> bool:
    """Whether one letter is wrong, missing or too many, or two neighbours changed places."""
    pairs = zip(typed, name, strict=False)
    same = next((n for n, (one, other) in enumerate(pairs) if one != other), min(len(typed), len(name)))
    rest, whole = typed[same:], name[same:]
    swapped = rest[1::-1] + rest[2:]
    return whole in (rest[1:], swapped) or whole[1:] in (rest, rest[1:])


def meant(name: str, known: Iterable[str]) -> str:
    """Return a question for the beginning of a hint, or nothing if no known name is similar.

    >>> meant("wohle", ["whole", "copy"]) + "write whole or copy"
    'did you mean whole? write whole or copy'
    """
    near = nearest(name, known)
    return f"did you mean {near}? " if near else ""
