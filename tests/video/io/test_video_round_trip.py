"""Clips of every kind, read and written: each frame keeps its number, its time and its place."""

from fractions import Fraction

import av
import numpy as np
import pytest
from clip_samples import QUARTER, SIZE, STEPS, UNIT, clip, number_in, picture, quarter, reader, shown

from dpveil.errors import ClipError, InvalidParameter, OutputError
from dpveil.video.facts import Frame
from dpveil.video.writing import Writer, add_sound, container_for

ONE = 1 << 16
PAL = {"times": range(7), "unit": Fraction(1, 25)}
HALF_TURN = (-ONE, 0, 0, 0, -ONE, 0, SIZE[0] * ONE, SIZE[1] * ONE, 1 << 30)
MIRROR = (-ONE, 0, 0, 0, ONE, 0, SIZE[0] * ONE, 0, 1 << 30)
TRANSPOSED = (0, ONE, 0, ONE, 0, 0, 0, 0, 1 << 30)
THREE_QUARTERS = (0, -ONE, 0, ONE, 0, 0, 0, SIZE[0] * ONE, 1 << 30)
TS = {"unit": Fraction(1, 90_000), "times": [90 * time for time in STEPS]}
KINDS = {
    "h264.mp4": {},
    "h264.mov": {},
    "h264.mkv": {},
    "h264.ts": TS,
    "h264.avi": PAL,
    "steady.mp4": {"times": range(0, 280, 40)},
    "fragments.mp4": {"muxer": {"movflags": "frag_keyframe+empty_moov"}, "options": {"g": "3"}},
    "index-in-front.mp4": {"muxer": {"movflags": "faststart"}},
    "hevc.mp4": {"codec": "libx265", "options": {"x265-params": "log-level=none"}},
    "vp9.webm": {"codec": "libvpx-vp9"},
    "vp8.webm": {"codec": "libvpx"},
    "mpeg4.avi": {"codec": "mpeg4", "context": {"max_b_frames": 2}, **PAL},
    "mpeg2.mpg": {"codec": "mpeg2video", **PAL},
    "jpeg.mov": {"codec": "mjpeg", "pixels": "yuvj420p"},
    "prores.mov": {"codec": "prores_ks", "pixels": "yuv422p10le"},
    "ten-bits.mkv": {"pixels": "yuv420p10le"},
    "rgb.mkv": {"codec": "ffv1", "pixels": "bgr0"},
    "alpha.mov": {"codec": "qtrle", "pixels": "argb"},
    "quarter.mp4": {"turn": QUARTER, "store": quarter},
    "half.mov": {"turn": HALF_TURN, "store": lambda levels: levels[::-1, ::-1]},
    "three-quarters.mp4": {"turn": THREE_QUARTERS, "store": lambda levels: np.rot90(levels, 3)},
    "mirror.mp4": {"turn": MIRROR, "store": lambda levels: levels[:, ::-1]},
    "transposed.mp4": {"turn": TRANSPOSED, "store": lambda levels: levels.swapaxes(0, 1)},
    "odd.webm": {"codec": "libvpx-vp9", "size": (61, 45)},
    "late.mkv": {"times": [5000 + time for time in STEPS]},
    "late.mp4": {"times": [5000 + time for time in STEPS]},
    "one.mp4": {"times": [0]},
    "hour.mkv": {"times": [0, 3_600_000]},
    "open-groups.mp4": {
        "times": range(0, 800, 40),
        "options": {"x264-params": "open-gop=1:keyint=6:bframes=3"},
    },
}


def written(found, out, keep=False):
    """Write all frames of an open clip to `out`, with its sound if that is to be kept."""
    container = container_for(out)
    pictures = out.with_name(f"silent.{out.name}") if keep else out
    with Writer(pictures, found.facts, container=container) as writer:
        for frame in found.frames():
            writer.write(frame)
    if keep:
        add_sound(pictures, out, found, container)
    return out


@pytest.mark.parametrize("name", KINDS)
def test_times_and_pictures_survive(tmp_path, name):
    kind = KINDS[name]
    times, unit = kind.get("times", STEPS), kind.get("unit", UNIT)
    path = clip(tmp_path / name, **kind)
    with reader(path) as found:
        facts = found.facts
        assert (facts.width, facts.height) == kind.get("size", SIZE)
        frames = list(found.frames())
        assert [number_in(frame.image) for frame in frames] == list(range(len(times)))
        assert [frame.index for frame in frames] == list(range(len(times)))
        assert [frame.time for frame in frames] == list(facts.times)
        assert not any(frame.image.flags.writeable for frame in frames)
        own = [(time - facts.start) * facts.time_base for time in facts.times]
        assert own == [(time - times[0]) * unit for time in times]
        out = written(found, tmp_path / "out.mp4")
    assert shown(out) == list(zip(own, range(len(times)), strict=True))


