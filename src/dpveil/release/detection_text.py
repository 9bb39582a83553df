"""What finders say beside their regions, and what certificates say of how regions were found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from dpveil.core.origin import CODE, EXCEPT, EYE, FACE, LIKE, PLATE, SAME, TEXT, Origin
from dpveil.core.photo import Photo
from dpveil.core.region import Box, Region
from dpveil.errors import RegionError
from dpveil.regions import Finder


def smallest(photo: Photo, finders: Sequence[Finder]) -> dict[str, int]:
    """Return the height in pixels below which no region of a kind was searched for, by any finder."""
    heights = [(finder.kind, finder.smallest_in(photo)) for finder in finders]
    falling = sorted(((n, kind) for kind, n in heights if n is not None), reverse=True)
    return {kind: n for n, kind in falling}


def doubtful(photo: Photo, finders: Sequence[Finder], placed: Sequence[Region]) -> tuple[Region, ...]:
    """Return the places that no finder was sure of and of which the middle is not replaced.

    So there are none in a photo that is replaced as a whole.
    """
    seen = (place for finder in finders for place in finder.doubtful_in(photo))
    return tuple(place for place in seen if not any(region.touches(_middle(place.box)) for region in placed))


def _middle(box: Box) -> Box:
    """Return the pixel in the middle of a box."""
    return Box(box.x + box.w // 2, box.y + box.h // 2, 1, 1)


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
CODE_BOX: Final = f"position and size of the code's box, {SAME}"
EYE_BOX: Final = f"position and size of the eye's box, rounded to a public grid, {SAME}"
EYE_COUNT: Final = "how many faces with eyes were found, and that none was found elsewhere"
CODE_COUNT: Final = "how many QR and bar codes were found, and that none was found elsewhere"
TEXT_COUNT: Final = "how many lines of text were found, and that none was found elsewhere"
TEXT_CHOICE: Final = (
    "how many lines of text do not clearly say something else than what was asked for, and that all others"
    f" do: this follows from the letters of all lines, also of those that are replaced, {SAME}"
)
PLATE_COUNT: Final = "how many plates were found, and that none was found elsewhere"
NO_OTHER_FACE: Final = "everything outside the region, with every face that was not found or not chosen"
NO_OTHER_TEXT: Final = "everything outside the region, with all text that was not found"
NO_OTHER_CHOICE: Final = f"{NO_OTHER_TEXT}, or that was read as something else than what was asked for"
NO_OTHER_CODE: Final = "everything outside the region, with every code that was not found"
NO_OTHER_PLATE: Final = "everything outside the region, with every plate that was not found"
NO_OTHER_EYE: Final = (
    "everything outside the region, with the face around it and all eyes that were not found"
)
OUTSIDE: Final = "everything outside the region"
NO_OTHER: Final = "everything outside the region, with every {} that was not found"
BY_REQUEST: Final = {
    "text": (TEXT, TEXT_BOX, TEXT_COUNT, NO_OTHER_TEXT),
    "plates": (PLATE, PLATE_BOX, PLATE_COUNT, NO_OTHER_PLATE),
    "codes": (CODE, CODE_BOX, CODE_COUNT, NO_OTHER_CODE),
    **dict.fromkeys(("eyes", "irises"), (EYE, EYE_BOX, EYE_COUNT, NO_OTHER_EYE)),
}
"""By the first word of a request: the kind of what it finds, and the three sentences about that."""
DETECTED: Final = "detected"
"""The first word of a request by a user's own detector."""
NONE_FOUND: Final = {
    "faces": ("no face was found", "faces that were missed stay visible"),
    "text": ("no text was found", "text that was missed stays visible"),
    "plates": ("no plate was found", "plates that were missed stay visible"),
    "codes": ("no QR or bar code was found", "codes that were missed stay visible"),
    **dict.fromkeys(("eyes", "irises"), ("no eye was found", "eyes that were missed stay visible")),
}
"""By the first word of a request: what is so if it is passed over, and what follows from that."""
NONE_BUT_KEPT: Final = (
    "no face was found, or none but those that are to stay as they are",
    "these and faces that were missed stay visible",
)
"""The same of a request that keeps faces, and may have found these."""
NONE_OF: Final = ("nothing was found for {}", "what was missed stays visible")
"""The same of any other request."""
SAME_RESULT: Final = "the guarantee compares photos with the same result"


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
        if LIKE in origin.finder:
            count, rest = TEXT_CHOICE, NO_OTHER_CHOICE
        return (place, count, FACES_TOO), rest
    if word == DETECTED:
        return (PLACE, COUNT, FACES_TOO), NO_OTHER.format(origin.kind)
    return (PLACE, COUNT), OUTSIDE


def passing(requests: Sequence[str]) -> tuple[str, ...]:
    """Return what is told, in one sentence, if nothing was found of these requests, which are passed over.

    >>> passing(["faces"])[0].partition(": ")[0]
    'that no face was found'
    """
    told = (f"that {what}: {SAME_RESULT}; {visible}" for what, visible in _passed_over_notes(requests))
    return tuple(filter(None, ["; ".join(told)]))


def passed_notes(requests: Sequence[str]) -> tuple[str, ...]:
    """Return a note for each kind of request of which nothing was found.

    >>> passed_notes(["faces margin=0", "text", "faces"])
    ('no face was found: faces that were missed stay visible', 'no text was found: text that was missed ...')
    """
    return tuple(f"{what}: {visible}" for what, visible in _passed_over_notes(requests))


def _passed_over_notes(requests: Sequence[str]) -> dict[tuple[str, str], None]:
    """Return what is so of each request that is passed over, and what follows from that, each once."""
    return dict.fromkeys(_none_found(text) for text in requests)


def _none_found(request: str) -> tuple[str, str]:
    word = request.partition(" ")[0]
    if word == "faces" and EXCEPT.search(request):
        return NONE_BUT_KEPT
    other = NONE_OF[0].format(request), NONE_OF[1]
    return NONE_FOUND.get(word, other)


def check_kept(asked: Sequence[Region], placed: Sequence[Region]) -> None:
    """Raise `RegionError` if a region would replace pixels that another one keeps."""
    kept = {one.box: one for region in asked for one in region.kept}
    for region in placed:
        if any(region.meets(one) for one in kept.values()):
            hint = "leave the region out, or let that face be replaced, too"
            raise RegionError(f"the region {region.label} reaches over a face that stays", hint=hint)
