"""What a detector of the user's own finds, an ONNX file: bodies, plates, or anything else."""

from __future__ import annotations

import hashlib
import re
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from fractions import Fraction
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar, Final
from weakref import WeakKeyDictionary

import numpy as np

from dpveil.assets.network_process import Confined
from dpveil.core.arrays import Float, Float32, UInt8
from dpveil.core.certificate import MOST_REGIONS
from dpveil.core.numbers import to_json
from dpveil.core.origin import BOX, CODE, EYE, FACE, KIND, MASK, OBJECT, PLATE, TEXT, WHOLE, Origin
from dpveil.core.parameters import Between, Probability
from dpveil.core.photo import Photo
from dpveil.core.region import Region
from dpveil.errors import InvalidParameter, ModelError, NoRegion, RegionError, UnknownName
from dpveil.regions.boxes import box_around
from dpveil.regions.finder import Finder, Order, reading_order
from dpveil.regions.tiling import resize_rgb, suppress

NOTHING: Final = (
    "give a box with {regions}; {if_none} copy releases it as it is, {method} fill with {regions} whole hides"
    " all of it"
)
"""The remedy where nothing is found."""
ARGUMENTS: Final = {name: name for name in ("regions", "if_none", "method")}
"""The arguments that NOTHING names."""
Rows = Float[np.ndarray, "n 5"]
"""Detections: left, top, width and height in pixels of the photo, and a score."""
CACHE: Final[WeakKeyDictionary[Photo, dict[str, tuple[Region, ...]]]] = WeakKeyDictionary()
"""What was found in photos in memory, by the description of the finder."""


class Things(Finder):
    """A finder of what is no face: methods that replace faces cover what it finds with grey.

    Finding is a function of the photo's pixels, and certificates say so. It is done once for each photo.
    """

    noun: ClassVar[str]
    """What is missing where nothing is found, as in "no text was found"."""

    @abstractmethod
    def rows(self, photo: Photo) -> list[tuple[str, Rows]]:
        """Return what is seen in a photo by the name of its kind (`Origin.kind`).

        Boxes may be partly outside of the photo. Raises `RegionError` if the search fails.
        """

    @property
    @abstractmethod
    def box_margin(self) -> Fraction:
        """The margin on each side of a box, relative to its shorter side."""

    def __call__(self, photo: Photo) -> list[Region]:
        """Return what is found, numbered by kind; raises `NoRegion` if nothing is, and `RegionError`."""
        found = self.find(photo)
        if not found:
            raise NoRegion(self.absence, hint=NOTHING, arguments=ARGUMENTS)
        return list(found)

    @property
    def absence(self) -> str:
        """Say that nothing was found."""
        return f"no {self.noun} was found"

    def in_order(self, photo: Photo, order: Order) -> list[Region]:
        """Return the same in reading order: a release shows the whole boxes, so their order tells no more."""
        return self(photo)

    def find(self, photo: Photo) -> tuple[Region, ...]:
        """Return what is found in a photo, possibly nothing; cached."""
        own = CACHE.setdefault(photo, {})
        if self.description not in own:
            own[self.description] = tuple(self._regions(photo))
        return own[self.description]

    def _regions(self, photo: Photo) -> list[Region]:
        kinds = self.rows(photo)
        if sum(len(rows) for _, rows in kinds) > MOST_REGIONS:
            hint = "protect larger boxes around it, or the whole photo"
            raise RegionError(f"more than {MOST_REGIONS:,} places of {self.noun} were found", hint=hint)
        return [
            Region(box_around(_with_margin(rows[n], self.box_margin), photo, Fraction(0)), origin=origin)
            for kind, rows in kinds
            for n, origin in zip(reading_order(rows), self._origins(kind, len(rows)), strict=True)
        ]

    def _origins(self, kind: str, count: int) -> list[Origin]:
        return [Origin(kind, self.description, number=n, found=True) for n in range(1, count + 1)]


def _with_margin(row: Float[np.ndarray, " 5"], margin: Fraction) -> Float[np.ndarray, " 4"]:
    """Return a box with a margin on each side, relative to its shorter side."""
    aside = float(margin) * row[2:4].min()
    return np.asarray(row[:4] + np.array([-1, -1, 2, 2]) * aside)