@pytest.mark.parametrize("name", ["h264.mp4", "open-groups.mp4", "mpeg4.avi"])
def test_any_part_has_the_frames_of_the_whole(tmp_path, name):
    with reader(clip(tmp_path / name, **KINDS[name])) as found:
        whole = list(found.frames())
        for start in range(0, len(whole), 1 if len(whole) < 10 else 3):
            part = list(found.frames(start, min(start + 2, len(whole))))
            assert [frame.index for frame in part] == [start, start + 1][: len(part)]
            for frame in part:
                assert np.array_equal(frame.image, whole[frame.index].image)


def test_transport_streams_of_discs_are_read(tmp_path):
    """Their packets have 192 bytes: four before each of 188."""
    data = clip(tmp_path / "a.ts", **TS).read_bytes()
    path = tmp_path / "a.m2ts"
    path.write_bytes(b"".join(bytes(4) + data[at : at + 188] for at in range(0, len(data), 188)))
    with reader(path) as found:
        assert [number_in(frame.image) for frame in found.frames()] == list(range(7))


@pytest.mark.parametrize("suffix", [".mkv", ".webm", ".mov", ".m4v"])
def test_every_container_is_written(tmp_path, suffix):
    with reader(clip(tmp_path / "a.mp4")) as found:
        assert [number for _, number in shown(written(found, tmp_path / f"o{suffix}"))] == list(range(7))


def test_pixels_become_square(tmp_path):
    path = clip(tmp_path / "a.mp4", context={"sample_aspect_ratio": Fraction(4, 3)})
    with reader(path) as found:
        assert (found.facts.width, found.facts.height) == (85, 48)
        assert number_in(next(found.frames(5)).image) == 5
    with reader(clip(tmp_path / "b.mp4", context={"sample_aspect_ratio": Fraction(1, 2)})) as found:
        assert (found.facts.width, found.facts.height) == (64, 96)


@pytest.mark.parametrize(("matrix", "name"), [(1, "ITU709"), (5, "ITU601")])
@pytest.mark.parametrize("limits", [1, 2])
@pytest.mark.parametrize("pixels", ["yuv420p", "yuv420p10le"])
def test_colours_are_those_of_the_stated_matrix_and_range(tmp_path, matrix, name, limits, pixels):
    frame = av.VideoFrame.from_ndarray(picture(11), "rgb24")
    coded = frame.reformat(format=pixels, dst_colorspace=name, dst_color_range=limits)
    path = tmp_path / "a.mkv"
    with av.open(str(path), "w") as made:
        stream = made.add_stream("ffv1", rate=25)
        stream.width, stream.height, stream.pix_fmt = *SIZE, pixels
        stream.codec_context.colorspace, stream.codec_context.color_range = matrix, limits
        made.mux([*stream.encode(coded), *stream.encode(None)])
    with reader(path) as found:
        levels = next(found.frames()).image
        assert np.abs(levels[40, 10::21].astype(int) - picture(11)[40, 10::21]).max() <= 2
        out = written(found, tmp_path / "o.mp4")
    with reader(out) as again:
        levels = next(again.frames()).image
    assert np.abs(levels[40, 10::21].astype(int) - picture(11)[40, 10::21]).max() <= 5
    with av.open(str(out)) as made:
        context = made.streams.video[0].codec_context
        assert (context.colorspace, context.color_range, context.color_trc, context.color_primaries) == (
            1,
            1,
            1,
            1,
        )


HLG_A, HLG_B = 0.17883277, 0.28466892
HLG_C = 0.55991073


def hlg(signal):
    """Return cd/m² of a grey on a screen of 1000 (ITU-R BT.2100, table 5)."""
    scene = signal**2 / 3 if signal <= 0.5 else (np.exp((signal - HLG_C) / HLG_A) + HLG_B) / 12
    return 1000 * scene**1.2


def pq(signal):
    """Return cd/m² (ITU-R BT.2100, table 4)."""
    root = signal ** (32 / 2523)
    return 10_000 * (max(root - 0.8359375, 0) / (18.8515625 - 18.6875 * root)) ** (16384 / 2610)


