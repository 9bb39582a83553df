"""Random placements of frames, faces and hidden parts in training scenes."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpveil.faces.geometry.head_frame import OVAL


@dataclass(frozen=True)
class Jitter:
    """A random placement: `roll` in radians, `scale`, shifts in units of the frame's side, and mirroring."""

    roll: float = 0.0
    scale: float = 1.0
    right: float = 0.0
    down: float = 0.0
    mirrored: bool = False

    def inverse(self) -> np.ndarray:
        """Return the 3 × 3 matrix from positions in the frame to those before the jitter."""
        c, s = math.cos(self.roll) / self.scale, math.sin(self.roll) / self.scale
        middle, back = moved(0.5, 0.5), moved(-0.5 - self.right, -0.5 - self.down)
        turn = np.array([[c, s, 0], [-s, c, 0], [0, 0, 1]])
        flip = np.diag([-1.0, 1.0, 1.0]) if self.mirrored else np.eye(3)
        out: np.ndarray = middle @ flip @ turn @ back
        return out


def moved(right: float, down: float) -> np.ndarray:
    """Return the 3 × 3 matrix of a shift."""
    return np.array([[1, 0, right], [0, 1, down], [0, 0, 1.0]])


def shift_of(at: Jitter) -> tuple[float, float]:
    """Return the shift of the face's centre by a jitter, in units of the frame's side."""
    middle = np.linalg.inv(at.inverse()) @ np.array([OVAL[0], OVAL[1], 1.0])
    return float(middle[0] - OVAL[0]), float(middle[1] - OVAL[1])


def jitter(u: list[float], roll: float, scale: float, shift: float) -> Jitter:
    """Return a jitter within these limits; `u` are five uniform numbers from 0 to 1."""
    a, b, c, d = (2 * value - 1 for value in u[:4])
    return Jitter(roll * a, math.exp(scale * b), shift * c, shift * d, mirrored=u[4] < 0.5)


def from_centres(back: np.ndarray) -> np.ndarray:
    """Return a matrix for positions counted from corners of pixels as one for those from centres."""
    out: np.ndarray = moved(-0.5, -0.5) @ back @ moved(0.5, 0.5)
    return out
