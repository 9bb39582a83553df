"""Encoding: exact for lossless formats, constant settings, clear refusals."""

from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from io_samples import picture
from PIL import Image, JpegImagePlugin

import dpveil.io as dio
from dpveil.errors import InvalidParameter, OutputError, UnknownName


@pytest.mark.parametrize("fmt", ["png", "webp", "tiff", "bmp"])
@pytest.mark.parametrize("shape", [(1, 1), (1, 17), (13, 1), (31, 18)])
@pytest.mark.parametrize("channels", [1, 3])
def test_lossless_formats_give_the_levels_back(put, fmt, shape, channels):
    image = np.random.default_rng(3).integers(0, 256, (*shape, channels)).astype(np.uint8)
    back = dio.read(put(dio.encode(image, fmt))).image
    assert back.shape == (*shape, 3 if fmt == "webp" else channels)
    assert np.array_equal(back, np.broadcast_to(image, back.shape))


def test_two_dimensions_and_views_are_taken(put):
    image = picture(9, 8)
    assert dio.encode(image[:, :, 0], "png") == dio.encode(image[:, :, :1].copy(), "png")
    assert dio.encode(image[::-1, ::2], "png") == dio.encode(image[::-1, ::2].copy(), "png")


def test_jpeg_is_quality_95_without_subsampling():
    with Image.open(BytesIO(dio.encode(picture(33, 20), "jpeg"))) as image:
        assert JpegImagePlugin.get_sampling(image) == 0
        assert image.size == (20, 33)
        buffer = BytesIO()
        Image.new("RGB", (8, 8)).save(buffer, "jpeg", quality=95)
        with Image.open(buffer) as reference:
            assert image.quantization == reference.quantization


def test_the_callers_array_is_neither_kept_nor_changed():
    image = picture(6, 6)
    before = image.copy()
    for fmt in set(dio.FORMATS.values()):
        dio.encode(image, fmt)
    assert np.array_equal(image, before)


def test_wrong_arrays_formats_and_sizes():
    for bad in (np.zeros((2, 2)), np.zeros((2, 2, 4), np.uint8), np.zeros((0, 2), np.uint8)):
        with pytest.raises(InvalidParameter):
            dio.encode(bad, "png")
    with pytest.raises(UnknownName, match="did you mean 'jpeg'"):
        dio.encode(picture(2, 2), "jpg")
    with pytest.raises(OutputError, match="do not fit into a webp file: write a PNG"):
        dio.encode(np.zeros((1, 16_384), np.uint8), "webp")
    with pytest.raises(OutputError, match="do not fit into a jpeg file"):
        dio.encode(np.zeros((65_501, 1), np.uint8), "jpeg")
    assert dio.encode(np.zeros((1, 16_383), np.uint8), "webp")
    assert dio.encode(np.zeros((65_500, 1), np.uint8), "jpeg")


@pytest.mark.parametrize("suffix", dio.FORMATS)
def test_suffixes(suffix):
    assert dio.format_of(f"a.b{suffix.upper()}") == dio.FORMATS[suffix]
    assert dio.encode(picture(2, 2), dio.format_of(Path("x") / f"a{suffix}"))


@pytest.mark.parametrize("shape", [(7, 5, 1), (300, 200, 3), (1, 1_000_000, 1), (1, 1_000_001, 1)])
def test_a_png_holds_its_levels_and_nothing_else(shape):
    image = np.random.default_rng(5).integers(0, 256, shape, np.uint8)
    contents = dio.encode(image, "png")
    kinds, at = [], 8
    while at < len(contents):
        length = int.from_bytes(contents[at : at + 4], "big")
        kinds.append(contents[at + 4 : at + 8])
        at += 12 + length
    assert at == len(contents)
    assert [kinds[0], *sorted(set(kinds[1:-1])), kinds[-1]] == [b"IHDR", b"IDAT", b"IEND"]
    with Image.open(BytesIO(contents)) as back:
        assert np.array_equal(np.asarray(back).reshape(shape), image)
