"""Feed damaged files of one format to dpveil, in processes that are watched.

    python tests/hardening/fuzz.py photos|clips|documents|networks|certificates --files 100000 [--only INDEX]

Of every file the same is asked: it is taken or refused in one printable line, no other error is raised, the
process goes on, and neither time nor memory grows beyond what the format allows; of a certificate, too, that
nothing else is opened. Anything else is a finding. A file is a function of its index alone, so that a finding
is repeated with `--only`. A worker that is silent for too long is killed (a hang), one that dies is a crash,
and the files after that go to another one.
"""

import argparse
import json
import os
import random
import re
import selectors
import struct
import subprocess
import sys
import tempfile
import time
import zlib
from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any

for _folder in (".", "hardening", "batch", "io", "video/io"):
    sys.path.insert(0, str(Path(__file__).parents[1] / _folder))

MEMORY_DISK = Path("/dev/shm")  # noqa: S108  files are named by their worker, in a folder of their own
GIVE_BACK = {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536"}
"""What makes the allocator return memory at once, so that one file does not pay for another's."""
BEGINNING = 120.0
"""Seconds that a worker may take before its first file."""
HANG = {"photos": 20.0, "clips": 30.0, "documents": 60.0, "networks": 60.0, "certificates": 120.0}
"""Seconds for one file; each calibration at the ends of what methods take has up to ten."""
MAX_PIXELS = 1_000_000
SPARE = 4 * 2**20
"""Bytes that any photo may cost: decoder tables, modules imported on the way, pages of the allocator."""
GROWTH = 400 * 2**20
"""Bytes that any clip may cost."""
ADDRESSES = 2**30
"""Bytes of address space that a worker may ask for beyond what it has at the start, when it reads photos."""

Try = Callable[[int], dict[str, Any]]
"""Tries one file: returns its `kind`, its `outcome`, and a `finding` if something was wrong."""


def damaged(data: bytes, other: bytes, dice: random.Random) -> bytes:
    """Return `data` after one to four rounds of damage, half of which hit the beginning, where headers are.

    Numbers take values at an edge, or near the one that they had; parts are cut, doubled or taken from
    `other`; what is compressed is changed within, and the checksums of a PNG are mended, or nothing would
    come further than to those.
    """
    made = bytearray(data)
    for _ in range(dice.choice((1, 1, 1, 2, 3, 4))):
        if len(made) < 16:
            break
        at = dice.randrange(min(len(made), dice.choice((40, 200, 1500, 10**9, 10**9))))
        length = dice.choice((1, 2, 4, 8, 16, 64, 256, 1024))
        way = dice.randrange(9)
        if way == 0:
            for _ in range(dice.choice((1, 2, 5, 30))):
                made[dice.randrange(len(made))] ^= 1 << dice.randrange(8)
        elif way == 1:
            made[at] = dice.choice((0, 1, 2, 127, 128, 254, 255))
        elif way in (2, 3):
            size, order = dice.choice((1, 2, 3, 4, 8)), dice.choice(("big", "little"))
            old, top = int.from_bytes(made[at : at + size], order), 256**size - 1  # type: ignore[arg-type]
            edges = (0, 1, 7, 255, 256, 4096, 65535, top, top // 2, top // 2 + 1, len(made))
            value = dice.choice(
                (dice.choice(edges), old - 1, old + 1, old * 2, old * 17, dice.randrange(2000))
            )
            made[at : at + size] = (value & top).to_bytes(size, order)  # type: ignore[arg-type]
        elif way == 4:
            del made[at : dice.choice((at + length, len(made)))]
        elif way == 5:
            start = dice.randrange(len(other))
            made[at:at] = dice.choice((other[start : start + length], bytes(made[at : at + length]) * 50))
        elif way == 6:
            made[at : at + length] = dice.randbytes(length)
        elif way == 7:  # a number or a name of a text, such as a PDF's, for another one
            words = [found.span() for found in re.finditer(rb"(?<![\w.])-?[0-9]+|/[A-Z][A-Za-z0-9]+", made)]
            if words:
                start, stop = dice.choice(words)
                wild = (b"-1", b"2147483647", b"99999999999999999999", b"[", b"null", b"<<")
                made[start:stop] = dice.choice((*wild, bytes(made[slice(*dice.choice(words))])))
        else:
            made = _repacked(made, dice)
    return _mended(made) if made[:4] == b"\x89PNG" and dice.random() < 0.8 else bytes(made)


def _repacked(data: bytearray, dice: random.Random) -> bytearray:
    """Change what is compressed, or make it much longer than it should be; a PNG states its length before."""
    starts = [found.start() for found in re.finditer(rb"x[\x01\x5e\x9c\xda]", data)]
    for start in dice.sample(starts, len(starts)):
        unpacker = zlib.decompressobj()
        try:
            within = bytearray(unpacker.decompress(data[start:], 1 << 24))
        except zlib.error:
            continue
        for _ in range(dice.choice((0, 1, 4)) if within else 0):
            within[dice.randrange(len(within))] = dice.randrange(256)
        within += bytes(dice.choice((0, 0, 1, 100_000, 3_000_000)))
        body = zlib.compress(bytes(within[: dice.choice((len(within), dice.randrange(len(within) + 1)))]), 1)
        head = (
            struct.pack(">I", len(body))
            if data[start - 4 : start] == b"IDAT"
            else data[start - 8 : start - 4]
        )
        return data[: start - 8] + head + data[start - 4 : start] + body + unpacker.unused_data
    return data


def _mended(data: bytearray) -> bytes:
    at = 8
    while at + 12 <= len(data):
        end = at + 8 + int.from_bytes(data[at : at + 4], "big")
        if end + 4 > len(data):
            break
        data[end : end + 4] = struct.pack(">I", zlib.crc32(data[at + 4 : end]))
        at = end + 4
    return bytes(data)


def chosen(index: int, seeds: dict[str, bytes]) -> tuple[str, bytes]:
    """Return the name of a seed and the damaged file of one index."""
    dice, name = random.Random(f"dpveil {index}"), [*seeds][index % len(seeds)]  # noqa: S311  no secret
    alike = [seeds[other] for other in seeds if other.split()[0] == name.split()[0]]
    return name, damaged(seeds[name], dice.choice(alike), dice)


def unclear(line: str, most: int = 400) -> str:
    return "" if line.isprintable() and len(line) <= most else f"an unclear line: {line[:most]!r}"


# Photos


class Meter:
    """Resident memory of one call (Linux: the peak is reset before each)."""

    on = Path("/proc/self/clear_refs").exists()

    def reset(self) -> int:
        if self.on:
            Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
        return self.peak()

    def peak(self) -> int:
        text = Path("/proc/self/status").read_bytes() if self.on else b"VmHWM: 0"
        return int(text.split(b"VmHWM:", 1)[1].split(None, 1)[0]) * 1024


class Spy:
    """Notes how large the photo that is being read claims to be, once it has passed the limit."""

    def __init__(self) -> None:
        from dpveil.io import decoding, screening

        self.pixels = self.channels = 0
        check, opened = screening.check_pixels, decoding.check_opened

        def check_pixels(width: int, height: int, most: int) -> None:
            check(width, height, most)
            self.pixels = max(self.pixels, width * height)

        def check_opened(image: Any, *rest: Any) -> Any:
            self.channels = max(1, len(image.getbands()))
            return opened(image, *rest)

        screening.check_pixels = decoding.check_pixels = check_pixels
        decoding.check_opened = check_opened


def photos(folder: Path) -> Try:
    from fuzz_seeds import seeds
    from PIL import ImageCms  # so that its import is nobody's memory

    from dpveil.errors import PhotoError
    from dpveil.io.reading import read

    assert ImageCms.getOpenProfile
    originals, path = seeds(), folder / "photo"
    meter, spy = Meter(), Spy()
    for data in originals.values():  # first uses of a codec load tables
        path.write_bytes(data)
        with suppress(PhotoError):
            read(path)
    _limit_addresses()

    def test(index: int) -> dict[str, Any]:
        name, data = chosen(index, originals)
        path.write_bytes(data)
        spy.pixels = spy.channels = 0
        outcome, finding, before = "released", "", meter.reset()
        try:
            photo = read(path, max_pixels=MAX_PIXELS)
        except PhotoError as refusal:
            outcome, finding = "refused", unclear(str(refusal))
            if isinstance(refusal.__cause__, MemoryError) or path.name not in str(refusal):
                finding = f"asked for more than {ADDRESSES:,} bytes, or names no file: {refusal}"
        else:
            spy.pixels = spy.pixels or photo.width * photo.height  # decoded in another process
            if not 0 < photo.width * photo.height <= MAX_PIXELS or photo.image.dtype != "uint8":
                finding = f"a photo of {photo.image.shape}"
        grown, allowed = meter.peak() - before, 8 * spy.pixels * max(spy.channels, 3) + SPARE + 2 * len(data)
        if grown > allowed:
            finding = finding or f"took {grown:,} bytes, allowed are {allowed:,}"
        return {"kind": name.split()[0], "outcome": outcome, "finding": finding}

    return test


def _limit_addresses() -> None:
    import resource

    now = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + ADDRESSES, now + ADDRESSES))


