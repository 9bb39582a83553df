"""Feed damaged clips to dpveil in child processes: make fuzz-clips

Small clips of every container and codec are flipped, cut, spliced, and given lying sizes. Each is opened and
read to its end, and every fourth is also written again with its sound. A child that dies by a signal, takes
longer than --seconds, grows by more than --megabytes, or raises anything but an error of dpveil is a finding;
its file is kept in --keep, and `--only FILE` runs it again.
"""

from __future__ import annotations

import argparse
import multiprocessing as mp
import random
import resource
import sys
import tempfile
import time
import traceback
from collections import Counter
from fractions import Fraction
from multiprocessing.connection import Connection
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "video" / "io"))

import clip_samples as clips

from dpveil.errors import DPVeilError
from dpveil.video.decoding import Source
from dpveil.video.reading import Reader
from dpveil.video.writing import Writer, join

BATCH = 500
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


def child(bases: list[bytes], first: int, last: int, seed: int, folder: Path, said: Connection) -> None:
    """Try damaged clips number `first` to `last`, and say how each ends, with the memory in use."""
    path = folder / f"{first}.clip"
    for number in range(first, last):
        dice = random.Random(f"{seed} {number}")  # noqa: S311
        path.write_bytes(damaged(dice.choice(bases), dice.choice(bases), dice))
        said.send(("begun", number, 0))
        try:
            end = tried(path, number % 4 == 0)
        except BaseException:  # noqa: BLE001  whatever it is, it is a finding
            end = "TRACEBACK " + traceback.format_exc()
        said.send((end, number, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10))
    path.unlink(missing_ok=True)


def watched(
    arguments: argparse.Namespace, bases: list[bytes], folder: Path
) -> tuple[Counter[str], list[str]]:
    """Run all children, one after the other; return how the clips ended, and the findings."""
    ends: Counter[str] = Counter()
    findings: list[str] = []
    number, begun = arguments.first, time.monotonic()
    while number < arguments.first + arguments.runs and time.monotonic() - begun < arguments.minutes * 60:
        last = min(number + BATCH, arguments.first + arguments.runs)
        here, there = mp.Pipe(duplex=False)
        process = mp.Process(target=child, args=(bases, number, last, arguments.seed, folder, there))
        process.start()
        there.close()
        before = 0
        while number < last:
            why, size = "", 0
            try:
                if not here.poll(arguments.seconds):
                    why = f"took more than {arguments.seconds} s"
                else:
                    end, number, size = here.recv()
            except EOFError:
                process.join()
                why = f"ended by signal or exit {process.exitcode}"
            if not why and end == "begun":
                continue
            if not why:
                ends[end if not end.startswith("TRACEBACK") else "TRACEBACK"] += 1
                why = end if end.startswith("TRACEBACK") else ""
                if before and size - before > arguments.megabytes:
                    why = f"grew by {size - before} MB"
                before = size
            if why:
                findings.append(f"number {number}: {why}")
                file = folder / f"{last - BATCH if last % BATCH == 0 else last}.clip"
                print(findings[-1], file.name, flush=True)
                dice = random.Random(f"{arguments.seed} {number}")  # noqa: S311
                arguments.keep.mkdir(exist_ok=True, parents=True)
                kept = damaged(dice.choice(bases), dice.choice(bases), dice)
                (arguments.keep / f"{number}.clip").write_bytes(kept)
            number += 1
            if why and not why.startswith(("TRACEBACK", "grew")):
                break
        if process.is_alive() and number < last:
            process.kill()
        process.join()
    print(f"{number - arguments.first} clips in {time.monotonic() - begun:.0f} s")
    return ends, findings


def main() -> None:
    """Parse the arguments, make the clips, and report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--minutes", type=float, default=1e6)
    parser.add_argument("--megabytes", type=int, default=400)
    parser.add_argument("--keep", type=Path, default=Path(tempfile.gettempdir()) / "fuzz-clips")
    parser.add_argument("--only", type=Path)
    arguments = parser.parse_args()
    if arguments.only:
        print(tried(arguments.only, True))
        return
    with tempfile.TemporaryDirectory() as name:
        bases = [clips.clip(Path(name) / base, **kwargs).read_bytes() for base, kwargs in BASES.items()]
        ends, findings = watched(arguments, bases, Path(name))
    for end, count in ends.most_common():
        print(f"{count:7} {end}")
    print(f"{len(findings)} findings", *findings, sep="\n")
    sys.exit(bool(findings))


if __name__ == "__main__":
    main()
