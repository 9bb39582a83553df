"""Feed damaged clips to dpveil in child processes: make fuzz-clips

Small clips of every container and codec are flipped, cut, spliced, and given lying sizes. Each is opened and
read to its end, and every fourth is also written again with its sound. Whatever raises anything but an error
of dpveil, takes longer than 30 seconds, or grows by more than MEGABYTES is a finding.
"""

from __future__ import annotations

import random
import resource
import sys
import traceback
from fractions import Fraction
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "video" / "io"))
sys.path.insert(0, str(Path(__file__).parent))

import clip_samples as clips
from fuzzing import Try, main

from dpveil.errors import DPVeilError
from dpveil.video.decoding import Source
from dpveil.video.reading import Reader
from dpveil.video.writing import Writer, join

MEGABYTES = 400
WORDS = (0, 1, 0x7F, 0x80, 0xFF, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0xFFFFFF00, 0x10000)
PAL = {"times": range(7), "unit": Fraction(1, 25)}
BASES = {
    "h264.mp4": {"sound": "aac", "extra": clips.extras},
    "hevc.mp4": {"codec": "libx265", "options": {"x265-params": "log-level=none"}},
    "fragments.mp4": {"muxer": {"movflags": "frag_keyframe+empty_moov"}, "options": {"g": "3"}},
    "front.mov": {"muxer": {"movflags": "faststart"}, "sound": "pcm_s16le"},
    "turned.mov": {"turn": clips.QUARTER, "store": clips.quarter},
    "fields.mp4": {"options": {"x264-params": "tff=1"}},
    "prores.mov": {"codec": "prores_ks", "pixels": "yuv422p10le"},
    "jpeg.mov": {"codec": "mjpeg", "pixels": "yuvj420p"},
    "alpha.mov": {"codec": "qtrle", "pixels": "argb"},
    "h264.mkv": {"sound": "aac"},
    "ten.mkv": {"pixels": "yuv420p10le"},
    "ffv1.mkv": {"codec": "ffv1", "pixels": "yuv444p10le"},
    "vp9.webm": {"codec": "libvpx-vp9", "sound": "libopus"},
    "vp8.webm": {"codec": "libvpx"},
    "mpeg4.avi": {"codec": "mpeg4", "sound": "libmp3lame", **PAL},
    "h264.ts": {"sound": "aac"},
    "mpeg2.mpg": {"codec": "mpeg2video", **PAL},
}


def damaged(data: bytes, other: bytes, dice: random.Random) -> bytes:
    """Return `data` with one to a few kinds of damage."""
    found = bytearray(data)
    for _ in range(dice.choice((1, 1, 1, 2, 3))):
        kind = dice.randrange(7)
        at = dice.randrange(max(1, len(found) - 8))
        if dice.random() < 0.5:
            at = dice.randrange(min(len(found) - 8, 1500)) if len(found) > 16 else 0
        length = dice.choice((1, 2, 4, 8, 16, 64, 256, 1024))
        if kind == 0:
            for _ in range(dice.choice((1, 2, 5, 30))):
                found[dice.randrange(len(found))] ^= 1 << dice.randrange(8)
        elif kind == 1:
            found[at : at + 4] = dice.choice(WORDS).to_bytes(4, dice.choice(("big", "little")))
        elif kind == 2:
            del found[max(16, at) :]
        elif kind == 3:
            del found[at : at + length]
        elif kind == 4:
            start = dice.randrange(len(other))
            found[at:at] = other[start : start + length]
        elif kind == 5:
            found[at : at + length] = dice.randbytes(length)
        else:
            start = dice.randrange(len(found))
            found[at : at + length] = found[start : start + length]
        if len(found) < 32:
            break
    return bytes(found)


def tried(path: Path, again: bool) -> str:
    """Return how a clip ends: its number of frames, or the problem."""
    try:
        with Reader(Source(path), 2**22) as clip:
            if not again:
                return f"read {sum(1 for _ in clip.frames()) > 0}"
            segment, out = path.with_suffix(".seg"), path.with_suffix(".out")
            for made in (segment, out):
                made.unlink(missing_ok=True)
            with Writer(segment, clip.facts) as writer:
                for frame in clip.frames():
                    writer.write(frame)
            join([segment], out, clip.facts, audio_from=clip if clip.facts.audio else None)
            return "written"
    except DPVeilError as error:
        text = str(error)
        if "\n" in text or not text.isprintable():
            raise
        return text.split(": ")[1]


def begin(folder: Path) -> Try:
    """Make the clips, unless another worker has, and return what tries the damaged one of an index."""
    for name, settings in BASES.items():
        if not (base := folder.parent / name).exists():
            clips.clip(made := folder / name, **settings)
            made.rename(base)
    bases = [(folder.parent / name).read_bytes() for name in BASES]
    path = folder / "damaged.clip"

    def test(index: int) -> dict[str, str]:
        dice = random.Random(f"1 {index}")  # noqa: S311
        path.write_bytes(damaged(dice.choice(bases), dice.choice(bases), dice))
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
        try:
            end, finding = tried(path, index % 4 == 0), ""
        except BaseException:  # noqa: BLE001  whatever it is, it is a finding
            end, finding = "raised", traceback.format_exc()
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10) - before
        if grown > MEGABYTES and index and not finding:
            finding = f"grew by {grown} MB"
        return {"kind": "clip", "outcome": end, "finding": finding}

    return test


if __name__ == "__main__":
    sys.exit(main(__file__, __doc__, begin, hang=30.0))
