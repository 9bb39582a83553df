"""Heads of a clip: painted once for each track and turn, and shown in every frame of it.

A clip keeps the head that is painted in the frame of one key, so that a frame only moves it, lights it and
passes it into its surroundings: a head neither trembles nor pumps, and a frame takes milliseconds. Nothing
but released pixels and pixels outside of what is replaced is read here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from tempfile import TemporaryFile
from typing import Final, Self

import numpy as np

from dpveil.core.arrays import Bool, Float32, Float64, UInt8
from dpveil.core.region import Box, Region
from dpveil.errors import InvalidParameter
from dpveil.faces.base import FaceMethod
from dpveil.faces.geometry.align import Similarity
from dpveil.faces.geometry.cell import Cell
from dpveil.faces.geometry.colour_match import match_of
from dpveil.faces.geometry.head_frame import HeadFrame, between
from dpveil.faces.geometry.place import Placed
from dpveil.faces.geometry.protection import TURNED
from dpveil.faces.geometry.view import ONE
from dpveil.faces.recombine import painted, part_of
from dpveil.opencv import cv2
from dpveil.video.drawing import Drawn
from dpveil.video.facts import Track
from dpveil.video.places import Scene

BELOW: Final = (0.22, 0.9, 1.06)
"""Where what is worn is looked at: half the width, and from where to where, in sides of the head's frame."""
ENOUGH: Final = 0.3  # least share of that place that has to be seen
EVERY: Final = 12  # rows and columns from one pixel of the picture to the next that are looked at
DARK: Final = 8.0  # levels that are added before logarithms are taken
FREE: Final = 0.5  # by how much a picture may darken, as a logarithm, before a head does
STEADY: Final = 0.4
"""Change of what is worn, as a logarithm, that a head does not follow: folds, hands, noise."""
MOST: Final = (-2.5, 0.35)  # least and largest logarithm of the factor of a head's levels
LEAST: Final = 1e-3  # least change that is shown
SECONDS: Final = 1.2  # over how long light is averaged


@dataclass(frozen=True)
class Light:
    """The mean level of what is worn `below` a head, None where too little is seen, and of the `picture`."""

    below: float | None
    picture: float

    @classmethod
    def measure(
        cls, outside: UInt8[np.ndarray, "H W 3"], hidden: Bool[np.ndarray, "H W"], head: Similarity
    ) -> Self:
        """Return the light in a picture; no pixel that is `hidden` is read."""
        worn = _worn_at()
        at = np.rint(head.back(worn)).astype(int)
        at = at[(at >= 0).all(axis=1) & (at < hidden.shape[::-1]).all(axis=1)]
        at = at[~hidden[at[:, 1], at[:, 0]]]
        enough = len(at) >= ENOUGH * len(worn)
        below = float(outside[at[:, 1], at[:, 0]].mean()) if enough else None
        return cls(below, brightness(outside, hidden))

    def change(self, other: Light) -> float:
        """Return the logarithm of the factor from this light to another one."""
        return _change(self, other)


@lru_cache(maxsize=4096)  # asked for again in every frame of `SECONDS`
def _change(before: Light, after: Light) -> float:
    least, most = MOST
    darker = min(0.0, math.log((after.picture + DARK) / (before.picture + DARK)) + FREE)
    if before.below is None or after.below is None:
        return max(least, darker)
    worn = math.log((after.below + DARK) / (before.below + DARK))
    return min(most, max(least, math.copysign(max(0.0, abs(worn) - STEADY), worn)))


@lru_cache(maxsize=1)
def _worn_at() -> Float64[np.ndarray, "n 2"]:
    """Return where what is worn is looked at, in a head's frame with a side of 1."""
    half, top, bottom = BELOW
    x, y = np.meshgrid(np.linspace(0.5 - half, 0.5 + half, 24), np.linspace(top, bottom, 10))
    return np.stack([x.ravel(), y.ravel()], axis=1) - 0.5


def brightness(outside: UInt8[np.ndarray, "H W 3"], hidden: Bool[np.ndarray, "H W"]) -> float:
    """Return the mean level of the picture outside; 0 if nothing of it is seen."""
    few = outside[::EVERY, ::EVERY][~hidden[::EVERY, ::EVERY]]
    return float(few.mean()) if len(few) else 0.0


