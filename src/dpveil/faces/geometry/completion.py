"""Completion: a network paints a head around a released face, given only the photo outside the region."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Final

import numpy as np
from jaxtyping import Bool, Float32, UInt8

from dpveil.assets.cards import Card, CardWords
from dpveil.assets.network import MOST, Network
from dpveil.assets.store import Stored, Tensors
from dpveil.core.numbers import Json
from dpveil.core.region import Box
from dpveil.errors import ModelError
from dpveil.faces.geometry.align import Frame, Similarity
from dpveil.faces.geometry.background import calmed, continued, out_of_focus
from dpveil.faces.geometry.fill import Filling, fill
from dpveil.faces.geometry.hair import Hair, natural
from dpveil.faces.geometry.head_frame import OVAL, HeadFrame, between, in_head, inside, pixel_grid
from dpveil.faces.geometry.layout import BACKGROUND, CLASSES, CLOTHES, HAIR, LOOK, STRIDE, neck
from dpveil.faces.geometry.painted import Painted, healed, seen, shrunk
from dpveil.faces.geometry.textures import textures
from dpveil.faces.geometry.tone import follow

WALLS: Final = (
    (128, 134, 140),
    (158, 152, 142),
    (104, 118, 134),
    (142, 130, 114),
    (168, 172, 174),
    (112, 124, 114),
    (92, 94, 102),
    (150, 160, 170),
)
"""Colours of walls: greys, most of them cool or warm."""
DIM: Final = 0.22
"""Share of the light that is missing at the corners."""
DYES: Final = (
    (0, 0, 0),
    (44, 30, 16),
    (0, 14, 46),
    (46, 46, 50),
    (56, 4, 12),
    (4, 32, 20),
    (88, 78, 62),
)
"""Colours that are added to black clothes; to lighter ones, less."""
BLACK: Final = 30.0
"""Levels of black clothes as networks paint them."""
PALE: Final = 150.0
"""Level from which on clothes, such as collars, stay as they are."""
Levels = Float32[np.ndarray, "_ _ c"]


def wall(number: int, height: int, width: int) -> UInt8[np.ndarray, "h w 3"]:
    """Return a wall that is lit in its middle."""
    down, across = (np.linspace(-1, 1, size, dtype=np.float32) for size in (height, width))
    light = 1 - np.float32(DIM) * (down[:, None] ** 2 + across**2) / 2
    return np.rint(light[..., None] * np.array(WALLS[number % len(WALLS)], np.float32)).astype(np.uint8)


def dyed(
    levels: Levels, layout: Float32[np.ndarray, "4 s s"], number: int, below: Float32[np.ndarray, 3] | None
) -> Levels:
    """Return the levels of a head with clothes of the colour that is seen `below` it, or of one of `DYES`."""
    dye = np.array(DYES[number // len(WALLS) % len(DYES)], np.float32)
    if below is not None:
        dye = np.maximum(below - np.float32(BLACK), 0)
    share = layout[CLOTHES] * np.clip(1 - levels.max(axis=2) / np.float32(PALE), 0, 1)
    return np.asarray(levels + share[..., None] * dye, np.float32)


def seen_below(
    outside: UInt8[np.ndarray, "H W k"], hidden: Bool[np.ndarray, "H W"], pose: Similarity, side: int
) -> Float32[np.ndarray, 3] | None:
    """Return the mean colour of what is seen of the photo nearest below a frame, or None if nothing is."""
    light, known = seen(outside, hidden, replace(pose, y=pose.y - side / 2), side)
    known[:, : side // 4] = known[:, side - side // 4 :] = False
    rows = np.flatnonzero(known.sum(axis=1) > side // 4)
    if len(rows) == 0:
        return None
    near = known & (np.arange(side)[:, None] < rows[0] + side // 10)
    return np.asarray(np.median(light[near], axis=0), np.float32)


SIDES: Final = range(64, 513, 8)
"""Possible sides of a network's frame, in pixels."""
ENOUGH: Final = 0.02
"""Least share of the frame outside the region; with less, the network sees the face alone."""
QUIET: Final = 0.25
"""Factor of the noise that a network sees, in training, too; with all of it, hair comes out speckled."""
LOUD: Final = 10.0
"""Largest absolute value of the noise, which is normal."""
ONE: Final = Similarity(1.0, 0.0, 0.0, 0.0)
"""The identity."""
PROMISE: Final = (
    "The network alone promises nothing, and takes nothing away: it sees the photo outside the head, and a"
    " face that a mechanism released."
)
JOB: Final = "completes heads"
"""What the network does, in errors."""
PLANES: Final = 6 + CLASSES + LOOK
"""Channels of a network's input."""
OFF: Final = 6
"""Pixels at the edge of a frame that are not used where it is continued: networks err beside nothing."""
SHOWS: Final = 127
"""How much of a turned head, of 255, shows at least in a pixel of the frame that is given to the network."""
Crop = UInt8[np.ndarray, "_ _ 3"]
Turned = Callable[[Crop], tuple[Crop, Float32[np.ndarray, "_ _"]]]
"""Turns a crop, and returns it with the share of the head that shows at each pixel."""


