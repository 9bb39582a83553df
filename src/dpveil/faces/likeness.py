"""Likeness of faces: which of a photo stay, and which of a run are of one person."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final
from weakref import WeakKeyDictionary

import numpy as np

from dpveil.core.array_types import Float64, UInt8
from dpveil.core.photo import Photo
from dpveil.core.region import Box
from dpveil.errors import InvalidParameter, RegionError
from dpveil.faces.drawn_face import HeadFace
from dpveil.faces.embedding import CHIP, LENGTH, embedder
from dpveil.faces.geometry.align import of_points
from dpveil.faces.geometry.landmarks import predictor
from dpveil.faces.geometry.surroundings_seen import Around
from dpveil.io.folders import private_digest
from dpveil.io.reading import read
from dpveil.regions import Faces

SAME: Final = 0.45
OTHER: Final = 0.75
"""Distances of embeddings up to which two faces are clearly of one person, and from which clearly of two;
docs, "Faces by likeness", has the rates of errors."""
LINKED: Final = 0.48
"""Distance from the mean of a person's embeddings up to which a face is that person's; as above."""
SMALLEST: Final = 48  # faces with fewer pixels on the shorter side of their boxes are doubtful
Embeddings = Float64[np.ndarray, "n 128"]
CACHE: Final[WeakKeyDictionary[Photo, dict[Box, Embeddings | None]]] = WeakKeyDictionary()
"""Embeddings of the faces of photos in memory."""


@dataclass(frozen=True, eq=False)
class Likeness:
    """Faces stay that are clearly those of `keep`, if any are given, and clearly none of `replace`.

    `description` has digests of the reference photos that only the same user can compute.
    """

    keep: Embeddings
    replace: Embeddings
    description: str

    @classmethod
    def of(cls, keep: Sequence[str | Path], replace: Sequence[str | Path]) -> Likeness:
        """Return the likeness to the one face of each photo; raises `InvalidParameter` and as `read`."""
        both = {"keep_like": keep, "replace_like": replace}
        found = {name: [_reference(name, path) for path in paths] for name, paths in both.items()}
        stated = [
            f"{name.replace('_', '-')}={','.join(sorted({digest for _, digest in own}))}"
            for name, own in found.items()
            if own
        ]
        near, far = (np.array([row for row, _ in own]).reshape(-1, LENGTH) for own in found.values())
        return cls(near, far, " ".join(stated))

    def stays(self, photo: Photo, box: Box) -> bool:
        """Return whether the face in a detected box stays as it is; those that are doubtful do not."""
        own = embedding(photo, box)
        if own is None:
            return False
        near, far = (np.linalg.norm(some - own, axis=1) for some in (self.keep, self.replace))
        return bool((not len(near) or near.min() <= SAME) and (not len(far) or far.min() > OTHER))


def _reference(name: str, path: str | Path) -> tuple[np.ndarray, str]:
    """Return the embedding of the one face in a photo, and the photo's digest."""
    photo = read(path)
    found = Faces(margin=0).detect(photo)
    row = _embedding(photo.image, found[0].box) if len(found) == 1 else None
    if row is None:
        problem = f"shows {len(found)} faces" if len(found) != 1 else "shows no clear face"
        hint = f"give a photo of one person, with a face of {SMALLEST} pixels or more"
        raise InvalidParameter(name, str(path), problem, hint=hint)
    try:
        return row[0], private_digest(photo.image.tobytes())
    except OSError as error:
        raise InvalidParameter(name, str(path), f"needs a folder for dpveil's state ({error})") from error


def embedding(photo: Photo, box: Box) -> Embeddings | None:
    """Return the embedding of the face in a box, computed once; None if it is too small or not sure."""
    known = CACHE.setdefault(photo, {})
    if box not in known:
        known[box] = _embedding(photo.image, box)
    return known[box]


@dataclass(eq=False)
class Links:
    """The persons of a run: the sum and number of the embeddings of each, and who of a gallery is `shown`."""

    sums: list[Float64[np.ndarray, " 128"]] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)
    shown: dict[int, int] = field(default_factory=dict)

    def person(self, row: Embeddings | None) -> int:
        """Return the number of the person of a face: the nearest within `LINKED`, or a new one."""
        if row is not None and self.sums:
            means = np.array(self.sums) / np.array(self.counts)[:, None]
            away = np.linalg.norm(means - row[0], axis=1)
            if away.min() <= LINKED:
                nearest = int(away.argmin())
                self.sums[nearest] = self.sums[nearest] + row[0]
                self.counts[nearest] += 1
                return nearest
        self.sums.append(np.full(LENGTH, np.inf) if row is None else row[0])
        self.counts.append(1)
        return len(self.sums) - 1


@dataclass(frozen=True, eq=False)
class LinkedHead(HeadFace):
    """The head of a person of a run: who is shown is chosen once, as where the person is first met."""

    links: Links = field(default_factory=Links)
    own: int = 0

    def person(self, around: Around | None) -> int:
        """Return who of the gallery is shown for this person, and for no other while there are more."""
        shown = self.links.shown
        if self.own not in shown:
            others = None if around is None else replace(around, shown=around.shown | {*shown.values()})
            shown[self.own] = super().person(others)
        return shown[self.own]


def _embedding(image: UInt8[np.ndarray, "h w c"], box: Box) -> Embeddings | None:
    """Return the embedding of the face in a box; None if it is too small, or its landmarks are not sure."""
    if min(box.w, box.h) < SMALLEST:
        return None
    colour = np.repeat(image, 3 // image.shape[2], axis=2)
    try:
        landmarks = predictor().near(colour, box)
        chip = of_points(landmarks.points, CHIP.points()).crop(colour, CHIP)
    except RegionError:
        return None
    return embedder()(chip[None]) if landmarks.sure else None
