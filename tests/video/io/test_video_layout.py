"""Released files have room for frames and sound only: whatever else is added is found, in every container."""

import struct
from contextlib import closing

import av
import numpy as np
import pytest
from clip_samples import UNIT, as_stored, clip, picture
from test_video_round_trip import written

from dpveil.errors import ClipError
from dpveil.video.layout import coded_frames
from dpveil.video.reading import open_clip
from dpveil.video.source import Source
from dpveil.video.strange import Strange

SECRET = b"ORIGINAL" * 400


def judged(path):
    """Return the number of coded frames in a file, or what is strange about it."""
    with closing(Source(path)) as source:
        try:
            return coded_frames(source, path.suffix in (".mkv", ".webm"))
        except Strange as found:
            return str(found)


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    return releases(tmp_path_factory.mktemp("released"))


def releases(folder):
    """Return the bytes of a release in each container, with sound in two."""
    found = {}
    with open_clip(clip(folder / "a.mp4", sound="aac")) as source:
        for name in ("o.mp4", "o.mov", "o.mkv", "o.webm"):
            keep = name in ("o.mp4", "o.mkv")
            found[name] = written(source, folder / name, (3,), keep=keep).read_bytes()
    return found


def box(kind, body):
    return struct.pack(">I", len(body) + 8) + kind + body


def void(size):
    return b"\xec\x01" + size.to_bytes(7, "big")


def inside(data):
    """Return an MP4 file with another box at the end of `moov`."""
    at, more = data.index(b"moov") - 4, box(b"uuid", SECRET)
    size = int.from_bytes(data[at : at + 4], "big")
    return data[:at] + struct.pack(">I", size + len(more)) + data[at + 4 : at + size] + more


def behind(data):
    """Return an MP4 file with bytes in `mdat` behind all frames."""
    at = data.index(b"mdat") - 4
    size = int.from_bytes(data[at : at + 4], "big")
    return (
        data[:at]
        + struct.pack(">I", size + len(SECRET))
        + data[at + 4 : at + size]
        + SECRET
        + data[at + size :]
    )


def filled(data):
    """Return a Matroska file with text in place of the zeros of its padding."""
    at = data.index(b"\xec\x01") + 9
    return data[:at] + SECRET[:60] + data[at + 60 :]


def swollen(data, padding=SECRET):
    """Return a Matroska file with padding at the end of its segment."""
    at = data.index(b"\x18\x53\x80\x67") + 4
    size = int.from_bytes(data[at + 1 : at + 8], "big")
    more = void(len(padding)) + padding
    return data[: at + 1] + (size + len(more)).to_bytes(7, "big") + data[at + 8 :] + more


ADDED = {
    "free": ("o.mp4", lambda data: data + box(b"free", SECRET)),
    "uuid": ("o.mov", lambda data: data + box(b"uuid", SECRET)),
    "second mdat": ("o.mp4", lambda data: data + box(b"mdat", SECRET)),
    "free in front": ("o.mp4", lambda data: box(b"free", SECRET) + data),
    "in moov": ("o.mp4", inside),
    "in mdat": ("o.mp4", behind),
    "behind": ("o.mkv", lambda data: data + SECRET),
    "void behind": ("o.webm", lambda data: data + void(len(SECRET)) + SECRET),
    "void within": ("o.mkv", swollen),
    "long void": ("o.mkv", lambda data: swollen(data, bytes(4000))),
    "short void behind": ("o.mkv", lambda data: data + void(9) + bytes(9)),
    "filled void": ("o.mkv", filled),
}


WITHIN = (b"moov", b"trak", b"mdia", b"minf")
STBL = (*WITHIN, b"stbl")


def put(*path, more=b"", change=None):
    """Return what adds a box to one of an MP4 file, or changes its body."""

    def made(data):
        return b"".join(
            box(kind, rebuilt(body, path, more, change) if kind == path[0] else body)
            for kind, body in boxes_in(data)
        )

    return made


def boxes_in(data):
    at = 0
    while at < len(data):
        size = int.from_bytes(data[at : at + 4], "big")
        yield data[at + 4 : at + 8], data[at + 8 : at + size]
        at += size


def rebuilt(body, path, more, change):
    if len(path) > 1:
        return put(*path[1:], more=more, change=change)(body)
    return (change(body) if change else body) + more


def table(*numbers):
    return struct.pack(f">{len(numbers)}I", *numbers)


HIDDEN = {
    "a key frame twice": ("stss", lambda body: table(0, 3, 1, 1, 2)),
    "key frames of a longer clip": ("stss", lambda body: table(0, 2, 1, 9)),
    "times of a longer clip": ("stts", lambda body: body[:4] + more_entries(body, 8, 1, 5)),
    "times of no frame": ("stts", lambda body: body[:4] + more_entries(body, 8, 0, 5)),
    "other descriptions": ("stsc", lambda body: body[:-4] + table(7)),
    "flags": ("stsc", lambda body: table(7) + body[4:]),
    "two descriptions": ("stsd", lambda body: table(0, 2) + 2 * body[8:]),
    "a box in a description": ("stsd", lambda body: described(body, box(b"xxxx", bytes(9)))),
    "a box twice in a description": ("stsd", lambda body: described(body, body[-20:])),
}