# Clips


def clips(folder: Path) -> Try:
    """Every clip is read to its end, and every fourth is also written again with its sound."""
    from clip_samples import clip
    from fuzz_seeds import CLIPS

    from dpveil.errors import DPVeilError
    from dpveil.video.containers import Source
    from dpveil.video.decoding import Reader
    from dpveil.video.writing import Writer, add_sound

    for name, settings in CLIPS.items():
        if not (base := folder.parent / name).exists():
            clip(made := folder / name, **settings)
            made.rename(base)
    bases = [(folder.parent / name).read_bytes() for name in CLIPS]
    path, segment, out = (folder / name for name in ("damaged.clip", "damaged.seg", "damaged.out"))
    meter = Meter()

    def tried(again: bool) -> str:
        with nullcontext(Reader(Source(path), 2**22)) as clip:
            if not again:
                return f"read {sum(1 for _ in clip.frames()) > 0}"
            for made in (segment, out):
                made.unlink(missing_ok=True)
            with Writer(segment, clip.facts) as writer:
                for frame in clip.frames():
                    writer.write(frame)
            if clip.facts.audio:
                add_sound(segment, out, clip, "mp4")
            return "written"

    def test(index: int) -> dict[str, Any]:
        dice, before = random.Random(f"1 {index}"), meter.reset()  # noqa: S311
        path.write_bytes(damaged(dice.choice(bases), dice.choice(bases), dice))
        outcome, finding = "refused", ""
        try:
            outcome = tried(index % 4 == 0)
        except DPVeilError as error:
            finding = unclear(str(error))
        if meter.peak() - before > GROWTH and index:
            finding = finding or "grew by too much"
        return {"kind": "clip", "outcome": outcome, "finding": finding}

    return test


