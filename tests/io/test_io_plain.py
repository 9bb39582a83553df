"""GIF and Netpbm: one picture in a file, level by level, or a refusal."""

import struct

import numpy as np
import pytest
from io_samples import file_bytes, picture
from PIL import Image

import dpveil.io as dio
from dpveil.errors import PhotoError


def refusal(data: bytes, **options) -> str:
    with pytest.raises(PhotoError) as caught:
        dio.read(data, **options)
    assert caught.value.hint
    return str(caught.value)


FEW = Image.fromarray(picture(20, 31)).quantize(16)


def test_a_gif_is_read_exactly_and_its_words_are_not():
    for interlace in (0, 1):
        data = file_bytes(FEW, "gif", comment=b"the secret place", interlace=interlace)
        assert np.array_equal(dio.read(data).image, np.asarray(FEW.convert("RGB")))
    grey = Image.fromarray(picture(20, 31, 1)[..., 0])
    assert np.array_equal(dio.read(file_bytes(grey, "gif")).image[..., 0], np.asarray(grey))


def test_the_transparent_colour_of_a_gif_is_white():
    key = int(np.asarray(FEW)[3, 4])
    image = dio.read(file_bytes(FEW, "gif", transparency=key)).image
    hidden = np.asarray(FEW) == key
    assert (image[hidden] == 255).all()
    assert np.array_equal(image[~hidden], np.asarray(FEW.convert("RGB"))[~hidden])


def test_frames_are_counted_and_refused():
    frames = [FEW.rotate(angle) for angle in (0, 90, 180)]
    for suffix in ("gif", "png", "webp", "avif"):
        data = file_bytes(frames[0].convert("RGB"), suffix, save_all=True, append_images=frames[1:])
        count = "" if suffix == "avif" else " of 3 frames"
        assert f"is an animation{count}: save one frame of it as a PNG" in refusal(data)


def test_a_gif_that_contradicts_itself_is_refused():
    data = bytearray(file_bytes(FEW, "gif"))
    data[6:10] = struct.pack("<HH", 60_000, 60_000)
    assert "more than the limit" in refusal(bytes(data))
    for length in range(0, len(data) // 2, 9):
        refusal(bytes(data[:length]))


@pytest.mark.parametrize("mode", ["1", "L", "RGB"])
def test_raw_netpbm_is_read_exactly(mode):
    image = Image.fromarray(picture(9, 13)).convert(mode)
    data = file_bytes(image, "ppm")
    expected = np.asarray(image.convert("L" if mode == "1" else mode)).reshape(9, 13, -1)
    assert np.array_equal(dio.read(data).image, expected)
    assert np.array_equal(dio.read(data.replace(b"13 9", b"13 # the width\n 9")).image, expected)
    for length in range(0, len(data), 3):
        refusal(data[:length])
    assert np.array_equal(dio.read(data + b"\n").image, expected)


def test_plain_netpbm_is_read_exactly():
    levels = picture(4, 5)
    words = b" ".join(b"%d" % level for level in levels.reshape(-1))
    assert np.array_equal(dio.read(b"P3\n5 4 255\n" + words).image, levels)
    grey = b" ".join(b"%d" % level for level in levels[..., 0].reshape(-1))
    assert np.array_equal(dio.read(b"P2 5 4\n255\n" + grey).image, levels[..., :1])
    assert dio.read(b"P1 3 1\n0 1 0").image.tolist() == [[[255], [0], [255]]]
    assert "damaged" in refusal(b"P2 2 1\n255\n1")


def test_other_depths_and_claimed_sizes():
    assert "pixels, which dpveil does not read" in refusal(b"P5 1 1\n65535\n\0\0")
    assert dio.read(b"P5 2 1\n15\n\0\x0f").image.tolist() == [[[0], [255]]]
    assert "more than the limit" in refusal(b"P6 60000 60000\n255\nabc")
    assert "more than the limit" in refusal(b"P3 60000 60000\n255\n1")
    for head in (b"P5 0 3\n255\n", b"P5 1\n", b"P5 -1 1 255\n", b"P5 1 1 255", b"P5 99999999999 1 255\n"):
        refusal(head)
