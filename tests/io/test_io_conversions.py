"""Every kind of pixels becomes 8-bit grey or sRGB, with exactly the expected levels."""

import struct

import numpy as np
import pytest
from io_samples import picture, png
from PIL import Image, ImageCms, TiffImagePlugin

import dpveil.io as dio

WHITE = [255, 255, 255]


def levels(path):
    return dio.read(path).image


@pytest.mark.parametrize("suffix", ["png", "tiff", "bmp", "webp"])
@pytest.mark.parametrize("shape", [(1, 1), (1, 9), (9, 1), (17, 23)])
def test_rgb_is_read_as_it_is(put, suffix, shape):
    image = picture(*shape)
    options = {"lossless": True} if suffix == "webp" else {}
    photo = dio.read(put(image, f"a.{suffix}", **options))
    assert np.array_equal(photo.image, image)
    assert photo.grid is None
    assert photo.notes == ()


@pytest.mark.parametrize("suffix", ["png", "tiff", "bmp", "jpg"])
def test_grey_stays_one_channel(put, suffix):
    image = np.full((16, 8), 77, np.uint8)
    assert levels(put(image, f"a.{suffix}")).tolist() == np.full((16, 8, 1), 77).tolist()


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


def test_palette_with_alpha_plane(put):
    image = Image.new("PA", (2, 1))
    image.putpalette([1, 2, 3, 200, 100, 50])
    image.putdata([(1, 255), (0, 0)])
    assert levels(put(image, "a.tiff")).tolist() == [[[200, 100, 50], WHITE]]


@pytest.mark.parametrize("suffix", ["png", "tiff", "webp"])
def test_colour_under_alpha_is_laid_over_white(put, suffix):
    image = np.array([[[10, 20, 30, 0], [10, 20, 30, 255], [10, 20, 30, 128], [0, 0, 0, 1]]], np.uint8)
    options = {"lossless": True, "exact": True} if suffix == "webp" else {}
    photo = dio.read(put(image, f"a.{suffix}", **options))
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


def test_deep_grey_key_colour_is_gone(put):
    data = png(2, 1, 16, 0, struct.pack(">2H", 0x1234, 0x1235), trns=struct.pack(">H", 0x1234))
    assert levels(put(data)).ravel().tolist() == [255, 18]


@pytest.mark.parametrize("suffix", ["png", "tiff"])
def test_deep_grey_is_rounded_exactly(put, suffix):
    values = np.arange(65536, dtype=np.uint16).reshape(256, 256)
    got = levels(put(Image.fromarray(values), f"a.{suffix}"))[:, :, 0]
    assert np.array_equal(got, np.rint(values.astype(np.float64) * 255 / 65535).astype(np.uint8))


def test_deep_colour_keeps_its_high_byte_and_says_so(put):
    photo = dio.read(put(png(1, 1, 16, 2, struct.pack(">3H", 0x12FF, 0x3400, 0xFFFF))))
    assert photo.image.tolist() == [[[0x12, 0x34, 0xFF]]]
    assert photo.notes == ("16-bit colour kept its high byte",)


def test_cmyk_without_profile(put):
    image = Image.new("CMYK", (2, 1))
    image.putdata([(0, 255, 255, 0), (0, 0, 0, 255)])
    assert levels(put(image, "a.tiff")).tolist() == [[[255, 0, 0], [0, 0, 0]]]


def test_adobe_cmyk_jpeg_is_not_inverted(put):
    image = Image.new("CMYK", (16, 16), (0, 200, 200, 10))  # a red; an inverted reading is cyan
    path = put(image, "a.jpg", quality=100)
    assert b"Adobe" in path.read_bytes()
    red, green, blue = levels(path)[8, 8].tolist()
    assert red > 230
    assert max(green, blue) < 70


def test_ycbcr(put):
    image = Image.fromarray(np.full((4, 4, 3), (200, 100, 50), np.uint8)).convert("YCbCr")
    got = levels(put(image, "a.tiff"))
    assert np.abs(got.astype(int) - (200, 100, 50)).max() <= 1


def test_subsampled_ycbcr_tiff_is_refused(put):
    image = Image.fromarray(picture(4, 4)).convert("YCbCr")
    tags = TiffImagePlugin.ImageFileDirectory_v2()
    tags[530] = (2, 2)
    with pytest.raises(dio.reading.PhotoError, match="lossy compression"):
        dio.read(put(image, "a.tiff", tiffinfo=tags))


def swapped_profile() -> bytes:
    """An sRGB profile with the red and the green primaries exchanged: applying it cannot go unnoticed."""
    data = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    return data.replace(b"rXYZ", b"tmp_").replace(b"gXYZ", b"rXYZ").replace(b"tmp_", b"gXYZ")


@pytest.mark.parametrize("suffix", ["png", "jpg", "tiff", "webp"])
def test_a_profile_is_applied(put, suffix):
    image = np.full((16, 16, 3), (200, 0, 0), np.uint8)
    options = {"lossless": True} if suffix == "webp" else {}
    photo = dio.read(put(image, f"a.{suffix}", icc_profile=swapped_profile(), **options))
    red, green, blue = photo.image[8, 8].tolist()
    assert green > 190
    assert max(red, blue) < 20
    assert "its colour profile was applied" in photo.notes


def test_a_profile_is_applied_before_transparency(put):
    image = np.array([[[200, 0, 0, 255], [200, 0, 0, 0]]], np.uint8)
    got = levels(put(image, icc_profile=swapped_profile()))
    assert got[0, 0, 1] > 190
    assert got[0, 1].tolist() == WHITE


@pytest.mark.parametrize("profile", [b"junk", b"\0" * 200])
def test_a_broken_profile_is_noted_and_ignored(put, profile):
    image = picture(5, 7)
    photo = dio.read(put(image, icc_profile=profile))
    assert np.array_equal(photo.image, image)
    assert any("profile is unusable" in note for note in photo.notes)
