"""Heads of one frame: moved, lit, and passed into what is around them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Float32, UInt8

from dpveil.core.region import Box, Region
from dpveil.faces.geometry.align import Similarity
from dpveil.faces.geometry.head_frame import SIDE
from dpveil.faces.geometry.seam import FINE_SEAM, WINDOW, change_at
from dpveil.faces.geometry.seam import SIDE as COMPARED
from dpveil.video.layer import Layer
from dpveil.video.light import lit
from dpveil.video.surroundings import Surroundings, enlarged, halvings_to, in_smaller, put, within

FILLED: Final = 64
"""Longer side of what is filled, in pixels of the smaller frame, about."""
MORE: Final = 16
"""Pixels around it there that are read."""
SURE: Final = 24
"""Share of a small pixel, of 255, that must be known for it to count."""
LEAST: Final = 4
"""Least side of a picture that is halved again."""
ROUNDS: Final = 6
"""Sweeps by which the continuation is smoothed at each size."""
GREY: Final = 128
"""What is shown where nothing around is known."""

Levels = Float32[np.ndarray, "h w 3"]


def room_of(boxes: Sequence[Box]) -> Box:
    """Return the bounding box of boxes."""
    left, top = min(box.x for box in boxes), min(box.y for box in boxes)
    right, bottom = max(box.x + box.w for box in boxes), max(box.y + box.h for box in boxes)
    return Box(left, top, right - left, bottom - top)


def behind(around: Surroundings, room: Box) -> UInt8[np.ndarray, "h w 3"]:
    """Return a part of a frame as a smooth continuation of what is known around it."""
    halvings = halvings_to(max(room.w, room.h), FILLED)
    part = within(room, halvings, MORE, around.smaller(halvings)[1].shape)
    mean, known = around.mean(halvings, part)
    if not (known > SURE).any():
        return np.full((room.h, room.w, 3), GREY, np.uint8)
    share = np.where(known > SURE, known, 0).astype(np.float32) / np.float32(255)
    small = np.clip(np.rint(_continued(mean, share)), 0, 255).astype(np.uint8)
    return enlarged(small, part, halvings, room)


def _continued(levels: Levels, share: Float32[np.ndarray, "h w"]) -> Levels:
    """Return levels where their `share` is 1, and a nearly harmonic continuation elsewhere (multigrid)."""
    import cv2

    if min(share.shape) < LEAST:
        mean = (levels * share[..., None]).sum(axis=(0, 1)) / max(float(share.sum()), 1e-6)
        return np.asarray(np.broadcast_to(mean, levels.shape), np.float32)
    sums, part = cv2.pyrDown(levels * share[..., None]), cv2.pyrDown(share)
    coarse = _continued(sums / np.maximum(part, 1e-6)[..., None], np.minimum(4 * part, 1))
    smooth = cv2.pyrUp(coarse, dstsize=share.shape[::-1])
    shares = cv2.merge([share] * 3)  # numpy takes longer where it repeats values over channels
    fixed, free = shares * levels, 1 - shares
    for _ in range(ROUNDS):
        smooth = cv2.blur(fixed + free * smooth, (3, 3), borderType=cv2.BORDER_REPLICATE)
    return np.asarray(fixed + free * smooth, np.float32)


HALF: Final = 127
"""Alpha above which a pixel of a head is compared with what is seen beside it."""

Image = UInt8[np.ndarray, "h w 3"]


@dataclass(frozen=True, eq=False)
class Shown:
    """A head in one frame: its `region`, and where it is by a map to a frame with a side of 1.

    `layers` are shown with their shares, which add up to 1, each in a `light` of its own, the logarithm of a
    factor. `inner` is a face whose head stays.
    """

    region: Region
    head: Similarity
    layers: Sequence[tuple[Layer, float, float]]
    inner: bool = False

    @property
    def unit(self) -> float:
        """The side of UTKFace's crop, in pixels of the frame."""
        return 1 / self.head.scale / SIDE

    def on(self, box: Box, head: Similarity) -> tuple[Image, UInt8[np.ndarray, "h w"]]:
        """Return levels and alpha in a box of a frame that `head` maps to one with a side of 1."""
        import cv2

        found = []
        for layer, share, light in self.layers:
            picture = layer.on(head, box)
            levels = lit(np.asarray(cv2.cvtColor(picture, cv2.COLOR_RGBA2RGB)), light)
            found.append((levels, np.asarray(cv2.extractChannel(picture, 3)), share))
        levels, alpha, share = found[0]
        for other, cover, more in found[1:]:
            weights = (
                np.float32(part) * (one.astype(np.float32) + 1)
                for one, part in ((alpha, share), (cover, more))
            )
            levels = np.asarray(cv2.blendLinear(levels, other, *weights))
            alpha = np.asarray(cv2.addWeighted(alpha, share, cover, more, 0))
        return levels, alpha


