"""EXIF orientation: all eight values, wherever a file may state it, and the block grid that turns along."""

import itertools

import cv2
import numpy as np
import pytest
from io_samples import chunk, file_bytes, picture
from PIL import Image

from dpveil.core.photo import BlockGrid, Photo
from dpveil.core.region import Box, Region
from dpveil.io import reading
from dpveil.regions.growth import grow

# How a viewer turns stored pixels (EXIF 2.32), written with other operations than the library's.
UPRIGHT = {
    1: lambda a: a,
    2: np.fliplr,
    3: lambda a: np.rot90(a, 2),
    4: np.flipud,
    5: lambda a: np.rot90(np.fliplr(a)),
    6: lambda a: np.rot90(a, 3),
    7: lambda a: np.rot90(np.fliplr(a), 3),
    8: lambda a: np.rot90(a),
}
STORED = {**UPRIGHT, 6: UPRIGHT[8], 8: UPRIGHT[6]}


def exif(value: object) -> Image.Exif:
    tags = Image.Exif()
    tags[0x0112] = value
    return tags


@pytest.mark.parametrize("value", range(1, 9))
@pytest.mark.parametrize("suffix", ["png", "tiff", "webp"])
def test_stated_orientation_is_applied_exactly(put, suffix, value):
    stored = picture(5, 8)
    options = {"lossless": True} if suffix == "webp" else {}
    image = reading.read(put(stored, f"a.{suffix}", exif=exif(value), **options)).image
    assert np.array_equal(image, UPRIGHT[value](stored))


@pytest.mark.parametrize("value", range(1, 9))
def test_jpeg_orientation_is_applied(put, value):
    stored = picture(30, 50)
    image = reading.read(put(stored, "a.jpg", exif=exif(value), quality=95, subsampling=0)).image
    expected = UPRIGHT[value](stored)
    assert image.shape == expected.shape
    assert np.abs(image.astype(int) - expected).max() < 12


def test_orientation_in_xmp_and_after_the_pixels_is_applied(put):
    stored = picture(3, 4)
    xmp = b'<x:xmpmeta><rdf:Description tiff:Orientation="6"/></x:xmpmeta>'
    jpeg = put(np.full((8, 16), 9, np.uint8), "a.jpg", xmp=xmp)
    assert reading.read(jpeg).image.shape == (16, 8, 1)
    data = file_bytes(stored, "png")
    late = data[:-12] + chunk(b"eXIf", exif(6).tobytes()[6:]) + data[-12:]
    assert np.array_equal(reading.read(put(late)).image, UPRIGHT[6](stored))


GRIDS = {
    1: BlockGrid(16, 8),
    2: BlockGrid(16, 8, x0=50 % 16),
    3: BlockGrid(16, 8, x0=50 % 16, y0=30 % 8),
    4: BlockGrid(16, 8, y0=30 % 8),
    5: BlockGrid(8, 16),
    6: BlockGrid(8, 16, x0=30 % 8),
    7: BlockGrid(8, 16, x0=30 % 8, y0=50 % 16),
    8: BlockGrid(8, 16, y0=50 % 16),
}


@pytest.mark.parametrize("value", range(1, 9))
def test_the_grid_turns_with_the_photo(put, value):
    path = put(picture(30, 50), "a.jpg", subsampling="4:2:2", exif=exif(value))
    assert reading.read(path).grid == GRIDS[value]


@pytest.mark.parametrize(
    ("factors", "grid"),
    [
        (0x411111, BlockGrid(32, 8)),
        (0x221111, BlockGrid(16, 16)),
        (0x211111, BlockGrid(16, 8)),
        (0x121111, BlockGrid(8, 16)),
        (0x111111, BlockGrid(8, 8, margin=0)),
    ],
)
def test_the_grid_is_that_of_the_sampling_factors(put, factors, grid):
    ok, data = cv2.imencode(".jpg", picture(40, 40), [cv2.IMWRITE_JPEG_SAMPLING_FACTOR, factors])
    assert ok
    assert reading.read(put(data.tobytes())).grid == grid


