"""What requests for regions ask for: the kind of region, and which faces are to stay."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from dpveil.core.origin import BOX, FACE, MASK, OBJECT, WHOLE
from dpveil.core.region import RegionRecord
from dpveil.errors import InvalidParameter
from dpveil.regions.boxes import asked_box
from dpveil.regions.finder import Selection
from dpveil.release.detection_text import BY_REQUEST

MASK_REQUEST: Final = re.compile(r"(?:.* )?mask sha256:[0-9a-f]{64}")
"""Requests of masks, and of regions with a mask."""
FACES: Final = "faces"
"""The first word of a request for faces, and the default regions of face-space methods."""
ASKED: Final = "as was asked for"
BOXES_ALONE: Final = "no face was looked for: every face outside the given boxes stays visible"
MOST_NAMED: Final = 8
"""Most faces that a sentence names."""


def kind_of(text: str) -> str:
    """Return the kind of region that a request asks for; empty for a finder's own.

    >>> kind_of("faces except=2"), kind_of("object:1,2,3,4"), kind_of("signs")
    ('face', 'object', '')
    """
    if text.partition(" ")[0] == FACES:
        return FACE
    if (word := text.partition(" ")[0]) in BY_REQUEST:
        return BY_REQUEST[word][0]
    if text == WHOLE:
        return WHOLE
    if MASK_REQUEST.fullmatch(text):
        return MASK
    try:
        return OBJECT if asked_box(text).object else BOX
    except InvalidParameter:
        return ""


def stays(request: Sequence[str], regions: Sequence[RegionRecord]) -> tuple[str, ...]:
    """Return a sentence for every request for faces of which some were to stay as they are.

    >>> from dpveil.core.origin import Origin
    >>> from dpveil.core.region import Box
    >>> one = RegionRecord(Box(0, 0, 9, 9), Origin("face", "faces except=2", number=1, found=True))
    >>> stays(["faces except=2"], [one])
    ('face 2 stays as it is, as was asked for',)
    """
    told = []
    for text in dict.fromkeys(record.origin.finder for record in regions):
        asked = Selection.of(text) if text in request else None
        if asked is not None and asked.exclude:
            are = "face {} stays as it is" if len(asked.exclude) == 1 else "faces {} stay as they are"
            told.append(f"{are.format(_numbers_text(asked.exclude))}, {ASKED}")
        elif asked is not None and asked.by_likeness:
            told.append(
                f"faces that are like those of reference photos, or unlike, stay as they are, {ASKED}"
            )
        elif asked is not None and asked.only:
            told.append(f"every face but {_numbers_text(asked.only)} stays as it is, {ASKED}")
    return tuple(told)


def _numbers_text(numbers: Sequence[int]) -> str:
    """Return "1", "1 and 2", and so on, with the number of those that are too many to name."""
    named = list(map(str, numbers[:MOST_NAMED]))
    named += [f"{len(numbers) - MOST_NAMED} more"] * (len(numbers) > MOST_NAMED)
    return " and ".join([", ".join(named[:-1]), named[-1]] if len(named) > 1 else named)
