"""Feed damaged photos to `dpveil.io.read`: anything but a photo or one clear refusal is a finding.

    python tests/hardening/fuzz_photos.py --files 100000 [--first 0] [--workers 2] [--only INDEX]

Memory is the growth of the resident set while one file is read (Linux: the peak is reset before each), at
most 8 bytes × pixels × channels that the file declares, plus SPARE and what the file itself takes.
"""

import contextlib
import random
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parent))
from fuzzing import Try, main
from hardening_mutations import damaged
from hardening_seeds import seeds

HANG = 20.0
"""Seconds for one file of at most MAX_PIXELS pixels; the slowest honest one takes a tenth of a second."""
MAX_PIXELS = 1_000_000
SPARE = 4 * 2**20
"""Bytes that any file may cost: decoder tables, modules imported on the way, pages of the allocator."""
ADDRESSES = 2**30
"""Bytes of address space that a worker may ask for beyond what it has at the start."""


def file_of(index: int, originals: dict[str, bytes]) -> tuple[str, bytes]:
    """The name of the seed, and the damaged file, of one index."""
    rng = random.Random(f"dpveil {index}")  # noqa: S311  no secret depends on it
    name = list(originals)[index % len(originals)]
    return name, damaged(name, originals, rng)


class Meter:
    """Seconds and resident memory of one call."""

    def __init__(self) -> None:
        self.on = Path("/proc/self/clear_refs").exists()

    def reset(self) -> int:
        if not self.on:
            return 0
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
        return self.peak()

    def peak(self) -> int:
        if not self.on:
            return 0
        text = Path("/proc/self/status").read_bytes()
        return int(text.split(b"VmHWM:", 1)[1].split(None, 1)[0]) * 1024


class Spy:
    """Notes how large the file that is being read claims to be, once it has passed the limit."""

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


def begin(folder: Path) -> Try:
    """Return what reads the file of one index."""
    from PIL import ImageCms  # so that its import is nobody's memory

    from dpveil.io import read

    originals, path = seeds(), folder / "photo"
    meter, spy = Meter(), Spy()
    assert ImageCms.getOpenProfile
    for name in originals:  # first uses of a codec load tables
        path.write_bytes(originals[name])
        with contextlib.suppress(Exception):
            read(path)
    _limit_addresses()
    return lambda index: one(index, originals, path, meter, spy)


def _limit_addresses() -> None:
    try:
        import resource

        now = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (now + ADDRESSES, now + ADDRESSES))
    except (ImportError, OSError, ValueError):
        return


def one(index: int, originals: dict[str, bytes], path: Path, meter: Meter, spy: Spy) -> dict[str, Any]:
    """Read one file; `finding` says what was wrong, if anything."""
    from dpveil.errors import PhotoError
    from dpveil.io import read

    name, data = file_of(index, originals)
    path.write_bytes(data)
    spy.pixels = spy.channels = 0
    finding = ""
    before = meter.reset()
    try:
        photo = read(path, max_pixels=MAX_PIXELS)
    except PhotoError as refusal:
        outcome, finding = "refused", _unclear(refusal, path)
    except Exception as error:  # noqa: BLE001  this is what is looked for
        outcome, finding = "raised", f"{type(error).__name__}: {error}"
    else:
        outcome = "released"
        spy.pixels = spy.pixels or photo.width * photo.height  # decoded in another process
        if not 0 < photo.width * photo.height <= MAX_PIXELS or photo.image.dtype != "uint8":
            finding = f"a photo of {photo.image.shape}"
    grown = meter.peak() - before
    allowed = 8 * spy.pixels * max(spy.channels, 3) + SPARE + 2 * len(data)
    if grown > allowed and not finding:
        finding = f"took {grown:,} bytes, allowed are {allowed:,}"
    return {"kind": name.split()[0], "outcome": outcome, "finding": finding}


def _unclear(refusal: Exception, path: Path) -> str:
    line = str(refusal)
    if isinstance(refusal.__cause__, MemoryError):
        return f"asked for more than {ADDRESSES:,} bytes of addresses: {line}"
    if path.name not in line or not line.isprintable() or len(line) > 400:
        return f"an unclear refusal: {line!r}"
    return ""


if __name__ == "__main__":
    sys.exit(main(__file__, __doc__, begin, hang=HANG))
