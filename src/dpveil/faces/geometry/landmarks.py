"""Facial landmarks: dlib's regression trees, run from several starting positions that must agree."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import numpy as np
from jaxtyping import Float64, UInt8

from dpveil.assets.defaults import INSTALL
from dpveil.assets.frontal import frontal_detector
from dpveil.core.region import Box
from dpveil.errors import InvalidParameter, RegionError, UsageError
from dpveil.faces.geometry.align import Frame, Points, Similarity, of_points

PACKAGE: Final = "face_recognition_models"
FILES: Final = {5: "shape_predictor_5_face_landmarks.dat", 68: "shape_predictor_68_face_landmarks.dat"}
OF_68: Final = (45, 42, 36, 39, 33)
"""Which of the 68 landmarks correspond to the five."""

SEEN: Final = Frame(216, 0.4)
"""Crop for the predictor and the detector: the upright face with a wide margin."""
SQUARE: Final = ((0.0591, 0.0519), (0.9239, 0.9167))
"""Where dlib's own detector has its square, left top and right bottom, in parts of UTKFace's crop (means over
986 crops)."""
STARTS: Final = (
    (0, 0, 1),
    (-0.07, 0, 1),
    (0.07, 0, 1),
    (0, -0.07, 1),
    (0, 0.07, 1),
    (0, 0, 0.88),
    (0, 0, 1.12),
)
"""Offsets (relative to the square) and scales of the predictor's starting positions."""
TURNS: Final = 3
BOX: Final = (0.0826, 0.0172, 0.8407, 0.9389)
"""Where CenterFace has its box, left, top, width and height, in parts of UTKFace's crop (295 crops)."""
LEAST: Final = -1.5
NEAR: Final = 0.3
"""How far each side of the detector's square may lie from where it should be, in parts of the square."""


@dataclass(frozen=True, eq=False)
class Landmarks:
    """Landmarks of one face in pixels of the photo, (x, y), whole numbers at the centres of pixels.

    `points` are five: the outer and inner corner of the eye on the right of the picture, the same of the eye
    on the left, the base of the nose. `all68` are dlib's 68, if they were asked for. `spread` says how far
    results from different starts differ, in distances between the eyes; `score` what a frontal face
    detector gives the aligned face (0 is its own cut).
    """

    points: Float64[np.ndarray, "5 2"]
    spread: float
    score: float
    all68: Float64[np.ndarray, "68 2"] | None = None

    @property
    def eyes(self) -> Points:
        """The eyes' centres, that on the left of the picture first."""
        pairs: Points = np.stack([self.points[2:4].mean(axis=0), self.points[:2].mean(axis=0)])
        return pairs

    @property
    def distance(self) -> float:
        """Pixels between the eyes."""
        return float(np.hypot(*(self.eyes[1] - self.eyes[0])))


