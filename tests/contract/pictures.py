"""Pictures of record: what methods and options draw under seeded bits, in sheets that people can look at.

A change that must not alter a picture leaves the sheets as they are. Where it must, look at the new ones
before you commit them. Small differences are passed over, as another processor may round otherwise.
"""

from __future__ import annotations

import contextlib
import io
import tempfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final, TypeAlias
from unittest import mock

import av
import numpy as np
from PIL import Image, ImageFilter
from skimage import data

import dpveil

FOLDER: Final = Path(__file__).with_name("pictures")
SIDE: Final = 144  # pixels of a tile
COLUMNS: Final = 8
LEVELS: Final = 3  # how far a value may be off
SHARE: Final = 2e-3  # of the values of a tile, how many may be further off


Tiles: TypeAlias = Iterator[tuple[str, Image.Image]]


def portrait(side: int = SIDE) -> Image.Image:
    """Return a photo of one person, `side` pixels wide and high."""
    return Image.fromarray(data.astronaut()[:300, 80:380]).resize((side, side), Image.Resampling.LANCZOS)


@cache
def photos() -> Mapping[str, np.ndarray]:
    """Return what is released: one face in many lights, sizes and places."""
    face, small, large = portrait(), portrait(72), portrait(288)
    rng = np.random.default_rng(3)
    pair = Image.new("RGB", (144, 144), (90, 110, 130))
    pair.paste(small, (0, 10))
    pair.paste(small.transpose(Image.Transpose.FLIP_LEFT_RIGHT), (72, 60))
    plain = np.asarray(face).astype(float)
    found: dict[str, Any] = {
        "face": face,
        "left": face.transpose(Image.Transpose.FLIP_LEFT_RIGHT),
        "grey": face.convert("L"),
        "turned 20": face.rotate(20, Image.Resampling.BICUBIC, fillcolor=(80, 90, 100)),
        "turned -40": face.rotate(-40, Image.Resampling.BICUBIC, fillcolor=(200, 190, 180)),
        "dark": plain * 0.35,
        "bright": plain * 0.6 + 100,
        "warm": plain * (1.1, 0.9, 0.6),
        "side light": plain * np.linspace(0.3, 1.3, SIDE)[:, None],
        "noise": plain + rng.normal(0, 14, plain.shape),
        "out of focus": face.filter(ImageFilter.GaussianBlur(2.5)),
        "small": pair,
        "at the edge": np.asarray(large)[40:184, 110:254],
        "near": np.asarray(large)[20:164, 60:204],
    }
    return {name: np.asarray(image).clip(0, 255).astype(np.uint8) for name, image in found.items()}


FACES: Final = {"gallery": "heads", "outside": "none"}
RESEARCH: Final = {"gallery": "default", "outside": "default"}


def methods() -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Yield what every method of pixels makes of a whole picture and of a box: photo, method, parameters."""
    more: Mapping[str, Mapping[str, Any]] = {
        "dp-pix": {"block": 12, "neighbourhood": 9},
        "dp-pix-gaussian": {"block": 12, "rho": 200},
        "ssim-exponential": {"block": 6, "epsilon": 9000},
        "mse-exponential": {"block": 6, "epsilon": 9000},
        "bit-planes": {"epsilon": 6000, "neighbourhood": 25},
        "dct-gaussian": {"rho": 20_000, "coefficients": 20},
        "dp-svd": {"rank": 4},
        "dp-samp": {"neighbourhood": 1, "clusters": 4},
        "snow": {"delta": 0.3},
        "blur": {"sigma": 3},
        "mosaic": {"block": 5},
        "fill": {},
    }
    budgets = {"epsilon": 40, "delta": "1e-6", "rho": 2}
    for row in dpveil.methods():
        name = row["name"]
        if "protect" in row["parameters"]:
            continue
        for budget in row["budgets"] or ((),):
            chosen = {key: budgets[key] for key in budget} | {
                key: value for key, value in more.get(name, {}).items() if key not in budgets or key in budget
            }
            yield "face", name, {**chosen, "regions": "whole"}
            yield "left", name, {**chosen, "regions": (30, 41, 77, 66)}
        yield "grey", name, {**chosen, "regions": "whole"}


def faces() -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Yield synthetic faces: in every light, and with every option."""
    for photo in photos():
        yield photo, "attributes", FACES
        yield photo, "attributes", RESEARCH
        yield photo, "attributes", {**FACES, "protect": "head"}
    for shown in ("gender=female", "gender=male,beard=yes", "age=60-74", "smile=yes", "glasses=yes"):
        yield "left", "attributes", {**RESEARCH, "attributes": shown}
        yield "face", "attributes", {**FACES, "attributes": shown}
    yield "face", "attributes", {**RESEARCH, "attributes": "gender=4,age=2"}
    for protect in ("head", "box"):
        yield "face", "attributes", {**RESEARCH, "protect": protect}
        yield "dark", "attributes", {**FACES, "protect": protect, "attributes": "tone=dark"}
    for placing in ("landmarks", "box"):
        yield "left", "attributes", {**RESEARCH, "placing": placing}
    yield "turned 20", "gallery", {"epsilon": 30}
    yield "face", "latent", {"epsilon": 900}
    yield "dark", "fill", {"regions": "irises"}
    yield "face", "mosaic", {"regions": "eyes", "block": 4}
    yield "near", "fill", {"regions": "faces", "post_processing": ("gaussian:2", "median:3")}