# Documents and networks


def documents(folder: Path) -> Try:
    """A process that PDFium ends is counted, and is no finding, as the file is refused then."""
    from documents_made import marked, sized, tiff
    from PIL import Image

    from dpveil.batch.archive_inputs import PageSettings, pages_inside
    from dpveil.errors import PhotoError
    from dpveil.io.unreadable import Refused

    originals = {"marked.pdf": marked(2), "empty.pdf": sized("90", "60", "/Rotate 90")}
    for kind, mode in (("grey.pdf", "L"), ("colour.pdf", "RGB"), ("bits.pdf", "1")):
        file, picture = BytesIO(), Image.effect_noise((60, 40), 60).convert(mode)
        picture.save(file, "PDF", save_all=True, append_images=[picture])
        originals[kind] = file.getvalue()
    originals |= {"pages.tif": tiff([0, 128, 255]), "copies.tif": tiff([9, 9, 9], kinds=(0, 1, 4))}

    def test(index: int) -> dict[str, Any]:
        name, data = chosen(index, originals)
        path = folder / f"{index}{Path(name).suffix}"
        path.write_bytes(data)
        outcome, told = "read", ""
        try:
            for page in pages_inside(path, path, path.parent, PageSettings(dpi=72))[:3]:
                page.read(MAX_PIXELS)
        except (Refused, PhotoError) as why:
            told = why.problem if isinstance(why, Refused) else why.message
            outcome = "ended" if "ends the process" in told else "refused"
        path.unlink()
        return {"kind": name, "outcome": outcome, "finding": unclear(told, 300)}

    return test


