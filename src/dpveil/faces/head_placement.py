"""Faces in a photo: each detected head is replaced by another one in the same position."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING, Final

import numpy as np

from dpveil.core.array_types import Bool, Float32, Float64
from dpveil.core.notes import Note
from dpveil.core.photo import Photo
from dpveil.core.region import Box, Region, hidden_pixels
from dpveil.errors import RegionError, UsageError
from dpveil.faces.geometry.cell import Cell, given_box
from dpveil.faces.geometry.membrane import lab_of, near_skin, skin_centre
from dpveil.faces.geometry.place import FOUND, Placed, place
from dpveil.faces.geometry.protection import INSETS, PROTECT_BOX, PROTECT_FACE, PROTECT_HEAD, TURNED, inset
from dpveil.faces.paint_faces import paint_faces
from dpveil.mechanisms.method import Image, Placement, Step
from dpveil.noise.bits import BitSource
from dpveil.opencv import cv2, map_in_threads
from dpveil.regions.chroma import SURROUNDINGS, chroma_beside, recolour
from dpveil.regions.finder import reading_order
from dpveil.regions.growth import grow, kept_zone

if TYPE_CHECKING:
    from dpveil.faces.base import FaceMethod

TURNED_NOTE: Final = "{} is turned far: the whole box around the head is replaced"
STAYS: Final = "hair, ears, jaw and neck stay as they are, and may tell who it is"
REPLACES: Final = "; {protect} replaces them, too"
REPLACED_NOTE: Final = "at least {share} % of the photo is replaced"
WIDER: Final = "; of a wider photo, more would stay"
LESS: Final = ", and the rest is little to paint a background from; {protect} replaces less"
NEAR_NOTE: Final = (
    "{both} are so near that pixels of the one may be read for the other as well: their costs add{more}"
)
CUT_NOTE: Final = (
    "where a face that stays begins is seen beside it: its box, or the oval in it, was found by looking, and"
    " may still depend on hidden pixels, though it is rounded to a public grid"
)
SHARES: Final = (80, 60, 40)
"""The shares of a photo, in percent, from which a note says so; few, so that folders get few notes."""
LUMA: Final = 8  # side of a JPEG's blocks of luma, in pixels
NEAR_FACE: Final = 8.0  # pixels from what is hidden until skin counts 1/e of that beside it
LEAST_SURE: Final = 0.02  # weight from which on a pixel counts as skin: far ones are many, and say nothing
ABOVE: Final = 0.1  # how much skin above the middle of a face counts beside that below
LEAST_BOX_SIDE: Final = 8  # least shorter side of a user's face box, in pixels


class HeadPlacement(Placement):
    """The placement of faces: each is released as a canonical crop, and another head takes its place."""

    def __init__(self, photo: Photo, regions: Iterable[Region], method: FaceMethod) -> None:
        self.photo, self.method = photo, method
        given = list(regions)
        found = [_placed(photo, region, method) for region in given]
        kept = [_keeping(one, r, photo) for one, r in zip(found, given, strict=True)]
        lossy = _in_luma(photo)
        self.places = [
            replace(p, region=grown_to_blocks(r, method, lossy)) for p, r in zip(found, kept, strict=True)
        ]
        self.regions = tuple(one.region for one in self.places)
        large = _large(self.regions, photo, LESS if method.protect == PROTECT_BOX else WIDER)
        cut = any(one.meets(kept_zone(face, lossy.grid)) for one in kept for face in one.kept)
        near = () if self._free else _near(self.places, photo)
        self.notes = (*_around(self.places, method), *large, *near, *(CUT_NOTE,) * cut)

    @property
    def _free(self) -> bool:
        size = self.method.frame.size
        return self.method.guarantee(height=size, width=size, channels=self.photo.channels).free

    def draw(self, bits: BitSource, steps: Sequence[Step]) -> Image:
        """Return the photo with other faces; after the draw, only pixels outside the regions are read."""
        return self.draw_in(
            without_their_chroma(self.photo, [one.region for one in self.places]), bits, steps
        )

    def draw_in(self, photo: Photo, bits: BitSource, steps: Sequence[Step]) -> Image:
        """Return the same of a `photo` that hides more than the one in which the faces were placed."""
        method = self.method
        crops = np.stack([one.crop(photo) if method.reads else method.blank_crop for one in self.places])
        drawn = method.shown(crops, bits=bits)
        # from here on nothing private is at hand: neither crops nor where faces exactly are
        places = tuple(replace(one, landmarks=None, exact=None) for one in self.places)
        faces = [reduce(lambda shown, step: shown.after(step), steps, face) for face in drawn]
        return paint_faces(photo.image, places, faces, toned=method.toned, turned=method.turned)


def grown_to_blocks(region: Region, method: FaceMethod, photo: Photo) -> Region:
    """Return the region of a face grown to the blocks of a lossy photo.

    In a JPEG or WebP the oval of an inner face is first drawn in by half a block (`INSETS`), so that not much
    more is replaced than in other formats. A user's box is replaced as a whole, and a head must not leave any
    of its hair.
    """
    codec = "" if photo.grid is None else photo.grid.codec
    own = given_box(region.origin) is not None or region.origin.cell is None
    if codec not in INSETS or own or method.protect != PROTECT_FACE or region.mask is None:
        return grow(region, photo)
    box, mask = inset(region.box, region.mask, photo.width, photo.height, INSETS[codec])
    grown = grow(replace(region, box=box, mask=mask), photo)
    return replace(grown, origin=replace(grown.origin, grown_to=codec))


def _in_luma(photo: Photo) -> Photo:
    """Return a photo whose grid is that of the blocks of luma, if these are known by themselves."""
    if photo.blocks is None or photo.grid is None:
        return photo
    return Photo(photo.image, replace(photo.grid, width=LUMA, height=LUMA, margin=0), blocks=photo.blocks)


def without_their_chroma(photo: Photo, regions: Sequence[Region]) -> Photo:
    """Return a photo outside of whose regions nothing follows from what they hold, in a grid of luma.

    The regions of faces in a JPEG have grown to blocks of luma. Those of chroma are larger, and hold some of
    the faces: beside them, chroma goes on from farther outside, as that of skin where it is as light.
    """
    if photo.blocks is None:
        return photo
    image, blocks = photo.image.copy(), photo.blocks()
    hidden = hidden_pixels(regions, photo.height, photo.width)
    beside = chroma_beside(blocks, regions, hidden)
    for region in regions if beside.any() else ():
        box = region.box.wider(SURROUNDINGS, photo.width, photo.height).slices
        seen = ~(hidden | beside)[box]
        recolour(image[box], seen, beside[box], blocks.luma(*box), skin=_skin(image[box], seen))
    return Photo(image, _in_luma(photo).grid, photo.notes)


def _skin(image: Image, seen: Bool[np.ndarray, "h w"]) -> Float32[np.ndarray, "h w"]:
    """Return how like a face's skin what is `seen` around it is, 0 to 1; nothing else is read.

    What is near counts, and below the middle: above it, hair may have the colour of skin.
    """
    like = np.zeros(seen.shape, np.float32)
    if seen.any() and not seen.all():
        near = np.exp(-cv2.distanceTransform(seen.astype(np.uint8), cv2.DIST_L2, 3) / NEAR_FACE)
        rows = np.flatnonzero(~seen.all(axis=1))
        near[: (rows[0] + rows[-1] + 1) // 2] *= ABOVE
        counts = np.flatnonzero(seen & (near > LEAST_SURE))
        lab, sure = lab_of(image.reshape(-1, 3)[counts]), near.ravel()[counts].astype(np.float64)
        centre, known = skin_centre(lab, sure, grey=False)
        like.ravel()[counts] = known * near_skin(lab, centre) * sure
    return like


def by_cells(method: FaceMethod, photo: Photo, boxes: Sequence[Box]) -> list[int]:
    """Return the indices of detected boxes in reading order of the inner faces' cells, and nothing finer.

    So faces have the same numbers whatever is protected. Those of equal place are ordered by the numbers of
    their cells; what cannot be placed comes last.
    """
    found = map_in_threads(lambda box: _cell(photo, box, method), boxes)
    cells = {index: cell for index, cell in enumerate(found) if cell}
    known = sorted(cells, key=lambda index: cells[index].numbers)
    faces = np.array([cells[index].around for index in known]).reshape(-1, 4)
    return [known[n] for n in reading_order(faces)] + [n for n in range(len(boxes)) if n not in cells]


def _cell(photo: Photo, box: Box, method: FaceMethod) -> Cell | None:
    """Return the cell of the face in a detected box; None if there is none."""
    try:
        return _placed(photo, Region(box, origin=FOUND), method, PROTECT_FACE).cell
    except (RegionError, UsageError):  # the plan raises it if this face is to be replaced
        pass
    try:
        return place(photo, box, frame=method.frame, landmarks=False, protect=PROTECT_FACE).cell
    except RegionError:
        return None


def _around(places: Iterable[Placed], method: FaceMethod) -> tuple[str, ...]:
    """Return a note on what stays around faces, or for every head that is turned too far for its shape."""
    if method.protect == PROTECT_FACE:
        return (Note(STAYS + REPLACES, protect=PROTECT_HEAD),)
    if method.protect != PROTECT_HEAD:
        return ()
    far = [one for one in places if one.cell is not None and abs(one.cell.yaw or 0) == TURNED]
    return tuple(TURNED_NOTE.format(one.region.origin.name) for one in far)


def _large(regions: Iterable[Region], photo: Photo, advice: str) -> tuple[str, ...]:
    """Return a note if the regions take a large share of the photo, with `advice`."""
    replaced = np.count_nonzero(hidden_pixels(regions, photo.height, photo.width))
    reached = [share for share in SHARES if replaced * 100 >= share * photo.height * photo.width]
    return tuple(
        Note(REPLACED_NOTE.format(share=share) + advice, protect=PROTECT_HEAD) for share in reached[:1]
    )


def _keeping(place: Placed, given: Region, photo: Photo) -> Region:
    """Return the region of a place with what the given one keeps and scores.

    Whether it would have to be cut too far for what it keeps is decided by the place's public cell.
    """
    core = (place.core(photo) or place.region) if given.kept else None
    return replace(place.region, kept=given.kept, score=given.score, core=core)


def _near(places: Sequence[Placed], photo: Photo) -> tuple[str, ...]:
    """Return a note if pixels of a face's region are read for another one that it does not overlap.

    Crops are cut where the faces are, not where their cells are: owners alone are told.
    """
    regions, crops = _ends(one.region.box for one in places), _ends(one.reads(photo) for one in places)
    pairs = []
    for i in range(len(places) - 1):
        later = slice(i + 1, None)
        reaches = _meet(crops[i], regions[later]) | _meet(regions[i], crops[later])
        pairs += [(i, i + 1 + int(n)) for n in np.flatnonzero(reaches & ~_meet(regions[i], regions[later]))]
    if not pairs:
        return ()
    both = " and ".join(places[n].region.origin.name for n in pairs[0])
    more = f" ({len(pairs) - 1} more pairs do)" if len(pairs) > 1 else ""
    return (NEAR_NOTE.format(both=both, more=more),)


def _ends(boxes: Iterable[Box]) -> Float64[np.ndarray, "n 4"]:
    """Return the left, top, right and bottom of boxes."""
    return np.array([(b.x, b.y, b.x + b.w, b.y + b.h) for b in boxes], np.float64)


def _meet(one: Float64[np.ndarray, " 4"], many: Float64[np.ndarray, "n 4"]) -> Bool[np.ndarray, " n"]:
    """Return which of `many` rectangles (left, top, right, bottom) have points in common with `one`."""
    return np.asarray(((one[:2] < many[:, 2:]) & (many[:, :2] < one[2:])).all(axis=1))


def _placed(photo: Photo, region: Region, method: FaceMethod, protect: str | None = None) -> Placed:
    """Return the place of the face in a box, as the method's `placing` says; raises `RegionError`.

    `protect` is the method's own if it is None.
    """
    if region.mask is not None:
        raise RegionError(
            f"{region.origin.in_words()} is a mask", hint="face-space methods take boxes of faces"
        )
    if not region.origin.found and min(region.box.w, region.box.h) < LEAST_BOX_SIDE:
        size = f"{region.box.w}×{region.box.h} pixels"
        hint = "draw it from the forehead to the chin"
        raise RegionError(f"{region.origin.in_words()} is {size}, too small for a face", hint=hint)
    settings = {"frame": method.frame, "protect": protect or method.protect, "origin": region.origin}
    if method.placing != "box":
        try:
            return place(photo, region.box, landmarks=True, **settings)  # type: ignore[arg-type]
        except (RegionError, UsageError) as error:
            needed = isinstance(error, UsageError) and method.reads
            if method.placing == "landmarks" or needed:
                raise
    there = place(photo, region.box, landmarks=False, **settings)  # type: ignore[arg-type]
    if method.placing == "auto":
        return there
    # By the box alone, the region does not depend on the pixels unless the box does.
    return replace(
        there, region=replace(there.region, origin=replace(there.region.origin, found=region.origin.found))
    )
