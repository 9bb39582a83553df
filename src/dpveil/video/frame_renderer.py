"""Frames of a clip with what was drawn instead of what is replaced, passed into what is around it."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from dpveil.core.array_types import Float32, UInt8
from dpveil.core.region import Box, Region, hidden_pixels
from dpveil.faces.geometry.align import Similarity
from dpveil.faces.geometry.head_frame import FRAME_SIDE
from dpveil.faces.geometry.protection import PROTECT_FACE
from dpveil.faces.geometry.seam import COMPARED_SIDE, SEAM, WINDOW, continued_from_edge, shift_levels
from dpveil.opencv import cv2
from dpveil.video.facts import LOST, Frame, Track
from dpveil.video.places import ReplacedPlace, Scene
from dpveil.video.track_draws import LIGHT_SECONDS, Drawn, Layer, Light, light_change, relight
from dpveil.video.words import followed_span

MOST_HALVINGS: Final = 4  # 16 pixels become one
Image = UInt8[np.ndarray, "h w 3"]


class Surroundings:
    """A frame with 0 under what is replaced, and which pixels these are: all that heads are lit by."""

    def __init__(self, image: Image, regions: Sequence[Region]) -> None:
        self.levels = image.copy()
        self.hidden = hidden_pixels(regions, *image.shape[:2])
        for region in regions:
            paste(self.levels, region, np.zeros((region.box.h, region.box.w, 3), np.uint8))
        known = np.where(self.hidden, np.uint8(0), np.uint8(255))
        self._smaller: list[tuple[Image, UInt8[np.ndarray, "h w"]]] = [(self.levels, known)]

    def smaller(self, halvings: int) -> tuple[Image, UInt8[np.ndarray, "_ _"]]:
        """Return the frame halved so often, still times the share that is known, and that share, 0 to 255."""
        while len(self._smaller) <= halvings:
            levels, known = self._smaller[-1]
            height, width = (max(1, length // 2) for length in known.shape)
            cut = slice(0, 2 * height), slice(0, 2 * width)
            self._smaller.append(
                tuple(  # type: ignore[arg-type]
                    np.asarray(cv2.resize(one[cut], (width, height), interpolation=cv2.INTER_AREA))
                    for one in (levels, known)
                )
            )
        return self._smaller[halvings]

    def mean(self, halvings: int, part: Box) -> tuple[Float32[np.ndarray, "h w 3"], UInt8[np.ndarray, "h w"]]:
        """Return the mean of what is known in a part of the smaller frame, and the share that is."""
        levels, known = (one[part.slices] for one in self.smaller(halvings))
        share = np.maximum(known.astype(np.float32), np.float32(1)) / np.float32(255)
        return np.asarray(levels / share[..., None], np.float32), known


def paste(image: Image, region: Region, levels: Image) -> None:
    """Write levels of a region's box over its pixels of an image, as `Region.paste`, in less time."""
    view = image[region.box.slices]
    if region.mask is None:
        view[...] = levels
    else:
        cv2.copyTo(levels, region.mask.view(np.uint8), view)


def halvings_to(length: float, wanted: float) -> int:
    """Return how often a length has to be halved to come near to another one."""
    return max(0, min(MOST_HALVINGS, round(math.log2(max(1.0, length / wanted)))))


