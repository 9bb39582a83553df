"""One reader for names, bytes, open files, Pillow's pictures and levels."""

from io import BytesIO, StringIO

import numpy as np
import pytest
from PIL import Image

import dpveil
from dpveil.errors import InvalidParameter, PhotoError

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
    with path.open("rb") as file, Image.open(path) as opened:
        held = (data, bytearray(data), memoryview(data), LEVELS)
        for given in (path, str(path), *held, file, written, opened):
            assert np.array_equal(dpveil.read(given).image, LEVELS)
            assert np.array_equal(dpveil.plan(given, "fill").photo.image, LEVELS)
    photo = dpveil.read(LEVELS)
    assert dpveil.read(photo) is photo


def test_pictures_of_pillow_are_turned_upright_and_put_on_white():
    turned = Image.open(file_of(LEVELS))
    turned.getexif()[0x0112] = 6
    assert np.array_equal(dpveil.read(turned).image, np.rot90(LEVELS, -1))
    clear = Image.new("RGBA", (2, 2), (9, 9, 9, 0))
    assert (dpveil.read(clear).image == 255).all()
    for mode in ("1", "L", "P", "LA"):
        assert dpveil.read(Image.new(mode, (2, 2))).image.shape[:2] == (2, 2)


@pytest.mark.parametrize("kind", ["JPEG", "WEBP", "TIFF", "GIF", "JPEG2000"])
def test_a_picture_whose_blocks_are_unknown_is_refused(kind):
    with Image.open(file_of(LEVELS, kind)) as picture, pytest.raises(InvalidParameter, match="of its file"):
        dpveil.read(picture)
    if kind in ("JPEG", "WEBP", "TIFF"):
        assert dpveil.read(file_of(LEVELS, kind)).image.shape == LEVELS.shape


@pytest.mark.parametrize(
    "changed", [lambda p: p.convert("RGB"), lambda p: p.crop((1, 1, 4, 4)), Image.Image.copy]
)
@pytest.mark.parametrize("kind", ["JPEG", "MPO", "WEBP", "AVIF", "TIFF", "JPEG2000"])
def test_a_picture_made_from_one_whose_blocks_are_unknown_is_refused(kind, changed):
    with Image.open(file_of(LEVELS, kind)) as picture:
        made = changed(picture)
    assert made.format is None
    with pytest.raises(InvalidParameter, match=r"lossy blocks: give the name of its file$"):
        dpveil.plan(made, "fill")


@pytest.mark.parametrize(
    "trace", ["jfif_density", "adobe", "adobe_transform", "progression", "mp", "exif", "thumbnails"]
)
def test_each_trace_of_a_lossy_file_is_seen(trace):
    picture = Image.fromarray(LEVELS)
    picture.info[trace] = b"1"
    with pytest.raises(InvalidParameter, match="of its file"):
        dpveil.read(picture)


@pytest.mark.parametrize("kind", ["PNG", "BMP", "PPM"])
def test_a_picture_made_from_one_without_blocks_is_read(kind):
    with Image.open(file_of(LEVELS, kind)) as picture:
        assert np.array_equal(dpveil.read(picture.convert("RGB")).image, LEVELS)


def test_an_open_animation_is_refused_as_its_file_is():
    frames = [Image.fromarray(LEVELS + np.uint8(i)) for i in range(3)]
    file = BytesIO()
    frames[0].save(file, "PNG", save_all=True, append_images=frames[1:])
    for given in (file, Image.open(file)):
        with pytest.raises(PhotoError, match=r"^the photo is an animation of 3 frames: save one frame"):
            dpveil.read(given)


@pytest.mark.parametrize("mask", [False, LEVELS > 100])
def test_masked_levels_are_refused(mask):
    with pytest.raises(InvalidParameter, match=r"is a masked array: give its \.filled\(\.\.\.\)$"):
        dpveil.read(np.ma.MaskedArray(LEVELS, mask=mask))


def test_limits_hold_before_levels_are_copied(monkeypatch):
    monkeypatch.setattr("dpveil.io.reading.Photo.__init__", pytest.fail)
    monkeypatch.setattr(Image.Image, "save", pytest.fail)
    for given in (LEVELS, LEVELS[:, :, 0], Image.fromarray(LEVELS)):
        with pytest.raises(PhotoError, match=r"^the photo has 5 × 6 pixels, more than the limit of 29"):
            dpveil.read(given, max_pixels=29)


@pytest.mark.parametrize("given", [3, None, [1], 3.5, StringIO("x"), b"x", Image.new("CMYK", (2, 2))])
def test_anything_else_is_one_clear_refusal(given):
    with pytest.raises((InvalidParameter, PhotoError)) as caught:
        dpveil.read(given)
    assert caught.value.hint
    assert "\n" not in str(caught.value)
