"""Whatever the bytes: a photo or one clear refusal, never another exception, and nothing on the terminal."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from io_samples import file_bytes, picture
from PIL import Image

import dpveil.io as dio
from dpveil.core.photo import Photo
from dpveil.errors import PhotoError
from heic_samples import heic

QUICK = settings(
    derandomize=True,
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
HEADS = [
    b"\xff\xd8\xff",
    b"\x89PNG\r\n\x1a\n",
    b"RIFF\x40\0\0\0WEBPVP8X",
    b"II*\0\x08\0\0\0",
    b"MM\0*",
    b"BM",
    b"GIF89a",
    b"P6\n",
    b"\0\0\0\x14ftypavif\0\0\0\0avif",
    b"\0\0\0\x14ftypheic\0\0\0\0heic",
]
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
    heic(picture(10, 12)),
    file_bytes(Image.fromarray(picture(9, 11)).quantize(8), "png"),
    file_bytes(Image.new("CMYK", (9, 11)), "jpeg"),
]


def photo_or_refusal(data: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "any.jpg"
        path.write_bytes(data)
        try:
            photo = dio.read(path, max_pixels=LIMIT)
        except PhotoError as refusal:
            line = str(refusal)
            if "any.jpg" not in line or "\n" in line or not line.isprintable():
                raise AssertionError(line) from refusal
        else:
            assert isinstance(photo, Photo)
            assert photo.height * photo.width <= LIMIT
            assert dio.encode(photo.image, "bmp")


@given(head=st.sampled_from([b"", *HEADS]), tail=st.binary(max_size=300))
@QUICK
def test_random_bytes(head, tail):
    photo_or_refusal(head + tail)


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


@given(cut=st.floats(0, 1), seed=st.sampled_from(SEEDS), extra=st.binary(max_size=40))
@QUICK
def test_spliced_files(cut, seed, extra):
    at = int(cut * len(seed))
    photo_or_refusal(seed[:at] + extra + seed[at:])
