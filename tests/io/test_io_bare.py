"""What `encode` writes is bare at every size; whatever else a file may hold is seen."""

import struct
import zlib
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from dpveil.io import encode
from dpveil.io.bare import JPEG_HEAD, bare
from dpveil.io.inflating import most_coded

FORMATS = ("png", "jpeg", "webp", "tiff", "bmp")
SHAPES = [
    (1, 1, 1),
    (1, 1, 3),
    (30, 41, 3),
    (31, 43, 1),
    (1, 700, 3),
    (700, 1, 1),
    (500, 600, 3),
    (900, 900, 1),
]


def levels(shape, most=256):
    return np.random.Generator(np.random.PCG64(3)).integers(0, most, shape).astype(np.uint8)


@pytest.mark.parametrize("format_", FORMATS)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("most", [1, 3, 256])
def test_what_is_written_is_bare(format_, shape, most):
    data = encode(levels(shape, most), format_)
    assert bare(data, format_)
    for more in (b"\0", b"<html>payload</html>", data):
        assert not bare(data + more, format_)
    for cut in (0, 1, 11, 30, len(data) // 2, len(data) - 1):
        assert not bare(data[:cut], format_)


def saved(format_, image, **options):
    file = BytesIO()
    image.save(file, format_, **options)
    return file.getvalue()


def texted():
    text = PngInfo()
    text.add_text("name", "payload")
    return text


RGB = Image.fromarray(levels((20, 30, 3)))
RGBA = RGB.convert("RGBA")
EXIF = Image.Exif()
EXIF[0x010E] = "payload"
MORE = {
    "png text": ("png", RGB, {"pnginfo": texted()}), "png alpha": ("png", RGBA, {}),
    "png exif": ("png", RGB, {"exif": EXIF}), "png palette": ("png", RGB.convert("P"), {}),
    "png profile": ("png", RGB, {"icc_profile": b"payload"}), "jpeg exif": ("jpeg", RGB, {"exif": EXIF}),
    "jpeg comment": ("jpeg", RGB, {"comment": "payload"}),
    "jpeg profile": ("jpeg", RGB, {"icc_profile": b"p"}),
    "jpeg progressive": ("jpeg", RGB, {"progressive": True}),
    "jpeg second": ("mpo", RGB, {"save_all": True, "append_images": [RGB]}),
    "webp alpha": ("webp", RGBA, {"lossless": True}), "webp lossy": ("webp", RGB, {}),
    "webp exif": ("webp", RGB, {"lossless": True, "exif": EXIF}),
    "tiff text": ("tiff", RGB, {"description": "payload"}), "tiff alpha": ("tiff", RGBA, {}),
    "tiff second": ("tiff", RGB, {"save_all": True, "append_images": [RGB]}),
    "bmp palette": ("bmp", RGB.convert("P"), {}),
}  # fmt: skip


@pytest.mark.parametrize("name", MORE)
def test_what_else_a_file_may_hold_is_seen(name):
    format_, image, options = MORE[name]
    if name == "webp alpha":
        image = Image.fromarray(levels((20, 30, 4)))
    assert not bare(saved(format_, image, **options), "jpeg" if format_ == "mpo" else format_)


def test_strips_that_lie_on_one_another_hide_nothing():
    """Their bytes are as many as the file has, and one of them is a payload that no strip leads to."""
    import struct

    data = bytearray(encode(np.zeros((900, 900), np.uint8), "tiff"))
    start = Image.open(BytesIO(data)).tag_v2[273]
    assert len(start) > 1
    packed = struct.pack(f"<{len(start)}I", *start)
    at = bytes(data).index(packed)
    data[at : at + 8] = struct.pack("<II", start[0], start[0])
    assert not bare(bytes(data), "tiff")


def chunk(name, contents=b"", crc=None):
    sum_ = struct.pack(">I", zlib.crc32(name + contents)) if crc is None else crc
    return struct.pack(">I", len(contents)) + name + contents + sum_


def test_the_documentation_states_the_room_that_is_left():
    text = (Path(__file__).parents[2] / "docs" / "limits.md").read_text(encoding="utf-8")
    assert "may have a quarter and 1 kB more bytes than its levels" in text
    assert most_coded(4000) == 4000 + 1000 + 1024
    assert f"have at most {JPEG_HEAD} bytes" in text


def test_no_chunk_of_a_png_has_room_beside_its_contents():
    """Empty parts of the stream, and every checksum."""
    png = encode(levels((90, 90, 3)), "png")
    assert bare(png, "png")
    for part in (chunk(b"IDAT"), chunk(b"IDAT", crc=b"HIDE")):
        for at in (33, len(png) - 12):
            assert not bare(png[:at] + part + png[at:], "png")
    for end in (33, 33 + 12 + 8192, len(png) - 12, len(png)):
        assert not bare(png[: end - 4] + b"HIDE" + png[end:], "png")


def test_blocks_of_a_stream_that_hold_nothing_are_counted():
    """Each of zlib's empty blocks has a Huffman code that may be any."""
    made = zlib.compressobj()
    stream = made.compress(bytes(132))
    empty = stream + b"".join(made.flush(zlib.Z_FULL_FLUSH) + made.compress(b"") for _ in range(9))
    assert bare(refilled(lambda _: empty + made.flush()), "png")
    for count, most in ((200, True), (400, False)):
        made = zlib.compressobj()
        made.compress(bytes(132))
        first = made.flush(zlib.Z_SYNC_FLUSH)
        padded = b"\x78\x9c" * (not first.startswith(b"x")) + first + b"\0\0\0\xff\xff" * count + made.flush()
        assert zlib.decompress(padded) == bytes(132)
        assert bare(refilled(lambda _, told=padded: told), "png") == most


def strips(data):
    """Return the offsets of the entries of a TIFF as `encode` writes it, by tag."""
    (at,) = struct.unpack_from("<I", data, 4)
    (count,) = struct.unpack_from("<H", data, at)
    places = range(at + 2, at + 2 + 12 * count, 12)
    return {struct.unpack_from("<H", data, place)[0]: place for place in places}


def test_a_tiff_has_no_room_in_strips_tags_and_padding():
    image = levels((40, 30, 1), 9)
    data = encode(image, "tiff")
    places = strips(data)
    start, size = (struct.unpack_from("<I", data, places[tag] + 8)[0] for tag in (273, 279))
    for tail in (b"", b"payload"):
        stream = zlib.compress(image.tobytes()) + tail
        moved = bytearray(data[:start] + data[start + size :])
        shift = struct.unpack_from("<I", data, 4)[0] - size
        struct.pack_into("<I", moved, 4, shift)
        struct.pack_into("<I", moved, places[273] - size + 8, len(moved))
        struct.pack_into("<I", moved, places[279] - size + 8, len(stream))
        assert bare(bytes(moved) + stream, "tiff") == (not tail)
    many = bytearray(data)
    struct.pack_into("<HII", many, places[256] + 2, 3, 1000, len(data))
    assert not bare(bytes(many) + struct.pack("<H", 30) + b"payload!" * 249 + b"..", "tiff")
    for place in (places[256] + 10, places[259] + 8):
        told = bytearray(data)
        told[place] ^= 1
        assert not bare(bytes(told), "tiff")
    padded = bytearray(data[:start] + b"\0\0" + data[start:])
    struct.pack_into("<I", padded, 4, struct.unpack_from("<I", data, 4)[0] + 2)
    struct.pack_into("<I", padded, places[273] + 10, start + 2)
    assert bare(bytes(padded), "tiff")
    padded[start] = 1
    assert not bare(bytes(padded), "tiff")


@pytest.mark.parametrize("channels", [1, 3])
def test_a_bmp_has_no_room_beside_its_rows_and_in_its_header(channels):
    data = encode(levels((4, 7, channels)), "bmp")
    assert bare(data, "bmp")
    for at in (34, 38, 42, 46, 50, len(data) - 1):
        assert not bare(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :], "bmp")


def test_the_jfif_header_of_a_jpeg_is_a_constant():
    data = encode(levels((8, 8, 3)), "jpeg")
    for at in range(20):
        assert not bare(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :], "jpeg")


def refilled(change):
    """Return a PNG of grey levels whose stream is changed."""
    stream = change(zlib.compress(b"\0" * 12 * 11))
    header = b"IHDR" + struct.pack(">IIBBBBB", 11, 11, 8, 0, 0, 0, 0)
    named = [header, b"IDAT" + stream, b"IEND"]
    parts = [struct.pack(">I", len(part) - 4) + part + struct.pack(">I", zlib.crc32(part)) for part in named]
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def test_the_stream_of_a_png_has_its_rows_and_no_more():
    assert bare(refilled(bytes), "png")
    wrong = (
        lambda data: data + b"payload",
        lambda data: zlib.compress(zlib.decompress(data) + b"payload"),
        lambda data: zlib.compress(zlib.decompress(data)[:-1]),
        lambda data: data[:-4],
        lambda data: data[:9] + b"payload",
        lambda data: zlib.compress(bytes(1 << 26)),
    )
    assert [bare(refilled(change), "png") for change in wrong] == [False] * 6
