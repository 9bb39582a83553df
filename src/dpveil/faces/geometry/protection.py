"""What is replaced around a face, by the value of `protect`: public shapes, the same for everybody."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from dpveil.core.array_types import Bool
from dpveil.core.region import Box
from dpveil.faces.geometry.head_frame import AROUND, INNER, Shape
from dpveil.faces.geometry.head_frame import HEAD as WITH_HAIR
from dpveil.opencv import cv2

INSETS: Final = {"JPEG": 4, "WebP": 8}
"""By how many pixels an inner face is drawn in before it grows to the blocks of a format: half their side."""
LEAST_INSET: Final = 64
"""Shorter side of an oval's box, in pixels, from which on it is drawn in; of smaller ones much would stay."""
LARGER: Final = 1.06  # least factor by which a shape is larger than that of a face that a user's box places
TURNED: Final = 2  # the outermost class of yaw of a `Cell`, on either side
EITHER: Final = 1.4  # the stretch of both halves of the box around a head whose yaw is not known


@dataclass(frozen=True)
class Protection:
    """One kind of shape: `one` is that of a single face, `whole` holds those of every face of a cell.

    `masked` says whether the shape's own pixels are replaced, or the whole of its bounding box. The half at
    the back of a turned head is stretched by `behind`, by the class of its yaw, the other one by `ahead`,
    and both by `either` where the yaw is not known. `holds` is what the shape of a cell holds of a detected
    box, whatever landmarks say: its inscribed ellipse times the first number, moved down by the second times
    the height. `beyond` names what lies outside the shape, `also` is a sentence about what is replaced with a
    face, and `stays` one about what stays of its head, if that tells who it is.
    """

    one: Shape
    whole: Shape
    masked: bool
    beyond: str
    also: str
    stays: str = ""
    behind: tuple[float, float, float] = (1.0, 1.3, 1.6)
    ahead: tuple[float, float, float] = (1.0, 1.0, 1.0)
    either: float = 1.0
    holds: tuple[float, float] = (1.0, 0.0)

    def stretched(self, shape: Shape, yaw: int | None) -> Shape:
        """Return a shape for heads of a class of yaw, positive towards the right of the image."""
        if yaw is None:
            return shape if self.either == 1 else replace(shape, left=self.either, right=self.either)
        behind, ahead = self.behind[abs(yaw)], self.ahead[abs(yaw)]
        left, right = (behind, ahead) if yaw > 0 else (ahead, behind)
        return replace(shape, left=left, right=right)

    def of_box(self, factor: float) -> Shape:
        """Return the shape of a face that a user's box places, enlarged by at least `LARGER` if masked."""
        shape = self.one.larger(max(LARGER, factor)) if self.masked else self.one
        return self.stretched(shape, None)


PROTECT_HEAD: Final = "head"
PROTECT_BOX: Final = "box"
PROTECT_FACE: Final = "face"
HAIR: Final = "hair, neck and clothes beyond it"
ALSO: Final = "hair, ears and neck are replaced too"
PROTECTIONS: Final = {
    PROTECT_FACE: Protection(
        INNER,
        Shape((0.1845, 0.1878), below=1.262),
        True,
        "hair, ears, jaw, neck and clothes",
        "an oval around the inner face is replaced",
        "hair, ears, jaw and neck as far as they lie outside the oval, which may tell who it is",
        behind=(1.0, 1.0, 1.0),
        ahead=(1.0, 0.88, 0.76),
        holds=(0.5, 0.1),
    ),
    PROTECT_HEAD: Protection(WITH_HAIR, replace(WITH_HAIR.larger(1.25), below=0.81), True, HAIR, ALSO),
    PROTECT_BOX: Protection(AROUND, AROUND.larger(1.25), False, HAIR, ALSO, either=EITHER),
}
"""The only list of the values of `protect`; the first is the default."""


def inset(
    box: Box, mask: Bool[np.ndarray, "h w"], width: int, height: int, pixels: int
) -> tuple[Box, Bool[np.ndarray, "H W"]]:
    """Return the pixels of a mask, and their bounding box, that are more than so many `pixels` from what it
    leaves out of a photo of `width` × `height` pixels; the same mask if it is small (`LEAST_INSET`).
    """
    if min(box.w, box.h) < LEAST_INSET:
        return box, mask

    more = pixels + 1
    wide = np.pad(mask.astype(np.uint8), more)
    ends = (box.y, box.x, height - box.y - box.h, width - box.x - box.w)
    top, left, bottom, right = (max(0, more - end) for end in ends)  # beyond the photo nothing is left out
    size = (wide.shape[1] - left - right, wide.shape[0] - top - bottom)
    inner = wide[top : top + size[1], left : left + size[0]]
    edge = cv2.copyMakeBorder(inner, more, more, more, more, cv2.BORDER_REPLICATE)
    deep = cv2.distanceTransform(edge, cv2.DIST_L2, 5)[more:-more, more:-more] > pixels
    rows, columns = (np.flatnonzero(deep.any(axis=axis)).tolist() for axis in (1, 0))
    if not rows:
        return box, mask
    part = slice(rows[0], rows[-1] + 1), slice(columns[0], columns[-1] + 1)
    x, y = box.x - more + left + columns[0], box.y - more + top + rows[0]
    return Box(x, y, columns[-1] + 1 - columns[0], rows[-1] + 1 - rows[0]), deep[part]


def protection_of(protect: str, yaw: int | None) -> str:
    """Return what is replaced of a head by the class of its yaw: of one turned too far, the box around it.

    Landmarks of a profile are unsure by 30° and more, so its head may be half as large again as they say.
    """
    return PROTECT_BOX if protect == PROTECT_HEAD and abs(yaw or 0) == TURNED else protect
