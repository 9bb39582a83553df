"""Encoding: exact for lossless formats, constant settings, clear refusals."""

from __future__ import annotations

import struct
import zlib
from io import BytesIO
from itertools import product
from typing import Any

import numpy as np
import pytest
from io_samples import chunk, file_bytes, picture
from PIL import Image, ImageCms, JpegImagePlugin, TiffImagePlugin
from PIL.PngImagePlugin import PngInfo

from dpveil.errors import InvalidParameter, OutputError, UnknownName
from dpveil.io import reading, writing
from dpveil.io.writing import encode, only_picture


@pytest.mark.parametrize("fmt", ["png", "webp", "tiff", "bmp"])
@pytest.mark.parametrize("shape", [(1, 1), (1, 17), (13, 1), (31, 18)])
@pytest.mark.parametrize("channels", [1, 3])
def test_lossless_formats_give_the_levels_back(put, fmt, shape, channels):
    image = np.random.default_rng(3).integers(0, 256, (*shape, channels)).astype(np.uint8)
    back = reading.read(put(writing.encode(image, fmt))).image
    assert back.shape == (*shape, 3 if fmt == "webp" else channels)
    assert np.array_equal(back, np.broadcast_to(image, back.shape))


def test_jpeg_is_quality_95_without_subsampling():
    with Image.open(BytesIO(writing.encode(picture(33, 20), "jpeg"))) as image:
        assert JpegImagePlugin.get_sampling(image) == 0
        assert image.size == (20, 33)
        buffer = BytesIO()
        Image.new("RGB", (8, 8)).save(buffer, "jpeg", quality=95)
        with Image.open(buffer) as reference:
            assert image.quantization == reference.quantization


def test_wrong_arrays_formats_and_sizes():
    for bad in (np.zeros((2, 2)), np.zeros((2, 2, 4), np.uint8), np.zeros((0, 2), np.uint8)):
        with pytest.raises(InvalidParameter):
            writing.encode(bad, "png")
    with pytest.raises(UnknownName, match="did you mean 'jpeg'"):
        writing.encode(picture(2, 2), "jpg")
    with pytest.raises(OutputError, match="do not fit into a webp file: write a PNG"):
        writing.encode(np.zeros((1, 16_384), np.uint8), "webp")
    with pytest.raises(OutputError, match="do not fit into a jpeg file"):
        writing.encode(np.zeros((65_501, 1), np.uint8), "jpeg")
    assert writing.encode(np.zeros((1, 16_383), np.uint8), "webp")
    assert writing.encode(np.zeros((65_500, 1), np.uint8), "jpeg")


@pytest.mark.parametrize("shape", [(7, 5, 1), (300, 200, 3), (1, 1_000_000, 1), (1, 1_000_001, 1)])
def test_a_png_holds_its_levels_and_nothing_else(shape):
    image = np.random.default_rng(5).integers(0, 256, shape, np.uint8)
    contents = writing.encode(image, "png")
    kinds, at = [], 8
    while at < len(contents):
        length = int.from_bytes(contents[at : at + 4], "big")
        kinds.append(contents[at + 4 : at + 8])
        at += 12 + length
    assert at == len(contents)
    assert [kinds[0], *sorted(set(kinds[1:-1])), kinds[-1]] == [b"IHDR", b"IDAT", b"IEND"]
    with Image.open(BytesIO(contents)) as back:
        assert np.array_equal(np.asarray(back).reshape(shape), image)


# What `encode` writes is a picture and nothing else at every size; what else a file may hold is seen.


SHAPES = [(1, 1, 1), (1, 1, 3), (30, 41, 3), (31, 43, 1), (1, 700, 3), (700, 1, 1), (900, 900, 1)]


def levels(shape: tuple[int, ...], most: int = 256) -> np.ndarray:
    return np.random.Generator(np.random.PCG64(3)).integers(0, most, shape).astype(np.uint8)


@pytest.mark.parametrize("format_", ["png", "jpeg", "webp", "tiff", "bmp"])
def test_what_is_written_is_a_picture_alone(format_: str) -> None:
    for shape, most in product(SHAPES, (1, 3, 256)):
        data = encode(levels(shape, most), format_)
        assert only_picture(data, format_)
        for more in (b"\0", b"<html>payload</html>", data):
            assert only_picture(data + more, format_) == (format_ == "tiff")
        for cut in (0, 1, 11):
            assert not only_picture(data[:cut], format_)