def relight(levels: UInt8[np.ndarray, "h w c"], change: float) -> UInt8[np.ndarray, "h w c"]:
    """Return levels in another light; `change` is the logarithm of the factor."""
    if abs(change) < LEAST:
        return levels
    table = np.clip(np.rint((np.arange(256) + DARK) * math.exp(change) - DARK), 0, 255).astype(np.uint8)
    return np.asarray(cv2.LUT(levels, table)).reshape(levels.shape)


SIDES: Final = (64, 512)  # least and largest side of the head's frame in a layer, in pixels


@dataclass(frozen=True, eq=False)
class Layer:
    """A head's `picture`, RGB and alpha, in a frame of `side` pixels, and the `light` of its painting."""

    picture: UInt8[np.ndarray, "h w 4"]
    side: int
    light: Light

    @cached_property
    def _halves(self) -> list[UInt8[np.ndarray, "_ _ 4"]]:
        found = [self.picture]
        while min(found[-1].shape[:2]) >= 32:
            height, width = (length // 2 * 2 for length in found[-1].shape[:2])
            cut = found[-1][:height, :width]
            found.append(np.asarray(cv2.resize(cut, (width // 2, height // 2), interpolation=cv2.INTER_AREA)))
        return found

    def on(self, head: Similarity, box: Box) -> UInt8[np.ndarray, "h w 4"]:
        """Return the head in a box of a picture that `head` maps to a frame with a side of 1."""
        length = 1 / head.scale
        level = max(0, min(len(self._halves) - 1, math.floor(math.log2(max(1.0, self.side / length)) + 0.4)))
        picture, times = self._halves[level], self.side / 2**level
        matrix = head.inverse.matrix
        matrix[:, :2] /= times
        # the centre of the picture's first pixel, in the head's frame
        zero = np.array([0.5, 0.5]) / times - 0.5
        matrix[:, 2] = head.back(zero[None])[0] - (box.x, box.y)
        shown = cv2.warpAffine(
            picture, matrix, (box.w, box.h), flags=cv2.INTER_LINEAR, borderMode=cv2.BORDER_CONSTANT
        )
        return np.asarray(shown)


Image = UInt8[np.ndarray, "h w 3"]


def paint(scene: Scene, drawn: Drawn, track: Track, image: Image) -> dict[int | None, Layer]:
    """Return the heads of a track by their classes of yaw, from the frame of `Scene.painted_at`.

    Pixels of `image` that are replaced are set to 0 first. Raises `InvalidParameter` for a draw that is no
    face.
    """
    method = scene.method
    if drawn.face is None or not isinstance(method, FaceMethod):
        raise InvalidParameter("drawn", track.number, "is no face", hint="draw the subject of the track")
    key, course = scene.painted_at(track), scene.course(track)
    hidden = scene.hidden_mask(key.frame)
    outside = image * ~hidden[..., None]
    head, match = course.pose_at(key.frame), match_of(outside, hidden)
    side = int(np.clip(2 ** np.ceil(np.log2(course.largest)), *SIDES))
    own, box = between(ONE, HeadFrame(side), HeadFrame(1)), Box(0, 0, side, side)
    light = Light.measure(outside, hidden, head)
    region = scene.spot(track, key.frame).region or Region(Box(0, 0, scene.width, scene.height))
    layers: dict[int | None, Layer] = {}
    for yaw in course.yaws if method.turned else {None}:
        cell = None if yaw is None else Cell(0, 0, 0, 0, max(-TURNED, min(TURNED, yaw)))
        there = Placed(
            region, between(head, HeadFrame(1), method.frame), method.frame, None, cell, None, course.protect
        )
        part = part_of(
            there, drawn.face, outside, hidden, match, toned=method.toned, turned=method.turned, place=head
        )
        alpha, levels, _ = painted(part, own, box, cut=True)
        layers[yaw] = _store_layer(np.clip(np.rint(levels), 0, 255).astype(np.uint8), alpha, side, light)
    return layers


def _store_layer(levels: Image, shown: Float32[np.ndarray, "h w"], side: int, light: Light) -> Layer:
    alpha = np.clip(np.rint(255 * shown), 0, 255).astype(np.uint8)
    with (
        TemporaryFile() as file
    ):  # heads are read when they are shown: memory does not grow with their number
        np.dstack([levels, alpha]).tofile(file)
        file.flush()
        picture = np.memmap(file, np.uint8, "r", shape=(*alpha.shape, 4))
    return Layer(picture, side, light)
