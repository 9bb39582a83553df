"""The sentences of certificates about what was found in a photo, by its kind."""

from __future__ import annotations

from typing import Final

from dpveil.core.origin import FACE, PLATE, SAME, TEXT, Origin

FACE_BOX: Final = f"position and size of the face box, {SAME}"
PLACE: Final = f"position and size of the region, {SAME}"
TEXT_BOX: Final = f"position and size of the box of text, and so about how long the text is, {SAME}"
PLATE_BOX: Final = f"position and size of the plate's box, and so about how long its text is, {SAME}"
FACES_TOO: Final = (
    f"where faces are, if they were looked for: with the pixels of this region in sight, {SAME}"
)
"""What is told beside regions of text and the like: they are covered once faces are found."""
COUNT: Final = "how many regions were found, and that none was found elsewhere"
FACE_COUNT: Final = "how many faces were found, and that none was found elsewhere"
TEXT_COUNT: Final = "how many lines of text were found, and that none was found elsewhere"
PLATE_COUNT: Final = "how many plates were found, and that none was found elsewhere"
NO_OTHER_FACE: Final = "everything outside the region, with every face that was not found or not chosen"
NO_OTHER_TEXT: Final = "everything outside the region, with all text that was not found"
NO_OTHER_PLATE: Final = "everything outside the region, with every plate that was not found"
OUTSIDE: Final = "everything outside the region"
NO_OTHER: Final = "everything outside the region, with every {} that was not found"
BY_REQUEST: Final = {
    "text": (TEXT, TEXT_BOX, TEXT_COUNT, NO_OTHER_TEXT),
    "plates": (PLATE, PLATE_BOX, PLATE_COUNT, NO_OTHER_PLATE),
}
"""By the first word of a request: the kind of what it finds, and the three sentences about that."""
DETECTED: Final = "detected"
"""The first word of a request by a user's own detector."""


def sentences(origin: Origin) -> tuple[tuple[str, ...], str]:
    """Return what the place of a region tells, and what stays beside it.

    >>> sentences(Origin("box"))
    ((), 'everything outside the region')
    """
    word = origin.finder.partition(" ")[0]
    if origin.kind == FACE:
        return (FACE_BOX, FACE_COUNT), NO_OTHER_FACE
    if not origin.found:
        return (), OUTSIDE
    kind, *told = BY_REQUEST.get(word, ("", ""))
    if origin.kind == kind:
        place, count, rest = told
        return (place, count, FACES_TOO), rest
    if word == DETECTED:
        return (PLACE, COUNT, FACES_TOO), NO_OTHER.format(origin.kind)
    return (PLACE, COUNT), OUTSIDE