def merge_boxes(rows: Rows, share: float) -> Rows:
    """Return the rows with those joined of which at least a `share` of the smaller box is in the larger one.

    What is joined becomes the box around both, with the better score, so that no pixel of a box is lost.

    >>> merge_boxes(np.array([[0, 0, 10, 10, 0.5], [1, 1, 10, 9, 0.9], [30, 0, 10, 10, 0.4]]), 0.7).tolist()
    [[0.0, 0.0, 11.0, 10.0, 0.9], [30.0, 0.0, 10.0, 10.0, 0.4]]
    """
    kept = np.zeros((0, 5))
    for row in rows[np.argsort(-rows[:, 2] * rows[:, 3], kind="stable")]:
        start, stop = row[:2], row[:2] + row[2:4]
        common = np.minimum(stop, kept[:, :2] + kept[:, 2:4]) - np.maximum(start, kept[:, :2])
        inside = np.prod(np.maximum(common, 0), axis=1) >= share * row[2] * row[3]
        if not inside.any():
            kept = np.vstack([kept, row])
            continue
        other = kept[first := int(inside.argmax())]
        left = np.minimum(start, other[:2])
        size = np.maximum(stop, other[:2] + other[2:4]) - left
        kept[first] = [*left, *size, max(row[4], other[4])]
    return kept


MOST: Final = 1 << 29
"""Largest file in bytes; the largest networks of the kind have some 300 MB."""
HINT: Final = "name the ONNX file of a YOLO or RT-DETR network that holds its own numbers"
SIDES: Final = range(32, 2049)
"""Sides of images that a network may take, in pixels."""
USUAL: Final = 640
"""The side where it is free."""


@dataclass(frozen=True)
class DetectorFile:
    """A file: the SHA-256 of its contents, the height and width that it takes, and its classes' names."""

    digest: str
    height: int
    width: int
    names: Mapping[int, str]
    network: Confined = field(repr=False, compare=False)

    @classmethod
    def of(cls, path: Path) -> DetectorFile:
        """Return what a file says of itself; raises `InvalidParameter`."""
        contents = _contents(path)
        if find_spec("onnxruntime") is None:
            problem = "is run by onnxruntime, which is not installed"
            raise InvalidParameter("detector model", str(path), problem, hint="pip install 'dpveil[faces]'")
        network = Confined("everything", contents)
        try:
            shapes, names = network.describe()
            height, width = _sides(shapes)
        except ModelError as error:
            raise _model_error(path, f"cannot be used: {error.message}") from error
        return cls(hashlib.sha256(contents).hexdigest(), height, width, names, network)


def _sides(shapes: list[list[int]]) -> tuple[int, int]:
    """Return height and width of the image; raises `ModelError`."""
    if len(shapes) not in (1, 2) or len(shapes[0]) != 4 or shapes[0][0] > 1 or shapes[0][1] != 3:
        raise ModelError("it does not take one image of three channels")
    height, width = (side if side > 0 else USUAL for side in shapes[0][2:])
    if height not in SIDES or width not in SIDES:
        raise ModelError(f"it takes images of {width} × {height} pixels")
    return height, width


