"""Every kind of pixels becomes 8-bit grey or sRGB, with exactly the expected levels."""

from __future__ import annotations

import struct
import zlib
from io import BytesIO, StringIO
from pathlib import Path

import numpy as np
import pytest
from io_samples import file_bytes, picture, png, swapped_profile
from PIL import Image, TiffImagePlugin

import dpveil
from dpveil.errors import InvalidParameter, PhotoError, TooWeak
from dpveil.io import reading

WHITE = [255, 255, 255]


def levels(path):
    return reading.read(path).image


def test_palette_becomes_rgb(put):
    image = Image.new("P", (3, 1))
    image.putpalette([1, 2, 3, 200, 100, 50, 9, 9, 9])
    image.putdata([1, 0, 2])
    assert levels(put(image)).tolist() == [[[200, 100, 50], [1, 2, 3], [9, 9, 9]]]


def test_transparent_palette_entries_are_gone(put):
    image = Image.new("P", (3, 1))
    image.putpalette([1, 2, 3, 200, 100, 50, 9, 9, 9])
    image.putdata([1, 0, 2])
    got = levels(put(image, transparency=b"\x00\x80\xff"))
    assert got.tolist() == [[[227, 177, 152], WHITE, [9, 9, 9]]]
    assert levels(put(image, transparency=0)).tolist() == [[[200, 100, 50], WHITE, [9, 9, 9]]]


@pytest.mark.parametrize("suffix", ["png", "tiff", "webp"])
def test_colour_under_alpha_is_laid_over_white(put, suffix):
    image = np.array([[[10, 20, 30, 0], [10, 20, 30, 255], [10, 20, 30, 128], [0, 0, 0, 1]]], np.uint8)
    options = {"lossless": True, "exact": True} if suffix == "webp" else {}
    photo = reading.read(put(image, f"a.{suffix}", **options))
    assert photo.image.tolist() == [[WHITE, [10, 20, 30], [132, 137, 142], [254, 254, 254]]]
    assert any("transparency" in note for note in photo.notes)


def test_all_alphas_and_levels_are_rounded_to_nearest(put):
    level, alpha = np.mgrid[:256, :256]
    both = np.stack([level, alpha], axis=2).astype(np.uint8)
    exact = (2 * (level * alpha + 255 * (255 - alpha)) + 255) // 510
    assert np.array_equal(levels(put(both))[:, :, 0], exact)


@pytest.mark.parametrize("suffix", ["png", "tiff"])
def test_grey_with_alpha_stays_grey(put, suffix):
    image = np.array([[[50, 0], [50, 255], [100, 51]]], np.uint8)
    assert levels(put(image, f"a.{suffix}")).ravel().tolist() == [255, 50, 224]


@pytest.mark.parametrize(
    ("depth", "key", "shown"), [(8, 7, [255, 9]), (4, 7, [255, 153]), (2, 1, [255, 170])]
)
def test_grey_key_colour_is_gone(put, depth, key, shown):
    row = {8: b"\7\x09", 4: b"\x79", 2: b"\x60"}[depth]  # the key, then another level
    data = png(2, 1, depth, 0, row, trns=struct.pack(">H", key))
    assert levels(put(data)).ravel().tolist() == shown


def test_rgb_key_colour_is_gone(put):
    row = bytes([1, 2, 3, 1, 2, 4])
    data = png(2, 1, 8, 2, row, trns=struct.pack(">HHH", 1, 2, 3))
    assert levels(put(data)).tolist() == [[WHITE, [1, 2, 4]]]


@pytest.mark.parametrize("suffix", ["png", "tiff"])
def test_deep_grey_is_rounded_exactly(put, suffix):
    values = np.arange(65536, dtype=np.uint16).reshape(256, 256)
    got = levels(put(Image.fromarray(values), f"a.{suffix}"))[:, :, 0]
    assert np.array_equal(got, np.rint(values.astype(np.float64) * 255 / 65535).astype(np.uint8))


def test_deep_colour_keeps_its_high_byte_and_says_so(put):
    photo = reading.read(put(png(1, 1, 16, 2, struct.pack(">3H", 0x12FF, 0x3400, 0xFFFF))))
    assert photo.image.tolist() == [[[0x12, 0x34, 0xFF]]]
    assert photo.notes == ("16-bit colour kept its high byte",)


def test_adobe_cmyk_jpeg_is_not_inverted(put):
    image = Image.new("CMYK", (16, 16), (0, 200, 200, 10))  # a red; an inverted reading is cyan
    path = put(image, "a.jpg", quality=100)
    assert b"Adobe" in path.read_bytes()
    red, green, blue = levels(path)[8, 8].tolist()
    assert red > 230
    assert max(green, blue) < 70


def test_subsampled_ycbcr_tiff_is_refused(put):
    image = Image.fromarray(picture(4, 4)).convert("YCbCr")
    tags = TiffImagePlugin.ImageFileDirectory_v2()
    tags[530] = (2, 2)
    with pytest.raises(reading.PhotoError, match="lossy compression"):
        reading.read(put(image, "a.tiff", tiffinfo=tags))


@pytest.mark.parametrize("suffix", ["png", "jpg", "tiff", "webp"])
def test_a_profile_is_applied(put, suffix):
    image = np.full((16, 16, 3), (200, 0, 0), np.uint8)
    options = {"lossless": True} if suffix == "webp" else {}
    photo = reading.read(put(image, f"a.{suffix}", icc_profile=swapped_profile(), **options))
    red, green, blue = photo.image[8, 8].tolist()
    assert green > 190
    assert max(red, blue) < 20
    assert "its colour profile was applied" in photo.notes


