"""Small valid files of every allowed format and variant, made in code: what the fuzzer damages."""

import struct
import zlib
from fractions import Fraction
from io import BytesIO
from typing import Any

import clip_samples
import numpy as np
from io_samples import chunk, tiff
from PIL import Image, ImageCms, PngImagePlugin

from heic_samples import NCLX, box, container, heic, pictured, tiled

HEIGHT, WIDTH = 21, 26
PASSES = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2))
"""Adam7: first column, first row, and the steps of both (PNG §8.2)."""


PAL = {"times": range(7), "unit": Fraction(1, 25)}
CLIPS = {
    "h264.mp4": {"sound": "aac", "extra": clip_samples.extras},
    "hevc.mp4": {"codec": "libx265", "options": {"x265-params": "log-level=none"}},
    "fragments.mp4": {"muxer": {"movflags": "frag_keyframe+empty_moov"}, "options": {"g": "3"}},
    "front.mov": {"muxer": {"movflags": "faststart"}, "sound": "pcm_s16le"},
    "turned.mov": {"turn": clip_samples.QUARTER, "store": clip_samples.quarter},
    "fields.mp4": {"options": {"x264-params": "tff=1"}},
    "prores.mov": {"codec": "prores_ks", "pixels": "yuv422p10le"},
    "jpeg.mov": {"codec": "mjpeg", "pixels": "yuvj420p"},
    "alpha.mov": {"codec": "qtrle", "pixels": "argb"},
    "h264.mkv": {"sound": "aac"},
    "ten.mkv": {"pixels": "yuv420p10le"},
    "ffv1.mkv": {"codec": "ffv1", "pixels": "yuv444p10le"},
    "vp9.webm": {"codec": "libvpx-vp9", "sound": "libopus"},
    "vp8.webm": {"codec": "libvpx"},
    "mpeg4.avi": {"codec": "mpeg4", "sound": "libmp3lame", **PAL},
    "h264.ts": {"sound": "aac"},
    "mpeg2.mpg": {"codec": "mpeg2video", **PAL},
}


def levels(channels: int = 3, top: int = 256) -> np.ndarray:
    y, x = np.mgrid[:HEIGHT, :WIDTH]
    planes = [x * 9 + y, y * 11, (x + 2 * y) * 3, 255 - x * y % 256][:channels]
    return np.stack(planes, axis=2) % top


def image(mode: str) -> Image.Image:
    return Image.fromarray(levels().astype(np.uint8)).convert(mode)


def saved(picture: Image.Image, fmt: str, **options: Any) -> bytes:
    buffer = BytesIO()
    # Copies, because a save leaves the encoder's settings behind.
    if "append_images" in options:
        options["append_images"] = [each.copy() for each in options["append_images"]]
    picture.copy().save(buffer, fmt, **options)
    return buffer.getvalue()


def _rows(samples: np.ndarray, depth: int) -> bytes:
    """PNG rows with filter 0 of samples h × w × c, packed to `depth` bits."""
    out = b""
    for row in samples:
        flat = row.reshape(-1)
        if depth == 16:
            out += b"\0" + flat.astype(">u2").tobytes()
        elif depth == 8:
            out += b"\0" + flat.astype(np.uint8).tobytes()
        else:
            bits = (flat[:, None] >> np.arange(depth)[::-1]) & 1
            out += b"\0" + np.packbits(bits.astype(np.uint8)).tobytes()
    return out


def png(depth: int, colour: int, *, interlaced: bool = False, extra: bytes = b"") -> bytes:
    channels = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[colour]
    samples = levels(channels, 1 << depth) * (257 if depth == 16 else 1)
    parts = [samples[y0::dy, x0::dx] for x0, y0, dx, dy in PASSES] if interlaced else [samples]
    data = zlib.compress(b"".join(_rows(part, depth) for part in parts if part.size))
    header = struct.pack(">IIBBBBB", WIDTH, HEIGHT, depth, colour, 0, 0, interlaced)
    if colour == 3:
        extra = chunk(b"PLTE", bytes(range(3 * min(1 << depth, 80)))) + extra
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + extra + chunk(b"IDAT", data) + chunk(b"IEND", b"")


