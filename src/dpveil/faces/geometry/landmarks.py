"""Landmarks of faces by CenterFace, which place them, and by dlib, which align them; the pose of a head."""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import numpy as np

from dpveil.assets.engines import frontal_detector
from dpveil.assets.trained_files import INSTALL
from dpveil.core.array_types import Float64, UInt8
from dpveil.core.region import Box
from dpveil.errors import RegionError, UsageError
from dpveil.faces.geometry.align import Frame, Points, Similarity, of_points
from dpveil.opencv import cv2
from dpveil.regions.detectors.centerface import CenterFace

PACKAGE: Final = "face_recognition_models"
FILE: Final = "shape_predictor_5_face_landmarks.dat"
SEEN: Final = Frame(216, 0.4)
"""The crop given to the predictor and the detector: the upright face with a wide margin."""
SQUARE: Final = ((0.0591, 0.0519), (0.9239, 0.9167))
"""Left top and right bottom of the square of dlib's detector, in units of UTKFace's crop (means over 986
crops)."""
Starts = tuple[tuple[float, float, float], ...]
STARTS: Final[Starts] = (
    (0.0, 0.0, 1.0),
    (-0.07, 0.0, 1.0),
    (0.07, 0.0, 1.0),
    (0.0, -0.07, 1.0),
    (0.0, 0.07, 1.0),
    (0.0, 0.0, 0.88),
    (0.0, 0.0, 1.12),
)
"""Starting positions of the predictor: offsets x and y relative to the side of SQUARE, and scale."""
ROUNDS: Final = (STARTS[:1], STARTS[:1], STARTS)
"""Starting positions of each round, after which the face is aligned again by the landmarks found last. All
of them in every round would take twice the time and be no more repeatable: in turned copies of 70 photos of
LFW, landmarks differ by 0.011 of the distance between the eyes either way."""
CROP: Final = Frame(128, 0.4)
"""The crop given to CenterFace: it holds faces that are turned by half a quarter, and takes 3 ms."""
REACH: Final = 0.25  # how far the centre of a face may be from that of its box, in sides of UTKFace's crop
BOX: Final = (0.0826, 0.0172, 0.8407, 0.9389)
"""Left, top, width and height of CenterFace's box, in units of UTKFace's crop (means over 295 crops)."""
LEAST: Final = -1.5  # least score that the frontal detector is asked to report
NEAR: Final = 0.3  # how far each edge of the detector's square may be from SQUARE, relative to its side


@dataclass(frozen=True)
class Limits:
    """How sure landmarks are that count as those of a face: at most this spread, and at least this score."""

    spread: float
    score: float


BY_TREES: Final = Limits(0.06, -0.4)
"""For 99 % of portraits of LFW the spread is below 0.04, for boxes in photographs of other things it is 0.02
to 0.3."""
BY_NETWORK: Final = Limits(0.0, 0.2)
"""Of 360 faces of LFW that dlib is sure of 99 % score above 0.6, and of 220 boxes beside faces below 0.05."""
UPRIGHT: Final = 0.85  # score of the network from which on a face is not looked for on its side


@dataclass(frozen=True, eq=False)
class Landmarks:
    """Landmarks of one face in pixels of the photo, (x, y), integers at the centres of pixels.

    `points` are five: the outer and inner corner of the eye on the right of the image, the same of the eye on
    the left, and the base of the nose. `limits` tell whether they are sure. By dlib, `spread` is the root
    mean square deviation between different starting positions, in units of the distance between the eyes, and
    `score` that of its frontal face detector on the aligned face (its own threshold is 0). By CenterFace,
    which looks once, `spread` is 0, and `score` the network's.
    """

    points: Float64[np.ndarray, "5 2"]
    spread: float
    score: float
    limits: Limits = BY_TREES

    @property
    def sure(self) -> bool:
        return self.spread <= self.limits.spread and self.score >= self.limits.score

    @property
    def eyes(self) -> Points:
        """The eyes' centres, the one on the left of the image first."""
        pairs: Points = np.stack([self.points[2:4].mean(axis=0), self.points[:2].mean(axis=0)])
        return pairs

    @property
    def distance(self) -> float:
        """The distance between the eyes in pixels."""
        return float(np.hypot(*(self.eyes[1] - self.eyes[0])))