@pytest.mark.parametrize("profile", [b"junk", b"\0" * 200])
def test_a_broken_profile_is_noted_and_ignored(put, profile):
    image = picture(5, 7)
    photo = reading.read(put(image, icc_profile=profile))
    assert np.array_equal(photo.image, image)
    assert any("profile is unusable" in note for note in photo.notes)


# GIF and Netpbm: one picture in a file, level by level, or a refusal.


def refusal(data: bytes, **options) -> str:
    with pytest.raises(PhotoError) as caught:
        reading.read(data, **options)
    assert caught.value.hint
    return str(caught.value)


FEW = Image.fromarray(picture(20, 31)).quantize(16)


def test_a_gif_is_read_exactly_and_its_words_are_not():
    for interlace in (0, 1):
        data = file_bytes(FEW, "gif", comment=b"the secret place", interlace=interlace)
        assert np.array_equal(reading.read(data).image, np.asarray(FEW.convert("RGB")))
    grey = Image.fromarray(picture(20, 31, 1)[..., 0])
    assert np.array_equal(reading.read(file_bytes(grey, "gif")).image[..., 0], np.asarray(grey))


def test_the_transparent_colour_of_a_gif_is_white():
    key = int(np.asarray(FEW)[3, 4])
    image = reading.read(file_bytes(FEW, "gif", transparency=key)).image
    hidden = np.asarray(FEW) == key
    assert (image[hidden] == 255).all()
    assert np.array_equal(image[~hidden], np.asarray(FEW.convert("RGB"))[~hidden])


def test_frames_are_counted_and_refused():
    frames = [FEW.rotate(angle) for angle in (0, 90, 180)]
    for suffix in ("gif", "png", "webp", "avif"):
        data = file_bytes(frames[0].convert("RGB"), suffix, save_all=True, append_images=frames[1:])
        assert "is an animation of 3 frames: save one frame of it as a PNG" in refusal(data)


@pytest.mark.parametrize("mode", ["1", "L", "RGB"])
def test_raw_netpbm_is_read_exactly(mode):
    image = Image.fromarray(picture(9, 13)).convert(mode)
    data = file_bytes(image, "ppm")
    expected = np.asarray(image.convert("L" if mode == "1" else mode)).reshape(9, 13, -1)
    assert np.array_equal(reading.read(data).image, expected)
    assert np.array_equal(reading.read(data.replace(b"13 9", b"13 # the width\n 9")).image, expected)
    for length in range(0, len(data), 3):
        refusal(data[:length])
    assert np.array_equal(reading.read(data + b"\n").image, expected)


def test_other_depths_and_claimed_sizes():
    assert "pixels, which dpveil does not read" in refusal(b"P5 1 1\n65535\n\0\0")
    assert reading.read(b"P5 2 1\n15\n\0\x0f").image.tolist() == [[[0], [255]]]
    assert "more than the limit" in refusal(b"P6 60000 60000\n255\nabc")
    assert "more than the limit" in refusal(b"P3 60000 60000\n255\n1")
    for head in (b"P5 0 3\n255\n", b"P5 1\n", b"P5 -1 1 255\n", b"P5 1 1 255", b"P5 99999999999 1 255\n"):
        refusal(head)


# Sources of few colours: palette and dither follow from the whole picture, also from what is hidden.


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
    whole = dpveil.obfuscate(stored(name, 1), "fill", regions="whole", at_least="weak").certificate
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
        assert dpveil.obfuscate(few_bits(bits), "fill", regions="1,1,2,2").certificate.objections
    assert dpveil.read(few_bits(8)).grid is None


def few_bits(bits: int) -> bytes:
    """A grey PNG of 8 × 8 pixels with so many bits each, written by hand."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    header = struct.pack(">IIBBBBB", 8, 8, bits, 0, 0, 0, 0)
    rows = b"".join(b"\0" + bytes(bits) for _ in range(8))
    parts = (chunk(b"IHDR", header), chunk(b"IDAT", zlib.compress(rows)), chunk(b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


# One reader for names, bytes, open files and levels.


LEVELS = (np.arange(6 * 5 * 3) % 251).astype(np.uint8).reshape(6, 5, 3)


def file_of(levels, kind="PNG", **settings):
    file = BytesIO()
    Image.fromarray(levels).save(file, kind, **settings)
    return file


def test_whatever_holds_a_photo_is_read_alike(tmp_path):
    data = file_of(LEVELS).getvalue()
    path = tmp_path / "a.png"
    path.write_bytes(data)
    written = file_of(LEVELS)
    with path.open("rb") as file:
        held = (data, bytearray(data), memoryview(data), LEVELS)
        for given in (path, str(path), *held, file, written):
            assert np.array_equal(dpveil.read(given).image, LEVELS)
            assert np.array_equal(dpveil.plan(given, "fill", regions="whole").photo.image, LEVELS)
    photo = dpveil.read(LEVELS)
    assert dpveil.read(photo) is photo


@pytest.mark.parametrize("mask", [False, LEVELS > 100])
def test_masked_levels_are_refused(mask):
    with pytest.raises(InvalidParameter, match=r"is a masked array: give its \.filled\(\.\.\.\)$"):
        dpveil.read(np.ma.MaskedArray(LEVELS, mask=mask))


@pytest.mark.parametrize("given", [3, None, [1], 3.5, StringIO("x"), b"x", Image.new("RGB", (2, 2))])
def test_anything_else_is_one_clear_refusal(given):
    with pytest.raises((InvalidParameter, PhotoError)) as caught:
        dpveil.read(given)
    assert caught.value.hint
    assert "\n" not in str(caught.value)
