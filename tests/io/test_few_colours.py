"""Sources of few colours: palette and dither follow from the whole picture, also from what is hidden."""

from __future__ import annotations

import struct
import zlib
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import dpveil
from dpveil.errors import InvalidParameter, TooWeak

HIDDEN = "32,32,40,40"
SIDE = 96


def original(secret: int) -> Image.Image:
    """A photo of which only the hidden box depends on `secret`."""
    rng = np.random.default_rng(7)
    levels = rng.integers(0, 256, (12, 12, 3)).astype(np.uint8).repeat(8, 0).repeat(8, 1)
    levels = (levels * 0.5 + np.linspace(0, 120, SIDE)[None, :, None]).astype(np.uint8)
    levels[32:72, 32:72] = np.random.default_rng(secret).integers(0, 256, (40, 40, 3))
    return Image.fromarray(levels)


STORED = {
    "GIF": ("palette", lambda image: (image, "GIF")),
    "grey GIF": ("palette", lambda image: (image.convert("L").quantize(8), "GIF")),
    "PNG-8": ("palette", lambda image: (image.quantize(64), "PNG")),
    "BMP of 16 colours": ("palette", lambda image: (image.quantize(16), "BMP")),
    "1-bit PNG": ("1-bit", lambda image: (image.convert("1"), "PNG")),
    "1-bit TIFF": ("1-bit", lambda image: (image.convert("1"), "TIFF")),
    "PBM": ("1-bit", lambda image: (image.convert("1"), "PPM")),
}


def stored(name: str, secret: int) -> bytes:
    image, kind = STORED[name][1](original(secret))
    file = BytesIO()
    image.save(file, kind)
    return file.getvalue()


@pytest.mark.parametrize("name", STORED)
def test_what_few_colours_may_show_is_stated_and_not_publishable(name: str, tmp_path: Path) -> None:
    codec = STORED[name][0]
    first, second = (dpveil.obfuscate(stored(name, n), "fill", regions=HIDDEN) for n in (1, 2))
    assert (first.image != second.image).any(), "the hidden box shows outside of itself"
    made = first.certificate
    assert (made.strength, made.publishable, len(made.objections)) == ("strong", False, 1)
    assert (made.regions[0].origin.grown_to, made.regions[0].origin.escapes) == (codec, True)
    assert str(made.regions[0].box) == HIDDEN
    path, _ = first.save(tmp_path / "a.png")
    found = dpveil.verify(path, at_least="weak")
    assert (found.status, found.publishable, found.sound) == ("consistent", False, False)
    with pytest.raises(TooWeak):
        dpveil.plan(stored(name, 1), "fill", regions=HIDDEN, at_least="weak")
    whole = dpveil.obfuscate(stored(name, 1), "fill", at_least="weak").certificate
    assert (whole.publishable, whole.regions[0].origin.grown_to) == (True, None)


@pytest.mark.parametrize("name", STORED)
def test_the_owner_may_say_that_reducing_colours_lost_nothing(name: str, tmp_path: Path) -> None:
    photo = dpveil.read(stored(name, 1), trust_source="lossless")
    release = dpveil.obfuscate(photo, "fill", regions=HIDDEN, at_least="strong")
    origin = release.certificate.regions[0].origin
    assert (release.certificate.publishable, origin.grown_to, origin.escapes) == (
        True,
        STORED[name][0],
        False,
    )
    path, _ = release.save(tmp_path / "a.png")
    assert dpveil.verify(path).status == "consistent"
    plain = dpveil.obfuscate(stored(name, 1), "fill", regions=HIDDEN)
    assert len(plain.certificate.warnings) == len(release.certificate.warnings) + 1


def test_the_owner_s_word_changes_nothing_of_formats_that_are_known_to_be_lossy() -> None:
    file = BytesIO()
    original(1).save(file, "WEBP", quality=80)
    photo = dpveil.read(file.getvalue(), trust_source="lossless")
    assert dpveil.obfuscate(photo, "fill", regions=HIDDEN).certificate.regions[0].origin.escapes
    with pytest.raises(InvalidParameter):
        dpveil.read(file.getvalue(), trust_source="always")


def test_2_and_4_bits_are_few_and_8_are_not() -> None:
    """Pillow decodes all of them as mode L."""
    for bits, codec in ((2, "2-bit"), (4, "4-bit")):
        grid = dpveil.read(few_bits(bits)).grid
        assert grid is not None
        assert grid.codec == codec
        opened = Image.open(BytesIO(few_bits(bits)))
        assert dpveil.obfuscate(opened, "fill", regions="1,1,2,2").certificate.objections
    assert dpveil.read(few_bits(8)).grid is None


def few_bits(bits: int) -> bytes:
    """A grey PNG of 8 × 8 pixels with so many bits each, written by hand."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    header = struct.pack(">IIBBBBB", 8, 8, bits, 0, 0, 0, 0)
    rows = b"".join(b"\0" + bytes(bits) for _ in range(8))
    parts = (chunk(b"IHDR", header), chunk(b"IDAT", zlib.compress(rows)), chunk(b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)