def networks(folder: Path) -> Try:
    """How often the process that reads a network ended is counted."""
    from dpveil.errors import DPVeilError
    from dpveil.regions.user_detectors import DetectorFile
    from tiny_onnx import repainter

    def test(index: int) -> dict[str, Any]:
        dice, path = random.Random(index), folder / "net.onnx"  # noqa: S311
        path.write_bytes(damaged(repainter(), repainter(), dice))
        outcome, finding = "accepted", ""
        try:
            DetectorFile.of(path)
        except DPVeilError as error:
            told = "".join(map(str, [error, error.__cause__, error.__cause__ and error.__cause__.__cause__]))
            outcome = "refused, another process ended" if "ends the process" in told else "refused"
            finding = unclear(str(error))
        return {"kind": "detector", "outcome": outcome, "finding": finding}

    return test


# Certificates


def certificates(folder: Path) -> Try:
    """Checksums fit, so that forgeries come as far as the promise."""
    from hardening_certificates import WATCH, honest, placed, sealed
    from hardening_forgeries import forged

    from dpveil.cli.say import PLAIN
    from dpveil.cli.verify import _entry, _line
    from dpveil.io.names import escape_text
    from dpveil.release.verification import verify

    originals = honest()
    for data in (*originals.values(), originals["copy"] | {"schema": "\ud800"}):  # first uses import modules
        _line(verify(placed(folder, sealed(data))), None, PLAIN)
    escape_text("\x1b")

    def test(index: int) -> dict[str, Any]:
        kind, contents = forged(index, originals)
        image = placed(folder, contents)
        with WATCH.watching():
            result = verify(image)
        lines = [*result.problems, _line(result, None, PLAIN), json.dumps(_entry(result))]
        findings = [
            *filter(None, (unclear(problem, 500) for problem in result.problems)),
            *(f"unprintable: {line!r:.300}" for line in lines if not line.isprintable()),
            *(
                f"unforeseen: {line}"
                for line in result.problems
                if re.search(r"recomputed \(|MemoryError", line)
            ),
            *(f"touched {strange}" for strange in WATCH.strange(image)),
            *(
                ["an honest one is inconsistent"]
                if (kind, result.status) == ("legal", "inconsistent")
                else []
            ),
            *[f"{len(result.problems)} problems"] * (len(result.problems) > 21),
        ]
        if len([*folder.iterdir()]) != 2:
            findings.append("left something behind")
        return {"kind": kind, "outcome": result.status, "finding": findings[0] if findings else ""}

    return test


FORMATS: dict[str, Callable[[Path], Try]] = {
    each.__name__: each for each in (photos, clips, documents, networks, certificates)
}


# Workers


class Worker:
    """A process that tries files; `busy` is the index that it is at."""

    def __init__(self, format_: str, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        environment = {k: v for k, v in (os.environ | GIVE_BACK).items() if not k.startswith("COV")}
        command = [sys.executable, "-W", "ignore", __file__, format_, "--work", str(folder)]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "bufsize": 0}
        self.process = subprocess.Popen(command, env=environment, **pipes)  # type: ignore[call-overload]
        self.busy = self.stop = 0
        self.since, self.rest = time.monotonic(), b""

    def give(self, first: int, stop: int) -> None:
        self.busy, self.stop, self.since = first, stop, time.monotonic()
        self.process.stdin.write(f"{first} {stop}\n".encode())

    def lines(self) -> list[dict[str, Any]] | None:
        """What it has said; None if it is dead."""
        more = os.read(self.process.stdout.fileno(), 1 << 20)
        if not more:
            return None
        *whole, self.rest = (self.rest + more).split(b"\n")
        self.busy, self.since = self.busy + len(whole), time.monotonic()
        return [json.loads(line) for line in whole]

    def end(self) -> int:
        self.process.kill()
        self.process.stdin.close()
        self.process.stdout.close()
        return int(self.process.wait())


