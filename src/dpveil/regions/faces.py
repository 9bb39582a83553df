"""Faces: boxes from a detector, numbered in reading order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, Final
from weakref import WeakKeyDictionary

import numpy as np

from dpveil.core.array_types import Bool, Float, UInt8
from dpveil.core.guarantee import count_noun
from dpveil.core.parameters import Between, Count, OptionalCount, OptionalProbability
from dpveil.core.photo import Photo
from dpveil.core.rationals import to_json
from dpveil.core.region import Box, Region
from dpveil.core.region_origin import FACE, Origin
from dpveil.errors import InvalidParameter, NoRegion, RegionError
from dpveil.regions.detectors import AUTO, DETECTORS, REMEDY, Detector, check, choose
from dpveil.regions.finder import Finder, Likeness, Numbers, Order, Seen, reading_order
from dpveil.regions.given_regions import box_around, box_within, oval_in, rounded_box
from dpveil.regions.other_finders import ARGUMENTS as WITHOUT
from dpveil.regions.other_finders import NOTHING_FOUND_HINT
from dpveil.regions.tiling import (
    Tiling,
    downscale,
    has_centre_in,
    inside_ellipse,
    join,
    pieces,
    plausible,
    resize_rgb,
)
from dpveil.regions.tiling import suppress as suppress_overlaps

Rows = Float[np.ndarray, "_ 5"]
"""Detections: left, top, width and height in pixels, and score."""


@dataclass(frozen=True)
class Detections:
    """What a detector sees in a photo, in its pixels.

    `inside` are faces inside other faces, as `join` has them. What is `doubtful` looks a little like a face:
    it scores less than the threshold, and its middle is on no face, nor on anything that scores better.
    """

    faces: Rows
    inside: Rows
    doubtful: Rows


class Search:
    """Runs a detector on photos, also in several threads at once; faces score at least `threshold`."""

    def __init__(self, detector: Detector, threshold: Fraction) -> None:
        self.detector, self.threshold = detector, float(threshold)
        least = detector.doubtful
        self.least = self.threshold if least is None else min(self.threshold, float(least))
        self._spare = [detector]

    def of(self, photo: Photo, *, long_side: int, tiling: Tiling) -> Detections:
        """Return what is seen in a photo that is shrunk to `long_side`, and in its tiles.

        Which faces these are does not depend on what is doubtful. Raises `RegionError` if the detector fails.
        """
        small = downscale(photo.image, long_side)
        found, low = self._split(self._search_part(small, Box(0, 0, photo.width, photo.height)))
        tiles = []
        for part, size, core in tiling.tiles(photo.height, photo.width):
            seen = self._search_part(resize_rgb(photo.image[part.slices], *size), part)
            tiles.append(seen[has_centre_in(seen, core) & ~pieces(seen, found, part, photo)])
        more, lower = self._split(np.concatenate([found[:0], *tiles]))
        faces, inside = join(found, more) if tiles else (found, found[:0])
        doubtful = _separate_doubtful(np.concatenate([low, lower]), np.concatenate([faces, inside]))
        return Detections(faces, inside, doubtful)

    def _split(self, found: Rows) -> tuple[Rows, Rows]:
        sure = found[:, 4] >= self.threshold
        return found[sure], found[~sure]

    def _search_part(self, image: UInt8[np.ndarray, "h w 3"], part: Box) -> Rows:
        ratios = part.w / image.shape[1], part.h / image.shape[0]
        try:
            found = self._detect(image, self.least)
        except RegionError:
            if self.least == self.threshold:
                raise
            found = self._detect(image, self.threshold)  # where only what is doubtful makes it fail
        return np.asarray(found * [*ratios, *ratios, 1] + [part.x, part.y, 0, 0, 0])

    def _detect(self, image: UInt8[np.ndarray, "h w 3"], threshold: float) -> Rows:
        try:
            with self.borrow() as detector:
                found = np.asarray(detector(image, threshold), np.float64)
        except RegionError:
            raise
        except Exception as error:
            raise RegionError(
                f"the face detector {self.detector.name} failed ({type(error).__name__})", hint=REMEDY
            ) from error
        height, width = image.shape[:2]
        whole = found.ndim == 2 and found.shape[1] == 5 and bool(np.isfinite(found).all())
        if not whole or not all(plausible(row, width, height) for row in found):
            raise RegionError(
                "the face detector returned something that is not a face in this photo", hint=REMEDY
            )
        return found

    @contextmanager
    def borrow(self) -> Iterator[Detector]:
        """Lend a detector to one thread, from a pool that grows to the number of concurrent threads."""
        try:
            detector = self._spare.pop()
        except IndexError:
            detector = self.detector.another()
        try:
            yield detector
        finally:
            self._spare.append(detector)


def _separate_doubtful(doubtful: Rows, faces: Rows) -> Rows:
    # The best first, and nothing with its middle on a face or on what is better.
    taken = faces
    for row in suppress_overlaps(doubtful):
        away = np.abs(row[:2] + row[2:4] / 2 - taken[:, :2] - taken[:, 2:4] / 2)
        if not (away <= taken[:, 2:4] / 2).all(axis=1).any():
            taken = np.vstack([taken, row])
    return np.asarray(taken[len(faces) :])


MARGIN: Final = Fraction(3, 10)
"""Default margin: a detected box covers forehead to chin, without the ears, which reached up to 0.27 of its
width beyond it where heads are turned (24 photos); above and below, the margin adds hair line and throat."""
SPECK: Final = 0.625  # least side of what is mentioned, by the smallest face that is searched for
SLIVER: Final = 0.6  # least share of it that is in the photo
NO_FACE: Final = f"lower {{threshold}}, or {NOTHING_FOUND_HINT}"  # the remedy where no face is found
ARGUMENTS: Final = {"threshold": "threshold", **WITHOUT}  # the arguments that NO_FACE names
LONG_SIDE: Final = 1920
LONG_SIDES: Final = range(64, 8193)
"""A search in 4096 × 3072 pixels takes 3 GB and 6 s on two cores, both proportional to the pixels."""
CACHE: Final[WeakKeyDictionary[Photo, dict[object, Detections]]] = WeakKeyDictionary()
"""Detections of photos in memory, by settings, so that several plans of one photo search it once."""


@dataclass(frozen=True)
class FaceFound:
    """A detected face: its box with margin, in pixels of the oriented photo, and its score from 0 to 1."""

    box: Box
    score: float


@dataclass(frozen=True, kw_only=True)
class Faces(Finder):
    """One box for every face that a detector finds; missed faces stay in the clear.

    `detector` is "centerface", that of a plug-in, or "auto": centerface. A face must score at least
    `threshold` (between 0 and 1, default: the detector's own) and have at least `min_face` pixels on its
    longer side. The search runs on the photo downscaled to `long_side` pixels, and on tiles of it for smaller
    faces, down to a height of `smallest` pixels (default: what 16 megapixels of tiles show). Each box is
    extended by `margin` times its width or height on every side and clipped to the photo. Faces are numbered
    from 1 in reading order of their boxes without margin, and never merged: overlapping boxes each read the
    original, and their costs add. `only` and `exclude` select by number, and `likeness` by pixels
    (`dpveil.faces.likeness`). Raises `InvalidParameter`, `UnknownName`. Source: docs, "Faces"; CenterFace
    (arXiv 1911.03599).

    >>> Faces(only=(3, 1), min_face=40).only
    (1, 3)
    """

    kind = FACE

    detector: str = AUTO
    threshold: OptionalProbability = OptionalProbability(optional=True)
    margin: Between = Between(0, 2, hint="0.25 adds a quarter on each side", default=MARGIN)
    min_face: Count = Count(default=1)
    long_side: Count = Count(default=LONG_SIDE)
    smallest: OptionalCount = OptionalCount(optional=True)
    only: Numbers = Numbers()
    exclude: Numbers = Numbers()
    likeness: Likeness | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        check(self.detector)
        both = {"only": "only", "exclude": "exclude"}
        if self.likeness and (self.only or self.exclude):
            problem, hint = "does not go together with numbers of faces", "leave out {only} and {exclude}"
            raise InvalidParameter("keep_like", None, problem, hint=hint, arguments=both)
        if self.long_side not in LONG_SIDES:
            sizes = f"choose from {LONG_SIDES[0]} to {LONG_SIDES[-1]} pixels"
            raise InvalidParameter("long_side", self.long_side, "is out of range", hint=sizes)
        if self.only and self.exclude:
            problem, hint = "and {exclude} do not go together", "give one of them"
            raise InvalidParameter("only", None, problem, hint=hint, arguments=both)

    def __getstate__(self) -> dict[str, Any]:
        return {entry.name: self.__dict__[entry.name] for entry in fields(self)}

    @property
    def description(self) -> str:
        """Return "faces" and every setting that is not the default (of CenterFace), in a fixed order."""
        finder = self._detector
        stated = {
            "detector": finder.name if finder.name != next(iter(DETECTORS)) else "",
            "threshold": to_json(self._least_score) if self._least_score != finder.threshold else "",
            "margin": to_json(self.margin) if self.margin != MARGIN else "",
            "min-face": self.min_face if self.min_face != 1 else "",
            "long-side": self.long_side if self.long_side != LONG_SIDE else "",
            "smallest": "" if self.smallest is None else self.smallest,
            "only": ",".join(map(str, self.only)),
            "except": ",".join(map(str, self.exclude)),
        }
        words = [f"{name}={value}" for name, value in stated.items() if value != ""]
        return " ".join(["faces", *words, *([self.likeness.description] if self.likeness else [])])

    def without_margin(self, reason: str) -> Faces:
        """Return this finder with margin 0; raises `InvalidParameter` with `reason` for a user's margin."""
        if self.margin not in (0, MARGIN):
            raise InvalidParameter("margin", str(float(self.margin)), reason, hint="leave it out")
        return replace(self, margin=0)

    @property
    def at_once(self) -> int:
        """Return two, or one where `long_side` makes a search take gigabytes (`LONG_SIDES`)."""
        return 2 if self.long_side <= LONG_SIDE else 1

    def prepare(self) -> None:
        self._detector  # noqa: B018  a cached property

    def __call__(self, photo: Photo) -> list[Region]:
        """Return the selected faces as regions "face 1", "face 2" and so on.

        Raises `NoRegion` if no face is found or all are excluded, and `RegionError` if a selected number does
        not exist, a face without a number is in one that is left as it is, or the detector fails.
        """
        return self._select(photo, self._rows(photo))

    def in_order(self, photo: Photo, order: Order) -> list[Region]:
        return self._select(photo, self._rows(photo, order))

    def _select(self, photo: Photo, found: Float[np.ndarray, "n 5"]) -> list[Region]:
        if not len(found):
            raise NoRegion("no face was found", hint=NO_FACE, arguments=ARGUMENTS)
        asked = (*self.only, *self.exclude)
        if asked and asked[-1] > len(found):
            raise RegionError(
                f"face {asked[-1]} was chosen, and the photo has {count_noun(len(found), 'face')}",
                hint="dpveil faces PHOTO --preview OUT.png shows the numbers",
            )
        chosen = [n for n in self.only or range(1, len(found) + 1) if n not in self.exclude]
        if (alike := self.likeness) is not None:
            boxes = {n: box_around(found[n - 1], photo, Fraction(0)) for n in chosen}
            chosen = [n for n, box in boxes.items() if not alike.stays(photo, box)]
        if not chosen:
            error = NoRegion("every face that was found is to stay as it is", hint="let one be replaced")
            error.all_stay = True
            raise error
        return self._regions(photo, found, chosen)

    def _regions(self, photo: Photo, found: Float[np.ndarray, "n 5"], chosen: Sequence[int]) -> list[Region]:
        """Return the chosen faces, which keep the ovals in the rounded boxes of the excluded ones."""
        # Whether a chosen face would have to be cut for them is decided later, by what a release shows of it:
        # by the `core` of its region, which a method that places faces elsewhere replaces.
        every, inside = range(1, len(found) + 1), self._detections(photo).inside
        for n in (n for n in every if n not in chosen):
            # One without a number in a face that is replaced goes with that, and nothing depends on where.
            if any(inside_ellipse(row, found[n - 1][None])[0] for row in inside):
                raise RegionError(
                    f"face {n} is left as it is, and in it is another face, which has no number",
                    hint=f"replace face {n} as well, or look for larger faces alone with {{smallest}}",
                    arguments={"smallest": "smallest"},
                )
        stay = self.exclude if self.likeness is None else [n for n in every if n not in chosen]
        bare = {n: box_around(found[n - 1], photo, Fraction(0)) for n in stay}
        ovals = {n: rounded_box(box, photo) for n, box in bare.items()}
        kept = tuple(
            Region(box, oval_in(box), Origin(FACE, number=n, found=True)) for n, box in ovals.items()
        )
        shown = {n: self._as_face(found[n - 1], photo) for n in chosen}
        return [
            Region(
                face.box,
                origin=Origin(FACE, number=n, found=True),
                kept=kept,
                score=face.score,
                core=Region(box_within(face.box, self.margin, photo)) if kept else None,
            )
            for n, face in shown.items()
        ]

    def detect(self, photo: Photo, order: Order | None = None) -> list[FaceFound]:
        """Return every face of `photo` in the order of their numbers, regardless of `only` and `exclude`.

        This is the reading order of the boxes without margin, or that of a method (`Method.order`). Raises
        `RegionError` if the detector fails or returns invalid boxes.
        """
        return [self._as_face(row, photo) for row in self._rows(photo, order)]

    def _as_face(self, row: np.ndarray, photo: Photo) -> FaceFound:
        return FaceFound(box_around(row, photo, self.margin), round(float(row[4]), 4))

    def _rows(self, photo: Photo, order: Order | None = None) -> Float[np.ndarray, "n 5"]:
        found = self._detections(photo).faces
        found = found[self._large(found)]
        if order is None:
            return np.asarray(found[reading_order(found)])
        boxes = [box_around(row, photo, Fraction(0)) for row in found]
        return np.asarray(found[np.array(order(photo, boxes), np.int64)])

    def _large(self, rows: Float[np.ndarray, "n 5"]) -> Bool[np.ndarray, " n"]:
        return np.asarray(rows[:, 2:4].max(axis=1, initial=0) >= self.min_face)

    def doubtful_in(self, photo: Photo) -> list[Region]:
        """Return what looks a little like a face and scores less than `threshold`, the best first.

        It has no number and is not replaced. Empty for detectors without a `doubtful` score. Specks and
        slivers at the edge are left out: of 85 such places in 411 photos these were 14, and no visible face.
        """
        rows = self._detections(photo).doubtful
        start, extent = rows[:, :2], rows[:, 2:4]
        inside = np.minimum(start + extent, photo.image.shape[1::-1]) - np.maximum(start, 0)
        speck = extent.max(axis=1, initial=0) < SPECK * self.smallest_in(photo)
        sliver = inside.prod(axis=1) < SLIVER * extent.prod(axis=1)
        found = [self._as_face(row, photo) for row in rows[self._large(rows) & ~(speck | sliver)]]
        return [Region(one.box, origin=Origin(FACE, found=True), score=one.score) for one in found]

    def for_frames(self, width: int, height: int, long_side: int) -> Faces:
        """Return the finder without margin, and without tiles unless `smallest` is given; may raise."""
        if self.likeness:
            hint = "dpveil faces numbers those of a clip, and {exclude} keeps some"
            names = {"exclude": "exclude"}
            raise InvalidParameter("keep_like", None, "is for photos", hint=hint, arguments=names)
        side = long_side if self.long_side == LONG_SIDE else self.long_side
        whole = -(-self._detector.smallest * max(side, width, height) // side)
        return replace(self, margin=0, long_side=side, smallest=self.smallest or whole)

    def find_in_frame(self, photo: Photo) -> list[Seen]:
        """Return the faces in a frame, whose boxes have no margin and are not clipped, and the doubtful."""
        found = self._detections(photo)
        both = ((np.concatenate([found.faces, found.inside]), True), (found.doubtful, False))
        boxes = [(row, sure) for rows, sure in both for row in rows[self._large(rows)].tolist()]
        return [Seen(FACE, (*row[:4],), row[4], sure) for row, sure in boxes]

    def smallest_in(self, photo: Photo) -> int:
        return max(self.min_face, self._tiling(photo).smallest)

    def _tiling(self, photo: Photo) -> Tiling:
        seen = self._detector.smallest
        return Tiling.of(
            photo.height, photo.width, long_side=self.long_side, seen=seen, smallest=self.smallest
        )

    def _detections(self, photo: Photo) -> Detections:
        own = CACHE.setdefault(photo, {})
        tiling = self._tiling(photo)
        asked = (self._detector.name, self._least_score, self.long_side, tiling)
        if asked not in own:
            own[asked] = self._search.of(photo, long_side=self.long_side, tiling=tiling)
        return own[asked]

    @property
    def _least_score(self) -> Fraction:
        return self._detector.threshold if self.threshold is None else self.threshold

    @cached_property
    def _detector(self) -> Detector:
        return choose(self.detector)

    @cached_property
    def _search(self) -> Search:
        return Search(self._detector, self._least_score)