class NetworkLandmarks:
    """The landmarks of CenterFace in an upright crop of a box.

    Its eyes, tip of the nose and corners of the mouth give the pose of a mean head, whose own corners of the
    eyes and base of the nose are returned.
    """

    def __init__(self) -> None:
        self._own = threading.local()
        self._own.network = CenterFace()

    def near(self, image: UInt8[np.ndarray, "H W c"], box: Box, angle: float = 0.0) -> Landmarks:
        """Return the landmarks of the face in `box`, which reaches from the forehead to the chin.

        The face is looked for upright, or turned by an `angle` as that of a `Similarity`. Points are returned
        for anything in the box: `Landmarks.sure` tells whether it is a face. Raises `RegionError` if they
        coincide.
        """
        pose, found, score = self._found(image, box, angle)
        return Landmarks(pose.back(_explained(found)), 0.0, score, limits=BY_NETWORK)

    def five(self, image: UInt8[np.ndarray, "H W c"], box: Box) -> tuple[Points, float]:
        """Return eyes, tip of the nose and corners of the mouth, left ones of the image first, and score."""
        pose, found, score = self._found(image, box, 0.0)
        return pose.back(found), score

    def _found(
        self, image: UInt8[np.ndarray, "H W c"], box: Box, angle: float
    ) -> tuple[Similarity, Points, float]:
        if not hasattr(self._own, "network"):  # one is for one thread at a time
            self._own.network = CenterFace()
        pose = of_box(box, angle, CROP)
        left, top, wide, high = BOX
        ((x, y),) = CROP.pixels(np.array([[left + wide / 2, top + high / 2]])).tolist()
        found, score = self._own.network.points(pose.crop(image, CROP), x, y, REACH * CROP.unit)
        return pose, found, score


class Predictor:
    """dlib's shape predictor (Kazemi & Sullivan 2014) for five landmarks.

    Its file comes with the package face_recognition_models (CC0). Raises `UsageError` if a package is
    missing.
    """

    def __init__(self, path: Path | None = None) -> None:
        try:
            import dlib
        except ImportError as error:
            raise UsageError("landmarks need dlib, which is not installed", hint=INSTALL) from error
        self._square: Any = dlib.rectangle
        self._predict: Any = dlib.shape_predictor(str(path or model_path()))
        self._own = threading.local()
        self._own.detector = frontal_detector()

    def near(self, image: UInt8[np.ndarray, "H W c"], box: Box, angle: float = 0.0) -> Landmarks:
        """Return the landmarks of the face in a box, as `NetworkLandmarks` does."""
        return self.agreed(image, *self.positions(image, box, angle))

    def positions(
        self, image: UInt8[np.ndarray, "H W c"], box: Box, angle: float = 0.0
    ) -> tuple[Similarity, Float64[np.ndarray, "starts n 2"]]:
        """Return the pose of the face in a box, and all its landmarks from every starting position."""
        pose, many = of_box(box, angle), np.zeros((1, 5, 2))
        for starts in ROUNDS:
            many = self._ask(image, pose, starts)
            pose = of_points(self.five(np.median(many, axis=0)), SEEN.points())
        return pose, many

    def five(self, found: Points) -> Float64[np.ndarray, "5 2"]:
        """Return those of all landmarks that are in `Landmarks.points`."""
        return found

    def agreed(
        self, image: UInt8[np.ndarray, "H W c"], pose: Similarity, many: Float64[np.ndarray, "starts n 2"]
    ) -> Landmarks:
        """Return the median of the landmarks from all starting positions, with their spread and score."""
        middle = np.median(many, axis=0)
        apart = float(np.sqrt(((many - middle) ** 2).sum(axis=2).mean()))
        five = self.five(middle)
        distance = float(np.hypot(*(five[:2].mean(axis=0) - five[2:4].mean(axis=0))))
        score = self._score(image, pose)  # computed in any case, so that running time reveals less
        if not distance > 0:
            raise RegionError("the eyes of a face coincide", hint="it may not be a face, or be too small")
        return Landmarks(five, apart / distance, score)

    def look(self, crop: UInt8[np.ndarray, "s s 3"], frame: Frame) -> Points:
        """Return the landmarks of an aligned crop, in its pixels, from one start; no spread, no score."""
        seen = Frame(SEEN.size, frame.margin)
        large = cv2.resize(np.ascontiguousarray(crop), (SEEN.size, SEEN.size), interpolation=cv2.INTER_LINEAR)
        ends = np.rint(seen.pixels(np.array(SQUARE))).astype(int)
        shape = self._predict(large, self._square(*ends.ravel().tolist()))
        points: Points = np.array([(part.x, part.y) for part in shape.parts()], np.float64)
        return (points + 0.5) * (frame.size / SEEN.size) - 0.5

    def _ask(
        self, image: UInt8[np.ndarray, "H W c"], pose: Similarity, starts: Starts
    ) -> Float64[np.ndarray, "starts n 2"]:
        """Return the landmarks from starting positions around an aligned face, in pixels of the photo."""
        seen = pose.crop(image, SEEN)
        low, high = SEEN.pixels(np.array(SQUARE))
        side, answers = high - low, []
        for right, down, scale in starts:
            start = (low + high) / 2 + side * (right, down)
            ends = np.rint([start - scale * side / 2, start + scale * side / 2]).astype(int)
            shape = self._predict(seen, self._square(*ends.ravel().tolist()))
            answers.append([(part.x, part.y) for part in shape.parts()])
        flat = np.array(answers, np.float64)
        found: Float64[np.ndarray, "starts n 2"] = pose.back(flat.reshape(-1, 2)).reshape(flat.shape)
        return found

    def _score(self, image: UInt8[np.ndarray, "H W c"], pose: Similarity) -> float:
        """Return the frontal detector's best score near the aligned face, or -inf if it finds nothing."""
        low, high = SEEN.pixels(np.array(SQUARE))
        if not hasattr(self._own, "detector"):  # dlib's mixes up the images of two threads
            self._own.detector = frontal_detector()
        boxes, scores, _ = self._own.detector.run(pose.crop(image, SEEN), 0, LEAST)
        fits = [
            score
            for box, score in zip(boxes, scores, strict=True)
            if np.abs([box.left(), box.top(), box.right(), box.bottom()] - np.r_[low, high]).max()
            < NEAR * (high - low).max()
        ]
        return float(max(fits, default=-np.inf))


