"""What a detector of the user's own finds, an ONNX file: bodies, plates, or anything else.

The network runs in a process of its own, which a damaged file can end.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from fractions import Fraction
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import numpy as np

from dpveil.assets.confined_networks import Confined
from dpveil.core.array_types import Float, Float32, UInt8
from dpveil.core.certificate import MOST_REGIONS
from dpveil.core.parameters import Between, Probability
from dpveil.core.photo import Photo
from dpveil.core.rationals import to_json
from dpveil.core.region_origin import BOX, CODE, EYE, FACE, KIND, MASK, OBJECT, PLATE, TEXT, WHOLE
from dpveil.errors import InvalidParameter, ModelError, RegionError, UnknownName
from dpveil.regions.other_finders import NonFaceFinder, Rows
from dpveil.regions.tiling import resize_rgb, suppress

MOST_BYTES: Final = 1 << 29  # of a file; the largest networks of the kind have some 300 MB
HINT: Final = "name the ONNX file of a YOLO or RT-DETR network that holds its own numbers"
SIDES: Final = range(32, 2049)  # sides of images that a network may take, in pixels
USUAL_SIDE: Final = 640  # the side where it is free


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
        try:
            if not path.is_file() or path.stat().st_size > MOST_BYTES:
                raise _model_error(path, f"is no file of at most {MOST_BYTES >> 20} MiB")
            contents = path.read_bytes()
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or "input error"
            raise _model_error(path, f"is unreadable: {reason}") from error
        if find_spec("onnxruntime") is None:
            problem = "is run by onnxruntime, which is not installed"
            raise InvalidParameter("detector model", str(path), problem, hint="pip install 'dpveil[faces]'")
        network = Confined("everything", contents)
        try:
            shapes, names = network.describe()
        except ModelError as error:
            raise _model_error(path, f"cannot be used: {error.message}") from error
        if len(shapes) not in (1, 2) or len(shapes[0]) != 4 or shapes[0][0] > 1 or shapes[0][1] != 3:
            raise _model_error(path, "does not take one image of three channels")
        height, width = (side if side > 0 else USUAL_SIDE for side in shapes[0][2:])
        if height not in SIDES or width not in SIDES:
            raise _model_error(path, f"takes images of {width} × {height} pixels")
        return cls(hashlib.sha256(contents).hexdigest(), height, width, names, network)


def _model_error(path: Path, problem: str) -> InvalidParameter:
    return InvalidParameter("detector model", str(path), problem, hint=HINT)


STRIDES: Final = (8, 16, 32)  # sides of the cells of YOLO's grids, in pixels
REMEDY: Final = "choose another detector, or protect the whole photo"
FARTHEST: Final = 2  # coordinates relative to the image are below this, and those of pixels are not
MOST_CLASSES: Final = 1_000_000
Found = Float[np.ndarray, "n 6"]
"""Left, top, right and bottom in pixels of the network's image, score, and the number of the class."""


def read(outputs: Sequence[np.ndarray], height: int, width: int, classes: int | None) -> Found:
    """Return what outputs say was found in an image of this size; `classes` is their number, if known.

    Raises `RegionError` for outputs of no known layout, and for numbers that cannot be.
    """
    tables = [np.asarray(one[0], np.float64) for one in outputs if one.shape[:1] == (1,)]
    found = _rows_of(tables, height, width, classes) if len(tables) == len(outputs) else None
    if found is None:
        problem = "the detector's outputs are of no layout that is read (YOLO from v5 on, RT-DETR)"
        raise RegionError(problem, hint=REMEDY)
    scores, kinds = found[:, 4], found[:, 5]
    known = (kinds >= 0) & (kinds < MOST_CLASSES) & (kinds == np.floor(kinds))
    if not (np.isfinite(found).all() and known.all() and ((scores >= 0) & (scores <= 1)).all()):
        raise RegionError("the detector gave numbers that are no box, score and class", hint=REMEDY)
    return found


