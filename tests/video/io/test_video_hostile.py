"""Files that are no clips, are cut, lie, or change: one clear line, and nothing else is opened."""

from fractions import Fraction

import av
import numpy as np
import pytest
from clip_samples import STEPS, UNIT, clip, reader
from test_video_round_trip import KINDS, PAL, TS

from dpveil.errors import ClipError, InvalidParameter, OutputError
from dpveil.processes import Pool
from dpveil.video.containers import FORMATS, Source, open_container
from dpveil.video.decoding import Clock, Reader
from dpveil.video.facts import Facts
from dpveil.video.reading import open_clip
from dpveil.video.writing import unit_of


def refusal(path, **limits):
    with pytest.raises(ClipError) as caught, reader(path, **limits) as found:
        list(found.frames())
    told = str(caught.value)
    assert told.isprintable()
    assert told.startswith("cannot read ")
    return told


def test_no_clips(tmp_path):
    other = tmp_path / "other"
    other.write_bytes(b"#EXTM3U\n#EXTINF:1,\nfile:///etc/passwd\n")
    for name, data in {
        "empty.mp4": b"",
        "list.mp4": other.read_bytes(),
        "concat.mp4": b"ffconcat version 1.0\nfile other\n",
        "dash.mp4": b'<?xml version="1.0"?><MPD></MPD>',
        "sdp.mp4": b"v=0\no=- 0 0 IN IP4 127.0.0.1\nm=video 5000 RTP/AVP 96\n",
        "jpeg.mp4": b"\xff\xd8\xff\xe0" + bytes(200),
        "wave.avi": b"RIFF\x10\0\0\0WAVE" + bytes(200),
        "y4m.mp4": b"YUV4MPEG2 W1 H1 F25:1\nFRAME\n" + bytes(3),
    }.items():
        path = tmp_path / name
        path.write_bytes(data)
        assert ("the file is empty" if not data else "not a clip in a format") in refusal(path)


def test_sound_alone_is_no_clip(tmp_path):
    with av.open(str(tmp_path / "a.mp4"), "w") as made:
        stream = made.add_stream("aac", rate=48000)
        stream.codec_context.layout = "mono"
        frame = av.AudioFrame.from_ndarray(np.zeros((1, 1024), np.float32), "fltp", "mono")
        frame.sample_rate = 48000
        made.mux([*stream.encode(frame), *stream.encode(None)])
    assert "it has no pictures" in refusal(tmp_path / "a.mp4")


def test_large_frames_are_refused_before_they_are_decoded(tmp_path):
    path = clip(tmp_path / "a.mp4")
    with reader(path, most=64 * 48):
        pass
    assert "64×48 pixels, above the limit of 3,071" in refusal(path, most=64 * 48 - 1)
    path = clip(tmp_path / "b.mp4", context={"sample_aspect_ratio": 2})
    assert "128×48 pixels, above the limit" in refusal(path, most=64 * 48)
    assert "above the limit of 3,071" in refusal(clip(tmp_path / "c.ts", **TS), most=64 * 48 - 1)
    with pytest.raises(InvalidParameter):
        open_clip(path, max_pixels=0)