Locator = NetworkLandmarks | Predictor
"""What finds the landmarks of a face in a box."""
BOX_TO_FACE: Final = 0.85
"""Size of a face relative to that by `of_box`: CenterFace's boxes say 18 % more than landmarks do (100 photos
of LFW). What is replaced has to hold the box, but the face that is shown need not fill it."""


def of_box(box: Box, angle: float = 0.0, frame: Frame = SEEN) -> Similarity:
    """Return the map to a frame of a face with this box, forehead to chin, that is upright or turned."""
    left, top, wide, high = BOX
    low, side = frame.pixels(np.array([[left, top], [left + wide, top + high]]))
    zoom = float(np.hypot(*(side - low))) / float(np.hypot(box.w, box.h))
    at = np.array([[box.x + box.w / 2 - 0.5, box.y + box.h / 2 - 0.5]])
    ((x, y),) = ((low + side) / 2 - Similarity(zoom, angle, 0.0, 0.0).to(at)).tolist()
    return Similarity(zoom, angle, x, y)


def model_path(file: str = FILE) -> Path:
    """Return a predictor's file in the package face_recognition_models; raises `UsageError` without it.

    The package is not imported, as it would need pkg_resources.
    """
    spec = find_spec(PACKAGE)
    places = (spec.submodule_search_locations if spec else None) or ()
    for place in places:
        path = Path(place) / "models" / file
        if path.is_file():
            return path
    raise UsageError(f"landmarks need the package {PACKAGE}, which is not installed", hint=INSTALL)


@lru_cache(maxsize=1)
def locator() -> Locator:
    """Return what places faces; raises `UsageError` if CenterFace is not installed."""
    return NetworkLandmarks()


@lru_cache(maxsize=1)
def predictor() -> Predictor:
    """Return the package's predictor, loaded once."""
    return Predictor()


HEAD: Final = np.array(
    [(45.0, 0.0, 11.0), (19.4, 1.2, 0.0), (-45.0, 0.0, 11.0), (-19.4, 1.2, 0.0), (0.0, 48.5, -20.0)]
)
"""The five landmarks of a mean adult head in millimetres: to the right of the image, down, and away from the
camera, from the middle between the eyes. Width and height are means over 986 crops of UTKFace; depths are
rounded anthropometry."""
MARKS: Final = np.array(
    [(-33.0, -1.0, 5.5), (33.0, -1.0, 5.5), (0.0, 38.0, -36.0), (-28.0, 69.0, -4.0), (28.0, 69.0, -4.0)]
)
"""Where CenterFace sees the eyes, the tip of the nose and the corners of the mouth of that head. To the
side and down they are means over 388 faces of LFW that dlib is sure of."""
MOUTH: Final = 70.0  # distance from the eyes' middle to that of the mouth's corners, in millimetres
EYES: Final = 64.5  # distance between the eyes of that head, in millimetres
NOSE: Final = 0.753
"""Distance from the eyes' middle to the base of the nose, in units of the distance between the eyes."""
FOCAL: Final = 1000.0  # assumed focal length in pixels
EYE_PIXELS: Final = 50.0
"""Assumed distance between the eyes in pixels; with `FOCAL`, the camera is 1.3 m away."""
CAMERA: Final = np.array([[FOCAL, 0, 0], [0, FOCAL, 0], [0, 0, 1]])  # that camera, for OpenCV


