"""Eyes: upright boxes around both eyes of every face, or around their irises, by CenterFace's landmarks."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from typing import ClassVar, Final

import numpy as np

from dpveil.core.array_types import Float64
from dpveil.core.parameters import Between
from dpveil.core.photo import Photo
from dpveil.core.rationals import to_json
from dpveil.core.region import Box, Region
from dpveil.core.region_origin import EYE
from dpveil.regions.detectors.centerface import CenterFace
from dpveil.regions.faces import Faces
from dpveil.regions.given_regions import rounded_box
from dpveil.regions.other_finders import NonFaceFinder, Rows
from dpveil.regions.tiling import resize_rgb

MARGIN: Final = Fraction(1, 4)
"""Default margin: an iris moves as the eye looks aside, and landmarks are a few hundredths of the distance of
the eyes off."""
LIDS: Final = (0.25, 0.14)
"""Half the width and height of an eye with its lids, in distances of the middles of both eyes: 31 and 18 of
63 mm."""
IRISES: Final = (0.15, 0.15)
"""The same of an iris of 12 mm, and half as much again: landmarks are 0.05 off in the mean."""
CROP: Final = 128  # side of the picture of a face in which landmarks are looked for, in pixels
WIDE: Final = 1.6  # side of what it shows, in the longer sides of a face's box
REACH: Final = 0.25  # how far the middle of a face may be from that of its box, in the side of the picture
SURE: Final = 0.2  # least score of landmarks; below it the usual places of a box are taken
USUAL: Final = ((0.28, 0.41), (0.7, 0.41))
"""Places of the eyes in a box, left of the image first, from its left top (means over 74 rendered heads)."""
LEAST_DISTANCE: Final = 0.42
"""Least distance of the eyes in widths of a box, that of a frontal head: a turned one shows them nearer."""


@dataclass(frozen=True, kw_only=True)
class Eyes(NonFaceFinder):
    """A box around each eye of every face, with its lids; what is missed with a face stays in the clear.

    With `iris` it is around the iris, wherever the eye looks. Faces are those that `Faces` finds without
    settings; eyes that are covered count, too. Each box is extended by `margin`, 0 to 2, times its shorter
    side, and rounded outward to a public grid. Needs CenterFace. Raises `InvalidParameter`, and `UsageError`
    without it. Source: docs, "Text and other objects"; CenterFace (arXiv 1911.03599), whose landmarks are the
    middles of the eyes.

    >>> Eyes(margin=0.5).description, Eyes(iris=True).description
    ('eyes margin=0.5', 'irises')
    """

    kind: ClassVar[str] = EYE
    noun: ClassVar[str] = "eye"

    margin: Between = Between(0, 2, hint="0.25 adds a quarter on each side", default=MARGIN)
    iris: bool = False
    faces: Faces = field(default=Faces(detector=CenterFace.name, margin=0), repr=False)

    @property
    def description(self) -> str:
        name = "irises" if self.iris else "eyes"
        return name if self.margin == MARGIN else f"{name} margin={to_json(self.margin)}"

    def prepare(self) -> None:
        self.faces.prepare()

    def rows(self, photo: Photo) -> list[tuple[str, Rows]]:
        half = np.array(IRISES if self.iris else LIDS)
        found = []
        for face in self.faces.detect(photo):
            eyes = middles(photo, face.box)
            across, down = eyes[1] - eyes[0]
            apart = float(np.hypot(across, down))
            turned = (
                np.abs([[across, down], [down, across]])
                @ half
                * max(1.0, LEAST_DISTANCE * face.box.w / apart)
            )
            found += [[*(eye - turned), *(2 * turned), face.score] for eye in eyes]
        return [(EYE, np.array(found).reshape(-1, 5))]

    def _regions(self, photo: Photo) -> list[Region]:
        return [replace(one, box=rounded_box(one.box, photo)) for one in super()._regions(photo)]

    def for_frames(self, width: int, height: int, long_side: int) -> Eyes:
        """Return the finder for frames of a clip: faces are searched for as in clips."""
        return replace(self, faces=self.faces.for_frames(width, height, long_side))


OWN: Final = threading.local()  # a network of each thread


irises: Final = partial(Eyes, iris=True)  # a row of `regions.spec`


def middles(photo: Photo, box: Box) -> Float64[np.ndarray, "2 2"]:
    """Return the middles of the eyes of the face in a box, (x, y) in pixels, that on the left of the image
    first; where the network is not sure, or sees both in one place, where they usually are in a box.
    """
    if not hasattr(OWN, "network"):
        OWN.network = CenterFace()
    side = max(2, round(WIDE * max(box.w, box.h)))
    left, top = box.x + box.w // 2 - side // 2, box.y + box.h // 2 - side // 2
    rows, columns = (
        np.clip(np.arange(start, start + side), 0, end - 1)
        for start, end in ((top, photo.height), (left, photo.width))
    )
    crop = resize_rgb(photo.image[rows][:, columns], CROP, CROP)
    points, score = OWN.network.points(crop, CROP / 2, CROP / 2, REACH * CROP)
    eyes: Float64[np.ndarray, "2 2"] = (points[:2] + 0.5) * (side / CROP) + (left, top)
    inside = (eyes >= (box.x, box.y)).all() and (eyes <= (box.x + box.w, box.y + box.h)).all()
    if score >= SURE and inside and (eyes[0] != eyes[1]).any():
        return eyes
    return np.array(USUAL) * (box.w, box.h) + (box.x, box.y)