def _rows_of(tables: list[np.ndarray], height: int, width: int, classes: int | None) -> Found | None:
    cells = sum((height // stride) * (width // stride) for stride in STRIDES)
    size = np.array([width, height, width, height])

    def has(columns: int, least: int, before: int) -> bool:
        return columns >= least and classes in (None, columns - before)

    if len(tables) == 1 and tables[0].ndim == 2:
        (rows,) = tables
        count, columns = rows.shape
        if count == 3 * cells and has(columns, 6, 5):  # YOLOv5 and v7: three boxes for each cell
            return _best(rows[:, :4], rows[:, 5:] * rows[:, 4:5])
        if columns == cells and has(count, 5, 4):  # YOLOv8 and later: a column for each cell
            return _best(rows.T[:, :4], rows.T[:, 4:])
        corners = columns == 6 and (classes != 2 or rows[:, :4].max(initial=0) > FARTHEST)
        if corners:  # YOLOv10: corners in pixels, score and class
            return rows
        if classes is not None and has(columns, 5, 4):  # RT-DETR of Ultralytics: boxes in shares, and scores
            return _best(rows[:, :4] * size, rows[:, 4:])
    if len(tables) == 2 and tables[0].ndim == 2 and tables[1].shape == (len(tables[0]), 4):
        logits, boxes = tables  # RT-DETR of Hugging Face
        if classes in (None, logits.shape[1]):
            return _best(boxes * size, 1 / (1 + np.exp(-np.clip(logits, -60, 60))))
    if len(tables) == 3 and tables[0].ndim == 1 and tables[1].shape == (len(tables[0]), 4):
        labels, boxes, scores = tables  # RT-DETR of its authors
        return np.column_stack([boxes, scores, labels]) if scores.shape == labels.shape else None
    return None


def _best(boxes: Float[np.ndarray, "n 4"], scores: Float[np.ndarray, "n c"]) -> Found:
    half, kind = boxes[:, 2:] / 2, scores.argmax(axis=1)
    best = scores[np.arange(len(scores)), kind]
    return np.column_stack([boxes[:, :2] - half, boxes[:, :2] + half, best, kind])


THRESHOLD: Final = Fraction(1, 4)
OVERLAP: Final = 0.6  # intersection over union above which two boxes of a class are one thing
GREY: Final = 114  # level of what is around the photo in the network's image, as YOLO is trained
OTHER_KINDS: Final = (WHOLE, BOX, OBJECT, MASK, FACE, TEXT, PLATE, CODE, EYE)  # kinds that others find
LARGEST_RATIO: Final = 4  # a box is at most so many times as wide and high as the network's image


@dataclass(frozen=True, kw_only=True)
class Detected(NonFaceFinder):
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
        chosen = str(self.classes).replace(" ", "_")
        stated = {
            "model": f"sha256:{self._file.digest}",
            "classes": chosen,
            "threshold": to_json(self.threshold) if self.threshold != THRESHOLD else "",
            "margin": to_json(self.margin) if self.margin != Fraction(1, 20) else "",
        }
        return " ".join(["detected", *(f"{name}={value}" for name, value in stated.items() if value != "")])

    def prepare(self) -> None:
        """Read the file, and run its network once on grey, before any photo is read.

        Raises `InvalidParameter` for a file that is no such network, and `UnknownName` for a class.
        """
        self._numbers()
        try:
            self._run(np.full((64, 64, 3), GREY, np.uint8))
        except RegionError as error:
            raise InvalidParameter(
                "detector model", str(self.model), f"cannot be used: {error.message}", hint=REMEDY
            ) from error

    def rows(self, photo: Photo) -> list[tuple[str, Rows]]:
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
                name = self._file.names.get(int(number), str(int(number)))
                kinds.setdefault(noun(name, number), []).append(_boxes(own, ratio, height, width))
        return [(kind, np.concatenate(several)) for kind, several in kinds.items()]

    def _run(self, image: UInt8[np.ndarray, "H W c"]) -> tuple[Found, float]:
        file = self._file
        seen, ratio = letterbox(image, file.height, file.width)
        try:
            outputs = file.network.all(seen)
        except ModelError as error:
            raise RegionError(f"the detector did not run: {error.message}", hint=REMEDY) from error
        return read(outputs, file.height, file.width, len(file.names) or None), ratio

    def _numbers(self) -> set[int] | None:
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
    kind = f"detected {kind}" if kind.partition(" ")[0] in OTHER_KINDS else kind
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
    size = found[:, 2:4] - found[:, :2]
    most = LARGEST_RATIO * ratio * max(height, width)
    if not ((size > 0) & (size <= most)).all() or not (np.abs(found[:, :4]) <= most).all():
        raise RegionError("the detector gave something that is no box in this photo", hint=REMEDY)
    rows = np.column_stack([found[:, :2], size, found[:, 4]]) / [*[ratio] * 4, 1]
    beside = (rows[:, 0] >= width) | (rows[:, 1] >= height) | ((rows[:, :2] + rows[:, 2:4]) <= 0).any(axis=1)
    return suppress(rows[~beside], OVERLAP)