class Predictor:
    """dlib's shape predictor, 5 landmarks, or 68 from a file that the user names.

    The file of 5 comes with the package face_recognition_models (CC0). That of 68 was trained on pictures
    whose terms exclude commercial use: it is only taken when the user names it with `model`, or allows the
    package's own with `points=68`. Raises `UsageError` where something is missing, `InvalidParameter` for
    another number of points or a file that is none.
    """

    def __init__(self, points: int = 5, model: str | Path | None = None) -> None:
        if points not in FILES:
            raise InvalidParameter("landmarks", points, "are not known", hint="5, or 68")
        path = model_path(points) if model is None else Path(model)
        try:
            import dlib
        except ImportError as error:
            raise UsageError("landmarks need dlib, which is not installed", hint=INSTALL) from error
        if not path.is_file():
            raise InvalidParameter("landmark model", str(path), "is not a file", hint="name a dlib .dat file")
        self._square: Any = dlib.rectangle
        try:
            self._predict: Any = dlib.shape_predictor(str(path))
        except RuntimeError as error:
            raise InvalidParameter(
                "landmark model", str(path), "is not a shape predictor", hint="name a dlib .dat file"
            ) from error
        self._check(points, path)
        self._detect: Any = frontal_detector()
        self.points = points

    def _check(self, points: int, path: Path) -> None:
        """Raise `InvalidParameter` for a file of another number of landmarks."""
        blank = np.zeros((SEEN.size, SEEN.size, 3), np.uint8)
        has = self._predict(blank, self._square(0, 0, 99, 99)).num_parts
        if has != points:
            raise InvalidParameter(
                "landmark model", str(path), f"has {has} landmarks", hint=f"a file of {points} is needed"
            )

    def near(self, image: UInt8[np.ndarray, "H W c"], box: Box) -> Landmarks:
        """Return the landmarks of the face in `box`, which reaches from the forehead to the chin.

        Whatever is in the box, dlib returns points: see `spread` and `score`, which `place` judges. Raises
        `RegionError` where they fall together.
        """
        pose, many = of_box(box), np.zeros((1, 5, 2))
        for _ in range(TURNS):
            many = self._ask(image, pose)
            pose = of_points(_five(np.median(many, axis=0)), SEEN.points())
        return self._agreed(image, pose, many)

    def _agreed(
        self, image: UInt8[np.ndarray, "H W c"], pose: Similarity, many: Float64[np.ndarray, "starts n 2"]
    ) -> Landmarks:
        """Return the landmarks in the middle of the answers from all starts."""
        middle = np.median(many, axis=0)
        apart = float(np.sqrt(((many - middle) ** 2).sum(axis=2).mean()))
        five = _five(middle)
        distance = float(np.hypot(*(five[:2].mean(axis=0) - five[2:4].mean(axis=0))))
        score = self._score(image, pose)  # in any case: how long this takes tells nothing then
        if not distance > 0:
            raise RegionError("the eyes of a face coincide", hint="it may not be a face, or be too small")
        return Landmarks(five, apart / distance, score, middle if len(middle) == 68 else None)

    def look(self, crop: UInt8[np.ndarray, "s s 3"], frame: Frame) -> Points:
        """Return the landmarks of an aligned crop, in its pixels, from one start: quick, unjudged."""
        import cv2

        seen = Frame(SEEN.size, frame.margin)
        large = cv2.resize(np.ascontiguousarray(crop), (SEEN.size, SEEN.size), interpolation=cv2.INTER_LINEAR)
        ends = np.rint(seen.pixels(np.array(SQUARE))).astype(int)
        shape = self._predict(large, self._square(*ends.ravel().tolist()))
        points: Points = np.array([(part.x, part.y) for part in shape.parts()], np.float64)
        return (points + 0.5) * (frame.size / SEEN.size) - 0.5

    def _ask(self, image: UInt8[np.ndarray, "H W c"], pose: Similarity) -> Float64[np.ndarray, "starts n 2"]:
        """Return the predictor's answers, in the photo, from every start around an aligned face."""
        seen = pose.crop(image, SEEN)
        low, high = SEEN.pixels(np.array(SQUARE))
        side, answers = high - low, []
        for right, down, scale in STARTS:
            start = (low + high) / 2 + side * (right, down)
            ends = np.rint([start - scale * side / 2, start + scale * side / 2]).astype(int)
            shape = self._predict(seen, self._square(*ends.ravel().tolist()))
            answers.append([(part.x, part.y) for part in shape.parts()])
        flat = np.array(answers, np.float64)
        found: Float64[np.ndarray, "starts n 2"] = pose.back(flat.reshape(-1, 2)).reshape(flat.shape)
        return found

    def _score(self, image: UInt8[np.ndarray, "H W c"], pose: Similarity) -> float:
        """Return what dlib's frontal detector says where the aligned face should be; -inf for nothing."""
        low, high = SEEN.pixels(np.array(SQUARE))
        boxes, scores, _ = self._detect.run(pose.crop(image, SEEN), 0, LEAST)
        fits = [
            score
            for box, score in zip(boxes, scores, strict=True)
            if np.abs([box.left(), box.top(), box.right(), box.bottom()] - np.r_[low, high]).max()
            < NEAR * (high - low).max()
        ]
        return float(max(fits, default=-np.inf))

    def of_crop(self, crop: UInt8[np.ndarray, "s s c"], frame: Frame) -> Landmarks:
        """Return the landmarks of a crop that is aligned already, in its pixels: `near` without the search.

        Raises `RegionError` where they fall together.
        """
        pose = of_points(frame.points(), SEEN.points())
        return self._agreed(crop, pose, self._ask(crop, pose))


def of_box(box: Box) -> Similarity:
    """Return the upright similarity of a face whose box reaches from the forehead to the chin."""
    left, top, wide, high = BOX
    low, side = SEEN.pixels(np.array([[left, top], [left + wide, top + high]]))
    zoom = float(np.hypot(*(side - low))) / float(np.hypot(box.w, box.h))
    middle = (low + side) / 2
    at = box.x + box.w / 2 - 0.5, box.y + box.h / 2 - 0.5
    return Similarity(zoom, 0.0, float(middle[0] - zoom * at[0]), float(middle[1] - zoom * at[1]))


def model_path(points: int = 5) -> Path:
    """Return the file of the package face_recognition_models, which is never imported (it needs
    pkg_resources); raises `UsageError` without it.
    """
    spec = find_spec(PACKAGE)
    places = (spec.submodule_search_locations if spec else None) or ()
    for place in places:
        path = Path(place) / "models" / FILES[points]
        if path.is_file():
            return path
    raise UsageError(f"landmarks need the package {PACKAGE}, which is not installed", hint=INSTALL)


@lru_cache(maxsize=2)
def predictor(points: int = 5) -> Predictor:
    """Return the predictor of the package, loaded once."""
    return Predictor(points)


def _five(found: Points) -> Float64[np.ndarray, "5 2"]:
    return found if len(found) == 5 else found[list(OF_68)]