@pytest.mark.slow
@pytest.mark.parametrize(("transfer", "light"), [(18, hlg), (16, pq)])
def test_hdr_is_shown_up_to_its_white(tmp_path, transfer, light):
    """Greys against the formulas of the standard: light over that of white, by a screen's gamma of 2.4."""
    signals = np.arange(16) / 15
    coded = av.VideoFrame(64, 48, "yuv420p10le")
    for number, plane in enumerate(coded.planes):
        rows = np.frombuffer(plane, np.uint16).reshape(plane.height, -1)
        rows[:, : plane.width] = 512 if number else np.round(4 * (16 + 219 * np.repeat(signals, 4)))
    path = tmp_path / "a.mkv"
    with av.open(str(path), "w") as made:
        stream = made.add_stream("ffv1", rate=25)
        stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p10le"
        context = stream.codec_context
        context.color_trc, context.color_primaries, context.colorspace, context.color_range = (
            transfer,
            9,
            9,
            1,
        )
        made.mux([*stream.encode(coded), *stream.encode(None)])
    with reader(path) as found:
        levels = next(found.frames()).image[20, 2::4].astype(int)
    wanted = [255 * min(light(signal) / 203, 1) ** (1 / 2.4) for signal in signals]
    assert np.abs(levels - np.array(wanted)[:, None]).max() <= 6


def test_hidden_colours_are_shown_as_black(tmp_path):
    levels = np.full((48, 64, 4), 200, np.uint8)
    levels[:, :32, 3], levels[:, 32:, 3] = 0, 255
    with av.open(str(tmp_path / "a.mov"), "w") as made:
        stream = made.add_stream("png", rate=25)
        stream.width, stream.height, stream.pix_fmt = *SIZE, "rgba"
        made.mux([*stream.encode(av.VideoFrame.from_ndarray(levels, "rgba")), *stream.encode(None)])
    with reader(tmp_path / "a.mov") as found:
        image = next(found.frames()).image
    assert image[:, :32].max() == 0
    assert image[:, 32:].min() == 200


@pytest.mark.parametrize(
    ("name", "kind", "out"),
    [
        ("a.mp4", {"sound": "aac"}, "o.mp4"),
        ("late.mov", {"sound": "aac", "times": [500 + time for time in STEPS]}, "o.mp4"),
        ("a.ts", {"sound": "aac", **TS}, "o.mov"),
        ("a.webm", {"codec": "libvpx-vp9", "sound": "libopus"}, "o.webm"),
        ("a.mkv", {"sound": "flac"}, "o.mkv"),
        ("a.mov", {"sound": "pcm_s16le"}, "o.mov"),
    ],
)
def test_sound_that_is_kept_stays_where_it_was(tmp_path, name, kind, out):
    with reader(clip(tmp_path / name, **kind)) as found:
        assert found.facts.audio
        made = written(found, tmp_path / out, keep=True)
        start = found.facts.start * found.facts.time_base
        assert [number for _, number in shown(made)] == list(range(7))
        before = {data: time - start for time, data in _sound(tmp_path / name)}
        after = _sound(made)
    assert len(after) >= 4
    for time, data in after:
        assert abs(time - before[data]) <= Fraction(1, 1000)
    assert sum(1 for time in before.values() if time >= 0) <= len(after)


def _sound(path):
    """Return the times of packets of sound, and their bytes without the frame of MPEG streams."""
    with av.open(str(path)) as found:
        packets = [packet for packet in found.demux(audio=0) if packet.size]
        return [(p.pts * p.time_base, bytes(p)[7 if path.suffix == ".ts" else 0 :]) for p in packets]


@pytest.mark.parametrize(("sound", "out"), [("pcm_s16le", "o.mp4"), ("aac", "o.webm")])
def test_sound_that_the_container_does_not_take_is_refused(tmp_path, sound, out):
    with (
        reader(clip(tmp_path / "a.mkv", sound=sound)) as found,
        pytest.raises(ClipError, match="do not take"),
    ):
        written(found, tmp_path / out, keep=True)


def test_frames_of_another_size_or_number_are_refused(tmp_path):
    with reader(clip(tmp_path / "a.mp4")) as found:
        frames = list(found.frames())
        small = Frame(0, 0, frames[0].image[:-2])
        with pytest.raises(InvalidParameter, match="size"), Writer(tmp_path / "s.mp4", found.facts) as first:
            first.write(small)
        with pytest.raises(OutputError, match="it exists already"):
            Writer(tmp_path / "s.mp4", found.facts)
        with pytest.raises(OutputError, match="1 frames"), Writer(tmp_path / "t", found.facts) as short:
            short.write(frames[0])


def test_builds_without_x264_write_webm_alone(tmp_path, monkeypatch):
    monkeypatch.setattr("dpveil.video.writing.is_installed", lambda name: name != "libx264")
    with reader(clip(tmp_path / "a.mp4")) as found:
        written(found, tmp_path / "o.webm")
        for suffix in (".mp4", ".mov", ".mkv"):
            with pytest.raises(OutputError, match="no libx264"):
                written(found, tmp_path / f"o{suffix}")
