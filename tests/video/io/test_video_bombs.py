"""Small files that would fill the memory: what is no picture and no sound is limited before it is read."""

from pathlib import Path

import pytest
from clip_samples import clip

from dpveil.errors import ClipError
from dpveil.video import decoding
from dpveil.video.reading import open_clip

LEAST = 1 << 17


def refusal(path: Path) -> str:
    with pytest.raises(ClipError) as caught, open_clip(path):
        pytest.fail("it was opened")
    told = str(caught.value)
    assert told.isprintable()
    return told


def element(name: int, size: int) -> bytes:
    return name.to_bytes((name.bit_length() + 7) // 8, "big") + (size | 1 << 56).to_bytes(8, "big")


def attached(path: Path, size: int) -> Path:
    """Write a Matroska file that begins with an attachment of `size` zero bytes, which no disk holds."""
    data = clip(path, container="matroska").read_bytes()
    segment = data.index(b"\x18\x53\x80\x67")
    begun, rest = data[:segment], data[segment + 12 :]
    name = element(0x466E, 1) + b"a" + element(0x4660, 1) + b"b" + element(0x46AE, 1) + b"\1"
    inner = name + element(0x465C, size)
    one = element(0x61A7, len(inner) + size) + inner
    outer = element(0x1941A469, len(one) + size) + one
    with path.open("wb") as file:
        file.write(begun + element(0x18538067, len(outer) + size + len(rest)) + outer)
        file.seek(size, 1)
        file.write(rest)
    return path


def test_whatever_is_read_to_open_a_clip_is_limited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Also what no table of dpveil knows of; the limit ends with opening."""
    monkeypatch.setattr(decoding, "OPENING", 8 * LEAST)
    path = clip(tmp_path / "raw.mkv", codec="rawvideo", times=range(0, 12_000, 30))
    assert path.stat().st_size > 12 * LEAST
    with open_clip(path, max_pixels=64 * 48) as found:
        assert len(list(found.frames())) == 400
    with pytest.raises(ClipError, match="too much of it has to be read before its first frame"):
        open_clip(attached(tmp_path / "a", 8 * LEAST), max_pixels=64 * 48)
    assert capfd.readouterr() == ("", "")
    with open_clip(attached(tmp_path / "a", 8 * LEAST)):
        pass