@dataclass
class Tally:
    """What came of all files."""

    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    findings: list[dict[str, Any]] = field(default_factory=list)

    def add(self, entry: dict[str, Any]) -> None:
        self.counts[entry["kind"], entry["outcome"]] += 1
        self.findings += [entry] if entry["finding"] else []

    def of(self, outcome: str) -> int:
        return sum(n for (_, what), n in self.counts.items() if what == outcome)

    def print(self) -> None:
        for (kind, what), count in sorted(self.counts.items()):
            print(f"  {kind:13} {what} {count:,}")
        for entry in self.findings[:40]:
            print(f"FINDING in file {entry['index']} ({entry['kind']}): {entry['finding'][:2000]}")
        print(f"{self.counts.total():,} files, {len(self.findings)} findings")


def fuzz(format_: str, files: int, *, first: int = 0, workers: int = 2, chunk: int = 500) -> Tally:
    """Let workers try the files `first` to `first + files`."""
    tally = Tally()
    waiting = [(a, min(a + chunk, first + files)) for a in range(first, first + files, chunk)][::-1]
    memory = MEMORY_DISK if MEMORY_DISK.is_dir() else None
    with tempfile.TemporaryDirectory(dir=memory) as place, selectors.DefaultSelector() as ready:

        def start(number: int) -> None:
            worker = Worker(format_, Path(place, str(number)))
            ready.register(worker.process.stdout, selectors.EVENT_READ, worker)
            worker.give(*waiting.pop())
            worker.since += BEGINNING

        def lost(worker: Worker, why: str) -> None:
            """Note the file that a worker did not survive, and go on after it in a new one."""
            ready.unregister(worker.process.stdout)
            entry = {"index": worker.busy, "kind": "?", "outcome": "lost"}
            tally.add(entry | {"finding": f"{why} (exit status {worker.end()})"})
            if worker.busy + 1 < worker.stop:
                waiting.append((worker.busy + 1, worker.stop))
            if waiting:
                start(worker.busy + workers)

        for number in range(min(workers, len(waiting))):
            start(number)
        while ready.get_map():
            for key, _ in ready.select(timeout=0.5):
                worker: Worker = key.data
                entries = worker.lines()
                if entries is None:
                    worker.process.wait()
                    lost(worker, "the process died")
                    continue
                for entry in entries:
                    tally.add(entry)
                if worker.busy >= worker.stop and waiting:
                    worker.give(*waiting.pop())
                elif worker.busy >= worker.stop:
                    ready.unregister(key.fileobj)
                    worker.end()
            for key in list(ready.get_map().values()):
                if time.monotonic() - key.data.since > HANG[format_]:
                    lost(key.data, "no answer")
    return tally


def tried(index: int, test: Try) -> dict[str, Any]:
    try:
        entry = test(index)
    except Exception as error:  # noqa: BLE001  this is what is looked for
        entry = {"kind": "?", "outcome": "raised", "finding": f"{type(error).__name__}: {error}"}
    return {"index": index, **entry}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("format", choices=FORMATS)
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--only", type=int, help="try this one file in this process, and keep it in --keep")
    parser.add_argument("--keep", type=Path, default=Path(tempfile.gettempdir(), "fuzz"))
    parser.add_argument("--work", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    begin = FORMATS[asked.format]
    if asked.work:
        answers, quiet = os.fdopen(os.dup(1), "w", buffering=1), os.open(os.devnull, os.O_WRONLY)
        for number in (1, 2):  # libtiff writes there
            os.dup2(quiet, number)
        test = begin(asked.work)
        for line in sys.stdin:
            for index in range(*map(int, line.split())):
                answers.write(json.dumps(tried(index, test)) + "\n")
        return 0
    if asked.only is not None:
        asked.keep.mkdir(exist_ok=True)
        print(json.dumps(tried(asked.only, begin(asked.keep)), indent=1))
        return 0
    tally = fuzz(asked.format, asked.files, first=asked.first, workers=asked.workers)
    tally.print()
    return 1 if tally.findings or tally.counts.total() != asked.files else 0


if __name__ == "__main__":
    sys.exit(main())
