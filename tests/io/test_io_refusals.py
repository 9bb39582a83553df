"""Whatever is not a photo is refused in one line: the file, the problem, the remedy."""

from __future__ import annotations

import os
import re
import resource
import socket
import struct
import tempfile
import tracemalloc
import zlib
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from io_samples import chunk, file_bytes, picture, png, tiff
from PIL import Image

from dpveil.core.photo import Photo
from dpveil.core.region import Box, Region
from dpveil.errors import PhotoError
from dpveil.io import document, reading, writing
from dpveil.io.document import Document
from dpveil.io.reading import read_bytes
from dpveil.io.unreadable import Refused
from dpveil.processes import Ended
from dpveil.regions.growth import grow
from heic_samples import heic


def refused(path, **options) -> str:
    with pytest.raises(PhotoError) as caught:
        reading.read(path, **options)
    line = str(caught.value)
    assert "\n" not in line
    assert path.name in line
    assert caught.value.hint
    assert caught.value.exit_code == 4
    return line


def test_fifo_device_and_socket_do_not_hang(tmp_path):
    os.mkfifo(tmp_path / "pipe.jpg")
    assert "not a regular file" in refused(tmp_path / "pipe.jpg")
    with pytest.raises(PhotoError, match="not a regular file"):
        reading.read("/dev/zero")
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(tmp_path / "s.jpg"))
        assert "cannot be read" in refused(tmp_path / "s.jpg")


def test_permission_and_read_errors(put, monkeypatch):
    path = put(picture(2, 2))

    def deny(*arguments):
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", deny)
        assert "Permission denied" in refused(path)


def test_empty_foreign_and_renamed(put):
    assert "is empty" in refused(put(b""))
    assert "not an image" in refused(put(b"hello world, this is no image at all", "a.jpg"))
    assert "damaged" in refused(put(b"\0\0\0\x18ftypheic" + bytes(20), "a.jpg"))
    assert "is a video" in refused(put(b"\0\0\0\x18ftypisom" + bytes(20), "a.jpg"))
    assert "djxl" in refused(put(b"\xff\x0a" + bytes(20), "a.jpg"))
    assert "PAM" in refused(put(b"P7\nWIDTH 1\n", "a.png"))
    assert "not an image" in refused(put(b"Photos of our trip", "a.png"))
    for name in ("ico", "tga", "dib", "pdf", "jpeg2000", "pcx", "sgi", "dds"):
        refused(put(file_bytes(picture(32, 32), name), f"{name}.png"))


def test_content_decides_and_not_the_suffix(put):
    path = put(file_bytes(picture(9, 9), "png"), "a.jpg")
    assert np.array_equal(reading.read(path).image, picture(9, 9))
    assert np.array_equal(reading.read(str(path)).image, picture(9, 9))


def test_animations_and_pages(put):
    frames = [Image.fromarray(picture(8, 8)), Image.fromarray(255 - picture(8, 8))]
    for suffix in ("png", "webp", "gif", "tiff", "avif"):
        line = refused(put(frames[0], f"a.{suffix}", save_all=True, append_images=frames[1:]))
        assert ("several pages" if suffix == "tiff" else "is an animation") in line
    default = put(frames[0], "d.png", save_all=True, append_images=frames[1:], default_image=True)
    assert "animation" in refused(default)
    plain = file_bytes(picture(4, 4), "png")
    claims_two = plain[:33] + chunk(b"acTL", struct.pack(">II", 2, 0)) + plain[33:]
    assert "animation" in refused(put(claims_two))


def test_of_a_phones_multi_picture_file_the_first_is_read(put):
    first, second = picture(16, 24), 255 - picture(16, 24)
    data = file_bytes(Image.fromarray(first), "mpo", save_all=True, append_images=[Image.fromarray(second)])
    photo = reading.read(put(data, "a.jpg"))
    assert np.abs(photo.image.astype(int) - first).max() < 40
    assert any("first picture" in note for note in photo.notes)


def test_deep_and_floating_pixels(put):
    for mode in ("F", "I"):
        assert "pixels, which dpveil does not read" in refused(put(Image.new(mode, (3, 3)), "a.tiff"))
    assert "a kind of TIFF" in refused(put(tiff(1, 1, 64, bytes(8)), "a.tiff"))


