"""Colour conversion: whatever Pillow decodes becomes 8-bit grey or sRGB without transparency."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from io import BytesIO
from typing import Final

import numpy as np
from jaxtyping import UInt8
from PIL import Image

Alpha = UInt8[np.ndarray, "h w"] | None


@dataclass
class Layers:
    """Opaque colour of mode L, RGB, CMYK or LAB, the alpha channel, and notes on what was converted."""

    colour: Image.Image
    alpha: Alpha = None
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Stored:
    """How a file stored its pixels: Pillow's raw mode and, for 16-bit grey, the largest level (`top`)."""

    rawmode: str = ""
    top: int = 65535
    white_is_zero: bool = False


def to_levels(
    image: Image.Image, stored: Stored, *, background: int = 255
) -> tuple[UInt8[np.ndarray, "h w c"], list[str]]:
    """Return loaded `image` as grey (c = 1) or sRGB (c = 3) levels 0..255, and notes on what was converted.

    Transparent pixels are composited over the level `background` (255: white), which removes colour hidden
    under alpha 0. 16-bit grey is rounded exactly, round(255·v/65535); 16-bit colour keeps its high byte,
    which is all that Pillow decodes. The image's mode must be a key of `RULES`.
    """
    layers = RULES[image.mode](image, stored)
    grey = layers.colour.mode == "L"
    profile = image.info.get("icc_profile")
    flat = _to_srgb(layers, profile if isinstance(profile, bytes) and profile else None)
    levels = np.asarray(flat)
    levels = levels[:, :, 1:2] if grey and levels.ndim == 3 else levels.reshape(*levels.shape[:2], -1)
    if layers.alpha is not None and layers.alpha.size and int(layers.alpha.min()) < 255:
        levels = over(levels, layers.alpha, background)
        text = "transparency was laid over plain white" if background else "transparency is black"
        layers.notes.append(text)
    return levels, layers.notes


