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


def test_limits_hold_for_all_of_them():
    for given in (file_of(LEVELS), file_of(LEVELS).getvalue(), Image.fromarray(LEVELS)):
        with pytest.raises(PhotoError, match="limit of 29"):
            dpveil.read(given, max_pixels=29)
    endless = type("Endless", (), {"read": lambda self, most: bytes(most)})()
    with pytest.raises(PhotoError, match="more bytes than any within the limit"):
        dpveil.read(endless, max_pixels=1)


@pytest.mark.parametrize("given", [3, None, [1], 3.5, StringIO("x"), b"x", Image.new("CMYK", (2, 2))])
def test_anything_else_is_one_clear_refusal(given):
    with pytest.raises((InvalidParameter, PhotoError)) as caught:
        dpveil.read(given)
    assert caught.value.hint
    assert "\n" not in str(caught.value)