def test_lossy_tiff(put):
    assert "lossy" in refused(put(picture(16, 16), "a.tiff", compression="jpeg"))
    for compression in ("tiff_lzw", "tiff_adobe_deflate", "packbits", "lzma", "zstd", "raw"):
        assert np.array_equal(
            reading.read(put(picture(5, 5), "a.tiff", compression=compression)).image, picture(5, 5)
        )


@pytest.mark.parametrize(
    "data",
    [
        png(60_000, 60_000, 8, 2, b"", idat=b"x"),
        tiff(60_000, 60_000, 8, b"x"),
        b"BM" + struct.pack("<IIIIiiHHIIIIII", 60, 0, 54, 40, 60_000, 60_000, 1, 24, 0, 0, 0, 0, 0, 0) + b"x",
        b"RIFF" + struct.pack("<I", 22) + b"WEBPVP8X" + struct.pack("<I", 10) + bytes(4) + b"\xff\xff\0" * 2,
        b"RIFF" + struct.pack("<I", 18) + b"WEBPVP8L\5\0\0\0\x2f\xff\xff\xff\x0f" + bytes(9),
    ],
    ids=["png", "tiff", "bmp", "webp canvas", "webp lossless"],
)
def test_claimed_sizes_are_refused_before_they_cost_memory(put, data):
    path = put(data)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert "more than the limit of 100,000,000" in refused(path)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak < 50_000  # kilobytes; decoded: gigabytes


def test_a_real_bomb_above_a_limit(put):
    rows = zlib.compressobj(9)
    data = b"".join(rows.compress(bytes(1 + 12_000)) for _ in range(9_000)) + rows.flush()
    path = put(png(12_000, 9_000, 8, 0, b"", idat=data))
    assert path.stat().st_size < 200_000
    tracemalloc.start()
    assert "12,000 × 9,000 pixels" in refused(path)
    assert tracemalloc.get_traced_memory()[1] < 5_000_000
    tracemalloc.stop()


def test_a_file_too_long_for_its_limit_is_not_read(put, monkeypatch):
    monkeypatch.setattr("dpveil.io.reading.SPARE_BYTES", 10)
    path = put(file_bytes(picture(9, 9), "bmp"))
    assert "bytes, more than" in refused(path, max_pixels=1)


TRUNCATED = {
    "png": (file_bytes(picture(6, 7), "png"), {}),
    "jpg": (file_bytes(picture(6, 7), "jpeg", quality=50), {}),
    "webp": (file_bytes(picture(6, 7), "webp", quality=50), {}),
    "webp lossless": (file_bytes(picture(6, 7), "webp", lossless=True), {}),
    "bmp": (file_bytes(picture(6, 7), "bmp"), {}),
    "tiff": (file_bytes(picture(6, 7), "tiff"), {}),
    "tiff deflate": (file_bytes(picture(6, 7), "tiff", compression="tiff_adobe_deflate"), {}),
}


@pytest.mark.parametrize("kind", TRUNCATED)
def test_truncation_at_every_length_is_refused_or_loses_nothing(put, kind, capfd):
    data, _ = TRUNCATED[kind]
    whole = reading.read(put(data)).image
    refusals = 0
    for length in range(len(data)):
        path = put(data[:length])
        try:
            image = reading.read(path).image
        except PhotoError:
            refusals += 1
        else:
            assert np.array_equal(image, whole)  # only bytes after the last pixel were missing
    assert refusals > 0.5 * len(data)
    assert capfd.readouterr() == ("", "")


# A progressive JPEG that ends early is refused: libjpeg makes up what was not sent from blocks around.


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
    assert reading.read(put(data, "a.jpg")).image.shape[:2] == (40, 56)
    for sent in range(1, scans):
        for cut in (cut_after(data, sent), cut_after(data, sent)[:-2]):
            with pytest.raises(PhotoError, match="truncated or damaged JPEG"):
                reading.read(put(cut, "a.jpg"))