def _contents(path: Path) -> bytes:
    try:
        if not path.is_file() or path.stat().st_size > MOST:
            raise _model_error(path, f"is no file of at most {MOST >> 20} MiB")
        with path.open("rb") as stream:
            contents = stream.read(MOST + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "input error"
        raise _model_error(path, f"is unreadable: {reason}") from error
    if len(contents) > MOST:
        raise _model_error(path, f"is no file of at most {MOST >> 20} MiB")
    return contents


def _model_error(path: Path, problem: str) -> InvalidParameter:
    return InvalidParameter("detector model", str(path), problem, hint=HINT)


STRIDES: Final = (8, 16, 32)
"""Sides of the cells of YOLO's grids, in pixels."""
REMEDY: Final = "choose another detector, or protect the whole photo"
UNKNOWN: Final = "the detector's outputs are of no layout that is read (YOLO from v5 on, RT-DETR)"
FARTHEST: Final = 2
"""Coordinates relative to the image are below this, and those of pixels are not."""
MOST_CLASSES: Final = 1_000_000
Outputs = Sequence[np.ndarray]
Found = Float[np.ndarray, "n 6"]
"""Left, top, right and bottom in pixels of the network's image, score, and the number of the class."""


def read(outputs: Outputs, height: int, width: int, classes: int | None) -> Found:
    """Return what outputs say was found in an image of this size; `classes` is their number, if known.

    Raises `RegionError` for outputs of no known layout, and for numbers that are not finite.
    """
    if not all(np.isfinite(one).all() for one in outputs):
        raise RegionError("the detector gave numbers that are not finite", hint=REMEDY)
    shapes = tuple(one.shape for one in outputs)
    for fits, layout in LAYOUTS:
        if fits(shapes, cells(height, width), classes):
            found = layout([np.asarray(one[0], np.float64) for one in outputs], height, width)
            scores, kinds = found[:, 4], found[:, 5]
            if not ((kinds >= 0) & (kinds < MOST_CLASSES) & (kinds == np.floor(kinds))).all():
                raise RegionError("the detector gave classes that are no whole numbers", hint=REMEDY)
            if not ((scores >= 0) & (scores <= 1)).all():
                raise RegionError("the detector gave scores that are not between 0 and 1", hint=REMEDY)
            return found
    raise RegionError(UNKNOWN, hint=REMEDY)


def cells(height: int, width: int) -> int:
    """Return how many cells YOLO's grids have.

    >>> cells(640, 640)
    8400
    """
    return sum((height // stride) * (width // stride) for stride in STRIDES)


Shapes = tuple[tuple[int, ...], ...]


def _is_anchor_based(shapes: Shapes, grid: int, classes: int | None) -> bool:
    """Whether this is YOLOv5's or v7's: three boxes for each cell, with a score of their own."""
    return len(shapes) == 1 and _is(shapes[0], 3 * grid, None if classes is None else 5 + classes, least=6)


def _free(shapes: Shapes, grid: int, classes: int | None) -> bool:
    """Whether this is YOLOv8's or a later one's: a column for each cell."""
    if len(shapes) != 1 or len(shapes[0]) != 3:
        return False
    turned = (shapes[0][0], shapes[0][2], shapes[0][1])
    return _is(turned, grid, None if classes is None else 4 + classes, least=5)


def _is_end_to_end(shapes: Shapes, grid: int, classes: int | None) -> bool:
    """Whether this is YOLOv10's: rows of corners, score and class."""
    return len(shapes) == 1 and classes != 2 and _is(shapes[0], None, 6, least=6)


def _is_query_based(shapes: Shapes, grid: int, classes: int | None) -> bool:
    """Whether this is RT-DETR's of Ultralytics: rows of box and scores."""
    return len(shapes) == 1 and classes is not None and _is(shapes[0], None, 4 + classes, least=5)


def _is_rtdetr_hugging_face(shapes: Shapes, grid: int, classes: int | None) -> bool:
    """Whether this is RT-DETR's of Hugging Face: logits and boxes."""
    if len(shapes) != 2 or not _is(shapes[1], None, 4, least=4):
        return False
    return _is(shapes[0], shapes[1][1], classes, least=1)


def _is_rtdetr_original(shapes: Shapes, grid: int, classes: int | None) -> bool:
    """Whether this is RT-DETR's of its authors: labels, boxes and scores."""
    return len(shapes) == 3 and _is(shapes[1], None, 4, least=4) and shapes[0] == shapes[2] == shapes[1][:2]


def _is(shape: tuple[int, ...], rows: int | None, columns: int | None, *, least: int) -> bool:
    """Whether a shape is that of one table with so many rows and columns."""
    if len(shape) != 3 or shape[0] != 1 or shape[2] < least:
        return False
    return rows in (None, shape[1]) and columns in (None, shape[2])


def _of_anchored(outputs: Outputs, height: int, width: int) -> Found:
    (rows,) = outputs
    return _best(rows[:, :4], rows[:, 5:] * rows[:, 4:5])


def _of_free(outputs: Outputs, height: int, width: int) -> Found:
    rows = outputs[0].T
    return _best(rows[:, :4], rows[:, 4:])


def _of_ended(outputs: Outputs, height: int, width: int) -> Found:
    return outputs[0]


def _of_queried(outputs: Outputs, height: int, width: int) -> Found:
    rows = outputs[0]
    if rows.shape[1] == 6 and rows[:, :4].max(initial=0) > FARTHEST:
        return rows  # YOLOv10's corners in pixels, of two classes
    return _best(rows[:, :4] * [width, height, width, height], rows[:, 4:])


def _of_two(outputs: Outputs, height: int, width: int) -> Found:
    logits, boxes = outputs
    return _best(boxes * [width, height, width, height], 1 / (1 + np.exp(-np.clip(logits, -60, 60))))


def _of_three(outputs: Outputs, height: int, width: int) -> Found:
    labels, boxes, scores = outputs
    return np.column_stack([boxes, scores, labels])


def _best(boxes: Float[np.ndarray, "n 4"], scores: Float[np.ndarray, "n c"]) -> Found:
    """Return a row for each box, given by its centre and size, with the best of its scores."""
    half, kind = boxes[:, 2:] / 2, scores.argmax(axis=1)
    best = scores[np.arange(len(scores)), kind]
    return np.column_stack([boxes[:, :2] - half, boxes[:, :2] + half, best, kind])


Fits = Callable[[Shapes, int, int | None], bool]
Layout = Callable[[Outputs, int, int], Found]
LAYOUTS: Final[Sequence[tuple[Fits, Layout]]] = (
    (_is_anchor_based, _of_anchored),
    (_free, _of_free),
    (_is_end_to_end, _of_ended),
    (_is_query_based, _of_queried),
    (_is_rtdetr_hugging_face, _of_two),
    (_is_rtdetr_original, _of_three),
)
"""Which shapes each layout has, and how it is read."""


def name_of(number: int, names: Mapping[int, str]) -> str:
    """Return the name of a class, or its number where it has none.

    >>> name_of(1, {0: "person", 1: "car"}), name_of(7, {})
    ('car', '7')
    """
    return names.get(number, str(number))


THRESHOLD: Final = Fraction(1, 4)
OVERLAP: Final = 0.6
"""Intersection over union above which two boxes of a class are one thing."""
GREY: Final = 114
"""Level of what is around the photo in the network's image, as YOLO is trained."""
TAKEN: Final = (WHOLE, BOX, OBJECT, MASK, FACE, TEXT, PLATE, CODE, EYE)
"""Kinds of regions that others find."""
LARGEST: Final = 4
"""A box is at most so many times as wide and high as the network's image."""


@dataclass(frozen=True, kw_only=True)
class Detected(Things):
    """What the network in an ONNX file finds in a photo, of chosen classes; what it misses stays.

    `model` is a file with the outputs of YOLO (v5, v7, v8 and later) or RT-DETR; it is opened when it is
    needed, and certificates state its SHA-256. `classes` are names that the file states, or numbers where it
    states none, such as "person,car"; empty means all. A thing must score at least `threshold`, and its box
    is extended by `margin` times its shorter side. Raises `InvalidParameter`, and `UnknownName` for a class.
    Source: docs, "Text and other objects".

    >>> Detected(model="bodies.onnx", classes="person").classes
    'person'
    """

    kind = OBJECT
    noun = "such thing"

    model: str | Path | None = field(default=None, repr=False)
    classes: str | Iterable[str] = ""
    threshold: Probability = Probability(default=THRESHOLD)
    margin: Between = Between(0, 2, hint="0.25 adds a quarter on each side", default=Fraction(1, 20))

    def __post_init__(self) -> None:
        if self.model is None or not str(self.model):
            raise InvalidParameter("detector model", None, "is missing", hint="name an ONNX file")
        names = self.classes.split(",") if isinstance(self.classes, str) else list(self.classes)
        stripped = sorted({str(name).strip() for name in names} - {""})
        object.__setattr__(self, "classes", ",".join(stripped))

    def __getstate__(self) -> dict[str, Any]:
        return {entry.name: self.__dict__[entry.name] for entry in fields(self)}

    @property
    def description(self) -> str:
        """Return "detected", the SHA-256 of the file, and every setting that is not the default."""
        chosen = str(self.classes).replace(" ", "_")
        stated = {
            "model": f"sha256:{self._file.digest}",
            "classes": chosen,
            "threshold": to_json(self.threshold) if self.threshold != THRESHOLD else "",
            "margin": to_json(self.margin) if self.margin != Fraction(1, 20) else "",
        }
        return " ".join(["detected", *(f"{name}={value}" for name, value in stated.items() if value != "")])

    @property
    def box_margin(self) -> Fraction:
        """The margin."""
        return self.margin

    def prepare(self) -> None:
        """Read the file, and run its network twice on grey, before any photo is read.

        What it finds has to follow from the photo, so it has to find the same. Raises `InvalidParameter` for
        a file that is no such network, and `UnknownName` for a class.
        """
        self._numbers()
        try:
            first, again = (self._run(np.full((64, 64, 3), GREY, np.uint8))[0] for _ in range(2))
            if first.shape != again.shape or not np.allclose(first, again, rtol=1e-3):
                raise RegionError("it draws random numbers", hint=REMEDY)
        except RegionError as error:
            raise InvalidParameter(
                "detector model", str(self.model), f"cannot be used: {error.message}", hint=REMEDY
            ) from error

    def rows(self, photo: Photo) -> list[tuple[str, Rows]]:
        """Return what is found in a photo, by the noun of each class."""
        height, width = photo.image.shape[:2]
        found, ratio = self._run(photo.image)
        found = found[found[:, 4] >= float(self.threshold)]
        if len(found) > MOST_REGIONS:
            raise RegionError(f"more than {MOST_REGIONS:,} things were found", hint=REMEDY)
        kinds: dict[str, list[Rows]] = {}
        numbers = self._numbers()
        for number in sorted({*found[:, 5].tolist()}):
            own = found[found[:, 5] == number]
            if numbers is None or number in numbers:
                boxes = _boxes(own, ratio, height, width)
                kinds.setdefault(noun(self._name(number), number), []).append(boxes)
        return [(kind, np.concatenate(several)) for kind, several in kinds.items()]

    def _run(self, image: UInt8[np.ndarray, "H W c"]) -> tuple[Found, float]:
        """Return all rows for an image, and how much smaller the network sees it; raises `RegionError`."""
        file = self._file
        seen, ratio = letterbox(image, file.height, file.width)
        try:
            outputs = file.network.all(seen)
        except ModelError as error:
            raise RegionError(f"the detector did not run: {error.message}", hint=REMEDY) from error
        return read(outputs, file.height, file.width, len(file.names) or None), ratio

    def _name(self, number: float) -> str:
        return name_of(int(number), self._file.names)

    def _numbers(self) -> set[int] | None:
        """Return the numbers of the chosen classes, None for all; raises `UnknownName`."""
        names = self._file.names
        if not self.classes:
            return None
        known = {name: number for number, name in names.items()}
        wanted = str(self.classes).split(",")
        for name in wanted:
            if name not in known and (names or not re.fullmatch("[0-9]{1,6}", name)):
                raise UnknownName("class", name, known or ("0", "1", "2"))
        return {known[name] if names else int(name) for name in wanted}

    @cached_property
    def _file(self) -> DetectorFile:
        return DetectorFile.of(Path(str(self.model)))


def noun(name: str, number: float) -> str:
    r"""Return the kind of region for a class: its name, as far as kinds can be called so.

    >>> noun("License_Plate", 1), noun("face", 0), noun("\u8f66", 2)
    ('license plate', 'detected face', 'class 2')
    """
    kind = re.sub("[^a-z0-9]+", " ", name.lower()).strip()[:30]
    kind = f"detected {kind}" if kind.partition(" ")[0] in TAKEN else kind
    return kind if KIND.fullmatch(kind) else f"class {int(number)}"


def letterbox(
    image: UInt8[np.ndarray, "H W c"], height: int, width: int
) -> tuple[Float32[np.ndarray, "1 3 h w"], float]:
    """Return a photo in the upper left corner of a network's image, levels 0..1, and its scale there."""
    ratio = min(height / image.shape[0], width / image.shape[1])
    size = [
        max(1, min(most, round(side * ratio)))
        for side, most in zip(image.shape, (height, width), strict=False)
    ]
    canvas = np.full((height, width, 3), GREY, np.uint8)
    canvas[: size[0], : size[1]] = resize_rgb(image, *size)
    levels = canvas.transpose(2, 0, 1)[None].astype(np.float32) / 255
    return np.ascontiguousarray(levels), ratio


def _boxes(found: Found, ratio: float, height: int, width: int) -> Rows:
    """Return the boxes of one class in pixels of the photo, each thing once.

    Boxes beside the photo are left out. Raises `RegionError` for what is no box.
    """
    size = found[:, 2:4] - found[:, :2]
    most = LARGEST * ratio * max(height, width)
    if not ((size > 0) & (size <= most)).all() or not (np.abs(found[:, :4]) <= most).all():
        raise RegionError("the detector gave something that is no box in this photo", hint=REMEDY)
    rows = np.column_stack([found[:, :2], size, found[:, 4]]) / [*[ratio] * 4, 1]
    beside = (rows[:, 0] >= width) | (rows[:, 1] >= height) | ((rows[:, :2] + rows[:, 2:4]) <= 0).any(axis=1)
    return suppress(rows[~beside], OVERLAP)
