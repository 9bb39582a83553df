"""The light in which an inner face is shown: that of the skin at the rim of its region.

Everything is a function of the pixels outside all regions, and of released pixels. Where there is a network
for it, it has the last word: what is harmonic between pixels of the rim cannot tell shade from hair.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dpveil.core.array_types import Float32, UInt8
from dpveil.core.region import Box, Region
from dpveil.faces.geometry.align import Similarity
from dpveil.faces.geometry.fill import fill
from dpveil.faces.geometry.head_frame import HeadFrame, between
from dpveil.faces.geometry.head_picture import UNIT_FRAME, View, seen, through
from dpveil.faces.geometry.membrane import DARK, TINT, continue_skin, levels_of, rim_gain, skin_weights
from dpveil.faces.geometry.surroundings_seen import Around
from dpveil.faces.geometry.tone import patch_of
from dpveil.opencv import cv2

FRAME: Final = HeadFrame(64)  # the frame in which light is corrected
FINE: Final = HeadFrame(176)  # the frame in which the network for light sees a face
CROP: Final = Box(24, 24, 128, 128)  # the part of it that the network sees
RIM: Final = 2  # width of the rim of a region, in pixels of that frame
CHIN: Final = 0.6  # row of the frame from which on a rim shows chin and jaws, which hair hardly covers
BROW: Final = 0.3  # how likely a pixel of the rim above it is to be skin, beside one below
BAND: Final = 0.04
"""Width of the band within a region's edge in which skin goes on from there, in sides of the frame: a face of
another shape would show its own outline there."""
FALL: Final = 0.7  # share of the fall of light across the rim that a face gets
MEAN: Final = 0.5
"""Share of the mean gain that would meet the rim: the rest is decided by the tone that is expected."""
JAW: Final = 0.08
"""How much darker a rim is than the skin that goes on to it, as a logarithm: jaws turn from the light."""
SHOULDER: Final = 190.0  # level from which on lightness is compressed
if TYPE_CHECKING:
    from dpveil.faces.surroundings_network import SurroundingsNetwork
Levels = Float32[np.ndarray, "_ _ 3"]
Share = Float32[np.ndarray, "_ _"]


@dataclass(frozen=True, eq=False)
class Light:
    """How a face is corrected: levels + `DARK` times `gain`. `skin` says how much skin the nearest rim shows,
    0 to 1. `face` is the share of each pixel that shows the face, and `beside` the levels of the rest: None
    where no network says them. `pose` maps a head's frame with a side of 1 to the pixels of all four.
    """

    pose: Similarity
    gain: Levels
    skin: Share
    face: Share | None = None
    beside: Levels | None = None

    def on(self, place: Similarity, box: Box) -> Light:
        """Return the same in a box of the photo that `place` maps to a head's frame with a side of 1."""
        matrix = through(place, self.pose).inverse.matrix
        matrix[:, 2] -= box.x, box.y
        mode, edge = cv2.INTER_LINEAR, cv2.BORDER_REPLICATE

        def moved(plane: np.ndarray | None) -> Any:
            if plane is None:
                return None
            return cv2.warpAffine(plane, matrix, (box.w, box.h), flags=mode, borderMode=edge)

        return Light(UNIT_FRAME, *(moved(one) for one in (self.gain, self.skin, self.face, self.beside)))

    def lit(self, levels: Levels) -> Levels:
        """Return levels with the gain, 0 to 255."""
        lit = (levels + np.float32(DARK)) * self.gain - np.float32(DARK)
        return np.asarray(np.clip(lit, 0, 255), np.float32)