RGB = Image.fromarray(levels((20, 30, 3)))
EXIF = Image.Exif()
EXIF[0x010E] = "payload"
TEXT = PngInfo()
TEXT.add_text("name", "payload")
MORE: dict[str, tuple[str, dict[str, Any]]] = {
    "png text": ("png", {"pnginfo": TEXT}),
    "png exif": ("png", {"exif": EXIF}),
    "png profile": ("png", {"icc_profile": b"payload"}),
    "jpeg exif": ("jpeg", {"exif": EXIF}),
    "jpeg comment": ("jpeg", {"comment": "payload"}),
    "jpeg profile": ("jpeg", {"icc_profile": b"p"}),
    "jpeg second": ("mpo", {"save_all": True, "append_images": [RGB]}),
    "webp lossy": ("webp", {}),
    "webp exif": ("webp", {"lossless": True, "exif": EXIF}),
    "tiff text": ("tiff", {"description": "payload"}),
    "tiff second": ("tiff", {"save_all": True, "append_images": [RGB]}),
}


@pytest.mark.parametrize("name", MORE)
def test_what_else_a_file_may_hold_is_seen(name: str) -> None:
    format_, options = MORE[name]
    file = BytesIO()
    RGB.save(file, format_, **options)
    assert not only_picture(file.getvalue(), "jpeg" if format_ == "mpo" else format_)


# Nothing of a file but its levels survives: planted markers, searched in every output format.


MARKER = b"LEAKMARKER"
FORMATS = ("png", "jpeg", "webp", "tiff", "bmp")
LOSSLESS = ("png", "webp", "tiff", "bmp")


def marked_exif() -> Image.Exif:
    tags = Image.Exif()
    tags[0x010E] = "LEAKMARKER in ImageDescription"
    tags[0x9C9C] = "LEAKMARKER".encode("utf-16le")
    tags.get_ifd(0x8825)[0x001B] = MARKER  # GPS
    return tags


def exif_with_thumbnail() -> bytes:
    """EXIF whose second directory holds a JPEG thumbnail with a comment, as every camera writes."""
    thumbnail = file_bytes(np.zeros((8, 8, 3), np.uint8), "jpeg", comment=MARKER)
    first = struct.pack(">H", 0) + struct.pack(">I", 14)
    second = struct.pack(">H", 2) + struct.pack(">HHII", 0x201, 4, 1, 44)
    second += struct.pack(">HHII", 0x202, 4, 1, len(thumbnail)) + bytes(4)
    return b"Exif\0\0MM\0*\0\0\0\x08" + first + second + thumbnail


def marked_profile() -> bytes:
    return ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes().replace(b"sRGB built", MARKER)


def iptc() -> bytes:
    caption = b"\x1c\x02\x78" + struct.pack(">H", len(MARKER)) + MARKER
    block = b"8BIM\x04\x04\0\0" + struct.pack(">I", len(caption)) + caption
    return b"Photoshop 3.0\0" + block


def jpeg(*segments: tuple[int, bytes], after: bytes = b"", **options) -> bytes:
    data = file_bytes(picture(40, 56), "jpeg", quality=95, **options)
    extra = b"".join(bytes([0xFF, code]) + struct.pack(">H", len(body) + 2) + body for code, body in segments)
    return data[:2] + extra + data[2:] + after


def marked_png(*chunks: bytes, after: bytes = b"", image: np.ndarray | None = None, **options) -> bytes:
    data = file_bytes(picture(40, 56) if image is None else image, "png", **options)
    return data[:33] + b"".join(chunks) + data[33:] + after


def marked_tiff() -> bytes:
    tags = TiffImagePlugin.ImageFileDirectory_v2()
    tags[270] = "LEAKMARKER"
    tags[305] = "LEAKMARKER"
    tags[700] = MARKER
    tags[33723] = MARKER
    tags[34675] = marked_profile()
    return file_bytes(picture(40, 56), "tiff", tiffinfo=tags)


def sources() -> dict[str, bytes]:
    xmp = b"http://ns.adobe.com/xap/1.0/\0<x>LEAKMARKER</x>"
    mpo = file_bytes(
        Image.fromarray(picture(40, 56)), "mpo", save_all=True, append_images=[Image.new("RGB", (8, 8))]
    )
    text = b"Comment\0" + MARKER
    return {
        "jpeg exif": jpeg(exif=marked_exif()),
        "jpeg exif thumbnail": jpeg((0xE1, exif_with_thumbnail())),
        "jpeg xmp": jpeg((0xE1, xmp)),
        "jpeg extended xmp": jpeg((0xE1, b"http://ns.adobe.com/xmp/extension/\0" + MARKER)),
        "jpeg iptc": jpeg((0xED, iptc())),
        "jpeg icc": jpeg(icc_profile=marked_profile()),
        "jpeg comment": jpeg((0xFE, MARKER)),
        "jpeg unknown segment": jpeg((0xEB, MARKER)),
        "jpeg jfif thumbnail": jpeg((0xE0, b"JFXX\0\x10" + MARKER)),
        "jpeg trailing": jpeg(after=MARKER),
        "jpeg trailing photo": jpeg(after=jpeg((0xFE, MARKER))),
        "mpo": mpo + MARKER,
        "png text": marked_png(chunk(b"tEXt", text)),
        "png compressed text": marked_png(chunk(b"zTXt", b"Comment\0\0" + zlib.compress(MARKER))),
        "png international text": marked_png(chunk(b"iTXt", b"XML:com.adobe.xmp\0\0\0\0\0" + MARKER)),
        "png exif": marked_png(exif=marked_exif()),
        "png icc": marked_png(icc_profile=marked_profile()),
        "png private chunk": marked_png(chunk(b"prVt", MARKER)),
        "png time": marked_png(chunk(b"tIME", MARKER[:7])),
        "png trailing": marked_png(after=MARKER),
        "webp": file_bytes(
            picture(40, 56),
            "webp",
            lossless=True,
            exif=marked_exif(),
            xmp=MARKER,
            icc_profile=marked_profile(),
        )
        + MARKER,
        "tiff": marked_tiff() + MARKER,
        "bmp": file_bytes(picture(40, 56), "bmp") + MARKER,
    }


