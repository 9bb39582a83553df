"""A drawn head in its place: what a method releases where its gallery is drawn."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from jaxtyping import Bool, Float32, UInt8

from dpveil.core.region import Box
from dpveil.faces.drawn.canvas import Colour
from dpveil.faces.drawn.drawing import draw
from dpveil.faces.drawn.palette import backdrop
from dpveil.faces.drawn.traits import Person
from dpveil.faces.geometry.align import Frame, Similarity
from dpveil.faces.geometry.head_frame import AnyFrame, HeadFrame, between
from dpveil.faces.geometry.part import Figure, Shown
from dpveil.faces.geometry.spectacles import Step

UNITS: Final = HeadFrame(125)
ORIGIN: Final = (62.0, 55.25)
"""The point between the eyes in that frame's pixels: the origin of `shapes`."""
LARGER: Final = 1.07
"""How much larger than life a head is drawn, so that it fills the shape that is replaced."""
RIM: Final = 1.1
"""Width of the white rim, in units of `shapes`."""
WHITE: Final = 252
BELOW: Final = (15.0, 52.0, 60.0)
"""Where the garment's colour is taken: half the width, and from where to where below the eyes."""
ENOUGH: Final = 0.3
"""Share of that place that has to be seen."""
PORTRAIT: Final = 104.0
"""Units of `shapes` along the shorter side of a portrait."""
LOW: Final = -4.0
"""How far the middle of a portrait lies below the eyes, in units."""


@dataclass(frozen=True)
class DrawnHead(Figure):
    """A person as a figure, and the steps that follow its drawing."""

    person: Person
    steps: tuple[Step, ...] = ()

    def after(self, step: Step) -> DrawnHead:
        """Return the same, followed by a step wherever it is drawn."""
        return replace(self, steps=(*self.steps, step))

    def on(
        self,
        pose: Similarity,
        frame: AnyFrame,
        box: Box,
        outside: UInt8[np.ndarray, "H W c"],
        hidden: Bool[np.ndarray, "H W"],
    ) -> Shown:
        """Return how much of the head shows in a box of the photo (0 to 1), and the head there."""
        to = from_units(pose, frame)
        alpha, image = draw(self.person, box, to, garment_colour(to, outside, hidden))
        cover, rimmed = outlined(alpha, image, RIM * to.scale)
        return cover, self._followed(rimmed)

    def alone(self, height: int, width: int) -> UInt8[np.ndarray, "h w 3"]:
        """Return a portrait of this size: the head before a plain backdrop."""
        scale = min(height, width) / PORTRAIT
        to = Similarity(scale, 0.0, (width - 1) / 2, (height - 1) / 2 + LOW * scale)
        return self._before(backdrop(self.person), Box(0, 0, width, height), to)

    def crop(self, frame: Frame) -> UInt8[np.ndarray, "s s 3"]:
        """Return the head in a canonical crop."""
        one = Similarity(1.0, 0.0, 0.0, 0.0)
        return self._before(backdrop(self.person), Box(0, 0, frame.size, frame.size), from_units(one, frame))

    def _before(self, colour: Colour, box: Box, to: Similarity) -> UInt8[np.ndarray, "h w 3"]:
        alpha, image = draw(self.person, box, to, bust=False)
        behind = np.array(colour, np.float32)
        return self._followed(np.rint(behind + alpha[..., None] * (image - behind)).astype(np.uint8))

    def _followed(self, image: UInt8[np.ndarray, "h w 3"]) -> UInt8[np.ndarray, "h w 3"]:
        for step in self.steps:
            image = step(image)
        return image


def from_units(pose: Similarity, frame: AnyFrame) -> Similarity:
    """Return what takes positions of `shapes` to the photo that `pose` takes to `frame`."""
    there = between(pose, frame, UNITS)
    x, y = there.x - ORIGIN[0], there.y - ORIGIN[1]
    return Similarity(there.scale / LARGER, there.angle, x / LARGER, y / LARGER).inverse


def outlined(
    alpha: Float32[np.ndarray, "h w"], image: UInt8[np.ndarray, "h w 3"], width: float
) -> tuple[Float32[np.ndarray, "h w"], UInt8[np.ndarray, "h w 3"]]:
    """Return a head with a white rim around it, `width` pixels wide."""
    import cv2

    away = cv2.distanceTransform(np.uint8(255) * (alpha < 0.5), cv2.DIST_L2, cv2.DIST_MASK_5)
    rim = np.clip(np.float32(width + 0.5) - away, 0, 1)
    cover = np.maximum(alpha, rim)
    both = image.copy()
    both[alpha == 0] = WHITE
    edge = (alpha > 0) & (alpha < cover)
    share = (alpha[edge] / cover[edge])[:, None]
    both[edge] = np.rint(WHITE + share * (image[edge] - np.float32(WHITE))).astype(np.uint8)
    return cover, both


def garment_colour(
    to: Similarity, outside: UInt8[np.ndarray, "H W c"], hidden: Bool[np.ndarray, "H W"]
) -> Colour | None:
    """Return the colour just below a head, from pixels that are not hidden; None where few are seen."""
    half, top, bottom = BELOW
    x, y = np.meshgrid(np.linspace(-half, half, 24), np.linspace(top, bottom, 10))
    at = np.rint(to.to(np.stack([x.ravel(), y.ravel()], axis=1))).astype(int)
    height, width = hidden.shape
    at = at[(at >= 0).all(axis=1) & (at < (width, height)).all(axis=1)]
    at = at[~hidden[at[:, 1], at[:, 0]]]
    if len(at) < ENOUGH * x.size:
        return None
    seen = np.broadcast_to(outside[at[:, 1], at[:, 0]], (len(at), 3))
    r, g, b = np.median(seen, axis=0).astype(int).tolist()
    return r, g, b
