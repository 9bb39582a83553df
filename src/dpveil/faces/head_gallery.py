"""Rendered heads of nobody, and the file that keeps them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self

import numpy as np

from dpveil.assets.model_cards import Card, CardWords
from dpveil.assets.trained_files import Tensors, TrainedFile, default_path
from dpveil.core.array_types import Float32, Int8, Int64
from dpveil.core.rationals import Json
from dpveil.errors import ModelError
from dpveil.faces.attribute_model import labelled
from dpveil.opencv import cv2

if TYPE_CHECKING:
    from dpveil.faces.geometry.head_picture import View

SIZES: Final = range(64, 1025)  # possible sides of a picture in pixels
MOST_PICTURES: Final = 1 << 14
MOST_VIEWS: Final = 64  # decoded pictures that are kept, some 4 MB each
PROMISE: Final = "A gallery alone promises nothing. Privacy comes from a draw that does not look at the face."
ORIGIN: Final = ("Every head is rendered from geometry by numbers of a random generator.",)
CAUTION: Final = (
    "Labels are the numbers by which a head was made. Two values of gender and five of tone hold nobody's",
    "whole truth.",
)


@dataclass(frozen=True, eq=False)
class HeadGallery(TrainedFile):
    """Heads of nobody, each seen from several sides, as square pictures with alpha in WebP.

    `pictures` hold sRGB and alpha, `masks` the shares of hair, garment and neck at half their size. Row i
    shows `person[i]` turned by `yaw[i]` degrees, 0 or more, towards the right of the image; `points[i]` are
    the five landmarks of `geometry.align.FIVE` in pixels. `labels[a][p]` is the index in `values[a]` of the
    label of person p.
    """

    name: ClassVar[str] = "heads"
    hint: ClassVar[str] = "name a .safetensors file of heads"

    size: int
    pictures: tuple[bytes, ...]
    masks: tuple[bytes, ...]
    person: Int64[np.ndarray, " n"]
    yaw: Int64[np.ndarray, " n"]
    points: Float32[np.ndarray, "n 5 2"]
    labels: Mapping[str, Int8[np.ndarray, " p"]]
    values: Mapping[str, tuple[str, ...]]
    card: Card
    _views: dict[tuple[int, bool], View] = field(default_factory=dict, init=False, repr=False)

    def __len__(self) -> int:
        return int(self.person.max()) + 1

    def looks(self, name: str) -> Int64[np.ndarray, " p"] | None:
        """Return each person's value of an attribute, by its index in `VALUES`; None without that label."""
        return labelled(self.labels, self.values, name)

    @cached_property
    def _rows(self) -> dict[int, list[int]]:
        rows: dict[int, list[int]] = {}
        for row, person in enumerate(self.person.tolist()):
            rows.setdefault(person, []).append(row)
        return rows

    def view(self, person: int, yaw: int | None) -> View:
        """Return the picture of a person with the yaw nearest to `yaw` degrees (None: 0), mirrored below 0.

        Raises `ModelError` for an invalid picture.
        """
        yaw = yaw or 0
        row = min(self._rows[person], key=lambda one: abs(int(self.yaw[one]) - abs(yaw)))
        mirrored = yaw < 0 and self.yaw[row] > 0
        view = self._views.get((row, mirrored))
        if view is None:
            view = self._decoded(row, mirrored=bool(mirrored))
            if len(self._views) >= MOST_VIEWS:  # other threads may add or clear at the same time
                self._views.clear()
            self._views[row, mirrored] = view
        return view

    def _decoded(self, row: int, *, mirrored: bool) -> View:
        from dpveil.faces.geometry.align import FIVE, of_points
        from dpveil.faces.geometry.head_frame import HeadFrame
        from dpveil.faces.geometry.head_picture import View

        files = (np.frombuffer(data, np.uint8) for data in (self.pictures[row], self.masks[row]))
        picture, mask = (cv2.imdecode(file, cv2.IMREAD_UNCHANGED) for file in files)
        if picture is None or mask is None or picture.shape != (self.size, self.size, 4) or mask.ndim != 3:
            raise ModelError(f"head {row} is not {self.size} × {self.size} in colour with alpha")
        points = self.points[row].astype(np.float64)
        mask = cv2.resize(mask, (self.size, self.size), interpolation=cv2.INTER_LINEAR)
        if mirrored:
            picture, mask = picture[:, ::-1], mask[:, ::-1]
            points = points[[2, 3, 0, 1, 4]] * (-1, 1) + (self.size - 1, 0)
        levels = np.ascontiguousarray(picture[..., 2::-1])
        alpha = picture[..., 3].astype(np.float32) / np.float32(255)
        neck, garment, hair = cv2.split(mask.astype(np.float32) / np.float32(255))
        pose = of_points(points, HeadFrame(1).pixels(np.array(FIVE)))
        return View(levels, alpha, hair, garment, neck, pose)

    def facts(self) -> dict[str, Json]:
        """Return the size of pictures, and the labels' names and values, for the file's header."""
        return {"size": self.size, "values": {name: list(words) for name, words in self.values.items()}}

    def tensors(self) -> dict[str, np.ndarray]:
        kept: dict[str, np.ndarray] = {
            "person": self.person.astype(np.int16),
            "yaw": self.yaw.astype(np.int8),
            "points": self.points,
        }
        for name, files in (("picture", self.pictures), ("mask", self.masks)):
            kept[f"{name}s"] = np.frombuffer(b"".join(files), np.uint8)
            kept[f"{name} ends"] = np.cumsum([len(one) for one in files], dtype=np.int64)
        return kept | {f"label {name}": self.labels[name] for name in self.values}

    @classmethod
    def of_file(cls, facts: Mapping[str, Any], tensors: Tensors, card: Card) -> Self:
        """Return the gallery stored in a file; raises `ModelError` for contents that do not fit together."""
        pictures, masks = (_files(tensors, name) for name in ("picture", "mask"))
        person, yaw = tensors["person"].astype(np.int64), tensors["yaw"].astype(np.int64)
        points, count = tensors["points"].astype(np.float32), len(pictures)
        if facts["size"] not in SIZES or not 0 < count <= MOST_PICTURES or len(masks) != count:
            raise ModelError(f"the file is not a gallery of up to {MOST_PICTURES} pictures of heads")
        if person.shape != (count,) or yaw.shape != (count,) or points.shape != (count, 5, 2):
            raise ModelError("the file's persons, yaws and points do not fit its pictures")
        people = set(person.tolist())
        if people != set(range(len(people))) or not ((yaw >= 0) & (yaw <= 90)).all():
            raise ModelError("the file's persons or yaws are out of range")
        if not np.isfinite(points).all():
            raise ModelError("the file's points are not finite")
        values = {str(name): tuple(str(word) for word in words) for name, words in facts["values"].items()}
        labels = {name: tensors[f"label {name}"] for name in values}
        for name, words in values.items():
            label = labels[name]
            fits = label.shape == (len(people),) and label.dtype == np.int8
            if not fits or not ((label >= 0) & (label < len(words))).all():
                raise ModelError(f"the file's labels of {name} do not fit its heads")
        return cls(facts["size"], pictures, masks, person, yaw, points, labels, values, card)

    def card_words(self) -> CardWords:
        counts = []
        for name, words in self.values.items():
            found = self.labels[name].tolist()
            counts.append(f"{name}: {', '.join(f'{w} {found.count(at)}' for at, w in enumerate(words))}")
        return CardWords(
            what=f"A dpveil gallery: {len(self)} heads of nobody, {self.size} × {self.size} pixels.",
            facts=[f"{len(self.pictures)} pictures, turned by up to {int(self.yaw.max())} degrees"],
            labels=counts,
            caution=CAUTION,
            origin=ORIGIN,
            making="Making",
            measured="Measured",
            unmeasured="Nothing.",
            promise=PROMISE,
        )


def _files(tensors: Tensors, name: str) -> tuple[bytes, ...]:
    """Return the files of a concatenation; raises `ModelError` unless they are contiguous."""
    data, ends = tensors[f"{name}s"], tensors[f"{name} ends"].astype(np.int64)
    starts = np.concatenate([[0], ends[:-1]])
    if data.dtype != np.uint8 or data.ndim != 1 or ends.ndim != 1 or not (starts < ends).all():
        raise ModelError(f"the file's {name}s are not contiguous")
    if ends[-1:].tolist() != [len(data)]:
        raise ModelError(f"the file's {name}s are not contiguous")
    return tuple(data[start:end].tobytes() for start, end in zip(starts, ends, strict=True))


@cache
def default_heads() -> HeadGallery:
    return HeadGallery.load(default_path(HeadGallery.name))
