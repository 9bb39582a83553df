"""A detected face: its alignment, the pixels that are protected, and what that leaves in the clear."""

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
"""Landmarks that lie farther apart than this, in distances between the eyes, are refused. For 99 of 100
portraits of LFW it is below 0.04, for boxes in photographs of other things 0.02 to 0.3."""
SCORE: Final = -0.4
"""Lowest accepted score of an aligned face by dlib's frontal detector."""

FOUND: Final = Origin(FACE, found=True)
UNKNOWN: Final = (-0.8, 0.8)
"""Range of turns, in radians, of a head known only by its box."""


@dataclass(frozen=True, eq=False)
class Placed:
    """One face: `region` is what has to be replaced, `pose` takes the photo to the pixels of `frame`.

    `landmarks` and `turned` are None where the face was placed by its box alone. Everything here follows from
    private pixels; `in_the_clear` says in words what a release reveals of it.
    """

    region: Region
    pose: Similarity
    frame: Frame
    landmarks: Landmarks | None = None
    turned: Pose | None = None

    @property
    def in_the_clear(self) -> tuple[str, ...]:
        """What a picture made with this place shows of the original, beside the code."""
        where: tuple[str, ...] = ("position and size of the face's box",)
        if self.landmarks is not None:
            where += (
                "position, size and angle of the face and the turn of its head, from landmarks found in it",
            )
        return (*where, "everything outside the region, such as hair, neck and clothes beyond it")

    def crop(self, photo: Photo) -> UInt8[np.ndarray, "s s 3"]:
        """Return the canonical crop, which holds protected pixels: for a codec and nobody else."""
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
    """Return where the face in `box` is, and what of the photo has to be replaced to protect it.

    `box` is in pixels, from the forehead to the chin, as `Faces(margin=0)` finds it. `protect` is "box", the
    whole box around any head that could be here, or "head", an ellipse with a neck that is the same for
    everybody. `landmarks` may be a `Predictor` of the user's own; False places the face by its box alone,
    upright, for faces that are tiny or turned away. Raises `InvalidParameter`; `UsageError` where landmarks
    are not installed; `RegionError` where the box leaves the photo or what is in it is not taken for a face:
    then nothing may be released.
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
    """Return landmarks of what is taken for a face; else raise `RegionError`, with what is wrong."""
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
    """Return the region to replace: the public shape with "head", else the box of the largest head here.

    The shape holds the ellipse in a detector's `box`, and all of a box that a user gave; the box holds all
    of either. A turned head reaches farther behind its face: its box is wider.
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
