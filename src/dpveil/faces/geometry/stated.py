"""Whether a face can have been placed as a certificate states, by the rules by which faces are placed."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Final

import numpy as np

from dpveil.core.arrays import Bool
from dpveil.core.origin import EXCEPT, FACE
from dpveil.core.region import Box, RegionRecord
from dpveil.errors import InvalidParameter
from dpveil.faces.geometry.align import Similarity
from dpveil.faces.geometry.cell import ROUNDING, Cell, given_box
from dpveil.faces.geometry.head_frame import HeadFrame, Shape, between, outline
from dpveil.faces.geometry.landmarks import SEEN, of_box
from dpveil.faces.geometry.protection import FACE as FACE_ALONE
from dpveil.faces.geometry.protection import INSET, LEAST_INSET, PROTECTIONS, inset, protection_of
from dpveil.faces.geometry.protection import INSET_FORMAT as JPEG
from dpveil.regions.boxes import box_of_text
from dpveil.regions.tiling import growths

ONE: Final = HeadFrame(1)


def of_own_box(box: Box, protect: str) -> tuple[Similarity, Shape]:
    """Return the map to a frame with a side of 1, and the shape, of a face that a user's box alone places.

    The shape is so large that it holds the ellipse inscribed in the box.
    """
    there, kind = between(of_box(box), SEEN, ONE), PROTECTIONS[protect]
    ends = outline((box.x + box.w / 2 - 0.5, box.y + box.h / 2 - 0.5, box.w / 2, box.h / 2))
    return there, kind.of_box(ROUNDING * float(kind.one.far(there.to(ends) + 0.5).max()))


def misplaced(
    record: RegionRecord, protect: str, placing: str, width: int, height: int, *, counted: bool
) -> str:
    """Return why no face is replaced at a region of a photo of this size; empty if one may be.

    Landmarks tell the turn of a head, a box alone tells neither turn nor roll, and whatever was found is
    rounded to a cell of the public grid. Pixels of masks are only `counted` if asked for.
    """
    origin, size = record.origin, (width, height)
    cell = Cell.of(origin.cell or ())
    if origin.cell is None:
        if origin.kind != FACE and not origin.found and record.full and record.box == Box(0, 0, *size):
            return ""  # a portrait
        if origin.kind == FACE or placing == "landmarks" or origin.found != (placing != "box"):
            return "is not placed on the public grid"
        try:
            own = box_of_text(origin.finder)
        except InvalidParameter:  # a finder's own, of which certificates do not state the box
            return ""
        fits = _fits(record, protect, *of_own_box(own, protect), own, *size, counted=counted)
        return "" if fits else "is not that of its box"
    if cell is None:
        return "is in no cell of the grid"
    by_landmarks = cell.yaw is not None
    if placing == ("box" if by_landmarks else "landmarks") or (cell.roll and not by_landmarks):
        return f"has numbers of the grid that the placing {placing!r} does not give"
    if not origin.found:
        return "is in a cell of the grid, and was not found"
    protect = protection_of(protect, cell.yaw)
    fits = _fits(record, protect, cell.pose, cell.shape(protect), given_box(origin), *size, counted=counted)
    return "" if fits else "is not that of its cell of the grid"


def _fits(
    record: RegionRecord,
    protect: str,
    there: Similarity,
    shape: Shape,
    own: Box | None,
    width: int,
    height: int,
    *,
    counted: bool,
) -> bool:
    """Whether a region is that of a shape, cut where faces are kept, and grown to the blocks of its format.

    It has a mask where such regions have one, and may have one where it is cut.
    """
    masked, cut = PROTECTIONS[protect].masked, EXCEPT.search(record.origin.finder) is not None
    shown = shape.region(there, width, height, box=own, masked=False)
    if shown is None or (masked != (record.masked is not None) and (masked or not cut)):
        return False
    drawn_in = protect == FACE_ALONE and record.origin.grown_to == JPEG and own is None
    if drawn_in and not counted:
        return any(growths(one, record.box, JPEG, width, height) for one in _insets(shown[0], width, height))
    grew = None if drawn_in else growths(shown[0], record.box, record.origin.grown_to, width, height)
    if not drawn_in and (grew is None or not (masked and counted)):
        return grew is not None
    found = shape.region(there, width, height, box=own)  # takes time and memory, so it is the last
    if found is None or found[1] is None:
        return False
    box, mask = inset(found[0], found[1], width, height) if drawn_in else (found[0], found[1])
    grew = growths(box, record.box, record.origin.grown_to, width, height)
    if grew is None:
        return False
    least, most = _numbers(record, box, mask, grew)
    return (1 if cut else least) <= (record.masked or 0) <= most


def _insets(box: Box, width: int, height: int) -> Iterator[Box]:
    """Yield the boxes that an oval in `box` may have once it is drawn in (`inset`), by rounding."""
    if min(box.w, box.h) < LEAST_INSET:
        yield box
        return
    ends = (box.x > 0, box.y > 0, box.x + box.w < width, box.y + box.h < height)
    sides = [(INSET - 1, INSET, INSET + 1) if end else (0,) for end in ends]
    for left, top, right, bottom in product(*sides):
        yield Box(box.x + left, box.y + top, box.w - left - right, box.h - top - bottom)


def _numbers(
    record: RegionRecord, box: Box, mask: Bool[np.ndarray, "h w"], grew: tuple[int, int]
) -> tuple[int, int]:
    """Return how many pixels a mask in `box` can have after it grew in a region, at least and at most."""
    import cv2

    whole = np.zeros((record.box.h, record.box.w), np.uint8)
    whole[box.y - record.box.y :, box.x - record.box.x :][: box.h, : box.w] = mask
    squares = [np.ones((2 * n + 1, 2 * n + 1), np.uint8) for n in grew]
    least, most = (int(cv2.dilate(whole, square).sum(dtype=np.int64)) for square in squares)
    return least, most
