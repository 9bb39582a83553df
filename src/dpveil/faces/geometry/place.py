"""The place of a detected face: its alignment, the protected pixels, and what they leave in the clear."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final
from weakref import WeakKeyDictionary

import numpy as np

from dpveil.core.array_types import UInt8
from dpveil.core.photo import Photo
from dpveil.core.region import Box, Region
from dpveil.core.region_origin import FACE, Origin
from dpveil.errors import InvalidParameter, RegionError
from dpveil.faces.geometry.align import Frame, Similarity, of_points
from dpveil.faces.geometry.cell import ROUNDING, Cell, cell_of, given_box
from dpveil.faces.geometry.head_frame import HeadFrame, Shape, between, outline
from dpveil.faces.geometry.landmarks import SEEN, UPRIGHT, Landmarks, Locator, locator, of_box, pose_of
from dpveil.faces.geometry.protection import PROTECT_FACE, PROTECTIONS, protection_of

TURNS: Final = (math.pi / 2, -math.pi / 2, math.pi)
"""Angles by which faces may be turned, of people who lie or photos that do."""
FOUND: Final = Origin(FACE, found=True)
LOOKED: Final[WeakKeyDictionary[Photo, dict[tuple[Locator, Box, bool], Landmarks]]] = WeakKeyDictionary()
"""Landmarks in photos in memory, as each face is placed several times, by one plan or by several."""

ONE: Final = HeadFrame(1)


def of_own_box(box: Box, protect: str) -> tuple[Similarity, Shape]:
    """Return the map to a frame with a side of 1, and the shape, of a face that a user's box alone places.

    The shape is so large that it holds the ellipse inscribed in the box.
    """
    there, kind = between(of_box(box), SEEN, ONE), PROTECTIONS[protect]
    ends = outline((box.x + box.w / 2 - 0.5, box.y + box.h / 2 - 0.5, box.w / 2, box.h / 2))
    return there, kind.of_box(ROUNDING * float(kind.one.far(there.to(ends) + 0.5).max()))


@dataclass(frozen=True, eq=False)
class Placed:
    """One face: `region` has to be replaced, `pose` maps the photo to the pixels of `frame`.

    If anything of the placement was found by looking at pixels, region and pose are those of the public
    `cell`, which is all that a release shows of it; else `cell` is None. `exact` is the face's own pose, None
    if that is `pose`. `landmarks` is None if the face was placed by its box only. Both are private.
    """

    region: Region
    pose: Similarity
    frame: Frame
    landmarks: Landmarks | None = None
    cell: Cell | None = None
    exact: Similarity | None = None
    protect: str = "head"

    @property
    def in_the_clear(self) -> tuple[str, ...]:
        """What a release at this place reveals of the original, apart from the released face."""
        what = "position and size of the face's box"
        if self.landmarks is not None:
            what = "position, size and angle of the face and the turn of its head, from landmarks found in it"
        where = what if self.cell is None else f"{what}, rounded to a public grid"
        return (where, f"everything outside the region, such as {PROTECTIONS[self.protect].beyond}")

    def crop(self, photo: Photo) -> UInt8[np.ndarray, "s s 3"]:
        """Return the canonical crop, which holds protected pixels: only a mechanism may use it."""
        return (self.exact or self.pose).crop(photo.image, self.frame)

    def reads(self, photo: Photo) -> Box:
        """Return the pixels that `crop` may read, which are as private as where the face is."""
        return (self.exact or self.pose).reads(self.frame, photo.height, photo.width)

    def core(self, photo: Photo) -> Region | None:
        """Return the pixels of the inner face in the middle of the cell; None if there are none."""
        if self.cell is None:
            return self.region
        kind = PROTECTIONS[PROTECT_FACE]
        shape = kind.stretched(kind.one, self.cell.yaw)
        pixels = shape.region(self.cell.pose, photo.width, photo.height)
        return None if pixels is None else Region(*pixels)


def place(
    photo: Photo,
    box: Box,
    *,
    frame: Frame | None = None,
    protect: str = "head",
    landmarks: bool | Locator = True,
    origin: Origin = FOUND,
) -> Placed:
    """Return the place of the face in `box`, and the region of the photo that protects it.

    `box` is in pixels, from the forehead to the chin, as `Faces(margin=0)` finds it. `protect` is one of
    `PROTECTIONS`: "head", an ellipse with a neck of the same shape for everybody, or the box around a head
    that is turned too far (`protection_of`); "box", all around any head that could be; or "face", an oval
    from the forehead to the chin.
    `landmarks` may be a `Locator`; with False the face is placed upright by its box only, for tiny faces or
    those turned away. What was found by looking at pixels, by `origin` or by landmarks, is rounded to a
    public `Cell`; a user's own box is not, and all of it is replaced, if `origin` names it. Raises
    `InvalidParameter`; `UsageError` if landmarks are not installed; and `RegionError` if the box extends
    beyond the photo or its content is not accepted as a face. Source: docs, "Face geometry".
    """
    frame = Frame() if frame is None else frame
    if protect not in PROTECTIONS:
        raise InvalidParameter("protect", protect, "is unknown", hint=" or ".join(PROTECTIONS))
    if not box.inside(photo.width, photo.height):
        raise RegionError(f"the box {box} of a face extends beyond the photo", hint="clip it to the photo")
    found = None
    if landmarks is not False:
        asked = locator() if landmarks is True else landmarks
        found = check(_near(asked, photo, box, lying=protect != PROTECT_FACE), origin.in_words())
    exact = between(of_box(box), SEEN, frame) if found is None else of_points(found.points, frame.points())
    own, cell = (None if origin.found else box), None
    if found is None and own is not None:
        there, shape = of_own_box(box, protect)
    else:
        own = own if own == given_box(origin) else None
        # The turn of the head in its own frame: in the photo's, that of a person who lies would be a nod.
        yaw = None if found is None else pose_of(replace(found, points=exact.to(found.points))).yaw
        cell = cell_of(between(exact, frame, ONE), yaw, None if own else box, protect)
        protect = protection_of(protect, cell.yaw)
        there, shape = cell.pose, cell.shape(protect)
    pixels = shape.region(there, photo.width, photo.height, box=own, masked=PROTECTIONS[protect].masked)
    if pixels is None:
        raise RegionError(f"{origin.in_words()} lies outside the photo", hint="it may not be a face")
    region = Region(*pixels, origin=replace(origin, found=True, cell=None if cell is None else cell.numbers))
    pose = exact if cell is None else between(there, ONE, frame)
    return Placed(region, pose, frame, found, cell, exact, protect)


def _near(asked: Locator, photo: Photo, box: Box, *, lying: bool) -> Landmarks:
    """Return the landmarks of the face in a box: upright, or if `lying` turned if that fits better; cached.

    A face that is half covered may seem to lie. The shapes of heads hold it however it is turned, and that of
    an inner face does not.
    """
    own = LOOKED.setdefault(photo, {})
    if (asked, box, lying) not in own:
        found = _looked(asked, photo, box, 0.0)
        if lying and not (isinstance(found, Landmarks) and found.score >= UPRIGHT):
            turned = [_looked(asked, photo, box, angle) for angle in TURNS]
            sure = [one for one in turned if isinstance(one, Landmarks) and one.sure]
            best = max(sure, key=lambda one: one.score, default=None)
            if best is not None and (isinstance(found, RegionError) or best.score > found.score):
                found = best
        if isinstance(found, RegionError):
            raise found
        own[asked, box, lying] = found
    return own[asked, box, lying]


def _looked(asked: Locator, photo: Photo, box: Box, angle: float) -> Landmarks | RegionError:
    """Return the landmarks of a face that is turned by an angle, or why there are none."""
    try:
        return asked.near(photo.image, box, angle)
    except RegionError as error:
        return error


def check(found: Landmarks, label: str = "face") -> Landmarks:
    """Return `found` if it is that of a face by its `limits`; else raise `RegionError`."""
    wrong, limits = [], found.limits
    if not found.spread <= limits.spread:
        wrong.append(f"they lie {found.spread:.2f} of the eyes' distance apart, more than {limits.spread}")
    if not found.score >= limits.score:
        wrong.append(f"the aligned face scores {found.score:.1f}, less than {limits.score}")
    if wrong:
        raise RegionError(
            f"no sure landmarks were found in {label} ({'; '.join(wrong)})",
            hint="it may not be a face, or be turned away or tiny: use its box alone, or a pixel method",
        )
    return found