CLIPS: Final = (
    "--gallery heads --outside none",
    "--gallery heads --outside none --protect head",
    "--protect box --attributes gender=male",
    "--method fill --regions faces",
    "--method mosaic --block 6 --regions faces",
)


def draw(photo: str, method: str, parameters: Mapping[str, Any], seed: int) -> Image.Image:
    """Return one tile: the release, or a tile of a colour that nothing draws where it is refused."""
    try:
        image = dpveil.obfuscate(photos()[photo], method, bits=dpveil.SeededBits(seed), **parameters).image
    except dpveil.DPVeilError:
        return Image.new("RGB", (SIDE, SIDE), "magenta")
    return Image.fromarray(image.squeeze()).convert("RGB")


def drawn(cases: Callable[[], Iterator[tuple[str, str, Mapping[str, Any]]]]) -> Tiles:
    """Yield the tiles of photos."""
    for photo, method, parameters in cases():
        name = f"{photo}, {method}, {dict(parameters)}"
        yield name, draw(photo, method, parameters, zlib.crc32(name.encode()))


def clips() -> Tiles:
    """Yield frames of released clips in which two people pass each other, and sheets of the commands."""
    from dpveil import cli
    from dpveil.video import writing

    # lossless, as what is lost differs with the number of cores
    lossless = mock.patch.object(writing, "X264", ("libx264", {"preset": "ultrafast", "qp": "0"}))
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder), lossless:
        _write_clip("walk.mkv")
        portrait().save("face.png")
        for number, options in enumerate(CLIPS):
            cli.run(f"obfuscate walk.mkv --out {number}.mkv --seed {number} -q {options}".split())
            with av.open(f"{number}.mkv") as clip:
                frames = [frame.to_image() for frame in clip.decode(video=0)]
            for index in (0, 5, 8, 11):
                yield f"{options}, frame {index}", frames[index]
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            cli.run(["video", "analyze", "walk.mkv", "--out", "plan.json", "--sheet", "tracks.png", "-q"])
            cli.run(["faces", "face.png", "--preview", "faces.png"])
        for name in ("tracks.png", "faces.png"):
            yield name, Image.open(name).convert("RGB")


def _write_clip(name: str) -> None:
    person = portrait(96)
    other = person.transpose(Image.Transpose.FLIP_LEFT_RIGHT).resize((64, 64))
    with av.open(name, "w") as clip:
        stream = clip.add_stream("ffv1", rate=6, width=208, height=128, pix_fmt="yuv444p")
        for index in range(12):
            frame = Image.new("RGB", (208, 128), (110, 120, 100))
            frame.paste(other, (140 - 10 * index, 8))
            frame.paste(person, (8 + 9 * index, 30))
            clip.mux(stream.encode(av.VideoFrame.from_image(frame)))
        clip.mux(stream.encode())


PARTS: Final[Mapping[str, Callable[[], Tiles]]] = {
    "methods": lambda: drawn(methods),
    "faces": lambda: drawn(faces),
    "clips": clips,
}


def tiles(part: str) -> Iterator[tuple[str, np.ndarray]]:
    """Yield the name of each tile, and the tile as it is drawn now; larger pictures are made smaller."""
    for name, image in PARTS[part]():
        small = image if image.size == (SIDE, SIDE) else image.resize((SIDE, SIDE), Image.Resampling.BOX)
        yield name, np.asarray(small)


def recorded(part: str) -> Iterator[np.ndarray]:
    """Yield the tiles of the sheet of record."""
    sheet = np.asarray(Image.open(FOLDER / f"{part}.png"))
    for row in range(0, sheet.shape[0], SIDE):
        for column in range(0, sheet.shape[1], SIDE):
            yield sheet[row : row + SIDE, column : column + SIDE]


def differs(tile: np.ndarray, record: np.ndarray) -> float:
    """Return the share of values that are more than `LEVELS` off."""
    return float((np.abs(tile.astype(int) - record) > LEVELS).mean())


def record() -> None:
    """Draw the sheets anew."""
    FOLDER.mkdir(exist_ok=True)
    for part in PARTS:
        found = [tile for _, tile in tiles(part)]
        found += [np.full_like(found[0], 255)] * (-len(found) % COLUMNS)
        rows = [np.hstack(found[at : at + COLUMNS]) for at in range(0, len(found), COLUMNS)]
        Image.fromarray(np.vstack(rows)).save(FOLDER / f"{part}.png", optimize=True)
