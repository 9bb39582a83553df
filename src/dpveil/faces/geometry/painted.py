"""Resampling between a photo and the frame in which a network completes a head."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

import numpy as np
from jaxtyping import Bool, Float32, Float64, Shaped, UInt8

from dpveil.core.region import Box
from dpveil.faces.geometry.align import BLUR, Frame, Similarity
from dpveil.faces.geometry.head_frame import OVAL, HeadFrame, between, bounds, outline, pixel_grid
from dpveil.faces.geometry.layout import BACKGROUND, HAIR, SKIN
from dpveil.noise.bits import SeededBits

BACK: Final = (0.5, 0.56, 0.0)
"""Where strands come from that are combed back: a point across and down, and half the width of the line on
which it lies, in units of the frame's side. Below the hair, so that they do not meet in it."""
PARTED: Final = (0.42, 0.10, 0.02)
"""The same for hair with a parting, at one side."""
FRINGE: Final = (0.5, 0.06, 0.05)
"""The same for hair that falls over the brow."""
LOW: Final = 0.30
"""Row of the hairline below which hair falls over the brow, in the same units."""
SIDES: Final = (0.48, 0.02)
"""Row of the ears, and how much of the rows below it is hair if it is long: it is not combed back."""
SWIRL: Final = 0.5
"""Largest turn of strands in radians, from their origin to a distance of half of the frame's side."""
WARP: Final = (0.02, 0.07)
"""Standard deviation by which strands are displaced across, and that of its blur, in units of the side."""
NEAR: Final = (0.03, 0.10)
"""Distances from the origin between which strands fade in."""
WIDE: Final = 1.3
"""Width of strands in pixels of the photo."""
LOCK: Final = 0.008
"""Width of locks of strands, in units of the frame's side."""
LOCKS: Final = 0.7
"""Contrast of locks relative to that of strands."""
COARSE: Final = 1.0
"""Pixels of the frame to a pixel of the photo from which on there are no strands."""
LONG: Final = 40.0
"""Length of strands relative to their width."""
STRIP: Final = (256, 1024)
"""Rows and columns of the pattern: along strands, and across."""
STRAND_BLUR: Final = (0.8, 2.0, 6.0)
"""Standard deviations of the blur of its noise across strands, in its pixels, of equal weights."""
STRONG: Final = (0.16, 18.0, 11.0)
"""Contrast of strands; what is added to levels before it is applied; its limit in levels."""
Levels = Float32[np.ndarray, "_ _ c"]
Plane = Float32[np.ndarray, "s s"]


@dataclass(frozen=True, eq=False)
class Combing:
    """How hair lies in a frame: distances `across` and `along` strands in units of its side, and how strong
    strands are, 0 to 1, at every pixel.
    """

    across: Plane
    along: Plane
    share: Plane

    @classmethod
    def of(cls, layout: Float32[np.ndarray, "4 s s"], number: int) -> Combing:
        """Return how the hair of a layout lies; `number` chooses among the ways that suit it."""
        side = layout.shape[-1]
        bits = SeededBits(number, "hair")
        u = bits.words(4).astype(np.float64) / 2.0**64
        x, y, line = _origin(layout, u[0])
        mirrored = -1.0 if u[1] < 0.5 else 1.0
        grid = (np.arange(side, dtype=np.float32) + np.float32(0.5)) / side
        right = (grid - 0.5)[None, :] * mirrored + 0.5 - x
        right = np.sign(right) * np.maximum(np.abs(right) - line, 0)
        down = (grid - y)[:, None]
        far = np.hypot(right, down)
        angle = np.arctan2(right, down if y < 0.3 else -down)
        turn = angle + SWIRL * (2 * u[2] - 1) * 2 * far
        across = turn * max(0.15, abs(y - 0.18)) + _smooth(bits, side)
        share = layout[HAIR] * np.clip((far - NEAR[0]) / (NEAR[1] - NEAR[0]), 0, 1)
        return cls(*(np.asarray(one, np.float32) for one in (across, far, share)))


def _origin(layout: Float32[np.ndarray, "4 s s"], drawn: float) -> tuple[float, float, float]:
    """Return where strands come from."""
    side = layout.shape[-1]
    skin = layout[SKIN, :, round(0.42 * side) : round(0.58 * side)].mean(axis=1) > 0.5
    if np.argmax(skin) > LOW * side:
        return FRINGE
    if drawn < 0.4 or layout[HAIR, round(SIDES[0] * side) :].mean() > SIDES[1]:
        return PARTED
    return BACK