def downscaled_box(box: Box, halvings: int, more: int, shape: tuple[int, int]) -> Box:
    """Return a box of a frame in pixels of the smaller one, with `more` around it, clipped to its shape."""
    times, (height, width) = 2**halvings, shape
    left, top = max(0, box.x // times - more), max(0, box.y // times - more)
    right = min(width, -(-(box.x + box.w) // times) + more)
    bottom = min(height, -(-(box.y + box.h) // times) + more)
    left, top = min(left, width - 1), min(top, height - 1)
    return Box(left, top, max(1, right - left), max(1, bottom - top))


def enlarge(small: np.ndarray, part: Box, halvings: int, box: Box) -> np.ndarray:
    """Return a picture of a part of the smaller frame, resampled to a box of the frame."""
    times, zero = 2**halvings, 0.5 - 2**halvings / 2
    x, y = ((at + zero) / times - start for at, start in ((box.x, part.x), (box.y, part.y)))
    matrix = np.array([[1 / times, 0, x], [0, 1 / times, y]])
    mode = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
    return np.asarray(
        cv2.warpAffine(small, matrix, (box.w, box.h), flags=mode, borderMode=cv2.BORDER_REPLICATE)
    )


FILLED_SIDE: Final = 64  # longer side of what is filled, in pixels of the smaller frame, about
READ_AROUND: Final = 16  # pixels around it there that are read
SURE: Final = 24  # share of a small pixel, of 255, that must be known for it to count
LEAST_SIDE: Final = 4  # of a picture that is halved again, in pixels
ROUNDS: Final = 6  # sweeps by which the continuation is smoothed at each size
GREY: Final = 128  # what is shown where nothing around is known
Levels = Float32[np.ndarray, "h w 3"]


def continue_background(around: Surroundings, room: Box) -> UInt8[np.ndarray, "h w 3"]:
    """Return a part of a frame as a smooth continuation of what is known around it."""
    halvings = halvings_to(max(room.w, room.h), FILLED_SIDE)
    part = downscaled_box(room, halvings, READ_AROUND, around.smaller(halvings)[1].shape)
    mean, known = around.mean(halvings, part)
    if not (known > SURE).any():
        return np.full((room.h, room.w, 3), GREY, np.uint8)
    share = np.where(known > SURE, known, 0).astype(np.float32) / np.float32(255)
    small = np.clip(np.rint(_continue_levels(mean, share)), 0, 255).astype(np.uint8)
    return enlarge(small, part, halvings, room)


def _continue_levels(levels: Levels, share: Float32[np.ndarray, "h w"]) -> Levels:
    """Return levels where their `share` is 1, and a nearly harmonic continuation elsewhere (multigrid)."""
    if min(share.shape) < LEAST_SIDE:
        mean = (levels * share[..., None]).sum(axis=(0, 1)) / max(float(share.sum()), 1e-6)
        return np.asarray(np.broadcast_to(mean, levels.shape), np.float32)
    sums, part = cv2.pyrDown(levels * share[..., None]), cv2.pyrDown(share)
    coarse = _continue_levels(sums / np.maximum(part, 1e-6)[..., None], np.minimum(4 * part, 1))
    smooth = cv2.pyrUp(coarse, dstsize=share.shape[::-1])
    shares = cv2.merge([share] * 3)  # numpy takes longer where it repeats values over channels
    fixed, free = shares * levels, 1 - shares
    for _ in range(ROUNDS):
        smooth = cv2.blur(fixed + free * smooth, (3, 3), borderType=cv2.BORDER_REPLICATE)
    return np.asarray(fixed + free * smooth, np.float32)


SHOWN_ALPHA: Final = 127  # alpha above which a pixel of a head is compared with what is seen beside it


@dataclass(frozen=True, eq=False)
class Shown:
    """A head in one frame: its `region`, and where it is by a map to a frame with a side of 1.

    `layers` are shown with their shares, which add up to 1, each in a `light` of its own, the logarithm of a
    factor. `inner` is a face whose head stays. `presence`, 0 to 1, is how much of it is shown before what is
    continued from around.
    """

    region: Region
    head: Similarity
    layers: Sequence[tuple[Layer, float, float]]
    inner: bool = False
    presence: float = 1.0

    @property
    def unit(self) -> float:
        """The side of UTKFace's crop, in pixels of the frame."""
        return 1 / self.head.scale / FRAME_SIDE

    def on(self, box: Box, head: Similarity) -> tuple[Image, UInt8[np.ndarray, "h w"]]:
        """Return levels and alpha in a box of a frame that `head` maps to one with a side of 1."""
        found = []
        for layer, share, light in self.layers:
            picture = layer.on(head, box)
            levels = relight(np.asarray(cv2.cvtColor(picture, cv2.COLOR_RGBA2RGB)), light)
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
    boxes = [shown.region.box for shown in group]
    left, top = min(box.x for box in boxes), min(box.y for box in boxes)
    right, bottom = max(box.x + box.w for box in boxes), max(box.y + box.h for box in boxes)
    room = Box(left, top, right - left, bottom - top)
    filled = continue_background(around, room)
    for shown in group:
        box = shown.region.box
        part = filled[box.y - top :, box.x - left :][: box.h, : box.w]
        levels, alpha = shown.on(box, shown.head)
        levels = _meet_surroundings(levels, shown, around)
        share = _fade_edge(alpha, shown, around.hidden.shape) * np.float32(shown.presence)
        part[...] = cv2.blendLinear(levels, np.ascontiguousarray(part), share, 1 - share)
    if all(shown.inner for shown in group):
        filled = continued_from_edge(filled, room, around.levels, around.hidden, group[-1].unit)
    for shown in group:
        box = shown.region.box
        paste(out, shown.region, filled[box.y - top :, box.x - left :][: box.h, : box.w])


def _meet_surroundings(levels: Image, shown: Shown, around: Surroundings) -> Image:
    """Return levels shifted near the region's edge to those that are seen beside the head there."""
    halvings, box = halvings_to(shown.unit, COMPARED_SIDE), shown.region.box
    part = downscaled_box(box, halvings, WINDOW, around.smaller(halvings)[1].shape)
    light, known = around.mean(halvings, part)
    head, times = shown.head, 2**halvings
    zero = head.to(np.full((1, 2), (times - 1) / 2))[0]
    # the map to the head's frame, from the smaller frame
    smaller = Similarity(head.scale * times, head.angle, float(zero[0]), float(zero[1]))
    own, alpha = shown.on(part, smaller)
    hole = (known == 0) & (alpha > SHOWN_ALPHA)
    unit = shown.unit / times
    small = light, own.astype(np.float32), known == 255, hole, unit
    return shift_levels(levels, lambda by: enlarge(by, part, halvings, box), *small, alike=shown.inner)


def _fade_edge(
    alpha: UInt8[np.ndarray, "h w"], shown: Shown, photo: tuple[int, int]
) -> Float32[np.ndarray, "h w"]:
    """Return alpha, 0 to 1, that falls to 0 towards the region's edge, but not towards the picture's."""
    box, mask = shown.region.box, shown.region.mask
    inside = np.full((box.h, box.w), 255, np.uint8) if mask is None else mask.view(np.uint8) * np.uint8(255)
    reach = max(1, round(SEAM * shown.unit / 2)) * 2
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


class Renderer:
    """Replaces the regions of frames, which come one after the other, by what was drawn and painted.

    `draws` are what is shown of tracks, by their numbers, and `layers` the heads of faces (`paint`): each is
    read from there when it is shown, and held as long as its track is present. A frame that is returned is a
    function of its pixels outside what is replaced, those of the frames in `LIGHT_SECONDS` before it, the
    cells of keys, `draws` and `layers`.
    """

    def __init__(
        self,
        scene: Scene,
        draws: Mapping[int, Drawn],
        layers: Mapping[int, Mapping[int | None, Layer]],
    ) -> None:
        self.scene, self.draws, self.layers = scene, draws, layers
        self._memory = max(1, math.ceil(LIGHT_SECONDS * scene.rate))
        self._lights: dict[int, deque[Light]] = {}
        self._held: dict[int, dict[int | None, Layer]] = {}

    def frame(self, frame: Frame) -> Image:
        """Return the next frame with all regions replaced; the given one stays as it is.

        Objects are replaced first, and heads over them, the smallest first. Nothing private is read.
        """
        spots = self.scene.spots(frame.index)
        around = Surroundings(frame.image, [spot.region for spot in spots if spot.region is not None])
        present = {spot.track.number for spot in spots}
        self._lights = {number: seen for number, seen in self._lights.items() if number in present}
        self._held = {number: held for number, held in self._held.items() if number in present}
        out = around.levels.copy() if spots else around.levels
        heads = []
        for spot in spots:
            if spot.head is not None:  # its light counts also where nothing of it lies in the picture
                seen = self._lights.setdefault(spot.track.number, deque(maxlen=self._memory))
                seen.append(Light.measure(around.levels, around.hidden, spot.head))
            if spot.region is None:
                continue
            box, raster = spot.region.box, self.draws[spot.track.number].raster
            if spot.head is not None:
                heads.append(self._place_head(spot, spot.region, spot.head, frame.index))
            elif raster is not None:
                if raster.shape[:2] != (box.h, box.w):  # resampled to its size: post-processing
                    fewer = box.w * box.h < raster.shape[0] * raster.shape[1]
                    mode = cv2.INTER_AREA if fewer else cv2.INTER_LINEAR
                    raster = np.asarray(cv2.resize(raster, (box.w, box.h), interpolation=mode))
                spot.region.paste(out, raster.reshape(box.h, box.w, 3))
        for group in _groups(heads):
            show(out, around, group)
        return out

    def _place_head(self, spot: ReplacedPlace, region: Region, head: Similarity, index: int) -> Shown:
        number = spot.track.number
        course, stored = self.scene.course(spot.track), self.layers[number]
        faces = [(None, 1.0)] if None in stored else course.faces(index, self.scene.fade)
        layers = self._held.setdefault(number, {})
        layers.update({yaw: replace(stored[yaw]) for yaw, _ in faces if yaw not in layers})
        lights = self._lights[number]
        shown = []
        for yaw, share in faces:
            changes = [light_change(layers[yaw].light, light) for light in lights]
            shown.append((layers[yaw], share, sum(changes) / len(changes)))
        presence = _presence(spot.track, index, self.scene.fade)
        return Shown(region, head, shown, course.protect == PROTECT_FACE, presence)


def _presence(track: Track, index: int, fade: float) -> float:
    """Return how much of a head is shown: where somebody is lost, it is gone after `fade` frames.

    His last place is replaced on, and a face without anybody would look out of it.
    """
    last = followed_span(track)[1]
    return 1.0 if track.end != LOST else min(1.0, max(0.0, 1 - (index - last) / fade))


def _groups(heads: Sequence[Shown]) -> list[list[Shown]]:
    """Return heads in groups whose boxes overlap; each from the smallest to the largest, then downwards."""
    groups: list[list[Shown]] = []
    for shown in heads:
        near = [g for g in groups if any(shown.region.box.overlaps(other.region.box) for other in g)]
        joined = [shown, *(other for g in near for other in g)]
        groups = [g for g in groups if g not in near] + [joined]
    return [sorted(group, key=lambda one: (one.unit, one.region.box.y)) for group in groups]
