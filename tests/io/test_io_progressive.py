"""A progressive JPEG that ends early is refused: libjpeg makes up what was not sent from blocks around."""

import re

import numpy as np
import pytest
from io_samples import file_bytes, picture
from PIL import Image

import dpveil.io as dio
from dpveil.core.region import Box, Region
from dpveil.errors import PhotoError
from dpveil.regions.tiling import grow

MARKER = re.compile(rb"\xff[^\x00\xd0-\xd7]")


def progressive(image: np.ndarray, **options) -> bytes:
    return file_bytes(image, "jpeg", progressive=True, quality=90, **options)


def scan_ends(data: bytes) -> list[int]:
    """Where each scan's data end."""
    ends = []
    for scan in re.finditer(rb"\xff\xda", data):
        after = scan.end() + int.from_bytes(data[scan.end() : scan.end() + 2], "big")
        ends.append(MARKER.search(data, after).start())
    return ends


def cut_after(data: bytes, scans: int) -> bytes:
    return data[: scan_ends(data)[scans - 1]] + b"\xff\xd9"


def block(level: int, *shape: int) -> np.ndarray:
    image = np.full(shape, 100, np.uint8)
    image[40:48, 40:48] = level
    return image


SAMPLES = {
    "grey": (progressive(picture(40, 56, 1)[..., 0]), 6),
    "4:4:4": (progressive(picture(40, 56), subsampling=0), 10),
    "4:2:0": (progressive(picture(40, 56), subsampling=2), 10),
    "restarts": (progressive(picture(40, 56), restart_marker_blocks=2), 10),
}


@pytest.mark.parametrize("kind", SAMPLES)
def test_only_what_was_sent_to_the_last_bit_is_read(put, kind):
    data, scans = SAMPLES[kind]
    assert len(scan_ends(data)) == scans
    assert dio.read(put(data, "a.jpg")).image.shape[:2] == (40, 56)
    for sent in range(1, scans):
        for cut in (cut_after(data, sent), cut_after(data, sent)[:-2]):
            with pytest.raises(PhotoError, match="truncated or damaged JPEG"):
                dio.read(put(cut, "a.jpg"))


@pytest.mark.parametrize("shape", [(96, 96), (96, 96, 3)], ids=["grey", "colour"])
def test_the_leak_that_this_refuses_and_that_whole_files_have_none(put, shape):
    whole = [progressive(block(level, *shape), subsampling=0) for level in (0, 255)]
    early = [put(cut_after(data, 1), f"{i}.jpg") for i, data in enumerate(whole)]
    pillow = [np.asarray(Image.open(path)).astype(int) for path in early]
    photos = [dio.read(put(data, "a.jpg")) for data in whole]
    inside = grow(Region(Box(40, 40, 8, 8)), photos[0]).box.slices

    def outside(a: np.ndarray, b: np.ndarray) -> int:
        apart = np.abs(a.astype(int) - b)
        apart[inside] = 0
        return int(apart.max())

    assert outside(*pillow) > 20  # what a release of the region would have left in the clear
    assert outside(*(photo.image for photo in photos)) == 0
    for path in early:
        with pytest.raises(PhotoError):
            dio.read(path)


def test_components_of_one_name_cannot_hide_what_was_not_sent(put):
    data = bytearray(progressive(picture(40, 56)))
    frame = data.index(b"\xff\xc2")
    data[frame + 13] = 1
    for scan in re.finditer(rb"\xff\xda", bytes(data)):
        for at in range(scan.end() + 3, scan.end() + 3 + 2 * data[scan.end() + 2], 2):
            data[at] -= data[at] == 2
    with Image.open(put(bytes(data), "a.jpg")) as image:
        image.load()  # libjpeg takes it: the first of the two gets all that is sent for both
    with pytest.raises(PhotoError, match="damaged JPEG"):
        dio.read(put(bytes(data), "a.jpg"))


def test_a_scan_header_that_is_cut_off_is_refused(put):
    data = progressive(picture(40, 56))
    with pytest.raises(PhotoError, match="damaged JPEG"):
        dio.read(put(data[: data.index(b"\xff\xda") + 7], "a.jpg"))
