"""What a detector of the user's own finds, an ONNX file: bodies, plates, or anything else."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np
from jaxtyping import Float32, UInt8

from dpveil.assets.detector_files import DetectorFile
from dpveil.core.certificate import MOST_REGIONS
from dpveil.core.numbers import to_json
from dpveil.core.origin import BOX, FACE, KIND, MASK, OBJECT, PLATE, TEXT, WHOLE
from dpveil.core.parameters import Between, Probability
from dpveil.core.photo import Photo
from dpveil.errors import InvalidParameter, ModelError, RegionError, UnknownName
from dpveil.regions import layouts
from dpveil.regions.detectors.suppress import suppress
from dpveil.regions.things import Rows, Things
from dpveil.regions.tiling import resized

THRESHOLD: Final = Fraction(1, 4)
OVERLAP: Final = 0.6
"""Intersection over union above which two boxes of a class are one thing."""
GREY: Final = 114
"""Level of what is around the photo in the network's image, as YOLO is trained."""
TAKEN: Final = (WHOLE, BOX, OBJECT, MASK, FACE, TEXT, PLATE)
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
    def around(self) -> Fraction:
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
                raise RegionError("it draws random numbers", hint=layouts.REMEDY)
        except RegionError as error:
            raise InvalidParameter(
                "detector model", str(self.model), f"cannot be used: {error.message}", hint=layouts.REMEDY
            ) from error

    def rows(self, photo: Photo) -> list[tuple[str, Rows]]:
        """Return what is found in a photo, by the noun of each class."""
        height, width = photo.image.shape[:2]
        found, ratio = self._run(photo.image)
        found = found[found[:, 4] >= float(self.threshold)]
        if len(found) > MOST_REGIONS:
            raise RegionError(f"more than {MOST_REGIONS:,} things were found", hint=layouts.REMEDY)
        kinds: dict[str, list[Rows]] = {}
        numbers = self._numbers()
        for number in sorted({*found[:, 5].tolist()}):
            own = found[found[:, 5] == number]
            if numbers is None or number in numbers:
                boxes = _boxes(own, ratio, height, width)
                kinds.setdefault(noun(self._name(number), number), []).append(boxes)
        return [(kind, np.concatenate(several)) for kind, several in kinds.items()]

    def _run(self, image: UInt8[np.ndarray, "H W c"]) -> tuple[layouts.Found, float]:
        """Return all rows for an image, and how much smaller the network sees it; raises `RegionError`."""
        file = self._file
        seen, ratio = letterbox(image, file.height, file.width)
        try:
            outputs = file.network.all(seen)
        except ModelError as error:
            raise RegionError(f"the detector did not run: {error.message}", hint=layouts.REMEDY) from error
        return layouts.read(outputs, file.height, file.width, len(file.names) or None), ratio

    def _name(self, number: float) -> str:
        return layouts.name_of(int(number), self._file.names)

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
    canvas[: size[0], : size[1]] = resized(image, *size)
    levels = canvas.transpose(2, 0, 1)[None].astype(np.float32) / 255
    return np.ascontiguousarray(levels), ratio


def _boxes(found: layouts.Found, ratio: float, height: int, width: int) -> Rows:
    """Return the boxes of one class in pixels of the photo, each thing once.

    Boxes beside the photo are left out. Raises `RegionError` for what is no box.
    """
    size = found[:, 2:4] - found[:, :2]
    most = LARGEST * ratio * max(height, width)
    if not ((size > 0) & (size <= most)).all() or not (np.abs(found[:, :4]) <= most).all():
        raise RegionError("the detector gave something that is no box in this photo", hint=layouts.REMEDY)
    rows = np.column_stack([found[:, :2], size, found[:, 4]]) / [*[ratio] * 4, 1]
    beside = (rows[:, 0] >= width) | (rows[:, 1] >= height) | ((rows[:, :2] + rows[:, 2:4]) <= 0).any(axis=1)
    return suppress(rows[~beside], OVERLAP)