def _smooth(bits: SeededBits, side: int) -> Plane:
    import cv2

    few = bits.words(32).view(np.uint8).reshape(16, 16).astype(np.float32)
    soft = cv2.GaussianBlur(few, (0, 0), 16 * WARP[1])
    wide = cv2.resize((soft - soft.mean()) / soft.std(), (side, side), interpolation=cv2.INTER_CUBIC)
    return np.asarray(WARP[0] * wide, np.float32)


def combed(
    levels: UInt8[np.ndarray, "h w 3"], hair: Combing, pose: Similarity, box: Box
) -> UInt8[np.ndarray, "h w 3"]:
    """Return the levels in a box of the photo with strands of hair.

    `pose` maps the photo to the frame of `hair`. Strands are stronger the finer the photo is than the frame;
    where it is `COARSE` there are none.
    """
    import cv2

    fine = min(1.0, 2 * (COARSE - pose.scale))
    if fine <= 0:
        return levels
    back = pose.inverse.matrix
    back[:, 2] -= box.x, box.y
    share = cv2.warpAffine(hair.share, back, (box.w, box.h), flags=cv2.INTER_LINEAR)
    x, y, w, h = cv2.boundingRect((share > 0).astype(np.uint8))
    if w * h == 0:
        return levels
    view = slice(y, y + h), slice(x, x + w)
    back[:, 2] -= x, y
    across, along = (
        np.asarray(cv2.warpAffine(one, back, (w, h), flags=cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE))
        for one in (hair.across, hair.along)
    )
    side = len(hair.share) / pose.scale
    pattern = _looked_up(across * side / WIDE, along * side / (WIDE * LONG))
    pattern = pattern + np.float32(LOCKS) * _looked_up(across / LOCK, along / (LOCK * LONG))
    part = levels[view].astype(np.float32) + np.float32(STRONG[1])
    light = part.mean(axis=2)
    change = pattern * share[view] * np.float32(fine) * np.minimum(STRONG[0], STRONG[2] / light)
    out = levels.copy()
    out[view] = np.clip(np.rint(levels[view] + change[..., None] * part), 0, 255)
    return out


def _looked_up(columns: Float32[np.ndarray, "h w"], rows: Float32[np.ndarray, "h w"]) -> np.ndarray:
    import cv2

    rows = rows * np.float32(8)
    strip = _strip()
    return np.asarray(cv2.remap(strip, columns, rows, cv2.INTER_LINEAR, borderMode=cv2.BORDER_WRAP))


