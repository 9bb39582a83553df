"""Pages of TIFFs as files of their own: how each looks stays, nothing else does, and bombs are refused."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader, BytesIO, FileIO
from itertools import product
from pathlib import Path
from tempfile import NamedTemporaryFile

import numpy as np
import pytest
from PIL import Image

from dpveil.io import read_bytes
from dpveil.io.refused import Refused
from dpveil.io.tiff_pages import MOST_TOGETHER, tiff_page, tiff_pages

RANDOM = np.random.Generator(np.random.PCG64(1))
COLOURS = RANDOM.integers(0, 256, (90, 40, 3)).astype(np.uint8)
PICTURES = {
    "RGB": Image.fromarray(COLOURS),
    "L": Image.fromarray(COLOURS[:, :, 0]),
    "1": Image.fromarray(COLOURS[:, :, 0]).convert("1"),
    "P": Image.fromarray(COLOURS).convert("P"),
    "CMYK": Image.fromarray(COLOURS).convert("CMYK"),
    "I;16": Image.fromarray(COLOURS[:, :, 0].astype(np.uint16) * 257),
}
KINDS = [*product(PICTURES, ["raw", "tiff_lzw", "tiff_adobe_deflate", "packbits"]), ("1", "group4")]


def saved(picture: Image.Image, **options: object) -> bytes:
    file = BytesIO()
    picture.save(file, "TIFF", **options)
    return file.getvalue()


class Counting(BufferedReader):
    """A file that counts what is read of it."""

    taken = 0

    def read(self, size: int | None = -1) -> bytes:
        found = super().read(size)
        self.taken += len(found)
        return found


@contextmanager
def stored(data: bytes) -> Iterator[Counting]:
    """Yield an open file."""
    with NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        with Counting(FileIO(file.name)) as found:
            yield found


def places(data: bytes) -> list[int]:
    with stored(data) as file:
        return tiff_pages(file, len(data))


def alone(data: bytes, number: int) -> bytes:
    at = places(data)[number]
    with stored(data) as file:
        return tiff_page(file, len(data), at, 10_000)


@pytest.mark.parametrize("big", [False, True])
def test_pages_look_as_they_do_alone(big: bool) -> None:
    for mode, compression in KINDS:
        picture = PICTURES[mode]
        pages = [picture, picture.rotate(180), picture.resize((50, 60))]
        options = {"compression": compression, "description": "LEAKMARKER" * 9, "big_tiff": big}
        data = saved(pages[0], save_all=True, append_images=pages[1:], **options)
        for number, page in enumerate(pages):
            found = alone(data, number)
            assert b"LEAKMARKER" not in found
            assert len(found) < len(data) / 2
            assert len(places(found)) == 1
            expected = read_bytes(saved(page, compression=compression), "it").image
            assert np.array_equal(read_bytes(found, "it").image, expected), (mode, compression)


def test_which_way_is_up_stays() -> None:
    page, turned = PICTURES["RGB"], Image.Exif()
    turned[0x0112] = 6
    data = saved(page, save_all=True, append_images=[page], exif=turned)
    assert read_bytes(alone(data, 0), "it").image.shape == (40, 90, 3)


def lying(directories: int, tags: int) -> bytes:
    """Return a TIFF whose directories have so many tags, and lie on one another."""
    step, end = 16, 2 + 12 * tags
    data = bytearray(8 + 2 * step * directories + end + 64)
    data[:8] = b"II*\0" + struct.pack("<I", 8)
    for number in range(directories):
        at = 8 + step * number
        data[at : at + 2] = struct.pack("<H", tags)
    for number in range(directories - 1):
        at = 8 + step * number
        data[at + end : at + end + 4] = struct.pack("<I", at + step)
    return bytes(data)


def test_directories_that_lie_on_one_another_are_not_all_read() -> None:
    """Each has 4095 tags in the same 48 kB: all would take minutes."""
    few, many = (lying(count, 4095) for count in (30, 40))
    assert len(places(few)) == 30
    assert 30 * 4095 < MOST_TOGETHER < 40 * 4095
    documents = Path(__file__).parents[2] / "docs" / "documents.md"
    assert f"{MOST_TOGETHER:,} tags".replace(",", "\u202f") in documents.read_text(encoding="utf-8")
    with pytest.raises(Refused, match="131,072 tags"):
        places(many)


def changed(tag: int, *values: int) -> bytes:
    """Return a page of 40 × 90 grey pixels in which the numbers that lie in an entry are other ones."""
    data = bytearray(saved(PICTURES["L"]) + bytes(1 << 20))
    (at,) = struct.unpack_from("<I", data, 4)
    (count,) = struct.unpack_from("<H", data, at)
    entries = {struct.unpack_from("<H", data, at + 2 + 12 * n)[0]: at + 2 + 12 * n for n in range(count)}
    struct.pack_into("<HII", data, entries[tag] + 2, *values)
    return bytes(data)


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (changed(279, 4, 1, 1 << 31), "much larger tags and strips"),
        (changed(273, 4, 1 << 17, 0), "strips or tiles"),
        (changed(273, 4, 9, 0), "damaged"),
        (changed(256, 4, 1, 1 << 20), "more than the limit"),
        (changed(256, 4, 1, 0), "has no pixels"),
    ],
)
def test_a_page_has_no_more_bytes_than_its_pixels_need(data: bytes, told: str) -> None:
    [at] = places(data)
    with stored(data) as file:
        with pytest.raises(Refused, match=told):
            tiff_page(file, len(data), at, 10_000)
        assert file.taken < 1 << 17


def test_only_the_bytes_of_a_page_are_read() -> None:
    page = PICTURES["L"]
    data = saved(page, save_all=True, append_images=[page] * 99)
    at = places(data)[50]
    with stored(data) as file:
        tiff_page(file, len(data), at, 10_000)
        assert file.taken < len(data) / 50