def test_a_grey_jpeg_has_small_blocks_whatever_its_factors(put):
    data = bytearray(file_bytes(np.full((20, 20), 9, np.uint8), "jpeg"))
    assert reading.read(put(bytes(data))).grid == BlockGrid(8, 8, margin=0)
    frame = data.index(b"\xff\xc0")
    data[frame + 11] = 0x22
    assert reading.read(put(bytes(data))).grid == BlockGrid(8, 8, margin=0)


def encodings():
    for subsampling, quality in itertools.product((0, 1, 2), (50, 75, 95)):
        yield lambda image, s=subsampling, q=quality: file_bytes(image, "jpeg", quality=q, subsampling=s)
    for factors in (0x411111, 0x121111):
        options = [cv2.IMWRITE_JPEG_SAMPLING_FACTOR, factors, cv2.IMWRITE_JPEG_QUALITY, 75]
        yield lambda image, o=options: cv2.imencode(".jpg", image, o)[1].tobytes()


def with_orientation(jpeg: bytes, value: int) -> bytes:
    body = b"Exif\0\0" + exif(value).tobytes().removeprefix(b"Exif\0\0")
    return jpeg[:2] + b"\xff\xe1" + (len(body) + 2).to_bytes(2, "big") + body + jpeg[2:]


@pytest.mark.parametrize("value", range(1, 9))
def test_nothing_of_a_region_is_decoded_outside_the_grown_region(put, value):
    """Change every pixel of a box before encoding: what differs after decoding lies in the grown region."""
    random = np.random.default_rng(value)
    scene = random.integers(0, 256, (10, 12, 3)).astype(np.uint8).repeat(7, 0).repeat(7, 1)[:67, :83]
    spilled = 0
    for encoding in encodings():
        first = reading.read(put(with_orientation(encoding(scene), value)))
        width, height = random.integers(1, 30, 2).tolist()
        x, y = (int(random.integers(0, n)) for n in (first.width - width, first.height - height))
        box = Box(x, y, width, height)
        upright = UPRIGHT[value](scene).copy()
        upright[box.slices] = 255 - upright[box.slices] // 2
        other = reading.read(put(with_orientation(encoding(STORED[value](upright).copy()), value)))
        changed = (first.image != other.image).any(axis=2)
        assert changed.any()
        changed[box.slices] = False
        spilled += int(changed.sum())
        changed[grow(Region(box), first).box.slices] = False
        assert not changed.any()
    assert spilled > 0  # so that the test could fail


def test_the_margin_is_needed(put):
    """At 4:2:0 chroma upsampling crosses the edge of a block, which a grid without margin would miss."""
    scene = np.zeros((48, 48, 3), np.uint8)
    other = scene.copy()
    other[16:32, 16:32] = (255, 0, 0)
    both = [reading.read(put(image, "a.jpg", quality=95, subsampling=2)) for image in (scene, other)]
    changed = (both[0].image != both[1].image).any(axis=2)
    assert changed[15].any()
    blocks = Photo(scene, BlockGrid(16, 16, margin=0, codec="Other"))
    assert grow(Region(Box(16, 16, 16, 16)), blocks).box == Box(16, 16, 16, 16)
    assert grow(Region(Box(16, 16, 16, 16)), both[0]).box == Box(15, 15, 18, 18)
    assert not changed[:15].any()


def test_lossy_webp_is_honest_about_its_spill(put):
    """Prediction carries a box's contents to the far corner."""
    scene = np.random.default_rng(0).integers(0, 256, (12, 12, 3)).astype(np.uint8).repeat(8, 0).repeat(8, 1)
    other = scene.copy()
    other[20:50, 20:50] = 255 - other[20:50, 20:50]
    both = [reading.read(put(image, "a.webp", quality=75)) for image in (scene, other)]
    changed = (both[0].image != both[1].image).any(axis=2)
    changed[grow(Region(Box(20, 20, 30, 30)), both[0]).box.slices] = False
    assert changed.any()
    assert both[0].grid == BlockGrid(16, 16, margin=8, codec="WebP")
    assert reading.read(put(scene, "a.webp", lossless=True)).grid is None
