"""Decoding: the contents of a file of a known format become levels, risky formats in a process of their own.

Pillow's decoders of PNG, JPEG, WebP and BMP run here; pi-heif, libavif, libtiff and the rarely tried rest
may crash, hang or take all memory, and do so elsewhere. Decoders are called directly and not through
`Image.open`, which would apply Pillow's global limit on pixels.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import astuple, dataclass, field, replace
from functools import cached_property, lru_cache
from importlib import import_module
from io import BufferedIOBase, BytesIO
from typing import Any, Final

import numpy as np
from PIL import Image, ImageFile, TiffImagePlugin
from PIL.JpegImagePlugin import JpegImageFile as JpegFile

from dpveil import processes
from dpveil.core.array_types import UInt8
from dpveil.core.jpeg_blocks import TURNS, JpegBlocks
from dpveil.core.photo import BlockGrid, Photo
from dpveil.io.screening import check_pixels, format_name, jpeg_grid, screen
from dpveil.io.unreadable import COPY_AGAIN, SAVE_ANEW, Refused, animation
from dpveil.processes import Channel, Ended, Pool

Alpha = UInt8[np.ndarray, "h w"] | None


@dataclass
class Layers:
    """Opaque colour of mode L, RGB, CMYK or LAB, the alpha channel, and notes on what was converted."""

    colour: Image.Image
    alpha: Alpha = None
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class StoredPixels:
    """How a file stored its pixels: Pillow's raw mode and, for 16-bit grey, the largest level (`top`)."""

    rawmode: str = ""
    top: int = 65535
    white_is_zero: bool = False


