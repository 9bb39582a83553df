"""Tone: how light the skin of a face is in a photo, its five classes, and faces brought to a tone."""

from __future__ import annotations

from typing import Final

import numpy as np

from dpveil.core.array_types import Float32, Float64, Int64, Shaped, UInt8
from dpveil.faces.geometry.align import Frame
from dpveil.faces.geometry.head_frame import AnyFrame
from dpveil.opencv import cv2

SKIN: Final = ((0.30, 0.455), (0.70, 0.70))
"""Upper left and lower right corner of the cheeks and the nose, whose mean is the tone, in units of UTKFace's
crop."""
CROP: Final = Frame(128)  # the frame of crops whose tone is read
CUTS: Final = (65.0, 59.0, 54.0, 48.0)
"""CIE L* between the classes, from the lightest to the darkest: quintiles of 1200 photos of LFW, rounded."""
LEVELS: Final = (70.0, 62.0, 56.5, 51.0, 43.0)
"""CIE L* to which a face of each class is brought: the means of the classes in the same photos, rounded."""
GAMMAS: Final = (-1.6, 1.6)  # logarithms of the least and the largest exponent of a curve that changes a tone
HALVINGS: Final = 16  # steps of the search for the exponent
LUMINANCE: Final = np.array([0.2126, 0.7152, 0.0722])
"""Weights of linear red, green and blue in luminance (ITU-R BT.709)."""
Picture = Shaped[np.ndarray, "h w 3"]
Levels = Float32[np.ndarray, "h w 3"]


def _linear(levels: Shaped[np.ndarray, "*n"]) -> Float64[np.ndarray, "*n"]:
    """Return sRGB levels, 0 to 255, in linear light, 0 to 1 (IEC 61966-2-1)."""
    parts = levels.astype(np.float64) / 255
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)


LINEAR: Final = _linear(np.arange(256))  # linear light of every 8-bit level


def tones(crops: UInt8[np.ndarray, "n 128 128 3"]) -> Int64[np.ndarray, " n"]:
    """Return the class of every crop, from 0, the lightest, to 4; light and skin count together.

    Reads the cheeks and the nose of a crop in UTKFace's frame, and nothing else.
    """
    patch = patch_of(CROP)
    found = np.array([lightness(crop[patch]) for crop in crops])
    return np.asarray((found[:, None] < CUTS).sum(axis=1), np.int64)


def patch_of(frame: AnyFrame) -> tuple[slice, slice]:
    """Return rows and columns of the cheeks and the nose in a frame."""
    (left, top), (right, bottom) = np.rint(frame.pixels(np.array(SKIN)) + 0.5).astype(int).tolist()
    return slice(top, max(bottom, top + 1)), slice(left, max(right, left + 1))


def lightness(pixels: Shaped[np.ndarray, "*n 3"]) -> float:
    """Return the CIE L* (0 to 100) of the mean of sRGB levels in linear light."""
    linear = LINEAR[pixels] if pixels.dtype == np.uint8 else _linear(np.clip(pixels, 0, 255))
    share = float(linear.reshape(-1, 3).mean(axis=0) @ LUMINANCE)
    return 116 * share ** (1 / 3) - 16 if share > 216 / 24389 else share * 24389 / 27


def toned(picture: Picture, frame: AnyFrame, wanted: float) -> Levels:
    """Return a face of a `frame`, levels 0 to 255, whose cheeks and nose have the CIE L* `wanted`."""
    return brought_to(picture, picture[patch_of(frame)], wanted)


def brought_to(picture: Picture, patch: Shaped[np.ndarray, "_ _ 3"], wanted: float) -> Levels:
    """Return a picture, levels 0 to 255, after the curve that gives its `patch` the CIE L* `wanted`.

    The lightness of every pixel follows one curve that leaves black and white where they are, so that hair
    stays dark and teeth stay light; hues stay, and chroma falls with lightness. An L* that no curve of
    `GAMMAS` reaches is approached.
    """
    patch = np.asarray(patch, np.float32)
    low, high = GAMMAS
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if lightness(_curved(patch, middle)) > wanted else (low, middle)
    return _curved(np.asarray(picture, np.float32), low)


def tone_class(light: float) -> int:
    """Return the class of skin of this CIE L*, from 0, the lightest, to 4."""
    return sum(light < cut for cut in CUTS)


def _curved(picture: Levels, gamma: float) -> Levels:
    """Return a picture after L* ↦ 100 · (L*/100)^e^gamma; a* and b* fall in proportion to L* + 16."""
    lab = cv2.cvtColor(np.clip(picture, 0, 255) / np.float32(255), cv2.COLOR_RGB2LAB)
    light = lab[..., :1]
    new = 100 * (np.clip(light, 0, 100) / 100) ** np.float32(np.exp(gamma))
    changed = np.concatenate([new, lab[..., 1:] * np.minimum(1, (new + 16) / (light + 16))], axis=2)
    levels = cv2.cvtColor(changed.astype(np.float32), cv2.COLOR_LAB2RGB) * np.float32(255)
    return np.asarray(np.clip(levels, 0, 255), np.float32)
