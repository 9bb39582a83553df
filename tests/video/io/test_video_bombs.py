"""Small files that would fill the memory: what is no picture and no sound is limited before it is read."""

import struct
from pathlib import Path

import av
import pytest
from clip_samples import clip

from dpveil.errors import ClipError
from dpveil.video import containers, streams
from dpveil.video.reading import open_clip

LEAST = 1 << 17
CLUSTER = b"\x1f\x43\xb6\x75"


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


def covered(path: Path, size: int, kind: bytes = b"udta") -> Path:
    """Write an MP4 file with `size` zero bytes in a box, as of metadata, before its last ones."""
    data = clip(path, container="mp4").read_bytes()
    with path.open("wb") as file:
        at = data.index(b"moov") - 4
        file.write(data[:at] + struct.pack(">I", 8 + size) + kind)
        file.seek(size, 1)
        file.write(data[at:])
    return path


@pytest.mark.parametrize("make", [attached, covered])
def test_what_is_beside_pictures_and_sound_is_limited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make
) -> None:
    read = []
    monkeypatch.setattr(containers, "MOST_ASIDE", 2 * LEAST)
    with open_clip(make(tmp_path / "a", LEAST)) as found:
        assert found.facts.frames == 7
    monkeypatch.setattr("dpveil.video.survey.decoded", lambda *_: read.append(1))
    assert "more than 262,144 bytes beside pictures and sound" in refusal(make(tmp_path / "b", 2 * LEAST))
    assert read == []


@pytest.mark.parametrize("kind", sorted(containers.ASIDE - {b"hdlr", b"ftyp"}))
def test_boxes_that_are_read_whole_are_limited_and_others_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: bytes
) -> None:
    monkeypatch.setattr(containers, "MOST_ASIDE", LEAST)
    assert "beside pictures and sound" in refusal(covered(tmp_path / "a", LEAST + 1, kind))
    with open_clip(covered(tmp_path / "a", LEAST + 1, b"inst")) as found:
        assert found.facts.frames == 7


def test_whatever_is_read_to_open_a_clip_is_limited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Also what no table of dpveil knows of; the limit ends with opening."""
    monkeypatch.setattr(streams, "OPENING", 8 * LEAST)
    path = clip(tmp_path / "raw.mkv", codec="rawvideo", times=range(0, 12_000, 30))
    assert path.stat().st_size > 12 * LEAST
    with open_clip(path, max_pixels=64 * 48) as found:
        assert len(list(found.frames())) == 400
    with pytest.raises(ClipError, match="too much of it has to be read before its first frame"):
        open_clip(attached(tmp_path / "a", 8 * LEAST), max_pixels=64 * 48)
    assert capfd.readouterr() == ("", "")
    with open_clip(attached(tmp_path / "a", 8 * LEAST)):
        pass


@pytest.mark.parametrize("size", [1 << 20, 8 << 40])
def test_zeros_at_the_end_are_limited(tmp_path: Path, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    path = clip(tmp_path / "a.mp4")
    most = containers.MOST_ASIDE
    with path.open("rb+") as file:
        file.truncate(path.stat().st_size + size)
    if size < most:
        with open_clip(path):
            pass
        monkeypatch.setattr(containers, "MOST_ASIDE", 1 << 19)
        assert "beside pictures and sound" in refusal(path)
    else:
        assert "it has more than 1,099,511,627,776 bytes" in refusal(path)


class Pipe:
    """An output that cannot go back."""

    def __init__(self) -> None:
        self.data = bytearray()

    def write(self, data: bytes) -> int:
        self.data += data
        return len(data)


def live(path: Path) -> Path:
    """Write a Matroska file whose segment and clusters do not state their sizes, as of a stream."""
    pipe = Pipe()
    stored = clip(path.with_suffix(".mp4"), times=range(0, 14_000, 2_000))
    with av.open(str(stored)) as found, av.open(pipe, "w", format="matroska") as made:
        stream = made.add_stream_from_template(found.streams.video[0])
        for packet in found.demux(video=0):
            if packet.size:
                packet.stream = stream
                made.mux(packet)
    path.write_bytes(pipe.data)
    return path


def test_clusters_that_do_not_state_their_size_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = live(tmp_path / "a.mkv")
    data, at = bytearray(path.read_bytes()), -1
    monkeypatch.setattr(containers, "MOST_ASIDE", data.index(CLUSTER) + 200)
    while (at := data.find(CLUSTER, at + 1)) >= 0:
        assert data[at + 4] >> 6 == 1
        data[at + 4 : at + 6] = b"\x7f\xff"
    for stored in (path.read_bytes(), data):
        path.write_bytes(stored)
        with open_clip(path) as found:
            assert len(list(found.frames())) == 7
        for cut in (1, 40, len(stored) // 3):
            path.write_bytes(stored[:-cut])
            assert "the file ends early" in refusal(path)


@pytest.mark.parametrize(
    "more", [bytes(16), b"\xff" * 16, element(0x1254C367, 0)[:4] + b"\x01" + b"\xff" * 7]
)
def test_what_follows_the_elements_of_a_segment_is_refused(tmp_path: Path, more: bytes) -> None:
    """FFmpeg would look on for the next element that it knows."""
    path = live(tmp_path / "a.mkv")
    path.write_bytes(path.read_bytes() + more)
    assert "its structure is damaged" in refusal(path)