@pytest.mark.parametrize("kind", sources())
def test_no_marker_survives_in_any_format(put, kind):
    data = sources()[kind]
    marks = (MARKER, MARKER[:7], "LEAKMARKER".encode("utf-16le"))
    assert any(mark in data for mark in marks) or "compressed" in kind or "icc" in kind or kind == "mpo"
    photo = reading.read(put(data))
    assert photo.image.shape == (40, 56, 3)
    for fmt in FORMATS:
        written = writing.encode(photo.image, fmt)
        for mark in marks:
            assert mark not in written
        assert unpacked(written, fmt).isdisjoint(marks)
        back = reading.read(put(written))
        if fmt in LOSSLESS:
            assert np.array_equal(back.image, photo.image)
        else:
            assert np.abs(back.image.astype(int) - photo.image).max() < 12


def unpacked(data: bytes, fmt: str) -> set[bytes]:
    """Everything that Pillow finds in a file beside its levels, as bytes."""
    from io import BytesIO

    with Image.open(BytesIO(data)) as image:
        image.load()
        assert not image.getexif() or fmt == "tiff"
        assert not {"exif", "xmp", "icc_profile", "comment", "photoshop", "mp"} & set(image.info)
        assert not getattr(image, "text", None)
        return {str(value).encode() for value in image.info.values()}


@pytest.mark.parametrize("fmt", FORMATS)
@pytest.mark.parametrize("channels", [1, 3])
def test_equal_levels_give_equal_bytes_wherever_they_came_from(put, fmt, channels):
    """The file written is a function of the levels alone."""
    image = picture(40, 56, channels)
    plain = image[:, :, 0] if channels == 1 else image
    marked = reading.read(
        put(marked_png(chunk(b"tEXt", b"a\0" + MARKER), image=plain, exif=marked_exif(), dpi=(99, 99)))
    )
    other = reading.read(put(plain, "a.bmp"))
    assert writing.encode(marked.image, fmt) == writing.encode(other.image, fmt)


def test_colour_hidden_under_transparency_is_gone(put):
    """Two files that show the same and hide different things are read as equal photos."""
    random = np.random.default_rng(1)
    shown = random.integers(0, 256, (16, 16, 3)).astype(np.uint8)
    alpha = random.choice([0, 255], (16, 16)).astype(np.uint8)

    def hiding(secret: np.ndarray) -> np.ndarray:
        return np.dstack([np.where(alpha[:, :, None] == 0, secret, shown), alpha])

    secrets = [random.integers(0, 256, (16, 16, 3)).astype(np.uint8) for _ in range(2)]
    for suffix, options in (("png", {}), ("tiff", {}), ("webp", {"lossless": True, "exact": True})):
        both = [reading.read(put(hiding(secret), f"a.{suffix}", **options)).image for secret in secrets]
        assert np.array_equal(both[0], both[1])
        assert np.array_equal(both[0], np.where(alpha[:, :, None] == 0, 255, shown))


END = {
    "png": lambda data: data.endswith(chunk(b"IEND", b"")) and data.count(b"IEND") == 1,
    "jpeg": lambda data: data.endswith(b"\xff\xd9") and data.count(b"\xff\xd9") == 1,
    "webp": lambda data: 8 + struct.unpack("<I", data[4:8])[0] == len(data),
    "bmp": lambda data: struct.unpack("<I", data[2:6])[0] == len(data),
}


@pytest.mark.parametrize("fmt", END)
@pytest.mark.parametrize("channels", [1, 3])
def test_nothing_follows_the_end_marker(fmt, channels):
    for shape in ((1, 1), (5, 7), (64, 33)):
        assert END[fmt](writing.encode(picture(*shape, channels), fmt))
