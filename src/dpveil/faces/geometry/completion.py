"""Completion: a network paints a head around a released face, from the photo outside and nothing else."""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Final

import numpy as np
from jaxtyping import Bool, Float32, UInt8

from dpveil.assets.cards import Card, CardWords
from dpveil.assets.store import Stored, Tensors
from dpveil.core.numbers import Json
from dpveil.core.region import Box
from dpveil.errors import ModelError
from dpveil.faces.geometry.align import BLUR, Frame, Similarity
from dpveil.faces.geometry.fill import Filling, fill
from dpveil.faces.geometry.head import between
from dpveil.faces.geometry.head_frame import OVAL, HeadFrame, in_ellipse, in_head, pixel_grid

SIDES: Final = range(64, 513, 8)
MOST: Final = 1 << 25
"""Size limit of a network in bytes."""
SURE: Final = 0.999
"""Part of a pixel of the frame that has to be outside for it to be shown to the network."""
ENOUGH: Final = 0.12
"""Part of the frame that has to be shown to the network: with less around it, it has nothing to go by."""
RIM: Final = 0.25
"""Width of the edge over which fine detail of a released face fades, in parts of the oval's half axes."""
HEALED: Final = (0.8, 2.0)
"""Pixels of the frame inside and outside the oval's edge between which one goes over into the other."""
GAIN: Final = (0.6, 1.4)
"""Limits of how much stronger that detail becomes in other light."""
PROMISE: Final = (
    "The network alone promises nothing, and takes nothing away: it sees the photo outside the head, and a"
    " face that a mechanism released."
)

NETS: Final = threading.local()

Levels = Float32[np.ndarray, "_ _ c"]


@dataclass(frozen=True, eq=False)
class Completion(Stored, Filling):
    """A network that paints hair, ears, neck and background around a released face, in the light outside.

    `network` is an ONNX file, run by OpenCV from these bytes. Its input "seen" is 1 × 6 × `side` × `side`:
    what is known, RGB from -1 to 1, of the photo outside and of the face, and 0 elsewhere; the masks of both,
    0 or 1; and `noise`, which is public. Its output is 1 × 3 × `side` × `side`, RGB from -1 to 1. It is run
    once when it is loaded. Source: docs, "Face geometry".
    """

    name: ClassVar[str] = "completion"
    around: ClassVar[float] = 0.15

    network: bytes
    noise: Float32[np.ndarray, "s s"]
    card: Card

    @property
    def side(self) -> int:
        """Pixels along a side of the network's frame."""
        return len(self.noise)

    def __call__(
        self, known: UInt8[np.ndarray, "h w c"], hole: Bool[np.ndarray, "h w"], part: Box
    ) -> UInt8[np.ndarray, "H W c"]:
        """Return `part` of a picture in which the hole was filled as `fill` does: what heads are put on."""
        return fill(known, hole, part)

    def complete(
        self,
        outside: UInt8[np.ndarray, "H W c"],
        hidden: Bool[np.ndarray, "H W"],
        place: Similarity,
        crop: UInt8[np.ndarray, "t t 3"],
        frame: Frame,
    ) -> Painted | None:
        """Return a head around the face `crop` of `frame`, which `place` takes the photo to.

        `outside` is the photo with 0 under `hidden`, which is all that may be seen of it: no pixel under
        `hidden` changes what is returned. None where too little is left around the face. Raises `ModelError`
        where the network's numbers are not finite.
        """
        head = HeadFrame(self.side)
        pose = between(place, frame, head)
        grid = pixel_grid(self.side)
        light, sure = _seen(outside, hidden, pose, self.side)
        known = (sure >= SURE) & ~in_head(grid)
        if known.mean() < ENOUGH:
            return None
        face = _shrunk(crop.astype(np.float32), between(ONE, frame, head), self.side)
        oval = in_ellipse(OVAL, grid) & ~known
        levels = np.where(known[..., None], light, np.where(oval[..., None], face, 127.5))
        planes = [*(levels / 127.5 - 1).transpose(2, 0, 1), known, oval, self.noise]
        out = self._run(np.stack(planes).astype(np.float32)[None])
        painted = (out[0].transpose(1, 2, 0) + 1) * np.float32(127.5)
        return Painted(_healed(painted, grid), pose, face, crop, frame)

    def _run(self, seen: Float32[np.ndarray, "1 6 s s"]) -> Float32[np.ndarray, "1 _ _ _"]:
        """Return what the network makes of a frame."""
        net = self._net()
        net.setInput(seen, "seen")
        out = np.asarray(net.forward(), np.float32)
        if not np.isfinite(out).all():
            raise ModelError("the completion network gives numbers that are not finite")
        return out

    def _net(self) -> Any:
        """Return the net of this thread: OpenCV's may not be shared by threads, and take long to read."""
        import cv2

        if getattr(NETS, "of", None) is not self.network:
            NETS.net = cv2.dnn.readNetFromONNX(np.frombuffer(self.network, np.uint8))
            NETS.of = self.network
        return NETS.net

    def facts(self) -> dict[str, Json]:
        """Return the side of the frame."""
        return {"side": self.side}

    def tensors(self) -> dict[str, np.ndarray]:
        """Return what a file keeps."""
        return {
            "network": np.frombuffer(self.network, np.uint8),
            "noise": self.noise.astype(np.float16),
        }

    @classmethod
    def of_file(cls, facts: Mapping[str, Any], tensors: Tensors, card: Card) -> Completion:
        """Return the network of what a file holds; raises `ModelError` where it is none."""
        data, noise = tensors["network"], tensors["noise"].astype(np.float32)
        side = facts["side"]
        if side not in SIDES or noise.shape != (side, side) or not np.isfinite(noise).all():
            raise ModelError(f"the network's frame is none of {SIDES[0]} to {SIDES[-1]} pixels")
        if data.dtype != np.uint8 or data.ndim != 1 or not 0 < len(data) <= MOST:
            raise ModelError("the network is not an ONNX file of at most 32 MiB")
        made = cls(data.tobytes(), noise, card)
        _ = made.tried
        return made

    @cached_property
    def tried(self) -> bool:
        """Run the network once on grey; raises `ModelError` where OpenCV cannot, or levels are far off."""
        import cv2

        seen = np.zeros((1, 6, self.side, self.side), np.float32)
        seen[:, 3] = 1
        try:
            out = self._run(seen)
        except cv2.error as error:
            raise ModelError("the network is none that OpenCV can complete heads with") from error
        if out.shape != (1, 3, self.side, self.side) or np.abs(out).mean() > 1:
            raise ModelError("the network does not turn a frame into colours")
        return True

    def card_words(self) -> CardWords:
        """Return what the card says of the network."""
        return CardWords(
            what=f"A dpveil network that completes heads, in frames of {self.side} × {self.side} pixels.",
            facts=[f"ONNX, {len(self.network) / 1e6:.1f} MB"],
            origin=("Hair, ears and clothes that it paints are guesses from many people, and nobody's own.",),
            promise=PROMISE,
        )


