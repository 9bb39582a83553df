"""The interface of a face-space method: canonical face crops in, other face crops out."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Final

import numpy as np

from dpveil.core.array_types import UInt8
from dpveil.core.parameters import OneOf
from dpveil.core.photo import Photo
from dpveil.core.region import Region, RegionRecord
from dpveil.core.region_origin import FACE, MASK, ROUNDED, SAME, WHOLE
from dpveil.errors import InvalidParameter
from dpveil.faces.geometry.align import Frame
from dpveil.faces.geometry.protection import PROTECT_FACE, PROTECTIONS
from dpveil.mechanisms.method import TRAINED, Method, Placement
from dpveil.noise.bits import BitSource, check_bits
from dpveil.regions import Finder
from dpveil.regions.finder import Order

if TYPE_CHECKING:
    from dpveil.faces.drawn_face import Released

Crops = UInt8[np.ndarray, "n s s 3"]
BY_LANDMARKS: Final = "position, size and angle of the face and the turn of its head, by its landmarks"
POSE: Final = {
    "landmarks": f"{{}}, and that these were sure, {SAME}",
    "auto": f"{{}}, or that these were not sure, {SAME}",
}
"""What the position of the new face reveals of the original one by landmarks, by the value of `placing`."""
DURATION: Final = "how long finding, aligning and drawing the face took, which depends a little on the photo"
"""Stated for portraits too: their steps do not depend on the photo, but the running time does."""
PLACING: Final = ("auto", "landmarks", "box")


@dataclass(frozen=True, kw_only=True)
class FaceMethod(Method):
    """A method that reads a face as a crop of its `frame` and returns another face as such a crop.

    The result depends on the crop only through a draw that `guarantee` covers. What the crop's position in
    the photo reveals is stated by `shown_by_place`. `guarantee` and `parameters` need no model file, so a
    certificate can be verified without one; `prepare` loads it.

    `protect` says what is replaced: "face", an oval from the forehead to the chin, in the light of the
    skin around it, while hair, ears, jaw and neck stay; "head", an ellipse with a neck that is the same for
    everybody; or "box", large enough for any head in that position. The last two need `heads`. `placing` says
    how the new face is positioned: "landmarks" refuses a face with uncertain landmarks, "box" uses its box
    alone, "auto" uses landmarks if they are certain.
    """

    regions: ClassVar[str] = "faces"
    draws_faces: ClassVar[bool] = True
    help: ClassVar[Mapping[str, str]] = {
        "protect": "What is replaced: face, from the forehead to the chin, which leaves hair, ears, jaw"
        " and neck as they are; head, an ellipse with hair, ears and neck; or box, a rectangle for any head.",
        "placing": "auto, landmarks or box: how another face is put into place.",
    }

    protect: OneOf = OneOf(*PROTECTIONS, default=PROTECT_FACE)
    placing: OneOf = OneOf(*PLACING, default="auto")

    @property
    @abstractmethod
    def frame(self) -> Frame:
        """The canonical crop that this method takes and returns; may load a model."""

    @abstractmethod
    def _draw(self, crops: Crops, bits: BitSource) -> Crops:
        """Return one released crop for every crop; noise is drawn here and nowhere else."""

    def __post_init__(self) -> None:
        self._check_protect()

    def _check_protect(self) -> None:
        """Raise `InvalidParameter` where a whole head is to be replaced, and a face alone is shown."""
        if self.protect != PROTECT_FACE and not self.heads:
            hint = f"protect {PROTECT_FACE}, or use attributes with a gallery of heads"
            raise InvalidParameter(
                "protect", str(self.protect), f"is not for faces of {self.name}", hint=hint
            )

    @property
    def heads(self) -> bool:
        """Whether whole heads are shown, and not faces alone."""
        return False

    @property
    def reads(self) -> bool:
        """Whether the face is read: one that is not needs no landmarks."""
        return True

    @property
    def blank_crop(self) -> UInt8[np.ndarray, "s s 3"]:
        """The crop for a method that reads none."""
        return np.zeros((self.frame.size, self.frame.size, 3), np.uint8)

    @property
    def made(self) -> str:
        """How what is shown came to be: by what was learnt from photos of people."""
        return TRAINED

    @property
    def toned(self) -> bool:
        """Whether released crops have a tone of their own, which nothing outside may change."""
        return False

    @property
    def turned(self) -> bool:
        """Whether released crops are turned to the yaw of their cells, which certificates state."""
        return False

    def accepts(self, finders: Sequence[Finder]) -> tuple[Finder, ...]:
        """Return the finders without margins, as the replaced area is larger than a detected box anyway.

        Raises `InvalidParameter` for masks, margins, and the whole photo together with other regions.
        """
        kinds = [finder.kind for finder in finders]
        if WHOLE in kinds and len(kinds) > 1:
            raise _more_than_all()
        if MASK in kinds:
            hint = "choose faces, the box of a face, or whole"
            raise InvalidParameter("regions", None, f"cannot be a mask for {self.name}", hint=hint)
        reason = f"is not for {self.name}: {self.also_replaced} in any case"
        return tuple(finder.without_margin(reason) for finder in finders)

    def search(self, photo: Photo, finders: Sequence[Finder]) -> tuple[Photo, Order]:
        """Return the photo with the objects covered that a user gives, as all is found in what stays, and the
        order of the cells of faces as they are placed: with text and the like covered, too.
        """
        from dpveil.faces.head_placement import by_cells
        from dpveil.faces.objects_beside_faces import placed_in, searched

        seen = searched(photo, finders)
        covered = placed_in(seen, finders)
        return seen, lambda _, boxes: by_cells(self, covered, boxes)

    @property
    def also_replaced(self) -> str:
        """What is replaced around the box of a face."""
        return PROTECTIONS[str(self.protect)].also

    @property
    def order(self) -> Order:
        """The reading order of the cells of the public grid, which are all that a release shows of places."""
        from dpveil.faces.head_placement import by_cells

        return partial(by_cells, self)

    def place(self, photo: Photo, regions: Sequence[Region]) -> Placement:
        """Return the faces' places and the pixels that are replaced; the whole photo is one portrait.

        Objects and text are covered first, and no face is placed or drawn by their pixels. Raises
        `RegionError` if a face cannot be placed.
        """
        from dpveil.faces.objects_beside_faces import MixedPlacement, hidden, is_object

        faces = [region for region in regions if not is_object(region)]
        whole = [region for region in faces if region.covers(photo) and not region.origin.found]
        if whole and len(regions) > 1:
            raise _more_than_all()
        if whole:
            from dpveil.faces.portrait_placement import Portrait

            return Portrait(photo, whole[0], self)
        from dpveil.faces.head_placement import HeadPlacement

        heads = HeadPlacement(hidden(photo, regions), faces, self) if faces else None
        return heads if heads and len(faces) == len(regions) else MixedPlacement(photo, regions, heads)

    def of_region(self, record: RegionRecord) -> Method:
        """Return this method, and `GREY_FILL` for objects and text, where no face belongs."""
        if not record.origin.faceless:
            return self
        from dpveil.faces.objects_beside_faces import GREY_FILL

        return GREY_FILL

    def shown_by_place(self, record: RegionRecord) -> tuple[str, ...]:
        """Return what the new face's position reveals, by `placing`, and what `protect` leaves of a head."""
        stays = PROTECTIONS[str(self.protect)].stays
        kept = (stays,) if stays and (record.masked is not None or record.origin.kind == FACE) else ()
        if not record.found or self.placing not in POSE:
            return (*kept, DURATION)
        by_landmarks = BY_LANDMARKS if record.origin.cell is None else f"{BY_LANDMARKS}, {ROUNDED}"
        return (POSE[self.placing].format(by_landmarks), *kept, DURATION)

    def prepare(self, *, height: int, width: int, channels: int) -> None:
        """Raise any error that would prevent a release; methods with files of their own load them here."""

    def release(self, crops: Crops, *, bits: BitSource) -> Crops:
        """Return a released crop for every crop, uint8 n × s × s × 3 in `frame`.

        Each crop costs the guarantee once. `bits` is the only randomness. Raises `InvalidParameter` for other
        input, and `ModelError`.
        """
        return self._draw(self._checked(crops), check_bits(bits))

    def shown(self, crops: Crops, *, bits: BitSource) -> Sequence[Released]:
        """Return the replacement of every crop, with the same draw as `release`."""
        from dpveil.faces.drawn_face import CropFace

        return [CropFace(face, self.frame) for face in self.release(crops, bits=bits)]

    def _checked(self, crops: Crops) -> Crops:
        side = self.frame.size
        if crops.dtype != np.uint8 or crops.ndim != 4 or crops.shape[1:] != (side, side, 3):
            shape = f"are not uint8 n × {side} × {side} × 3"
            raise InvalidParameter("crops", f"{crops.dtype} {crops.shape}", shape, hint="crops of its frame")
        return crops


def _more_than_all() -> InvalidParameter:
    hint = "choose the whole photo, or faces in it"
    return InvalidParameter("regions", None, "are the whole photo and more than that", hint=hint)