def light_of(
    view: View,
    region: Region,
    around: Around,
    network: SurroundingsNetwork | None = None,
) -> Light:
    """Return the light of a released face in its region.

    Only what is `around` it has influence.
    """
    side, there = FRAME.size, between(around.place, HeadFrame(1), FRAME)
    pose = between(UNIT_FRAME, HeadFrame(1), FRAME)
    outside, known = seen(around.outside, around.hidden, there, side)
    wide = np.ones((2 * RIM + 1, 2 * RIM + 1), np.uint8)
    inside = (cv2.dilate(_mask(region, there, side), wide) > 0) & ~known
    rim = (cv2.dilate(inside.astype(np.uint8), wide) > 0) & known
    if not rim.any():
        return Light(pose, np.ones((side, side, 3), np.float32), np.zeros((side, side), np.float32))
    rows, columns = (np.flatnonzero((inside | rim).any(axis=axis)).tolist() for axis in (1, 0))
    near = Box(columns[0], rows[0], columns[-1] + 1 - columns[0], rows[-1] + 1 - rows[0])
    face, shares = view.framed(side, "face", skin=True, near=near)
    sure = np.where(np.argwhere(rim)[:, 0] > CHIN * side, 1.0, BROW)
    weights = skin_weights(outside[rim], sure, grey=around.grey)
    toned = _toned(face, around)
    gain = rim_gain(inside, rim, toned, outside, weights)
    middle = gain[inside].mean(axis=0)
    toned = compress_light(toned, np.exp(FALL * (gain - middle) + MEAN * (middle + JAW)))
    levels, skin = continue_skin(inside, rim, shares[..., 0] > 0.5, toned, outside, weights, BAND * side)
    light = Light(pose, (levels + DARK) / (face + np.float32(DARK)), skin)
    return light if network is None else _by_network(light, view, region, around, network)


def _by_network(
    light: Light, view: View, region: Region, around: Around, network: SurroundingsNetwork
) -> Light:
    """Return a light as a network improves it, from what is around the face and the face in that light."""
    fine = between(around.place, HeadFrame(1), FINE)
    fine = replace(fine, x=fine.x - CROP.x, y=fine.y - CROP.y)
    outside, known = seen(around.outside, around.hidden, fine, CROP.w)
    place = between(UNIT_FRAME, FINE, HeadFrame(1))
    face, shares = view.on(place, CROP, "face", skin=True)
    here = light.on(place, CROP)
    seen_there = known.astype(np.uint8)
    clean = cv2.copyTo(np.rint(outside).astype(np.uint8), seen_there)
    whole = cv2.copyTo(clean, seen_there, fill(clean, ~known))
    photo, lit, filled = (cv2.split(one / np.float32(127.5) - 1) for one in (outside, here.lit(face), whole))
    shown = [*lit, 2 * shares[..., 0] - 1, 2 * here.skin - 1, *filled]
    planes = [*(plane * known for plane in photo), known, _mask(region, fine, CROP.w), *shown]
    more, share, beside = network.light(np.array(planes, np.float32).transpose(1, 2, 0))
    pose = replace(place.inverse, x=place.inverse.x - CROP.x, y=place.inverse.y - CROP.y)
    return Light(pose, here.gain * np.exp(more), here.skin, share, beside)


def _toned(face: Levels, around: Around) -> Levels:
    """Return a face in `FRAME` whose cheeks and nose have the colour that is expected there."""
    if around.cheeks is None:
        return face
    patch = face[patch_of(FRAME)]
    goal = np.log(levels_of(around.cheeks) + DARK)
    gain = np.zeros(3)
    for _ in range(2):  # light that is compressed answers less
        missed = goal - np.log(compress_light(patch, np.exp(gain)).mean(axis=(0, 1)) + DARK)
        gain += missed.mean() + np.clip(missed - missed.mean(), -TINT, TINT)
    return compress_light(face, np.exp(gain))


def compress_light(levels: Levels, gain: np.ndarray) -> Levels:
    """Return levels with a gain, 0 to 255; the lightest are compressed, so that no face glares."""
    lit = np.clip((levels + np.float32(DARK)) * gain.astype(np.float32) - np.float32(DARK), 0, None)
    room = np.float32(255 - SHOULDER)
    over = SHOULDER + room * (1 - np.exp(-np.maximum(lit - SHOULDER, 0) / room))
    return np.asarray(np.where(lit > SHOULDER, over, lit), np.float32)


def _mask(region: Region, place: Similarity, side: int) -> UInt8[np.ndarray, "s s"]:
    """Return the region's pixels in a frame with a side of `side` pixels, to which `place` maps the photo."""
    box = region.box
    mask = np.ones((box.h, box.w), np.uint8) if region.mask is None else region.mask.astype(np.uint8)
    matrix = place.matrix
    matrix[:, 2] = place.to(np.array([[box.x, box.y]], np.float64))[0]
    return np.asarray(cv2.warpAffine(mask, matrix, (side, side), flags=cv2.INTER_NEAREST))
