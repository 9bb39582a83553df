"""Yaw, pitch and roll of a head, solved from landmarks and a mean 3D head."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Float64

from dpveil.errors import RegionError
from dpveil.faces.geometry.landmarks import OF_68, Landmarks

HEAD: Final = {
    45: (45.0, 0.0, 11.0),
    42: (19.4, 1.2, 0.0),
    36: (-45.0, 0.0, 11.0),
    39: (-19.4, 1.2, 0.0),
    33: (0.0, 48.5, -20.0),
    30: (0.0, 33.0, -36.0),
    8: (0.0, 118.0, -4.0),
    48: (-26.0, 74.0, -4.0),
    54: (26.0, 74.0, -4.0),
}
"""A mean adult head in millimetres, by the index among dlib's 68 landmarks: to the right of the image, down,
and away from the camera, from the middle between the eyes. Width and height of the five landmarks of both
sets are means over 986 crops of UTKFace; depths, and the other four, are rounded anthropometry."""
EYES: Final = 64.5
"""Distance between the eyes of that head, in millimetres."""
NOSE: Final = 0.753
"""Distance from the eyes' middle to the base of the nose, in units of the distance between the eyes."""
FOCAL: Final = 1000.0
"""Assumed focal length in pixels."""
EYE_PIXELS: Final = 50.0
"""Assumed distance between the eyes in pixels; with `FOCAL`, the camera is 1.3 m away."""


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
    """Return the pose with the least reprojection error for 5 landmarks, or for 9 of 68.

    Five landmarks give yaw to about 10° and pitch to about 15°, because their depths differ by only 3 cm.
    Raises `RegionError` if no pose fits. Source: OpenCV's solvePnP, Levenberg–Marquardt started from a head
    that looks straight ahead, which avoids the mirrored second solution of nearly coplanar points.
    """
    import cv2

    numbers: tuple[int, ...] = OF_68
    if landmarks.all68 is None:
        points = landmarks.points
    else:
        numbers = tuple(HEAD)
        points = landmarks.all68[list(numbers)]
    model = np.array([HEAD[n] for n in numbers])
    middle = landmarks.eyes.mean(axis=0)
    across = landmarks.eyes[1] - landmarks.eyes[0]
    unit = max(landmarks.distance, float(np.hypot(*(landmarks.points[4] - middle))) / NOSE)
    if not unit > 0:
        raise RegionError("the landmarks of a face coincide", hint="it may not be a face, or be too small")
    seen = (points - middle) * EYE_PIXELS / unit
    camera = np.array([[FOCAL, 0, 0], [0, FOCAL, 0], [0, 0, 1]])
    turn = np.array([[0.0], [0.0], [math.atan2(across[1], across[0])]])
    move = np.array([[0.0], [0.0], [FOCAL * EYES / EYE_PIXELS]])
    done, turn, move = cv2.solvePnP(
        model, seen, camera, None, turn, move, useExtrinsicGuess=True, flags=cv2.SOLVEPNP_ITERATIVE
    )
    if not done or not np.isfinite(turn).all() or not move[2, 0] > 0:
        raise RegionError("no pose of a head explains the landmarks", hint="it may not be a face")
    again = cv2.projectPoints(model, turn, move, camera, None)[0].reshape(-1, 2)
    error = float(np.sqrt(((again - seen) ** 2).sum(axis=1).mean())) / EYE_PIXELS
    return _angles(cv2.Rodrigues(turn)[0], error)


def _angles(turn: Float64[np.ndarray, "3 3"], error: float) -> Pose:
    pitch = math.asin(max(-1.0, min(1.0, -turn[1, 2])))
    return Pose(math.atan2(-turn[0, 2], turn[2, 2]), pitch, math.atan2(turn[1, 0], turn[1, 1]), error)
