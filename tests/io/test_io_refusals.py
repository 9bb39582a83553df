"""Whatever is not a photo is refused in one line: the file, the problem, the remedy."""

import os
import resource
import socket
import struct
import threading
import tracemalloc
import warnings
import zlib

import numpy as np
import pytest
from io_samples import chunk, file_bytes, picture, png, tiff
from PIL import Image

import dpveil.io as dio
from dpveil.errors import PhotoError
from dpveil.io.decoding import quiet_pillow


def refused(path, **options) -> str:
    with pytest.raises(PhotoError) as caught:
        dio.read(path, **options)
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
        dio.read("/dev/zero")
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(tmp_path / "s.jpg"))
        assert "cannot be opened" in refused(tmp_path / "s.jpg")


def test_permission_and_read_errors(put, monkeypatch):
    path = put(picture(2, 2))

    def deny(*arguments):
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", deny)
        assert "permission denied" in refused(path)


def test_empty_foreign_and_renamed(put):
    assert "is empty" in refused(put(b""))
    assert "not an image" in refused(put(b"hello world, this is no image at all", "a.jpg"))
    assert "damaged HEIC" in refused(put(b"\0\0\0\x18ftypheic" + bytes(20), "a.jpg"))
    assert "is a video" in refused(put(b"\0\0\0\x18ftypisom" + bytes(20), "a.jpg"))
    assert "djxl" in refused(put(b"\xff\x0a" + bytes(20), "a.jpg"))
    assert "PAM" in refused(put(b"P7\nWIDTH 1\n", "a.png"))
    assert "not an image" in refused(put(b"Photos of our trip", "a.png"))
    for name in ("ico", "tga", "dib", "pdf", "jpeg2000", "pcx", "sgi", "dds"):
        refused(put(file_bytes(picture(32, 32), name), f"{name}.png"))


def test_content_decides_and_not_the_suffix(put):
    path = put(file_bytes(picture(9, 9), "png"), "a.jpg")
    assert np.array_equal(dio.read(path).image, picture(9, 9))
    assert np.array_equal(dio.read(str(path)).image, picture(9, 9))


def test_animations_and_pages(put):
    frames = [Image.fromarray(picture(8, 8)), Image.fromarray(255 - picture(8, 8))]
    for suffix in ("png", "webp", "gif", "tiff", "avif"):
        line = refused(put(frames[0], f"a.{suffix}", save_all=True, append_images=frames[1:]))
        assert ("several pages" if suffix == "tiff" else "is an animation") in line
    default = put(frames[0], "d.png", save_all=True, append_images=frames[1:], default_image=True)
    assert "animation" in refused(default)
    plain = file_bytes(picture(4, 4), "png")
    claims_two = plain[:33] + chunk(b"acTL", struct.pack(">II", 2, 0)) + plain[33:]
    assert "several frames" in refused(put(claims_two))


def test_of_a_phones_multi_picture_file_the_first_is_read(put):
    first, second = picture(16, 24), 255 - picture(16, 24)
    data = file_bytes(Image.fromarray(first), "mpo", save_all=True, append_images=[Image.fromarray(second)])
    photo = dio.read(put(data, "a.jpg"))
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
            dio.read(put(picture(5, 5), "a.tiff", compression=compression)).image, picture(5, 5)
        )


@pytest.mark.parametrize(
    "data",
    [
        png(60_000, 60_000, 8, 2, b"", idat=b"x"),
        png(60_000, 60_000, 8, 2, b"", idat=b"x")[:-20],
        tiff(60_000, 60_000, 8, b"x"),
        b"BM" + struct.pack("<IIIIiiHHIIIIII", 60, 0, 54, 40, 60_000, 60_000, 1, 24, 0, 0, 0, 0, 0, 0) + b"x",
        b"RIFF" + struct.pack("<I", 22) + b"WEBPVP8X" + struct.pack("<I", 10) + bytes(4) + b"\xff\xff\0" * 2,
        b"RIFF" + struct.pack("<I", 18) + b"WEBPVP8L\5\0\0\0\x2f\xff\xff\xff\x0f" + b"\0",
    ],
    ids=["png", "png cut off", "tiff", "bmp", "webp canvas", "webp lossless"],
)
def test_claimed_sizes_are_refused_before_they_cost_memory(put, data):
    path = put(data)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert "more than the limit of 100,000,000" in refused(path)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak < 50_000  # kilobytes; decoded: gigabytes


def test_a_jpeg_that_claims_too_much(put):
    jpeg = bytearray(file_bytes(picture(8, 8), "jpeg"))
    frame = jpeg.index(b"\xff\xc0")
    jpeg[frame + 5 : frame + 9] = b"\xff\x00\xff\x00"
    assert "more than the limit" in refused(put(bytes(jpeg), "a.jpg"))


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


def test_warnings_stay_silent_and_the_users_filters_survive(put):
    odd = file_bytes(picture(4, 4), "png")
    odd = odd[:33] + chunk(b"acTL", struct.pack(">II", 0, 0)) + odd[33:]  # Pillow warns: invalid APNG
    before = list(warnings.filters)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        assert np.array_equal(dio.read(put(odd)).image, picture(4, 4))
    assert seen == []
    inside, leave = threading.Event(), threading.Event()

    def other() -> None:
        with quiet_pillow():
            inside.set()
            leave.wait(10)

    thread = threading.Thread(target=other)
    with quiet_pillow():
        thread.start()
        inside.wait(10)
    leave.set()
    thread.join()
    assert list(warnings.filters) == before


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
    whole = dio.read(put(data)).image
    refusals = 0
    for length in range(len(data)):
        path = put(data[:length])
        try:
            image = dio.read(path).image
        except PhotoError:
            refusals += 1
        else:
            assert np.array_equal(image, whole)  # only bytes after the last pixel were missing
    assert refusals > 0.5 * len(data)
    assert capfd.readouterr() == ("", "")
