"""The place of a detected face: its alignment, the protected pixels, and what they leave in the clear."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from jaxtyping import UInt8

from dpveil.core.origin import FACE, Origin
from dpveil.core.photo import Photo
from dpveil.core.region import Box, Region
from dpveil.errors import InvalidParameter, RegionError
from dpveil.faces.geometry.align import Frame, Similarity, of_points
from dpveil.faces.geometry.head import MOST as HEAD
from dpveil.faces.geometry.head import Yaws, backs, between, bounds, outline
from dpveil.faces.geometry.head_frame import head_shape
from dpveil.faces.geometry.landmarks import SEEN, Landmarks, Predictor, of_box, predictor
from dpveil.faces.geometry.pose import Pose, pose_of

PROTECTIONS: Final = ("box", "head")
SPREAD: Final = 0.06
"""Largest accepted `Landmarks.spread`: for 99 % of portraits of LFW it is below 0.04, for boxes in
photographs of other things 0.02 to 0.3."""
SCORE: Final = -0.4
"""Least accepted `Landmarks.score`."""

FOUND: Final = Origin(FACE, found=True)
UNKNOWN: Final = (-0.8, 0.8)
"""Range of yaws, in radians, of a head that is placed by its box only."""


@dataclass(frozen=True, eq=False)
class Placed:
    """One face: `region` has to be replaced, `pose` maps the photo to the pixels of `frame`.

    `landmarks` and `turned`, the head's pose, are None if the face was placed by its box only. All of this
    depends on private pixels; `in_the_clear` says what a release reveals of it.
    """

    region: Region
    pose: Similarity
    frame: Frame
    landmarks: Landmarks | None = None
    turned: Pose | None = None

    @property
    def in_the_clear(self) -> tuple[str, ...]:
        """What a release at this place reveals of the original, apart from the released face."""
        where: tuple[str, ...] = ("position and size of the face's box",)
        if self.landmarks is not None:
            where += (
                "position, size and angle of the face and the turn of its head, from landmarks found in it",
            )
        return (*where, "everything outside the region, such as hair, neck and clothes beyond it")

    def crop(self, photo: Photo) -> UInt8[np.ndarray, "s s 3"]:
        """Return the canonical crop, which holds protected pixels: only a mechanism may use it."""
        return self.pose.crop(photo.image, self.frame)


def place(
    photo: Photo,
    box: Box,
    *,
    frame: Frame | None = None,
    protect: str = "head",
    landmarks: bool | Predictor = True,
    origin: Origin = FOUND,
) -> Placed:
    """Return the place of the face in `box`, and the region of the photo that protects it.

    `box` is in pixels, from the forehead to the chin, as `Faces(margin=0)` finds it. `protect` is "box", the
    bounding box of any head that could be here, or "head", an ellipse with a neck of the same shape for
    everybody. `landmarks` may be a `Predictor`; with False the face is placed upright by its box only, for
    tiny faces or those turned away. Raises `InvalidParameter`; `UsageError` if landmarks are not installed;
    and `RegionError` if the box extends beyond the photo or its content is not accepted as a face.
    Source: docs, "Face geometry".
    """
    frame = Frame() if frame is None else frame
    if protect not in PROTECTIONS:
        raise InvalidParameter("protect", protect, "is unknown", hint=" or ".join(PROTECTIONS))
    if not box.inside(photo.width, photo.height):
        raise RegionError(f"the box {box} of a face extends beyond the photo", hint="clip it to the photo")
    found = None
    if landmarks is not False:
        asked = predictor() if landmarks is True else landmarks
        found = check(asked.near(photo.image, box), origin.in_words())
    pose = between(of_box(box), SEEN, frame) if found is None else of_points(found.points, frame.points())
    looks = None if found is None else pose_of(found)
    yaws = UNKNOWN if looks is None else (looks.yaw,)
    region = head_region(photo, box, pose, frame, protect=protect, origin=origin, yaws=yaws)
    return Placed(region, pose, frame, found, looks)


def check(found: Landmarks, label: str = "face") -> Landmarks:
    """Return `found` if it is accepted as a face by `SPREAD` and `SCORE`; else raise `RegionError`."""
    wrong = []
    if not found.spread <= SPREAD:
        wrong.append(f"they lie {found.spread:.2f} of the eyes' distance apart, more than {SPREAD}")
    if not found.score >= SCORE:
        wrong.append(f"the aligned face scores {found.score:.1f}, less than {SCORE}")
    if wrong:
        raise RegionError(
            f"no sure landmarks were found in {label} ({'; '.join(wrong)})",
            hint="it may not be a face, or be turned away or tiny: use its box alone, or a pixel method",
        )
    return found


def head_region(
    photo: Photo, box: Box, pose: Similarity, frame: Frame, *, protect: str, origin: Origin, yaws: Yaws
) -> Region:
    """Return the region to replace: the public shape for "head", else the bounding box of any head here.

    The shape holds the ellipse inscribed in a detector's `box`, and all of a box given by a user; the
    bounding box holds all of either. `yaws`, in radians, widen the bounding box by the back of a turned head.
    Raises `RegionError` if the region lies outside the photo.
    """
    found = replace(origin, found=True)
    if protect == "head":
        shape = head_shape(pose, frame, box, photo.width, photo.height, whole=not origin.found)
        if shape is None:
            raise RegionError(f"{origin.in_words()} lies outside the photo", hint="it may not be a face")
        return Region(*shape, origin=found)
    ends = [frame.pixels(outline(ellipse)) for ellipse in (HEAD, *backs(HEAD, yaws))]
    corners = np.array([[box.x, box.y], [box.x + box.w - 1, box.y + box.h - 1]], float)
    whole = bounds(np.concatenate([*(pose.back(end) for end in ends), corners]), photo.width, photo.height)
    if whole is None:
        raise RegionError(f"{origin.in_words()} lies outside the photo", hint="it may not be a face")
    return Region(whole, origin=found)