@dataclass(frozen=True, eq=False)
class Completion(Stored, Filling):
    """A network that paints hair, ears, neck and background around a released face, matching the photo's
    light.

    `network` is an ONNX file, run from these bytes by the `fastest` engine, on one thread. Its input is
    1 × 18 × `side` × `side`: RGB from -1 to 1 of the photo outside and of the face, and 0 elsewhere; the
    masks of both, 0 or 1; `noise`, which is public and constant; what is added to the logits of the layout's
    classes; and how hair and skin look. The last two are those of an example of `hair`. Its output is
    1 × 7 × `side` × `side`: RGB from -1 to 1, and the shares of the classes of `layout`, from 0 to 1. It is
    run once when it is loaded. Raises `ModelError` for a side that is none of `SIDES`, and for noise that is
    too loud. Source: docs, "Face geometry".
    """

    name: ClassVar[str] = "completion"
    around: ClassVar[float] = 0.15

    network: bytes
    noise: Float32[np.ndarray, "s s"]
    hair: Hair
    card: Card

    def __post_init__(self) -> None:
        if self.side not in SIDES:
            steps = f"{SIDES[0]} to {SIDES[-1]} pixels in steps of {SIDES.step}"
            raise ModelError(f"the network's frame is none of {steps}")
        if not (np.abs(self.noise) <= LOUD).all():
            raise ModelError(f"the network's noise is beyond {LOUD:g}")

    @property
    def side(self) -> int:
        """The side of the network's frame, in pixels."""
        return len(self.noise)

    def __call__(
        self, known: UInt8[np.ndarray, "h w c"], hole: Bool[np.ndarray, "h w"], part: Box
    ) -> UInt8[np.ndarray, "H W c"]:
        """Return `part` of the image with the hole filled by `fill`: the background behind the heads."""
        return fill(known, hole, part)

    def complete(
        self,
        outside: UInt8[np.ndarray, "H W c"],
        hidden: Bool[np.ndarray, "H W"],
        place: Similarity,
        crop: UInt8[np.ndarray, "t t 3"],
        frame: Frame,
        *,
        toned: bool = False,
        around: bool = True,
        turn: Turned | None = None,
        yaw: float = 0.0,
        number: int | None = None,
        same: bool = False,
    ) -> Painted | None:
        """Return a head around the released face `crop`; `place` maps the photo to the crop's `frame`.

        With `toned`, its skin stays as light as that of the crop: networks draw dark faces lighter. Without
        `around`, what is seen of the head itself stays as it is. `turn` turns the face, if one is painted.
        `number` says which example of hair it gets, among those turned by about `yaw` degrees: both are
        released, or public. If it is None, the network guesses. With `same`, it is one for heads that look
        ahead, and the same one however the face is turned.

        `outside` is the photo with 0 under `hidden`: no pixel under `hidden` influences the result. If hardly
        anything of the frame is outside, the network sees the face alone, and only the person is shown; or,
        without `around`, the result is None. Raises `ModelError` if the network's output is not finite.
        """
        head = HeadFrame(self.side)
        pose = between(place, frame, head)
        grid = pixel_grid(self.side)
        light, sure = seen(outside, hidden, pose, self.side)
        known = sure & ~in_head(grid) if around else sure
        alone = bool(known.mean() < ENOUGH)
        if alone and not around:
            return None
        known &= not alone
        ahead = np.asarray(shrunk(crop, between(ONE, frame, head), self.side), np.float32)
        crop, shows = (crop, np.ones(crop.shape[:2], np.float32)) if turn is None else turn(crop)
        both = np.dstack([crop, np.rint(255 * shows).astype(np.uint8)])
        there = shrunk(both, between(ONE, frame, head), self.side)
        face = np.asarray(there[..., :3], np.float32)
        oval = inside(OVAL, grid) & ~known & (there[..., 3] > SHOWS)
        levels = np.where(known[..., None], light, np.where(oval[..., None], face, 127.5))
        planes = [*(levels / 127.5 - 1).transpose(2, 0, 1), known, oval, QUIET * self.noise]
        look, towards = (ahead, 0.0) if same else (face, yaw)
        out = self._as_example(np.stack(planes).astype(np.float32), look, number, towards)
        painted = (out[0, :3].transpose(1, 2, 0) + 1) * np.float32(127.5)
        painted = calmed(painted, light, known, grid)
        layout = out[0, 3:].clip(0, 1)
        if number is not None:
            painted = self.hair.coloured(painted, layout, number, look if same else None)
        if not alone:
            painted = continued(painted, light, known, layout, skin=not around)
            painted = natural(painted, layout[HAIR]) if around else painted
        woven = None if alone else textures(painted, light, known, layout)
        painted = healed(out_of_focus(painted, light, known, layout[BACKGROUND]), grid)
        if woven is not None:
            painted = woven.over(painted)
        if alone:
            below = seen_below(outside, hidden, pose, self.side)
            painted = dyed(painted, layout, number or 0, below)
            painted, layout = _inward(painted, (0, 1)), _inward(layout, (1, 2))
        painted = follow(painted, face) if toned else painted
        return Painted(painted, pose, face, crop, frame, layout, oval, alone, number or 0)

    def _as_example(
        self, planes: Float32[np.ndarray, "6 s s"], face: Levels, number: int | None, yaw: float
    ) -> Float32[np.ndarray, "1 7 s s"]:
        """Return the network's output with the hair of an example, mirrored if that is."""
        example, way = np.concatenate([neck(self.side), np.zeros((LOOK, *face.shape[:2]), np.float32)]), 1
        if number is not None:
            example, mirrored = self.hair.of(face, number, yaw)
            way = -1 if mirrored else 1
        given = np.concatenate([planes[..., ::way], example])
        return self._run(np.ascontiguousarray(given[None]))[..., ::way]

    def _run(self, planes: Float32[np.ndarray, "1 18 s s"]) -> Float32[np.ndarray, "1 _ _ _"]:
        """Return the network's output; raises `ModelError` for any other than finite colours."""
        return self._held(planes)

    @cached_property
    def _held(self) -> Network:
        """The network, ready to run."""
        takes, gives = (1, PLANES, self.side, self.side), (1, 3 + CLASSES, self.side, self.side)
        return Network(self.network, takes, gives, JOB)

    def facts(self) -> dict[str, Json]:
        """Return the side of the frame in pixels, for the file's header."""
        return {"side": self.side}

    def tensors(self) -> dict[str, np.ndarray]:
        """Return the arrays of the file."""
        return {
            "network": np.frombuffer(self.network, np.uint8),
            "noise": self.noise.astype(np.float16),
            **self.hair.tensors(),
        }

    @classmethod
    def of_file(cls, facts: Mapping[str, Any], tensors: Tensors, card: Card) -> Completion:
        """Return the network stored in a file; raises `ModelError` for contents that do not fit together."""
        data = tensors["network"]
        noise, side = tensors["noise"].astype(np.float32), facts["side"]
        if noise.shape != (side, side):
            raise ModelError("the network's noise is not of its side")
        if data.dtype != np.uint8 or data.ndim != 1 or not 0 < len(data) <= MOST:
            raise ModelError(f"the network is not an ONNX file of at most {MOST >> 20} MiB")
        made = cls(data.tobytes(), noise, Hair.of_arrays(tensors), card)
        _ = made.tried
        return made

    @cached_property
    def tried(self) -> bool:
        """Whether the network runs; raises `ModelError` if it fails or its output is far off."""
        self._held.check(1.0)
        return True

    def card_words(self) -> CardWords:
        """Return the model card's sections about the network."""
        return CardWords(
            what=f"A dpveil network that completes heads, in frames of {self.side} × {self.side} pixels.",
            facts=[f"ONNX, {len(self.network) / 1e6:.1f} MB"],
            origin=(
                "Ears, necks and clothes that it paints are guesses from many people, and nobody's own. Hair"
                f" is laid out and coloured as in one of {len(self.hair.yaws)} photos, in squares of {STRIDE}"
                f" × {STRIDE} pixels; its strands are made up.",
            ),
            promise=PROMISE,
        )


def _inward(planes: np.ndarray, axes: tuple[int, int]) -> np.ndarray:
    """Return a frame whose edge is continued from the pixels further in; `axes` are its rows and columns."""
    inner = np.arange(planes.shape[axes[0]]).clip(OFF, planes.shape[axes[0]] - 1 - OFF)
    return planes.take(inner, axes[0]).take(inner, axes[1])