def to_levels(
    image: Image.Image, stored: StoredPixels, *, background: int = 255
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
        opaque = layers.alpha[:, :, None].astype(np.uint16)
        mixed = levels * opaque + np.uint16(background) * (255 - opaque)
        levels = ((mixed + np.uint16(127)) // np.uint16(255)).astype(np.uint8)  # rounded to nearest
        text = "transparency was laid over plain white" if background else "transparency is black"
        layers.notes.append(text)
    return levels, layers.notes


def _grey(image: Image.Image, stored: StoredPixels) -> Layers:
    key = image.info.get("transparency")
    colour = image.convert("L")
    alpha = None
    if isinstance(key, int):
        spread = {"L;2": 85, "L;4": 17}.get(stored.rawmode, 1)  # Pillow scales levels to 0..255, not the key
        alpha = _opaque_unless(np.asarray(colour) == key * spread)
    return Layers(colour, alpha)


def _deep_grey(image: Image.Image, stored: StoredPixels) -> Layers:
    values = np.asarray(image)
    table = (np.arange(65536, dtype=np.uint32) * 255 + stored.top // 2) // stored.top
    table = np.minimum(table, 255).astype(np.uint8)
    if stored.white_is_zero:
        table = 255 - table
    key = image.info.get("transparency")
    alpha = _opaque_unless(values == key) if isinstance(key, int) else None
    return Layers(Image.fromarray(table[values]), alpha, ["16-bit grey was rounded to 8 bits"])


def _grey_alpha(image: Image.Image, stored: StoredPixels) -> Layers:
    both = image if image.mode == "LA" else image.convert("LA")
    return Layers(both.getchannel("L"), np.asarray(both.getchannel("A")))


def _colour(image: Image.Image, stored: StoredPixels) -> Layers:
    notes = ["16-bit colour kept its high byte"] if ";16" in stored.rawmode else []
    key = image.info.get("transparency")
    alpha = None
    if isinstance(key, tuple):
        # The key of a 16-bit file is compared by its high byte, so that all pixels of the key are hidden.
        wanted = np.array(key) >> (8 if ";16" in stored.rawmode else 0)
        alpha = _opaque_unless((np.asarray(image) == wanted).all(axis=2))
    return Layers(image if image.mode == "RGB" else image.convert("RGB"), alpha, notes)


def _colour_alpha(image: Image.Image, stored: StoredPixels) -> Layers:
    both = image if image.mode == "RGBA" else image.convert("RGBA")
    notes = ["16-bit colour kept its high byte"] if ";16" in stored.rawmode else []
    alpha = np.asarray(both.getchannel("A"))
    if stored.rawmode.startswith("LA"):  # 16-bit grey with alpha, which Pillow decodes as RGBA
        return Layers(both.getchannel("R"), alpha, notes)
    return Layers(both.convert("RGB"), alpha, notes)


def _palette(image: Image.Image, stored: StoredPixels) -> Layers:
    layers = _colour_alpha(image.convert("RGBA"), StoredPixels())
    layers.notes.append("palette colours became RGB")
    return layers


def _other_space(image: Image.Image, stored: StoredPixels) -> Layers:
    notes = [f"{image.mode} colours became sRGB"]
    return Layers(image.convert("RGB") if image.mode == "YCbCr" else image, None, notes)


def _opaque_unless(hidden: np.ndarray) -> UInt8[np.ndarray, "h w"]:
    return np.where(hidden, 0, 255).astype(np.uint8)


RULES: Final[dict[str, Callable[[Image.Image, StoredPixels], Layers]]] = {
    **dict.fromkeys(("1", "L"), _grey),
    **dict.fromkeys(("I;16", "I;16L", "I;16B"), _deep_grey),
    **dict.fromkeys(("LA", "La"), _grey_alpha),
    **dict.fromkeys(("RGB", "RGBX"), _colour),
    **dict.fromkeys(("RGBA", "RGBa"), _colour_alpha),
    **dict.fromkeys(("P", "PA"), _palette),
    **dict.fromkeys(("CMYK", "LAB", "YCbCr"), _other_space),
}
"""For each of Pillow's modes, the function that splits it into layers; other modes are refused."""

APPLIED: Final = "its colour profile was applied"
ROUNDING: Final = 2  # largest change of a level by a profile that says what would hold without it
SPACES: Final = {"L": "GRAY", "RGB": "RGB", "CMYK": "CMYK", "LAB": "Lab"}
"""The colour space that an ICC profile for each mode has to be about."""


def _to_srgb(layers: Layers, profile: bytes | None) -> Image.Image:
    colour = layers.colour
    if profile is not None and colour.mode != "LAB":
        converted = _by_profile(colour, profile)
        if converted is colour:
            return colour
        if converted is not None:
            layers.notes.append(APPLIED)
            return converted
        layers.notes.append("its colour profile is unusable, so its levels were taken as plain sRGB")
    if colour.mode == "LAB":
        from PIL import ImageCms

        lab, srgb = ImageCms.createProfile("LAB"), ImageCms.createProfile("sRGB")
        converted = ImageCms.profileToProfile(colour, lab, srgb, outputMode="RGB")
        if converted is None:
            raise ValueError("Lab colours cannot be converted")
        return converted
    return colour if colour.mode in ("L", "RGB") else colour.convert("RGB")


def _by_profile(colour: Image.Image, profile: bytes) -> Image.Image | None:
    from PIL import ImageCms

    try:
        source = ImageCms.ImageCmsProfile(BytesIO(profile))
        if source.profile.xcolor_space.strip() != SPACES[colour.mode]:
            return None
        target = ImageCms.createProfile("sRGB")
        change = ImageCms.buildTransform(source, target, colour.mode, "RGB")
        if colour.mode == "RGB":
            steps = np.arange(0, 256, 15, dtype=np.uint8)
            cube = np.stack(np.meshgrid(steps, steps, steps), axis=-1).reshape(len(steps), -1, 3)
            there = np.asarray(ImageCms.applyTransform(Image.fromarray(cube), change), np.int16)
            if np.abs(there - cube).max() <= ROUNDING:
                return colour  # it is sRGB's own, as most cameras and editors embed it
        return ImageCms.applyTransform(colour, change)
    except (ImageCms.PyCMSError, OSError, ValueError, TypeError):
        return None


ORIENTATION: Final = 0x0112  # EXIF's tag
INSTALL: Final = "pip install 'dpveil[formats]'"
OPENERS: Final = {
    "JPEG": "PIL.JpegImagePlugin:JpegImageFile",
    "PNG": "PIL.PngImagePlugin:PngImageFile",
    "WEBP": "PIL.WebPImagePlugin:WebPImageFile",
    "TIFF": "PIL.TiffImagePlugin:TiffImageFile",
    "BMP": "PIL.BmpImagePlugin:BmpImageFile",
    "GIF": "PIL.GifImagePlugin:GifImageFile",
    "Netpbm": "PIL.PpmImagePlugin:PpmImageFile",
    "AVIF": "PIL.AvifImagePlugin:AvifImageFile",
    "HEIC": "pi_heif.as_plugin:HeifImageFile",
}
"""The class that opens files of each format, which is imported when one is met."""
RISKY: Final = frozenset({"HEIC", "AVIF", "TIFF", "GIF", "Netpbm"})
"""The formats that are decoded in a process of their own."""
LOSSLESS_TIFF: Final = {"raw", "packbits", "lzma", "zstd", "group3", "group4"} | {
    f"tiff_{name}" for name in ("ccitt", "lzw", "adobe_deflate", "deflate")
}
"""Pillow's names of TIFF's lossless compressions."""
INTACT_OR_PNG: Final = "get an intact copy, or save it as an 8-bit PNG"
SECONDS: Final = 120  # time for one file
MEMORY: Final = (1 << 32, 1 << 31, 32)
"""Least memory of a process in bytes, and what it has beside so many for each pixel of the limit."""
WHY_ENDED: Final = {
    "time": ("takes too long to decode", SAVE_ANEW),
    "memory": ("does not fit into memory", "make it smaller"),
    "start": ("needs a process of its own to be decoded, which cannot start", "try again"),
}
CRASHED: Final = ("ends the process that decodes it", SAVE_ANEW)  # the refusals of a file whose process ended


@dataclass
class LazyBlocks:
    """Reads the blocks of a JPEG once, when they are needed; photos with them go to other processes."""

    data: bytes
    layer: Any
    size: tuple[int, int]
    orientation: int

    @cached_property
    def _blocks(self) -> JpegBlocks:
        from dpveil.io.jpeg import read_blocks

        return read_blocks(self.data, self.layer, self.size, self.orientation)

    def __call__(self) -> JpegBlocks:
        return self._blocks


def decode(data: bytes, max_pixels: int, background: int) -> Photo:
    """Return the photo in a file, over the level `background` where it is transparent; raises `Refused`."""
    if format_name(data) in RISKY and not processes.confined:
        least, beside, each = MEMORY
        pool = _pool(max(least, beside + each * max_pixels))
        try:
            told, found = pool.ask([max_pixels, background], data, most=3 * max_pixels)
        except Ended as error:
            raise Refused(*WHY_ENDED.get(error.why, CRASHED)) from error
        return decode_answer(told, found, max_pixels)
    return _decode_here(data, max_pixels, background)


@lru_cache(maxsize=2)
def _pool(memory: int) -> Pool:
    return Pool("dpveil.io.decoding:serve", memory=memory, seconds=SECONDS)


def decode_answer(told: Any, found: list[np.ndarray], most: int) -> Photo:
    """Return the answer that `as_answer` made; raises `Refused`, also for more than so many pixels."""
    if "refused" in told:
        raise Refused(*told["refused"])
    [levels] = found
    if levels.size > 3 * most:
        raise Refused(*CRASHED)
    grid = None if told["grid"] is None else BlockGrid(*told["grid"])
    return Photo(levels, grid, tuple(told["notes"]))


# In the process


def serve(channel: Channel) -> None:
    processes.answer(channel, lambda _: _answer)


def _answer(asked: list[int], contents: np.ndarray) -> tuple[Any, ...]:
    return as_answer(lambda: _decode_here(contents.tobytes(), *asked))


def as_answer(decode: Callable[[], Photo]) -> tuple[Any, ...]:
    """Return the parts of the answer that tells what a function returns, or why it refuses."""
    try:
        found = decode()
    except Refused as refusal:
        return ({"refused": [refusal.problem, refusal.remedy, refusal.arguments]},)
    grid = None if found.grid is None else astuple(found.grid)
    return {"grid": grid, "notes": found.notes}, found.image


def _decode_here(data: bytes, max_pixels: int, background: int) -> Photo:
    name = format_name(data) or ""
    notes: list[str] = []
    grid = screen(name, data, max_pixels)
    with open_picture(name, BytesIO(data)) as image:
        check_pixels(*image.size, max_pixels)
        grid = check_opened(image, grid, notes)
        levels, converted = load_levels(image, name, background)
        number = _orientation(image, notes)
        blocks = None
        if isinstance(image, JpegFile) and APPLIED not in converted:
            from dpveil.io.jpeg import keeps_blocks

            if keeps_blocks(image.layer, image.info):
                blocks = LazyBlocks(data, image.layer, image.size, number)
    turn = TURNS[number]
    oriented = turn.there(levels)
    if grid is not None:  # from the coordinates of the stored picture to those of the upright one
        w, h = (grid.height, grid.width) if turn.transpose else (grid.width, grid.height)
        x0 = oriented.shape[1] % w if turn.flip_x else 0
        y0 = oriented.shape[0] % h if turn.flip_y else 0
        grid = replace(grid, width=w, height=h, x0=x0, y0=y0)
    return Photo(oriented, grid, (*notes, *converted), blocks)


def open_picture(name: str, file: BufferedIOBase) -> ImageFile.ImageFile:
    """Return the picture in a file of format `name`, not yet decoded; raises `Refused`."""
    module, _, kind = OPENERS[name].partition(":")
    try:
        open_: Callable[..., ImageFile.ImageFile] = getattr(import_module(module), kind)
    except ImportError as error:
        raise Refused(f"is {name}, and its decoder is not installed", INSTALL) from error
    try:
        return open_(file)
    except Exception as error:  # a parser given hostile bytes may raise anything
        problem = f"is damaged, or a kind of {name} that dpveil does not read ({_reason(error)})"
        raise Refused(problem, INTACT_OR_PNG) from error


def load_levels(
    image: ImageFile.ImageFile, name: str, background: int
) -> tuple[UInt8[np.ndarray, "h w c"], list[str]]:
    """Return the levels of an open picture, and notes on what was converted; raises `Refused`."""
    try:
        stored = _storage_of(image)
        image.load()
        return to_levels(image, stored, background=background)
    except Refused:
        raise
    except MemoryError as error:
        raise Refused(*WHY_ENDED["memory"]) from error
    except Exception as error:  # as above
        raise Refused(f"is a truncated or damaged {name} file ({_reason(error)})", COPY_AGAIN) from error


def check_opened(image: ImageFile.ImageFile, grid: BlockGrid | None, notes: list[str]) -> BlockGrid | None:
    """Return the grid of lossy blocks, if any.

    Raises `Refused` for an image that dpveil cannot convert, and for several frames or pages.
    """
    if isinstance(image, JpegFile):
        if "mp" in image.info:
            notes.append("only the first picture of this multi-picture file was read")
        return jpeg_grid(image.layer)
    if getattr(image, "is_animated", False):
        if image.format in ("GIF", "AVIF", "PNG", "WEBP"):
            raise animation(int(getattr(image, "n_frames", 0)))
        kind = "several pages" if image.format == "TIFF" else "several frames"
        every = ", or release all with dpveil obfuscate into a folder or PDF" * (kind == "several pages")
        raise Refused(f"has {kind}", f"save one of them as a PNG{every}")
    return check_kind(image, grid)


def check_kind(image: ImageFile.ImageFile, grid: BlockGrid | None) -> BlockGrid | None:
    """Return the grid of a picture, also of a page; raises `Refused` for one that dpveil cannot convert."""
    if isinstance(image, TiffImagePlugin.TiffImageFile):
        compression = str(image.info.get("compression"))
        subsampled = image.mode == "YCbCr" and tuple(image.tag_v2.get(530, (1, 1))) != (1, 1)
        if compression not in LOSSLESS_TIFF or subsampled:
            raise Refused("is a TIFF with lossy compression", "save it as a JPEG or PNG")
    if image.mode not in RULES:
        kind = {"F": "floating-point", "I": "32-bit"}.get(image.mode, image.mode)
        raise Refused(f"has {kind} pixels, which dpveil does not read", "save it as an 8-bit PNG")
    if grid is not None:
        return grid
    # Few levels may have been chosen by the encoder for all of a picture. Pillow opens a GIF with a grey
    # palette as grey, and 2 and 4 bits a pixel as 8.
    if image.format == "GIF" or image.mode in ("P", "PA"):
        return BlockGrid.without_blocks("palette")
    bits = "1" if image.mode == "1" else {"L;2": "2", "L;4": "4"}.get(_storage_of(image).rawmode[:3])
    return None if bits is None else BlockGrid.without_blocks(f"{bits}-bit")


def _reason(error: Exception) -> str:
    text = " ".join(str(error).split())
    return text if text and text.isprintable() and len(text) < 120 else type(error).__name__


def _storage_of(image: ImageFile.ImageFile) -> StoredPixels:
    args = image.tile[0].args if image.tile else ""  # Pillow only knows it before they are loaded
    rawmode = args if isinstance(args, str) else str(args[0]) if args else ""
    if not isinstance(image, TiffImagePlugin.TiffImageFile):
        return StoredPixels(rawmode)
    top = 4095 if rawmode == "I;12" else 65535
    deep = image.mode.startswith("I;16")
    return StoredPixels(rawmode, top, white_is_zero=deep and image.tag_v2.get(262) == 0)


def _orientation(image: ImageFile.ImageFile, notes: list[str]) -> int:
    """Return how to orient the loaded pixels, a key of `TURNS`; decoders orient TIFF and HEIC themselves."""
    if image.format in ("TIFF", "HEIF"):
        return 1
    try:
        value = image.getexif().get(ORIENTATION)
    except Exception:  # noqa: BLE001  a parser given hostile bytes may raise anything
        notes.append("its EXIF data are unreadable, so it was taken as upright")
        return 1
    return value if isinstance(value, int) and value in TURNS else 1
