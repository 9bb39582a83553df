"""Feed damaged PDF and TIFF files to `dpveil.batch.inside`: pages or one clear refusal, or it is a finding.

    python tests/hardening/fuzz_documents.py --files 2000 [--first 0] [--only INDEX]

A process that PDFium ends is counted, and is no finding, as the
file is refused then; a page that takes longer than HANG seconds is one.
"""

import random
import re
import sys
import zlib
from io import BytesIO
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "batch"))
sys.path.insert(0, str(Path(__file__).parent))
from documents_made import marked, sized, tiff
from fuzzing import Try, main
from PIL import Image

HANG = 60.0
MOST = 1_000_000
NUMBER = re.compile(rb"(?<![\w.])-?[0-9]+(?:[.][0-9]+)?")
NAME = re.compile(rb"/[A-Z][A-Za-z0-9]+")
WILD = (b"0", b"-1", b"2147483647", b"4294967296", b"1e9", b"99999999999999999999", b"[", b"null", b"<<")


def seeds() -> dict[str, bytes]:
    found = {"marked.pdf": marked(2), "empty.pdf": sized("90", "60", "/Rotate 90")}
    picture = Image.effect_noise((60, 40), 60)
    for kind, mode in (("grey.pdf", "L"), ("colour.pdf", "RGB"), ("bits.pdf", "1")):
        file = BytesIO()
        picture.convert(mode).save(file, "PDF", save_all=True, append_images=[picture.convert(mode)])
        found[kind] = file.getvalue()
    return found | {"pages.tif": tiff([0, 128, 255]), "copies.tif": tiff([9, 9, 9], kinds=(0, 1, 4))}


def damaged(data: bytes, rng: random.Random) -> bytes:
    made = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 4, 16))):
        way = rng.randrange(7)
        at = rng.randrange(max(1, len(made)))
        if way == 0:
            made[at : at + 1] = bytes([rng.randrange(256)])
        elif way == 1:
            made = made[:at]
        elif way == 2:
            stop = at + rng.randrange(1, 200)
            made[at:at] = made[at:stop] * rng.choice((1, 2, 50))
        elif way == 3:
            del made[at : at + rng.randrange(1, 100)]
        elif way in (4, 5):  # a number, or a name for another
            places = [found.span() for found in (NUMBER if way == 4 else NAME).finditer(made)]
            if places:
                start, stop = rng.choice(places)
                other = rng.choice(places)
                made[start:stop] = rng.choice((*WILD, bytes(made[slice(*other)])))
        else:  # within a compressed stream
            packed = [found.start() for found in re.finditer(rb"x\x9c", made)]
            if packed:
                start = rng.choice(packed)
                told = zlib.compress(rng.randbytes(rng.randrange(400)) + b" 9e9 Tf Do W n q q q sh")
                made[start : start + len(told)] = told
    return bytes(made)


def file_of(index: int, originals: dict[str, bytes]) -> tuple[str, bytes]:
    rng = random.Random(f"dpveil document {index}")  # noqa: S311  no secret depends on it
    name = list(originals)[index % len(originals)]
    return name, damaged(originals[name], rng)


def outcome(path: Path) -> str:
    """Return what became of the pages of one file, of which at most three are read."""
    from dpveil.batch.inside import Scan, pages_of, read_page
    from dpveil.errors import PhotoError
    from dpveil.io.refused import Refused

    try:
        stamp, members = pages_of(path, Scan(dpi=72))
        for member in list(members)[:3]:
            read_page(path, stamp, member, 72, "it", MOST)
    except (Refused, PhotoError) as why:
        told = why.problem if isinstance(why, Refused) else why.message
        if not told.isprintable() or len(told) > 300:
            return f"FINDING: {told[:80]!r}"
        return "ended" if "ends the process" in told else "refused"
    return "read"


def begin(folder: Path) -> Try:
    """Return what reads the document of one index."""
    originals = seeds()

    def test(index: int) -> dict[str, str]:
        name, data = file_of(index, originals)
        path = folder / f"{index}{Path(name).suffix}"
        path.write_bytes(data)
        found = outcome(path)
        path.unlink()
        bad = found.startswith("FINDING")
        return {"kind": name, "outcome": "unclear" if bad else found, "finding": found * bad}

    return test


if __name__ == "__main__":
    sys.exit(main(__file__, __doc__, begin, hang=HANG))
