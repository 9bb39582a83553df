"""Nothing of a file but its levels survives: planted markers, searched in every output format."""

import struct
import zlib

import numpy as np
import pytest
from io_samples import chunk, file_bytes, picture
from PIL import Image, ImageCms, TiffImagePlugin

import dpveil.io as dio

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
    photo = dio.read(put(data))
    assert photo.image.shape == (40, 56, 3)
    for fmt in FORMATS:
        written = dio.encode(photo.image, fmt)
        for mark in marks:
            assert mark not in written
        assert unpacked(written, fmt).isdisjoint(marks)
        back = dio.read(put(written))
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
    marked = dio.read(
        put(marked_png(chunk(b"tEXt", b"a\0" + MARKER), image=plain, exif=marked_exif(), dpi=(99, 99)))
    )
    other = dio.read(put(plain, "a.bmp"))
    assert dio.encode(marked.image, fmt) == dio.encode(other.image, fmt)


def test_colour_hidden_under_transparency_is_gone(put):
    """Two files that show the same and hide different things are read as equal photos."""
    random = np.random.default_rng(1)
    shown = random.integers(0, 256, (16, 16, 3)).astype(np.uint8)
    alpha = random.choice([0, 255], (16, 16)).astype(np.uint8)

    def hiding(secret: np.ndarray) -> np.ndarray:
        return np.dstack([np.where(alpha[:, :, None] == 0, secret, shown), alpha])

    secrets = [random.integers(0, 256, (16, 16, 3)).astype(np.uint8) for _ in range(2)]
    for suffix, options in (("png", {}), ("tiff", {}), ("webp", {"lossless": True, "exact": True})):
        both = [dio.read(put(hiding(secret), f"a.{suffix}", **options)).image for secret in secrets]
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
        assert END[fmt](dio.encode(picture(*shape, channels), fmt))


def test_jpeg_segments_are_the_constant_ones():
    names = []
    data = dio.encode(picture(16, 16), "jpeg")
    at = 2
    while data[at + 1] != 0xDA:
        names.append(data[at + 1])
        at += 2 + struct.unpack(">H", data[at + 2 : at + 4])[0]
    assert set(names) == {0xE0, 0xDB, 0xC0, 0xC4}


def test_png_chunks_are_the_necessary_ones():
    data, at, names = dio.encode(picture(16, 16), "png"), 8, []
    while at < len(data):
        names.append(data[at + 4 : at + 8])
        at += 12 + struct.unpack(">I", data[at : at + 4])[0]
    assert set(names) == {b"IHDR", b"IDAT", b"IEND"}


def test_tiff_tags_are_the_necessary_ones():
    from io import BytesIO

    with Image.open(BytesIO(dio.encode(picture(16, 16), "tiff"))) as image:
        # size, depth, compression, photometric, strips, samples, planes, predictor, fmt
        assert set(image.tag_v2) <= {256, 257, 258, 259, 262, 273, 274, 277, 278, 279, 284, 317, 339}
