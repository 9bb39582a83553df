"""Nothing of the input's file reaches the output but its frames, and its sound if that is kept."""

import gc

import av
import pytest
from av.packet import PacketSideData, packet_sidedata_type_from_literal
from clip_samples import PLANTED, QUARTER, STEPS, UNIT, clip, extras, picture, quarter, reader, shown
from test_video_round_trip import written

from dpveil.errors import ClipError
from dpveil.video.writing import Sound, check_sound


@pytest.mark.parametrize(
    ("name", "suffix"), [("a.mp4", ".mp4"), ("a.mov", ".mov"), ("a.mkv", ".mkv"), ("a.mkv", ".mp4")]
)
def test_what_was_planted_does_not_survive(tmp_path, name, suffix):
    path = clip(tmp_path / name, extra=extras, sound="aac")
    assert path.read_bytes().count(PLANTED.encode()) >= 4
    with reader(path) as found:
        out = written(found, tmp_path / f"o{suffix}", keep=True).read_bytes()
        assert {"2 chapters", "metadata"} <= set(found.facts.dropped)
    assert PLANTED[:6].encode() not in out
    assert PLANTED.encode("utf-16-le")[:12] not in out


def test_everything_else_is_named(tmp_path):
    path = clip(tmp_path / "a.mkv", extra=extras)
    with reader(path) as found:
        assert found.facts.dropped == ("one subtitle stream", "one attachment", "2 chapters", "metadata")
    with reader(clip(tmp_path / "b.mp4")) as found:
        assert found.facts.dropped == ()


def test_other_pictures_and_covers_are_dropped(tmp_path):
    path = tmp_path / "a.mkv"
    with av.open(str(path), "w") as made:
        streams = [made.add_stream("mjpeg", rate=25) for _ in range(3)]
        for number, stream in enumerate(streams):
            stream.width, stream.height, stream.pix_fmt = 64, 48, "yuvj420p"
            stream.codec_context.time_base = stream.time_base = UNIT
            stream.disposition = 1 if number == 1 else 0
        for time in STEPS:
            for number, stream in enumerate(streams):
                frame = av.VideoFrame.from_ndarray(picture(number + 7), "rgb24")
                frame.pts, frame.time_base = time, UNIT
                made.mux(stream.encode(frame))
    with reader(path) as found:
        assert found.facts.dropped == ("2 other picture streams",)
        assert [number for _, number in shown(written(found, tmp_path / "o.mp4"))] == [8] * 7


@pytest.mark.parametrize("suffix", [".mp4", ".mov", ".mkv", ".webm"])
def test_neither_versions_nor_dates_nor_the_machine_are_written(tmp_path, suffix):
    with reader(clip(tmp_path / "a.mp4")) as found:
        out = written(found, tmp_path / f"o{suffix}")
        again = written(found, tmp_path / f"p{suffix}")
    data = out.read_bytes()
    assert data == again.read_bytes()
    for word in (b"x264", b"Lavc", b"lavc", b"Lavf6", b"cabac=", b"threads="):
        assert word not in data
    with av.open(str(out)) as made:
        kept = {**made.metadata, **made.streams.video[0].metadata}
    assert not {"creation_time", "date", "title", "comment"} & kept.keys()


@pytest.mark.parametrize("said", [True, False])
@pytest.mark.parametrize("codec", ["libvpx", "libvpx-vp9"])
def test_transparent_webm_is_refused(tmp_path, codec, said):
    """Browsers hide what its second layer says; FFmpeg's decoder would show it."""

    def marked(made):
        if said:
            made.streams[0].metadata["alpha_mode"] = "1"

    kind = {"pixels": "yuva420p", "options": {"auto-alt-ref": "0"}, "codec": codec, "extra": marked}
    with pytest.raises(ClipError, match="transparent in part"):
        reader(clip(tmp_path / "a.webm", **kind))


def test_stretches_that_are_cut_off_by_an_edit_are_not_kept(tmp_path):
    """Times before zero are cut off by an edit list: players do not show these frames."""
    times = [time - 100 for time in STEPS]
    with reader(clip(tmp_path / "a.mp4", times)) as found:
        assert found.facts.frames == 4
        numbers = [number for _, number in shown(written(found, tmp_path / "o.mp4"))]
    assert numbers == [3, 4, 5, 6]


def test_frames_are_freed_as_soon_as_they_are_dropped(tmp_path):
    """Without waiting for Python's search for cycles: a minute of 4K has 20 GB of frames."""
    with reader(clip(tmp_path / "a.mp4", times=range(0, 1600, 40), turn=QUARTER, store=quarter)) as found:
        gc.collect()
        gc.disable()
        try:
            for _ in found.frames():
                pass
            kept = sum(type(thing) is av.VideoFrame for thing in gc.get_objects())
        finally:
            gc.enable()
    assert kept <= 2


def beside(packet, kind, contents):
    """Put side data beside a packet."""
    data = PacketSideData(packet_sidedata_type_from_literal(kind), len(contents))
    data.update(contents)
    packet.set_sidedata(data)


@pytest.mark.parametrize("suffix", [".mkv", ".webm", ".mp4"])
def test_what_comes_beside_packets_of_sound_is_not_copied(tmp_path, monkeypatch, suffix):
    """As Matroska's additions to blocks, which FFmpeg's muxer writes, too."""
    demuxed = Sound._time_packets

    def planted(self, stream):
        for packet in demuxed(self, stream):
            beside(packet, "matroska_block_additional", bytes(7) + b"\1" + 30 * PLANTED.encode())
            yield packet

    monkeypatch.setattr(Sound, "_time_packets", planted)
    with reader(clip(tmp_path / "a.mkv", sound="libopus")) as found:
        out = written(found, tmp_path / f"o{suffix}", keep=True)
    assert PLANTED.encode() not in out.read_bytes()
    with av.open(str(out)) as made:
        assert sum(packet.size > 0 for packet in made.demux(audio=0)) > 10


def test_sound_that_is_set_up_again_is_refused(tmp_path, monkeypatch):
    """As by a second description in an MP4 file, which may have any length."""
    demuxed = Sound._time_packets

    def planted(self, stream):
        for number, packet in enumerate(demuxed(self, stream)):
            if number == 3:
                beside(packet, "new_extradata", PLANTED.encode())
            yield packet

    monkeypatch.setattr(Sound, "_time_packets", planted)
    with reader(clip(tmp_path / "a.mp4", sound="aac")) as found:
        with pytest.raises(ClipError, match="changes how it is coded"):
            check_sound(found, "mp4")
        with pytest.raises(ClipError, match="changes how it is coded"):
            written(found, tmp_path / "o.mp4", keep=True)