@pytest.mark.parametrize("name", ["h264.mp4", "h264.mkv", "mpeg4.avi", "h264.ts", "vp8.webm"])
def test_damaged_frames_are_not_smeared(tmp_path, name):
    """Damage in coded pictures is refused, or does not show: no grey blocks with half a face."""
    kind = KINDS[name]
    data = clip(tmp_path / name, **kind).read_bytes()
    refused = 0
    for at in range(len(data) // 3, len(data) * 2 // 3, len(data) // 24):
        (tmp_path / "b").write_bytes(data[:at] + bytes(60) + data[at + 60 :])
        try:
            with reader(tmp_path / "b") as found:
                list(found.frames())
        except ClipError:
            refused += 1
    assert refused >= 2


def test_a_gap_in_a_transport_stream_is_refused(tmp_path):
    """Its packets are counted: where some are missing, nobody knows what they showed."""
    late = clip(tmp_path / "1.ts", times=[90_000 + 90 * time for time in STEPS], unit=UNIT / 90)
    first = clip(tmp_path / "0.ts", **TS)
    (tmp_path / "whole.ts").write_bytes(one_after_the_other(first, late))
    with reader(tmp_path / "whole.ts") as found:
        assert len(list(found.frames())) == 14
    (tmp_path / "gap.ts").write_bytes(first.read_bytes() + late.read_bytes())
    assert " is damaged" in refusal(tmp_path / "gap.ts")


def one_after_the_other(*paths):
    """Return transport streams as one: the counters of their packets go on (ISO 13818-1, 2.4.3.3)."""
    data, counters = bytearray(b"".join(path.read_bytes() for path in paths)), {}
    for at in range(0, len(data), 188):
        number = int.from_bytes(data[at + 1 : at + 3], "big") & 0x1FFF
        counters[number] = (counters.get(number, -1) + bool(data[at + 3] & 0x10)) % 16
        data[at + 3] = data[at + 3] & 0xF0 | counters[number]
    return bytes(data)


@pytest.mark.parametrize("name", ["a.ts", "a.mpg"])
def test_sizes_that_change_are_refused(tmp_path, name):
    kind = TS if name == "a.ts" else {"codec": "mpeg2video", **PAL}
    parts = [clip(tmp_path / f"{n}{name}", size=size, **kind) for n, size in enumerate([(64, 48), (96, 48)])]
    whole = one_after_the_other(*parts) if name == "a.ts" else b"".join(part.read_bytes() for part in parts)
    (tmp_path / name).write_bytes(whole)
    assert "size of its frames changes" in refusal(tmp_path / name)


def test_times_that_go_backwards_are_refused(tmp_path):
    late = clip(tmp_path / "1.ts", times=[900_000 + 90 * time for time in STEPS], unit=UNIT / 90)
    (tmp_path / "a.ts").write_bytes(one_after_the_other(late, clip(tmp_path / "0.ts", **TS)))
    assert "times of its frames go backwards" in refusal(tmp_path / "a.ts")


def test_other_angles_lengths_of_pixels_and_fields_are_refused(tmp_path):
    turn = (46341, 46341, 0, -46341, 46341, 0, 0, 0, 1 << 30)
    assert "90, 180 or 270°" in refusal(clip(tmp_path / "a.mp4", turn=turn))
    path = clip(tmp_path / "b.mp4", context={"sample_aspect_ratio": 16})
    assert "not nearly square" in refusal(path)
    assert "interlaced" in refusal(clip(tmp_path / "c.mp4", options={"x264-params": "tff=1"}))


def test_packets_that_lie_are_found_by_decoding(tmp_path, monkeypatch):
    """The times of packets are taken only if the first frames have them."""
    path = clip(tmp_path / "a.mp4")
    monkeypatch.setattr(Reader, "_packet_times", lambda *_: [0, 1, 2, 3, 4, 5, 6])
    with reader(path) as found:
        assert [time * found.facts.time_base for time in found.facts.times] == [time * UNIT for time in STEPS]


def test_too_many_frames(tmp_path, monkeypatch):
    path = clip(tmp_path / "a.mp4")
    monkeypatch.setattr("dpveil.video.decoding.MOST_FRAMES", 6)
    assert "more than 6 frames" in refusal(path)


def test_no_other_file_is_opened(tmp_path, monkeypatch):
    """Even by demuxers of lists and streams, which are not those of clips, no named file can be opened."""
    monkeypatch.setitem(FORMATS, "concat", "concat,mpegts")
    monkeypatch.chdir(tmp_path)
    clip(tmp_path / "a.ts", **TS)
    (tmp_path / "list").write_text("ffconcat version 1.0\nfile a.ts\n")
    with av.open("list", format="concat") as found:
        assert len(list(found.decode(video=0))) == 7
    with pytest.raises(ClipError), open_container(Source("list"), "concat", 10_000):
        pass


def test_clock(tmp_path):
    source = Source(clip(tmp_path / "a.mp4"))
    clock = Clock(40, source)
    assert [clock.time(own) for own in (None, None, 100, 100, 100, 101, 200, None)] == [
        0,
        40,
        100,
        101,
        102,
        103,
        200,
        240,
    ]
    assert clock.repaired
    with pytest.raises(ClipError, match="go backwards"):
        clock.time(199)
    clean = Clock(40, source)
    assert [clean.time(own) for own in (-3, 0, 9)] == [-3, 0, 9]
    assert not clean.repaired


def test_units_hold_all_times():
    kind = {
        "sha256": "",
        "format": "mp4",
        "codec": "h264",
        "width": 8,
        "height": 8,
        "audio": False,
        "start": 3,
    }
    fine = Facts(**kind, time_base=Fraction(1, 10**9), steps=((40_000_000, 2), (90_000_000, 1)))
    assert unit_of(fine) == Fraction(1, 100)
    assert unit_of(Facts(**kind, time_base=Fraction(1001, 30000), steps=((1, 9),))) == Fraction(1, 30000)
    assert unit_of(Facts(**kind, time_base=Fraction(1, 48000), steps=())) == Fraction(1, 48000)
    far = Facts(**kind, time_base=Fraction(1, 10**9), steps=((1, 1), (3600 * 10**9, 1)))
    with pytest.raises(OutputError, match="too far apart"):
        unit_of(far)


def test_a_process_with_limits_shows_the_same_and_says_what_it_refuses(tmp_path, monkeypatch):
    path = clip(tmp_path / "a.mp4", sound="aac")
    found = open_clip(path)
    with reader(path) as own:
        assert found.facts == own.facts
        every = list(own.frames())
        for shown in (found.frames(), found.frames(2, 5), found.frames(1)):
            for frame in shown:
                assert frame.time == every[frame.index].time
                assert np.array_equal(frame.image, every[frame.index].image)
        with pytest.raises(InvalidParameter):
            found.frames(3, 9)
    (tmp_path / "b.mp4").write_bytes(b"no clip" * 99)
    with pytest.raises(ClipError, match="it is not a clip in a format"):
        open_clip(tmp_path / "b.mp4")
    monkeypatch.setattr(
        "dpveil.video.reading.POOL", Pool("dpveil.video.reading:no", memory=1 << 33, seconds=9)
    )
    with pytest.raises(ClipError, match="ends the process that reads it"):
        open_clip(path)