@dataclass(frozen=True, eq=False)
class Painted:
    """A head in the network's frame, `pose` from the photo to it, and the face that it was painted around."""

    levels: Levels
    pose: Similarity
    face: Levels
    crop: UInt8[np.ndarray, "t t 3"]
    frame: Frame

    def on(self, box: Box, channels: int) -> tuple[Float32[np.ndarray, "h w"], UInt8[np.ndarray, "h w c"]]:
        """Return how much of the head shows in a box of the photo (0 to 1), and the head there.

        Where the photo is finer than the frame, the released face brings its own fine detail.
        """
        import cv2

        levels = self._placed(self.levels, self.pose, box)
        if self.pose.scale < 1:
            levels += self._detail(box)
        rounded = np.clip(np.rint(levels), 0, 255).astype(np.uint8)
        if channels == 1:
            rounded = cv2.cvtColor(rounded, cv2.COLOR_RGB2GRAY)
        side = len(self.levels)
        inside = np.zeros((side, side), np.float32)
        inside[2:-2, 2:-2] = 1
        shown = cv2.warpAffine(inside, _into(self.pose, box), (box.w, box.h), flags=cv2.INTER_LINEAR)
        return np.asarray(shown, np.float32), rounded.reshape(box.h, box.w, channels)

    def _detail(self, box: Box) -> Levels:
        """Return what the crop shows beyond the frame's resolution, in the light of the head."""
        import cv2

        side = len(self.levels)
        x, y, a, b = OVAL
        grid = pixel_grid(side)
        far = np.hypot((grid[..., 0] - x) / a, (grid[..., 1] - y) / b)
        share = np.clip((1 - far) / RIM, 0, 1).astype(np.float32)
        soft = cv2.GaussianBlur(np.dstack([self.levels.clip(0, 255), self.face]), (0, 0), side / 28)
        gain = share[..., None] * np.clip((soft[..., :3] + 8) / (soft[..., 3:] + 8), *GAIN)
        to_crop = between(self.pose, HeadFrame(side), self.frame)
        fine = self._placed(self.crop.astype(np.float32), to_crop, box)
        coarse = self._placed(self.face, self.pose, box)
        return np.asarray((fine - coarse) * self._placed(gain, self.pose, box), np.float32)

    def _placed(self, picture: Levels, pose: Similarity, box: Box) -> Levels:
        """Return a picture of the frame to which `pose` takes the photo, in a box of the photo."""
        import cv2

        if pose.scale > 1:
            picture = cv2.GaussianBlur(picture, (0, 0), BLUR * math.sqrt(pose.scale**2 - 1))
        mode = cv2.INTER_LINEAR if pose.scale > 1 else cv2.INTER_CUBIC
        matrix, size = _into(pose, box), (box.w, box.h)
        placed = cv2.warpAffine(picture, matrix, size, flags=mode, borderMode=cv2.BORDER_REPLICATE)
        return np.asarray(placed, np.float32)


