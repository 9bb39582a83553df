"""Pages of TIFFs as they look alone, and documents that end the process that draws them."""

from __future__ import annotations

import os
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from dpveil.io import document, read_bytes
from dpveil.io.document import Document
from dpveil.io.refused import Refused
from dpveil.processes import Ended

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
KINDS = [*product(PICTURES, ["raw", "tiff_lzw", "tiff_adobe_deflate"]), ("1", "group4")]


def of(path: Path) -> Document:
    status = path.stat()
    return Document(path, (status.st_size, status.st_mtime_ns))


@pytest.mark.parametrize("big", [False, True])
def test_pages_look_as_they_do_alone(big: bool, tmp_path: Path) -> None:
    for mode, compression in KINDS:
        picture, path = PICTURES[mode], tmp_path / f"{mode} {compression}.tif"
        pages = [picture, picture.rotate(180), picture.resize((50, 60))]
        options = {"compression": compression, "big_tiff": big}
        pages[0].save(path, "TIFF", save_all=True, append_images=pages[1:], **options)
        found = of(path)
        assert found.pages == 3
        for number in (0, 2, 1, 1, 0):
            pages[number].save(tmp_path / "alone.tif", "TIFF", compression=compression)
            alone = read_bytes((tmp_path / "alone.tif").read_bytes(), "it")
            drawn = found.draw(number, 200, 10_000)
            assert np.array_equal(drawn.levels, alone.image), (mode, compression)
            assert (drawn.grid, drawn.notes) == (alone.grid, alone.notes)


def test_which_way_is_up_stays_and_smaller_copies_and_masks_are_no_pages(tmp_path: Path) -> None:
    page, turned, path = PICTURES["RGB"], Image.Exif(), tmp_path / "a.tif"
    turned[0x0112] = 6
    page.save(path, save_all=True, append_images=[page], exif=turned)
    assert of(path).draw(0, 200, 10_000).levels.shape == (40, 90, 3)
    copy = page.resize((9, 9))
    copy.encoderinfo = {"tiffinfo": {254: 1}}
    page.save(path, save_all=True, append_images=[copy, page])
    found = of(path)
    assert [found.draw(n, 200, 10_000).levels.shape for n in range(found.pages)] == [(90, 40, 3)] * 2


def test_what_cannot_be_drawn_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.tif"
    PICTURES["RGB"].save(path, save_all=True, append_images=[PICTURES["L"]])
    found = of(path)
    assert found.pages == 2
    with pytest.raises(Refused, match="more than the limit of 3,599"):
        found.draw(0, 200, 3599)
    os.utime(path, ns=(1, 1))
    with pytest.raises(Refused, match="has changed"):
        found.draw(0, 200, 3600)
    for contents in (b"", b"II*\0", b"II*\0" + bytes(99), b"words", path.read_bytes()[:999]):
        path.write_bytes(contents)
        with pytest.raises(Refused):
            of(path).draw(0, 200, 10_000)

    def ends(*_: object, **__: object) -> None:
        raise Ended("signal", "SIGSEGV")

    monkeypatch.setattr(document.POOL, "ask", ends)
    other = of(path)
    for _ in range(document.MOST_ENDS):
        with pytest.raises(Refused, match="ends the process"):
            other.draw(0, 200, 9)
    monkeypatch.undo()
    with pytest.raises(Refused, match="ends the process"):
        other.draw(0, 200, 9)