def over(
    levels: UInt8[np.ndarray, "h w c"], alpha: UInt8[np.ndarray, "h w"], background: int
) -> UInt8[np.ndarray, "h w c"]:
    """Return `levels` with `alpha` (255: opaque) composited over one level, rounded to nearest."""
    opaque = alpha[:, :, None].astype(np.uint16)
    mixed = levels * opaque + np.uint16(background) * (255 - opaque)
    return ((mixed + np.uint16(127)) // np.uint16(255)).astype(np.uint8)


def _grey(image: Image.Image, stored: Stored) -> Layers:
    key = image.info.get("transparency")
    colour = image.convert("L")
    alpha = None
    if isinstance(key, int):
        spread = {"L;2": 85, "L;4": 17}.get(stored.rawmode, 1)  # Pillow scales levels to 0..255, not the key
        alpha = _opaque_unless(np.asarray(colour) == key * spread)
    return Layers(colour, alpha)


def _deep_grey(image: Image.Image, stored: Stored) -> Layers:
    values = np.asarray(image)
    table = (np.arange(65536, dtype=np.uint32) * 255 + stored.top // 2) // stored.top
    table = np.minimum(table, 255).astype(np.uint8)
    if stored.white_is_zero:
        table = 255 - table
    key = image.info.get("transparency")
    alpha = _opaque_unless(values == key) if isinstance(key, int) else None
    return Layers(Image.fromarray(table[values]), alpha, ["16-bit grey was rounded to 8 bits"])


def _grey_alpha(image: Image.Image, stored: Stored) -> Layers:
    both = image if image.mode == "LA" else image.convert("LA")
    return Layers(both.getchannel("L"), np.asarray(both.getchannel("A")))


def _colour(image: Image.Image, stored: Stored) -> Layers:
    notes = ["16-bit colour kept its high byte"] if ";16" in stored.rawmode else []
    key = image.info.get("transparency")
    alpha = None
    if isinstance(key, tuple):
        # The key of a 16-bit file is compared by its high byte, so that all pixels of the key are hidden.
        wanted = np.array(key) >> (8 if ";16" in stored.rawmode else 0)
        alpha = _opaque_unless((np.asarray(image) == wanted).all(axis=2))
    return Layers(image if image.mode == "RGB" else image.convert("RGB"), alpha, notes)


def _colour_alpha(image: Image.Image, stored: Stored) -> Layers:
    both = image if image.mode == "RGBA" else image.convert("RGBA")
    notes = ["16-bit colour kept its high byte"] if ";16" in stored.rawmode else []
    alpha = np.asarray(both.getchannel("A"))
    if stored.rawmode.startswith("LA"):  # 16-bit grey with alpha, which Pillow decodes as RGBA
        return Layers(both.getchannel("R"), alpha, notes)
    return Layers(both.convert("RGB"), alpha, notes)


def _palette(image: Image.Image, stored: Stored) -> Layers:
    layers = _colour_alpha(image.convert("RGBA"), Stored())
    layers.notes.append("palette colours became RGB")
    return layers


def _print(image: Image.Image, stored: Stored) -> Layers:
    return Layers(image, None, [f"{image.mode} colours became sRGB"])


def _video(image: Image.Image, stored: Stored) -> Layers:
    return Layers(image.convert("RGB"), None, ["YCbCr colours became sRGB"])


def _opaque_unless(hidden: np.ndarray) -> UInt8[np.ndarray, "h w"]:
    return np.where(hidden, 0, 255).astype(np.uint8)


RULES: Final[dict[str, Callable[[Image.Image, Stored], Layers]]] = {
    "1": _grey,
    "L": _grey,
    "I;16": _deep_grey,
    "I;16L": _deep_grey,
    "I;16B": _deep_grey,
    "LA": _grey_alpha,
    "La": _grey_alpha,
    "RGB": _colour,
    "RGBX": _colour,
    "RGBA": _colour_alpha,
    "RGBa": _colour_alpha,
    "P": _palette,
    "PA": _palette,
    "CMYK": _print,
    "LAB": _print,
    "YCbCr": _video,
}
"""For each of Pillow's modes, the function that splits it into layers; other modes are refused."""

SPACES: Final = {"L": "GRAY", "RGB": "RGB", "CMYK": "CMYK", "LAB": "Lab"}
"""The colour space that an ICC profile for each mode has to be about."""


def _to_srgb(layers: Layers, profile: bytes | None) -> Image.Image:
    """Return the colour layer in sRGB, or grey if it is grey and has no colour profile."""
    colour = layers.colour
    if profile is not None and colour.mode != "LAB":
        converted = _by_profile(colour, profile)
        if converted is not None:
            layers.notes.append("its colour profile was applied")
            return converted
        layers.notes.append("its colour profile is unusable, so its levels were taken as plain sRGB")
    if colour.mode == "LAB":
        return _from_lab(colour)
    return colour if colour.mode in ("L", "RGB") else colour.convert("RGB")


def _by_profile(colour: Image.Image, profile: bytes) -> Image.Image | None:
    from PIL import ImageCms

    try:
        source = ImageCms.ImageCmsProfile(BytesIO(profile))
        if source.profile.xcolor_space.strip() != SPACES[colour.mode]:
            return None
        target = ImageCms.createProfile("sRGB")
        return ImageCms.profileToProfile(colour, source, target, outputMode="RGB")
    except (ImageCms.PyCMSError, OSError, ValueError, TypeError):
        return None


def _from_lab(colour: Image.Image) -> Image.Image:
    from PIL import ImageCms

    lab, srgb = ImageCms.createProfile("LAB"), ImageCms.createProfile("sRGB")
    converted = ImageCms.profileToProfile(colour, lab, srgb, outputMode="RGB")
    if converted is None:
        raise ValueError("Lab colours cannot be converted")
    return converted