@lru_cache(maxsize=1)
def _strip() -> Float32[np.ndarray, "256 1024"]:
    """Return the pattern, which continues at its edges, of standard deviation 0.7."""
    import cv2

    rows, columns = STRIP
    bits, total = SeededBits(1, "strands"), np.zeros(STRIP, np.float32)
    for width in STRAND_BLUR:
        noise = bits.words(rows * columns // 8).view(np.uint8).reshape(STRIP).astype(np.float32)
        wide = cv2.copyMakeBorder(noise, 64, 64, 64, 64, cv2.BORDER_WRAP)
        soft = cv2.GaussianBlur(wide, (0, 0), sigmaX=width, sigmaY=8.0)[64:-64, 64:-64]
        total += (soft - soft.mean()) / soft.std()
    return np.asarray(total / total.std() / math.sqrt(2), np.float32)


RIM: Final = 0.25
"""Width of the edge over which fine detail of a released face fades out, relative to the oval's half axes."""
HEALED: Final = (0.8, 2.0)
"""Width of the blend inside and outside the oval's edge, in pixels of the frame."""
BESIDE: Final = np.ones((3, 3), np.uint8)
"""Neighbourhood over which that detail ends at the outline of a turned face."""
GAIN: Final = (0.6, 1.4)
"""Limits of the gain by which fine detail is adapted to the light of the painted head."""
SLOPE: Final = 0.5
"""Slope of shoulders that go on beside the frame."""
PLAIN: Final = (0.92, 1.1)
"""Rows between which clothes pass into one colour, in units of the frame's side."""
Picture = Shaped[np.ndarray, "_ _ c"]


@dataclass(frozen=True, eq=False)
class Painted:
    """A head painted by a network: `levels` 0..255 in its frame, to which `pose` maps the photo.

    `face` is the released face in that frame, `crop` the same at full resolution in its own `frame`; `layout`
    are the shares of the classes of `layout`, and `shows` says where the network was given the face. Of one
    that was painted `alone`, without anything of the photo, only the person shows, and shoulders go on beyond
    the frame.
    """

    levels: Levels
    pose: Similarity
    face: Levels
    crop: UInt8[np.ndarray, "t t 3"]
    frame: Frame
    layout: Float32[np.ndarray, "4 s s"]
    shows: Bool[np.ndarray, "s s"]
    alone: bool = False
    number: int = 0

    def on(self, box: Box, channels: int) -> tuple[Float32[np.ndarray, "h w"], UInt8[np.ndarray, "h w c"]]:
        """Return alpha (0 to 1) and levels of the head, resampled to a box of the photo.

        If the photo has a higher resolution than the frame, fine detail of the released crop is added, and
        strands of hair.
        """
        import cv2

        side, levels, pose = len(self.levels), self.levels, self.pose
        ramp = np.clip(np.minimum(np.arange(side), np.arange(side)[::-1]) - np.float32(1), 0, 1)
        shown, beyond = np.minimum.outer(ramp, ramp), cv2.BORDER_CONSTANT
        if self.alone:
            corners = [[x, y] for x in (box.x, box.x + box.w) for y in (box.y, box.y + box.h)]
            ends = pose.to(np.array(corners, np.float64))
            left, right, below = _beyond(ends, side)
            levels, shown = sloping(levels, 1 - self.layout[BACKGROUND], left, right, below)
            pose, beyond = replace(pose, x=pose.x + left), cv2.BORDER_REPLICATE
        rounded = self._placed(_rounded(levels), pose, box)
        if self.pose.scale < 1 and (inner := self._oval(box)) is not None:
            view = rounded[inner.y - box.y :, inner.x - box.x :][: inner.h, : inner.w]
            view[...] = _rounded(self._placed(self.levels, self.pose, inner) + self._detail(inner))
        rounded = combed(rounded, Combing.of(self.layout, self.number), self.pose, box)
        if channels == 1:
            rounded = cv2.cvtColor(rounded, cv2.COLOR_RGB2GRAY)
        into, size = _into(pose, box), (box.w, box.h)
        shown = cv2.warpAffine(shown, into, size, flags=cv2.INTER_LINEAR, borderMode=beyond)
        return np.asarray(shown, np.float32), rounded.reshape(box.h, box.w, channels)

    def _oval(self, box: Box) -> Box | None:
        """Return the part of a box of the photo that holds the oval of the face, or None."""
        ends = self.pose.back(outline(OVAL) * len(self.levels) - 0.5) - (box.x, box.y)
        found = bounds(ends, box.w, box.h)
        return found and Box(found.x + box.x, found.y + box.y, found.w, found.h)

    def _detail(self, box: Box) -> Levels:
        """Return the crop's detail beyond the frame's resolution, with gain for the light of the head."""
        import cv2

        side = len(self.levels)
        x, y, a, b = OVAL
        grid = pixel_grid(side)
        far = np.hypot((grid[..., 0] - x) / a, (grid[..., 1] - y) / b)
        share = np.clip((1 - far) / RIM, 0, 1).astype(np.float32)
        share *= cv2.blur(cv2.erode(self.shows.astype(np.float32), BESIDE), BESIDE.shape)
        soft = cv2.GaussianBlur(np.dstack([self.levels.clip(0, 255), self.face]), (0, 0), side / 28)
        gain = share[..., None] * np.clip((soft[..., :3] + 8) / (soft[..., 3:] + 8), *GAIN)
        to_crop = between(self.pose, HeadFrame(side), self.frame)
        fine = self._placed(self.crop.astype(np.float32), to_crop, box)
        coarse = self._placed(self.face, self.pose, box)
        return np.asarray((fine - coarse) * self._placed(gain, self.pose, box), np.float32)

    def _placed(self, picture: Picture, pose: Similarity, box: Box) -> Picture:
        """Return a picture in the frame to which `pose` maps the photo, resampled to a box of the photo."""
        import cv2

        if pose.scale > 1:
            picture = cv2.GaussianBlur(picture, (0, 0), BLUR * math.sqrt(pose.scale**2 - 1))
        mode = cv2.INTER_LINEAR if pose.scale > 1 else cv2.INTER_CUBIC
        matrix, size = _into(pose, box), (box.w, box.h)
        placed = cv2.warpAffine(picture, matrix, size, flags=mode, borderMode=cv2.BORDER_REPLICATE)
        return np.asarray(placed)


def _beyond(ends: Float64[np.ndarray, "4 2"], side: int) -> tuple[int, int, int]:
    """Return how many pixels a box with these corners reaches beyond a frame to the left, to the right and
    below, but at most its side.
    """
    (left, _), (right, bottom) = ends.min(axis=0), ends.max(axis=0)
    return tuple(math.ceil(min(max(0.0, one), side)) for one in (-left, right - side + 1, bottom - side + 1))


def sloping(
    levels: Levels, shown: Float32[np.ndarray, "s s"], left: int, right: int, below: int
) -> tuple[Levels, Float32[np.ndarray, "_ _"]]:
    """Return levels and alpha of a larger frame, in which a person goes on below, and beside in shoulders
    that slope. Further down clothes have one colour, so that there are no stripes.
    """
    side = len(levels)
    at = np.arange(-left, side + right)
    beside = np.maximum(np.maximum(-at, at - side + 1), 0)
    rows = np.rint(np.arange(side + below)[:, None] - SLOPE * beside).astype(np.intp)
    columns, last = at.clip(0, side - 1), rows.clip(0, side - 1)
    share = np.clip((rows / side - PLAIN[0]) / (PLAIN[1] - PLAIN[0]), 0, 1).astype(np.float32)[..., None]
    worn = np.average(levels[-1], axis=0, weights=shown[-1] + np.float32(1e-6)).astype(np.float32)
    out = levels[last, columns]
    out += share * (worn - out)
    return out, shown[last, columns]


def _rounded(levels: Levels) -> UInt8[np.ndarray, "_ _ c"]:
    whole: UInt8[np.ndarray, "_ _ c"] = np.clip(np.rint(levels), 0, 255).astype(np.uint8)
    return whole


def healed(levels: Levels, grid: np.ndarray) -> Levels:
    """Return painted levels blended across the oval's edge, where networks leave a visible line."""
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
    """Return the affine matrix from a frame to a box of the photo."""
    matrix: np.ndarray = pose.inverse.matrix
    matrix[:, 2] -= box.x, box.y
    return matrix


def seen(
    outside: UInt8[np.ndarray, "H W k"], hidden: Bool[np.ndarray, "H W"], pose: Similarity, side: int
) -> tuple[Levels, Bool[np.ndarray, "s s"]]:
    """Return the photo outside the regions resampled to a frame, and which pixels of the frame are known.

    The photo is mirrored at its edges.
    """
    import cv2

    corners = pose.back(np.array([[-0.5, -0.5], [side, -0.5], [side, side], [-0.5, side]]))
    more = 4 + math.ceil(4 / pose.scale)
    (left, top), (right, bottom) = corners.min(axis=0), corners.max(axis=0)
    height, width = hidden.shape
    rows = _within(math.floor(top) - more, math.ceil(bottom) + more, height)
    columns = _within(math.floor(left) - more, math.ceil(right) + more, width)
    known = np.where(hidden[rows, columns], np.uint8(0), np.uint8(255))
    levels = cv2.copyTo(outside[rows, columns], known).reshape(*known.shape, -1)
    both = np.dstack([np.broadcast_to(levels, (*known.shape, 3)), known])
    moved = pose.to(np.array([[columns.start, rows.start]], np.float64))[0]
    there = shrunk(both, Similarity(pose.scale, pose.angle, float(moved[0]), float(moved[1])), side)
    return there[..., :3].astype(np.float32), there[..., 3] == 255


def _within(start: int, end: int, size: int) -> slice:
    """Return the part of 0 to `size` between two ends, at least one: frames may lie wholly beyond a photo."""
    first = max(0, min(start, size - 1))
    return slice(first, max(first + 1, min(end, size)))


def shrunk(picture: Picture, pose: Similarity, side: int) -> Picture:
    """Return a picture resampled to the frame to which `pose` maps it, with anti-aliasing."""
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
    return np.asarray(out)