def _exif() -> bytes:
    data = Image.Exif()
    data[0x0112], data[0x010E], data[0x8769] = 6, "words", {0x9003: "2020:01:01 00:00:00"}
    return data.tobytes()


def seeds() -> dict[str, bytes]:
    """Name to file, the name beginning with the format; the same in every run with the same Pillow."""
    rgb = image("RGB")
    srgb = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    other = [image("RGB").transpose(Image.Transpose.FLIP_TOP_BOTTOM)]
    files = {
        "jpeg grey": saved(image("L"), "jpeg"),
        "jpeg 4:2:0": saved(rgb, "jpeg", quality=70),
        "jpeg 4:4:4": saved(rgb, "jpeg", quality=90, subsampling=0, optimize=True),
        "jpeg 4:2:2": saved(rgb, "jpeg", subsampling=1),
        "jpeg progressive": saved(rgb, "jpeg", progressive=True),
        "jpeg progressive grey": saved(image("L"), "jpeg", progressive=True),
        "jpeg cmyk": saved(image("CMYK"), "jpeg"),
        "jpeg cmyk progressive": saved(image("CMYK"), "jpeg", progressive=True),
        "jpeg restarts": saved(rgb, "jpeg", restart_marker_blocks=1),
        "jpeg exif": saved(rgb, "jpeg", exif=_exif(), comment=b"note", dpi=(72, 72)),
        "jpeg profile": saved(rgb, "jpeg", icc_profile=srgb),
        "jpeg several": saved(rgb, "mpo", save_all=True, append_images=other),
        "webp lossy": saved(rgb, "webp", quality=60),
        "webp lossy alpha": saved(image("RGBA"), "webp", quality=60),
        "webp lossless": saved(rgb, "webp", lossless=True),
        "webp lossless alpha": saved(image("RGBA"), "webp", lossless=True, exact=True),
        "webp metadata": saved(rgb, "webp", exif=_exif(), icc_profile=srgb, xmp=b"<x/>"),
        "webp animation": saved(rgb, "webp", save_all=True, append_images=other),
    }
    files |= _pngs(srgb, rgb, other) | _tiffs(srgb, rgb, other)
    return files | _avifs(srgb, rgb, other) | _heics() | _gifs(rgb, other) | _netpbms()


def _avifs(srgb: bytes, rgb: Image.Image, other: list[Image.Image]) -> dict[str, bytes]:
    metadata = {"exif": _exif(), "icc_profile": srgb, "xmp": b"<x/>"}
    return {
        "avif 4:2:0": saved(rgb, "avif", quality=60, speed=9),
        "avif 4:4:4": saved(rgb, "avif", quality=100, speed=9, subsampling="4:4:4"),
        "avif grey": saved(image("L"), "avif", speed=9),
        "avif alpha": saved(image("RGBA"), "avif", speed=9),
        "avif metadata": saved(rgb, "avif", speed=9, **metadata),
        "avif animation": saved(rgb, "avif", speed=9, save_all=True, append_images=other),
    }


def _heics() -> dict[str, bytes]:
    colours = levels().astype(np.uint8)[:20]
    alpha = pictured(colours, (b"auxC", bytes(4) + b"urn:mpeg:hevc:2015:auxid:1\0"), chroma=0)
    alpha = (*alpha[:3], [(b"auxl", [1])])
    words = (b"Exif", bytes(4) + _exif(), [], [(b"cdsc", [1])])
    return {
        "heic 4:2:0": heic(colours),
        "heic 4:4:4": heic(colours[:19, :25], (b"irot", b"\1"), (b"imir", b"\0"), chroma=3),
        "heic grey": heic(colours, chroma=0),
        "heic alpha": container([pictured(colours), alpha]),
        "heic metadata": container([pictured(colours), words], more=box(b"free", bytes(40))),
        "heic tiles": tiled(colours, 16, (b"colr", NCLX)),
    }


def _gifs(rgb: Image.Image, other: list[Image.Image]) -> dict[str, bytes]:
    few = rgb.quantize(12)
    return {
        "gif colour": saved(rgb, "gif"),
        "gif few": saved(few, "gif", comment=b"note" * 100, interlace=0),
        "gif grey": saved(image("L"), "gif"),
        "gif key": saved(few, "gif", transparency=3, background=1),
        "gif animation": saved(rgb, "gif", save_all=True, append_images=other),
    }