ONE: Final = Similarity(1.0, 0.0, 0.0, 0.0)


def _healed(levels: Levels, grid: np.ndarray) -> Levels:
    """Return what was painted with a smooth passage over the oval's edge, where networks leave a line."""
    import cv2

    x, y, a, b = OVAL
    side = len(levels)
    away = grid - (x, y)
    far = np.maximum(np.hypot(away[..., 0] / a, away[..., 1] / b), 1e-6)
    inner, outer = 1 - HEALED[0] / (a * side), 1 + HEALED[1] / (a * side)
    ends = []
    for end in (inner, outer):
        at = (((away * (end / far)[..., None] + (x, y)) * side) - 0.5).astype(np.float32)
        ends.append(cv2.remap(levels, at[..., 0], at[..., 1], cv2.INTER_LINEAR))
    share = np.clip((far - inner) / (outer - inner), 0, 1)[..., None].astype(np.float32)
    passage = ends[0] + share * (ends[1] - ends[0])
    return np.where(((far > inner) & (far < outer))[..., None], passage, levels)


def _into(pose: Similarity, box: Box) -> np.ndarray:
    """Return the map from a frame into a box of the photo."""
    matrix: np.ndarray = pose.inverse.matrix
    matrix[:, 2] -= box.x, box.y
    return matrix


def _seen(
    outside: UInt8[np.ndarray, "H W k"], hidden: Bool[np.ndarray, "H W"], pose: Similarity, side: int
) -> tuple[Levels, Float32[np.ndarray, "s s"]]:
    """Return what of the frame is outside, mirrored beyond the photo, and how far each pixel is."""
    corners = pose.back(np.array([[-0.5, -0.5], [side, -0.5], [side, side], [-0.5, side]]))
    more = 4 + math.ceil(4 / pose.scale)
    (left, top), (right, bottom) = corners.min(axis=0), corners.max(axis=0)
    height, width = hidden.shape
    rows = slice(max(0, math.floor(top) - more), max(1, min(height, math.ceil(bottom) + more)))
    columns = slice(max(0, math.floor(left) - more), max(1, min(width, math.ceil(right) + more)))
    known = (~hidden[rows, columns]).astype(np.float32)[..., None]
    levels = outside[rows, columns].astype(np.float32) * known
    both = np.concatenate([np.broadcast_to(levels, (*known.shape[:2], 3)), known], axis=2)
    moved = pose.to(np.array([[columns.start, rows.start]], np.float64))[0]
    there = _shrunk(both, Similarity(pose.scale, pose.angle, float(moved[0]), float(moved[1])), side)
    return there[..., :3] / np.maximum(there[..., 3:], SURE), there[..., 3]


def _shrunk(picture: Levels, pose: Similarity, side: int) -> Levels:
    """Return the frame to which `pose` takes a picture, from means where the picture is finer."""
    import cv2

    step = 1 / pose.scale
    whole = max(1, min(math.floor(step), *picture.shape[:2]))
    height, width = (length // whole * whole for length in picture.shape[:2])
    if whole > 1:
        size = (width // whole, height // whole)
        picture = cv2.resize(picture[:height, :width], size, interpolation=cv2.INTER_AREA)
    step /= whole
    if step > 1:
        picture = cv2.GaussianBlur(picture, (0, 0), BLUR * math.sqrt(step * step - 1))
    matrix = pose.matrix * [whole, whole, 1]
    zero = (whole - 1) / 2
    matrix[:, 2] = pose.to(np.array([[zero, zero]], np.float64))[0]
    mode = cv2.INTER_LINEAR
    out = cv2.warpAffine(picture, matrix, (side, side), flags=mode, borderMode=cv2.BORDER_REFLECT_101)
    return np.asarray(out, np.float32)
