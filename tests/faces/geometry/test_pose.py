"""Pose: angles come back from projections of the model head."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from dpveil.faces.geometry.landmarks import HEAD, Landmarks, pose_of

ANGLES = list(itertools.product((-50, -20, 0, 35), (-25, 0, 20), (-30, 0, 15)))


def rotation(yaw: float, pitch: float, roll: float) -> np.ndarray:
    """The rotation of a head by `roll`, then `pitch`, then `yaw`, in the axes of `HEAD`."""
    (cy, sy), (cp, sp), (cr, sr) = ((math.cos(a), math.sin(a)) for a in (yaw, pitch, roll))
    side = np.array([[cy, 0, -sy], [0, 1, 0], [sy, 0, cy]])
    nod = np.array([[1, 0, 0], [0, cp, -sp], [0, sp, cp]])
    return side @ nod @ np.array([[cr, -sr, 0], [sr, cr, 0], [0, 0, 1]])


def seen(yaw: float, pitch: float, roll: float, *, scale: float = 2.0, far: float = 20.0) -> np.ndarray:
    """The five landmarks of the model, projected by a pinhole camera `far` metres away."""
    x, y, z = rotation(float(yaw), float(pitch), float(roll)) @ HEAD.T
    return np.stack([x, y], axis=1) * scale * far * 1000 / (far * 1000 + z)[:, None] + (300, 200)


def landmarks(points: np.ndarray) -> Landmarks:
    return Landmarks(points, 0.0, 1.0)


@pytest.mark.parametrize("degrees", ANGLES)
def test_angles_come_back_from_projections(degrees):
    yaw, pitch, roll = map(math.radians, degrees)
    pose = pose_of(landmarks(seen(yaw, pitch, roll, far=1.29)))
    assert (pose.yaw, pose.pitch, pose.roll) == pytest.approx((yaw, pitch, roll), abs=math.radians(6))
    assert pose.error < 0.02


def test_signs_are_as_said():
    """To the right of the picture moves the nose right, down moves it down, clockwise sinks the right eye."""
    nose = [seen(*a)[4] for a in ((0, 0, 0), (0.3, 0, 0), (0, 0.3, 0))]
    assert nose[1][0] > nose[0][0] + 5
    assert nose[2][1] > nose[0][1] + 5
    turned = seen(0, 0, 0.2)
    assert turned[0, 1] > turned[2, 1]