def _netpbms() -> dict[str, bytes]:
    colours = levels().astype(np.uint8)
    plain = {1: colours[..., 0] % 2, 2: colours[..., 0], 3: colours}
    files = {
        f"netpbm P{kind}": b"P%d\n# note\n%d %d\n" % (kind, WIDTH, HEIGHT)
        + (b"" if kind == 1 else b"255\n")
        + b"\n".join(b" ".join(b"%d" % level for level in row.reshape(-1)) for row in rows)
        for kind, rows in plain.items()
    }
    for kind, mode in ((4, "1"), (5, "L"), (6, "RGB")):
        files[f"netpbm P{kind}"] = saved(image(mode), "ppm")
    return files


def _pngs(srgb: bytes, rgb: Image.Image, other: list[Image.Image]) -> dict[str, bytes]:
    kinds = [(d, 0) for d in (1, 2, 4, 8, 16)] + [(d, 3) for d in (1, 2, 4, 8)]
    kinds += [(d, c) for c in (2, 4, 6) for d in (8, 16)]
    files = {f"png {c} {d}": png(d, c) for d, c in kinds}
    files |= {f"png {c} {d} interlaced": png(d, c, interlaced=True) for d, c in kinds}
    files["png key grey"] = png(8, 0, extra=chunk(b"tRNS", struct.pack(">H", 20)))
    files["png key 16"] = png(16, 2, extra=chunk(b"tRNS", bytes(6)))
    files["png key palette"] = png(4, 3, extra=chunk(b"tRNS", bytes(range(0, 240, 16))))
    words = PngImagePlugin.PngInfo()
    words.add_text("a", "b" * 400, zip=True)
    words.add_itxt("c", "d" * 40, "en", "e", zip=True)
    files["png words"] = saved(rgb, "png", pnginfo=words, exif=_exif(), dpi=(72, 72))
    files["png profile"] = saved(rgb, "png", icc_profile=srgb)
    files["png animation"] = saved(rgb, "png", save_all=True, append_images=other)
    claims = chunk(b"acTL", struct.pack(">II", 1, 0)) + chunk(b"gAMA", struct.pack(">I", 45455))
    files["png one frame"] = png(8, 2, extra=claims)
    return files


def _tiffs(srgb: bytes, rgb: Image.Image, other: list[Image.Image]) -> dict[str, bytes]:
    files = {f"bmp {mode}": saved(image(mode), "bmp") for mode in ("1", "L", "P", "RGB", "RGBA")}
    for order in "<>":
        files[f"tiff {order} 16"] = tiff(WIDTH, HEIGHT, 16, bytes(range(256)) * 5, order=order, photometric=0)
    for mode in ("1", "L", "LA", "P", "RGB", "RGBA", "CMYK", "LAB", "YCbCr", "I;16"):
        source = (
            image("L").convert("I").convert("I;16")
            if mode == "I;16"
            else (Image.merge("LAB", image("RGB").split()) if mode == "LAB" else image(mode))
        )
        for compression in ("raw", "tiff_lzw", "tiff_adobe_deflate"):
            files[f"tiff {mode} {compression}"] = saved(source, "tiff", compression=compression)
    for compression in ("packbits", "lzma", "zstd", "jpeg"):
        files[f"tiff RGB {compression}"] = saved(rgb, "tiff", compression=compression)
    for compression in ("group3", "group4", "tiff_ccitt", "packbits"):
        files[f"tiff 1 {compression}"] = saved(image("1"), "tiff", compression=compression)
    files["tiff predictor"] = saved(rgb, "tiff", compression="tiff_lzw", tiffinfo={317: 2})
    files["tiff strips"] = saved(rgb, "tiff", compression="tiff_lzw", strip_size=400)
    files["tiff big"] = saved(rgb, "tiff", big_tiff=True)
    files["tiff big lzw"] = saved(rgb, "tiff", big_tiff=True, compression="tiff_lzw")
    files["tiff profile"] = saved(rgb, "tiff", icc_profile=srgb)
    files["tiff turned"] = saved(rgb, "tiff", tiffinfo={274: 6}, compression="tiff_lzw")
    files["tiff pages"] = saved(rgb, "tiff", save_all=True, append_images=other)
    return files