@dataclass(frozen=True)
class Pose:
    """The orientation of a head, in radians; all 0 when it looks into the camera.

    `yaw` is positive towards the right of the image, `pitch` downwards, `roll` clockwise. `error` is the root
    mean square reprojection error, in units of the distance between the eyes.
    """

    yaw: float
    pitch: float
    roll: float
    error: float

    @property
    def in_words(self) -> str:
        """The angles in whole degrees.

        >>> Pose(0.35, -0.09, 0.02, 0.01).in_words
        'yaw 20°, pitch -5°, roll 1°'
        """
        return ", ".join(
            f"{name} {math.degrees(getattr(self, name)):.0f}°" for name in ("yaw", "pitch", "roll")
        )


def pose_of(landmarks: Landmarks) -> Pose:
    """Return the pose with the least reprojection error for five landmarks.

    They give yaw to about 10° and pitch to about 15°, because their depths differ by only 3 cm. Raises
    `RegionError` if no pose fits.
    """
    middle = landmarks.eyes.mean(axis=0)
    unit = max(landmarks.distance, float(np.hypot(*(landmarks.points[4] - middle))) / NOSE)
    return head_of(landmarks.points, HEAD, landmarks.eyes, unit).pose


def _explained(found: Points) -> Float64[np.ndarray, "5 2"]:
    """Return the five landmarks of the head that explains those of CenterFace best.

    Raises `RegionError` if none does.
    """
    across, down = found[1] - found[0], found[3:].mean(axis=0) - found[:2].mean(axis=0)
    unit = max(float(np.hypot(*across)), float(np.hypot(*down)) * EYES / MOUTH)
    return head_of(found, MARKS, found[:2], unit).seen(HEAD)


@dataclass(frozen=True, eq=False)
class _Head:
    """A head before an assumed camera; `middle` and `unit` are those of its eyes, in pixels of the photo."""

    turn: np.ndarray
    move: np.ndarray
    middle: Float64[np.ndarray, " 2"]
    unit: float
    error: float

    @property
    def pose(self) -> Pose:
        return _angles(cv2.Rodrigues(self.turn)[0], self.error)

    def seen(self, places: Float64[np.ndarray, "n 3"]) -> Points:
        flat = cv2.projectPoints(places, self.turn, self.move, CAMERA, None)[0].reshape(-1, 2)
        return np.asarray(flat * (self.unit / EYE_PIXELS) + self.middle)


def head_of(
    points: Points, places: Float64[np.ndarray, "n 3"], eyes: Float64[np.ndarray, "2 2"], unit: float
) -> _Head:
    """Return the head of which these places are seen at these points; raises `RegionError` if there is none.

    `unit` is the distance between the eyes, were it not foreshortened. Source: OpenCV's solvePnP,
    Levenberg–Marquardt started from a head that looks straight ahead, which avoids the mirrored second
    solution of nearly coplanar points.
    """
    middle, across = eyes.mean(axis=0), eyes[1] - eyes[0]
    if not unit > 0:
        raise RegionError("the landmarks of a face coincide", hint="it may not be a face, or be too small")
    seen = (points - middle) * EYE_PIXELS / unit
    turn = np.array([[0.0], [0.0], [math.atan2(across[1], across[0])]])
    move = np.array([[0.0], [0.0], [FOCAL * EYES / EYE_PIXELS]])
    done, turn, move = cv2.solvePnP(
        places, seen, CAMERA, None, turn, move, useExtrinsicGuess=True, flags=cv2.SOLVEPNP_ITERATIVE
    )
    if not done or not np.isfinite(turn).all() or not move[2, 0] > 0:
        raise RegionError("no pose of a head explains the landmarks", hint="it may not be a face")
    head = _Head(turn, move, middle, unit, 0.0)
    error = float(np.sqrt(((head.seen(places) - points) ** 2).sum(axis=1).mean())) / unit
    return replace(head, error=error)


def _angles(turn: Float64[np.ndarray, "3 3"], error: float) -> Pose:
    pitch = math.asin(max(-1.0, min(1.0, -turn[1, 2])))
    return Pose(math.atan2(-turn[0, 2], turn[2, 2]), pitch, math.atan2(turn[1, 0], turn[1, 1]), error)