def more_entries(body, width, *entry):
    return table(1 + (len(body) - 8) // width) + body[8:] + table(*entry)


def described(body, more):
    return body[:8] + table(len(body) - 8 + len(more)) + body[12:] + more


def test_a_file_that_is_put_together_again_is_the_same(released):
    assert put(*STBL, b"stts", change=bytes)(released["o.mov"]) == released["o.mov"]


@pytest.mark.parametrize("name", HIDDEN)
def test_tables_have_no_other_entries(tmp_path, released, name):
    kind, change = HIDDEN[name]
    data = put(*STBL, kind.encode(), change=change)(released["o.mov"])
    (tmp_path / "o.mov").write_bytes(data)
    why = {"stsd": "description"}.get(kind, "table")
    assert why in judged(tmp_path / "o.mov")


INTO = {
    "meta again": ((b"moov", b"udta"), box(b"meta", bytes(45))),
    "vmhd again": ((*WITHIN,), box(b"vmhd", b"\0\0\0\1" + bytes(8))),
    "vmhd elsewhere": ((b"moov", b"trak"), box(b"vmhd", b"\0\0\0\1" + bytes(8))),
    "two tables of places": (STBL, box(b"co64", table(0, 1, 0, 48))),
    "a third track": ((b"moov",), 2 * box(b"trak", b"")),
    "behind zeros": ((b"moov",), bytes(8) + SECRET),
    "behind a zero": ((b"moov", b"udta"), bytes(4) + b"free" + SECRET),
}


@pytest.mark.parametrize("name", INTO)
def test_each_box_is_once_in_its_place(tmp_path, released, name):
    path, more = INTO[name]
    (tmp_path / "o.mp4").write_bytes(put(*path, more=more)(released["o.mp4"]))
    assert judged(tmp_path / "o.mp4") in ("a part of another kind", "its tables", "bytes behind its parts")


def test_bodies_that_never_differ_are_compared(tmp_path, released):
    for path in ((*WITHIN, b"vmhd"), (*WITHIN, b"dinf", b"dref"), (*WITHIN[:3], b"hdlr")):
        data = put(*path, change=lambda body: body[:-1] + b"x")(released["o.mov"])
        (tmp_path / "o.mov").write_bytes(data)
        assert path[-1].decode() in judged(tmp_path / "o.mov")


def test_tables_are_as_long_as_the_file_is_read(tmp_path, released, monkeypatch):
    monkeypatch.setattr("dpveil.video.layout_boxes.MOST_ENTRIES", 6)
    (tmp_path / "o.mp4").write_bytes(released["o.mp4"])
    assert "longer than" in judged(tmp_path / "o.mp4")


@pytest.mark.parametrize("name", ["o.mp4", "o.mov", "o.mkv", "o.webm"])
def test_what_is_written_has_its_layout(tmp_path, released, name):
    (tmp_path / name).write_bytes(released[name])
    assert judged(tmp_path / name) == 7


@pytest.mark.parametrize("name", ADDED)
def test_whatever_is_added_is_found(tmp_path, released, name):
    container, added = ADDED[name]
    data = added(released[container])
    assert len(data) >= len(released[container])
    assert data != released[container]
    (tmp_path / container).write_bytes(data)
    assert isinstance(judged(tmp_path / container), str)


def test_frames_that_an_edit_hides_are_found(tmp_path):
    with av.open(str(tmp_path / "a.mp4"), "w", container_options={"fflags": "+bitexact"}) as made:
        stream = made.add_stream("libx264", rate=25)
        stream.width, stream.height, stream.codec_context.time_base = 64, 48, UNIT
        stream.codec_context.max_b_frames = 0
        for number in range(14):
            frame = as_stored(
                av.VideoFrame.from_ndarray(picture(number), "rgb24"), "yuv420p", 40 * number - 280, UNIT
            )
            frame.pict_type = 1
            made.mux(stream.encode(frame))
        made.mux(stream.encode(None))
    with open_clip(tmp_path / "a.mp4") as found:
        assert found.facts.frames == 7
    assert judged(tmp_path / "a.mp4") == "an edit that hides frames"


def test_what_describes_sound_has_no_room(tmp_path):
    with (
        av.open(str(clip(tmp_path / "a.mp4", sound="aac"))) as source,
        av.open(str(tmp_path / "b.mkv"), "w") as out,
    ):
        streams = {s.index: out.add_stream_from_template(s, opaque=True) for s in source.streams}
        voice = streams[source.streams.audio[0].index].codec_context
        voice.extradata = bytes(source.streams.audio[0].codec_context.extradata) + SECRET
        for packet in source.demux():
            if packet.size:
                packet.stream = streams[packet.stream.index]
                out.mux(packet)
    with open_clip(tmp_path / "b.mkv") as found, pytest.raises(ClipError, match="bytes describe its sound"):
        written(found, tmp_path / "o.mp4", keep=True)


def test_damage_is_one_line_or_nothing(tmp_path, released):
    """Seeds are fixed. Where a change escapes, it is within what a frame, a table or a number says."""
    rng = np.random.Generator(np.random.PCG64(7))
    for name in ("o.mp4", "o.mkv"):
        for _ in range(150):
            data = bytearray(released[name])
            for at in rng.integers(0, len(data), 4):
                data[at] = int(rng.integers(256))
            path = tmp_path / name
            path.write_bytes(data[: int(rng.integers(1, len(data)))] if rng.random() < 0.2 else data)
            try:
                found = judged(path)
            except ClipError as error:
                found = str(error)
            assert isinstance(found, int) or found.isprintable()