def show(out: Image, around: Surroundings, group: Sequence[Shown]) -> None:
    """Write heads whose regions overlap over an image, in order, before one background."""
    import cv2

    room = room_of([shown.region.box for shown in group])
    filled = behind(around, room)
    for shown in group:
        box = shown.region.box
        rows, columns = (
            slice(box.y - room.y, box.y - room.y + box.h),
            slice(box.x - room.x, box.x - room.x + box.w),
        )
        own = np.ascontiguousarray(filled[rows, columns])
        levels, alpha = shown.on(box, shown.head)
        levels = _met(levels, shown, around)
        share = _faded(alpha, shown, around.hidden.shape)
        filled[rows, columns] = cv2.blendLinear(levels, own, share, 1 - share)
    for shown in group:
        box = shown.region.box
        put(out, shown.region, filled[box.y - room.y :, box.x - room.x :][: box.h, : box.w])


def _met(levels: Image, shown: Shown, around: Surroundings) -> Image:
    """Return levels shifted near the region's edge to those that are seen beside the head there."""
    import cv2

    halvings, box = halvings_to(shown.unit, COMPARED), shown.region.box
    part = within(box, halvings, WINDOW, around.smaller(halvings)[1].shape)
    light, known = around.mean(halvings, part)
    own, alpha = shown.on(part, in_smaller(shown.head, halvings))
    hole = (known == 0) & (alpha > HALF)
    unit = shown.unit / 2**halvings
    change = change_at(light, own.astype(np.float32), known == 255, hole, unit, skin=shown.inner)
    if change is None:
        return levels
    large = enlarged(np.asarray(change, np.float32), part, halvings, box)
    return np.asarray(cv2.add(levels, large, dtype=cv2.CV_8U))


def _faded(
    alpha: UInt8[np.ndarray, "h w"], shown: Shown, photo: tuple[int, int]
) -> Float32[np.ndarray, "h w"]:
    """Return alpha, 0 to 1, that falls to 0 towards the region's edge, but not towards the picture's."""
    import cv2

    box, mask = shown.region.box, shown.region.mask
    inside = np.full((box.h, box.w), 255, np.uint8) if mask is None else mask.view(np.uint8) * np.uint8(255)
    reach = max(1, round(FINE_SEAM * shown.unit / 2)) * 2
    sides = box.y, photo[0] - box.y - box.h, box.x, photo[1] - box.x - box.w
    wide = cv2.copyMakeBorder(inside, reach, reach, reach, reach, cv2.BORDER_REPLICATE)
    ends = [slice(None, reach), slice(reach + box.h, None), slice(None, reach), slice(reach + box.w, None)]
    for number, (left, end) in enumerate(zip(sides, ends, strict=True)):
        if left:
            wide[(end, slice(None)) if number < 2 else (slice(None), end)] = 0
    soft = cv2.blur(wide, (reach + 1, reach + 1))[reach:-reach, reach:-reach]
    table = np.clip((np.arange(256) - 127.5) / 127.5, 0, 1).astype(np.float32)
    near = cv2.LUT(np.ascontiguousarray(soft), table)
    return np.asarray(cv2.multiply(alpha, near, scale=1 / 255, dtype=cv2.CV_32F))