@pytest.mark.parametrize("shape", [(96, 96), (96, 96, 3)], ids=["grey", "colour"])
def test_the_leak_that_this_refuses_and_that_whole_files_have_none(put, shape):
    whole = [progressive(block(level, *shape), subsampling=0) for level in (0, 255)]
    early = [put(cut_after(data, 1), f"{i}.jpg") for i, data in enumerate(whole)]
    pillow = [np.asarray(Image.open(path)).astype(int) for path in early]
    photos = [reading.read(put(data, "a.jpg")) for data in whole]
    inside = grow(Region(Box(40, 40, 8, 8)), photos[0]).box.slices

    def outside(a: np.ndarray, b: np.ndarray) -> int:
        apart = np.abs(a.astype(int) - b)
        apart[inside] = 0
        return int(apart.max())

    assert outside(*pillow) > 20  # what a release of the region would have left in the clear
    assert outside(*(photo.image for photo in photos)) == 0
    for path in early:
        with pytest.raises(PhotoError):
            reading.read(path)


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
        reading.read(put(bytes(data), "a.jpg"))


# Whatever the bytes: a photo or one clear refusal, never another exception, and nothing on the
# terminal.


QUICK = settings(
    derandomize=True,
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
LIMIT = 10_000  # pixels: so that no damaged header asks for much memory

SEEDS = [
    file_bytes(picture(9, 11), "png"),
    file_bytes(picture(9, 11), "jpeg", quality=60),
    file_bytes(picture(9, 11), "webp", quality=60),
    file_bytes(picture(9, 11), "webp", lossless=True),
    file_bytes(picture(9, 11), "tiff"),
    file_bytes(picture(9, 11), "tiff", compression="tiff_lzw"),
    file_bytes(picture(9, 11), "bmp"),
    file_bytes(picture(9, 11), "gif"),
    file_bytes(picture(9, 11), "ppm"),
    file_bytes(picture(9, 11), "avif", speed=10),
    heic(picture(16, 24)),
    file_bytes(Image.fromarray(picture(9, 11)).quantize(8), "png"),
    file_bytes(Image.new("CMYK", (9, 11)), "jpeg"),
]


def photo_or_refusal(data: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "any.jpg"
        path.write_bytes(data)
        try:
            photo = reading.read(path, max_pixels=LIMIT)
        except PhotoError as refusal:
            line = str(refusal)
            if "any.jpg" not in line or "\n" in line or not line.isprintable():
                raise AssertionError(line) from refusal
        else:
            assert isinstance(photo, Photo)
            assert photo.height * photo.width <= LIMIT
            assert writing.encode(photo.image, "bmp")


@pytest.mark.parametrize("seed", range(len(SEEDS)))
@given(
    edits=st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255)), min_size=1, max_size=4)
)
@QUICK
def test_damaged_files(seed, edits, capfd):
    data = bytearray(SEEDS[seed])
    for place, value in edits:
        data[int(place * len(data))] = value
    photo_or_refusal(bytes(data))
    out, err = capfd.readouterr()
    assert out == ""
    assert err == "" or data[:2] == b"II"  # libtiff itself writes to the terminal, and Pillow lets it


# Pages of TIFFs as they look alone, and documents that end the process that draws them.


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
            assert np.array_equal(drawn.image, alone.image), (mode, compression)
            assert (drawn.grid, drawn.notes) == (alone.grid, alone.notes)


def test_which_way_is_up_stays_and_smaller_copies_and_masks_are_no_pages(tmp_path: Path) -> None:
    page, turned, path = PICTURES["RGB"], Image.Exif(), tmp_path / "a.tif"
    turned[0x0112] = 6
    page.save(path, save_all=True, append_images=[page], exif=turned)
    assert of(path).draw(0, 200, 10_000).image.shape == (40, 90, 3)
    copy = page.resize((9, 9))
    copy.encoderinfo = {"tiffinfo": {254: 1}}
    page.save(path, save_all=True, append_images=[copy, page])
    found = of(path)
    assert [found.draw(n, 200, 10_000).image.shape for n in range(found.pages)] == [(90, 40, 3)] * 2


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
    with pytest.raises(Refused, match="ends the process"):
        of(path).draw(0, 200, 9)


def test_a_jpeg_that_claims_too_much(put):
    jpeg = bytearray(file_bytes(picture(8, 8), "jpeg"))
    frame = jpeg.index(b"\xff\xc0")
    jpeg[frame + 5 : frame + 9] = b"\xff\x00\xff\x00"
    assert "more than the limit" in refused(put(bytes(jpeg), "a.jpg"))


def test_a_scan_header_that_is_cut_off_is_refused(put):
    data = progressive(picture(40, 56))
    with pytest.raises(PhotoError, match="damaged JPEG"):
        reading.read(put(data[: data.index(b"\xff\xda") + 7], "a.jpg"))
