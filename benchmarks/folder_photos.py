"""The synthetic folder of `folder.py`: 1280 × 720 JPEGs, faces at known positions, marks in the metadata."""

from __future__ import annotations

import struct
from io import BytesIO
from pathlib import Path

import numpy as np
from PIL import Image
from skimage import data

SHARED = Path(__file__).parent.parent.parent / "shared" / "data" / "lfw10_128"
BACKGROUNDS = ("coffee", "chelsea", "rocket")
WIDTH, HEIGHT = 1280, 720
PHOTOS, HARD, EMPTY = 20, 2, 3
"""Of the photos, `HARD` show only faces that a detector may miss, and `EMPTY` show none."""

MARKS = {
    "EXIF": b"dpveil-mark-exif",
    "thumbnail": b"dpveil-mark-thumbnail",
    "XMP": b"dpveil-mark-xmp",
    "comment": b"dpveil-mark-comment",
    "after the end": b"dpveil-mark-tail",
}
"""Metadata of every photo, as bytes that no output should contain."""

Place = tuple[int, int, int]
"""Left, top and side of a pasted portrait, with the face in its middle."""


def make(folder: Path) -> dict[str, list[Place]]:
    """Write the photos into `folder`; return the positions of the faces by name."""
    draw = np.random.default_rng(1)
    people = [Image.open(path).convert("RGB") for path in sorted(SHARED.glob("*/*.jpg"))[::60]]
    people = people or [Image.fromarray(data.astronaut()).crop((150, 0, 300, 150))]
    folder.mkdir()
    places = {}
    for number in range(PHOTOS):
        canvas = Image.fromarray(getattr(data, BACKGROUNDS[number % 3])()).resize((WIDTH, HEIGHT))
        kind = "empty" if number < EMPTY else "hard" if number < EMPTY + HARD else "faces"
        taken = [] if kind == "empty" else _pasted(canvas, people, draw, hard=kind == "hard")
        name = f"{number:02d}-{kind}.jpg"
        (folder / name).write_bytes(_marked(canvas))
        places[name] = taken
    return places


def _pasted(
    canvas: Image.Image, people: list[Image.Image], draw: np.random.Generator, *, hard: bool
) -> list[Place]:
    """Paste up to three portraits of 120 to 300 pixels in columns; a hard one is tiny and rotated."""
    taken = []
    for column in range(1 if hard else 1 + int(draw.integers(3))):
        side = 20 if hard else int(draw.integers(120, 301))
        x = column * WIDTH // 3 + int(draw.integers(0, WIDTH // 3 - side))
        y = int(draw.integers(0, HEIGHT - side))
        person = people[draw.integers(len(people))]
        person = person.rotate(120) if hard else person
        canvas.paste(person.resize((side, side), Image.Resampling.BICUBIC), (x, y))
        taken.append((x, y, side))
    return taken


def _marked(canvas: Image.Image) -> bytes:
    """Return the JPEG with its marks, laid out as in a camera's file."""
    buffer = BytesIO()
    xmp = b'<x:xmpmeta xmlns:x="adobe:ns:meta/">' + MARKS["XMP"] + b"</x:xmpmeta>"
    canvas.save(buffer, "jpeg", quality=90, exif=_exif(_thumbnail(canvas)), xmp=xmp, comment=MARKS["comment"])
    return buffer.getvalue() + MARKS["after the end"]


def _thumbnail(canvas: Image.Image) -> bytes:
    buffer = BytesIO()
    canvas.resize((160, 90)).save(buffer, "jpeg", comment=MARKS["thumbnail"])
    return buffer.getvalue()


def _exif(thumbnail: bytes) -> bytes:
    """Return EXIF with one description (tag 270) and a thumbnail (tags 259, 513, 514), little-endian."""
    text = MARKS["EXIF"] + b"\0"
    first = 8
    second = first + 2 + 12 + 4 + len(text) + len(text) % 2
    start = second + 2 + 3 * 12 + 4
    entry = struct.Struct("<HHII").pack
    parts = [
        b"Exif\0\0II*\0" + struct.pack("<I", first),
        struct.pack("<H", 1) + entry(270, 2, len(text), first + 18) + struct.pack("<I", second),
        text + bytes(len(text) % 2),
        struct.pack("<H", 3) + entry(259, 3, 1, 6) + entry(513, 4, 1, start),
        entry(514, 4, 1, len(thumbnail)) + struct.pack("<I", 0) + thumbnail,
    ]
    return b"".join(parts)
