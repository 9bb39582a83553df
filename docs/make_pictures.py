"""Pictures of the documentation, made from a public photograph by the code of this version.

    python docs/make_pictures.py FOLDER

The site builder calls `pictures()` and keeps nothing in the repository. Seeds are fixed, so that the pictures
change only when the code does; the photograph is public, so nothing is lost by that.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import make_code_pictures
import make_denoised
import make_evaluate
import make_faces
import make_geometry
import make_ksame_picture
import make_latent
import make_plots
import make_samples
import make_start
import make_synthesis
import make_thesis_6
import numpy as np
from PIL import Image, ImageDraw, ImageFont
from skimage import data

from dpveil.cli.compare import compare, lines_of
from dpveil.core.photo import Photo
from dpveil.core.registry import PIXEL
from dpveil.io.writing import encode
from dpveil.mechanisms.pixel import (
    DPSVD,
    BitPlanes,
    Blur,
    DCTGaussian,
    DPPix,
    DPPixGaussian,
    DPSamp,
    Fill,
    Mosaic,
    MSEExponential,
    PixelMethod,
    Snow,
    SSIMExponential,
)
from dpveil.noise.bits import SeededBits
from dpveil.postprocessing import parse as step

FACE = (slice(60, 180), slice(176, 264))  # 88 × 120 pixels
VIEW = (slice(20, 220), slice(132, 308))
SHOWN = 850  # width of the page's column in pixels, in which a sheet is shown
CAPTION = 14  # font size of a caption on the page, in pixels
WIDEST = 2 * SHOWN  # widest sheet whose tiles are enlarged twice, as high-resolution screens show no more
GAP = 12

Tile = tuple[np.ndarray, str]


def released(method: PixelMethod, seed: int) -> np.ndarray:
    """Return the view of the photograph with its face box released."""
    photo = data.astronaut().copy()
    photo[FACE] = method.release(photo[FACE], bits=SeededBits(seed))
    return photo[VIEW]


def tile(epsilon: int, m: int | None, seed: int) -> Tile:
    return labelled(DPPix(epsilon=epsilon, block=16, neighbourhood=m), f"epsilon {epsilon}", m, seed)


def labelled(method: PixelMethod, budget: str, m: int | None, seed: int) -> Tile:
    """Return the view released by `method`, with its budget and noise in two lines."""
    scale = method.noise_scale(height=120, width=88, channels=3)
    relation = "any-image" if m is None else f"m = {m}"
    words = f"{scale:.0f}" if scale >= 10 else f"{scale:.1f}"
    return released(method, seed), f"{budget}, {relation}\nnoise scale {words} levels"


def sheet(rows: Iterable[Iterable[Tile]]) -> bytes:
    """Return a PNG of tiles in rows on white, with captions that are readable at the width of the page."""
    grid = [list(row) for row in rows]
    columns, (height, width) = len(grid[0]), grid[0][0][0].shape[:2]
    zoom = 2 if 2 * columns * width <= WIDEST else 1
    height, width = zoom * height, zoom * width
    whole = columns * (width + GAP) - GAP
    font = ImageFont.load_default(size=max(1, round(CAPTION * whole / SHOWN)))
    captions = [[wrapped(label, width, font) for _, label in row] for row in grid]
    line = sum(font.getmetrics()) + 4
    label = 12 + line * max(caption.count("\n") + 1 for row in captions for caption in row)
    canvas = Image.new("RGB", (whole, len(grid) * (height + label)), "white")
    pen = ImageDraw.Draw(canvas)
    for row, (tiles, words) in enumerate(zip(grid, captions, strict=True)):
        for column, ((image, _), caption) in enumerate(zip(tiles, words, strict=True)):
            left, top = column * (width + GAP), row * (height + label)
            canvas.paste(
                Image.fromarray(image).resize((width, height), Image.Resampling.NEAREST), (left, top)
            )
            pen.multiline_text((left + 2, top + height + 2), caption, fill="black", font=font)
    buffer = io.BytesIO()
    canvas.save(buffer, "PNG")
    return buffer.getvalue()


def wrapped(text: str, width: int, font: Any) -> str:
    """Return the text with lines broken between words, none wider than `width` pixels."""
    lines: list[str] = []
    for line in text.split("\n"):
        words = line.split(" ")
        lines.append(words[0])
        for word in words[1:]:
            longer = f"{lines[-1]} {word}"
            if font.getlength(longer) <= width:
                lines[-1] = longer
            else:
                lines.append(word)
    return "\n".join(lines)


def pictures() -> dict[str, bytes]:
    """Return every picture of the documentation by its file name, as PNG."""
    strip = [original(), *(tile(2, m, seed) for seed, m in enumerate((16, 64, None)))]
    grid = [
        [original(), *(tile(epsilon, m, 10 * epsilon + seed) for seed, m in enumerate((16, 64, None)))]
        for epsilon in (1, 2, 5)
    ]
    return {
        "start.png": sheet([make_start.row()]),
        "post-processing.png": sheet([make_start.smoothed()]),
        "denoised.png": sheet(make_denoised.rows()),
        "faces.png": sheet([make_start.faces()]),
        "face-neighbourhoods.png": sheet([strip]),
        "dp-pix-grid.png": sheet(grid),
        "gaussian-beside-laplace.png": sheet(beside()),
        "dp-samp-grid.png": sheet(samples()),
        "baselines.png": sheet([baselines()]),
        "dp-svd-grid.png": sheet(singular_values()),
        "dct-beside-pixels.png": sheet(cosines()),
        "ssim-exponential.png": sheet(by_similarity()),
        "snow.png": sheet(snow()),
        "mse-exponential.png": sheet([[original(), *levels()]]),
        "bit-planes.png": sheet(planes()),
        "compare.png": comparison(),
        "codecs.png": make_code_pictures.round_trip(),
        "latent-mechanisms.png": make_code_pictures.mechanisms(),
        "k-same.png": make_ksame_picture.groups(),
        "croft-2022-13.png": sheet(make_samples.figure_13()),
        "reilly-fan-2.png": sheet(make_samples.figure_2()),
        "reilly-fan-10.png": sheet(make_samples.figure_10()),
        "one-generator.png": sheet(make_thesis_6.rows()),
        "latent-budgets.png": sheet(make_latent.rows()),
        "latent-networks.png": sheet(make_latent.networks()),
        "geometry-place.png": sheet([make_geometry.places()]),
        "geometry-recombine.png": sheet([make_geometry.recombined()]),
        "geometry-shapes.png": sheet(make_geometry.shapes()),
        "attributes.png": sheet(make_faces.attributes()),
        "heads.png": make_faces.heads_sheet(),
        "drawn-sets.png": make_evaluate.sheet(),
        "heads-releases.png": sheet(make_faces.heads()),
        "gallery.png": make_faces.gallery_sheet(),
        "gallery-releases.png": sheet(make_faces.gallery()),
        "detection.png": make_plots.detection(),
        "quality.png": make_plots.quality(),
        "synthesis.png": sheet(make_synthesis.rows()),
        "trained.png": make_plots.trained(),
        "what-delta-buys.png": make_plots.what_delta_buys(),
    }


def beside() -> list[list[Tile]]:
    """Return one budget with dp-pix, dp-pix with delta and dp-pix-gaussian, at three neighbourhoods."""
    both = {"epsilon": 20, "delta": "1e-6", "block": 16}
    rows = (
        ("dp-pix", lambda m: DPPix(epsilon=20, block=16, neighbourhood=m)),
        ("with delta", lambda m: DPPix(**both, neighbourhood=m)),
        ("gaussian", lambda m: DPPixGaussian(**both, neighbourhood=m)),
    )
    return [
        [labelled(make(m), name, m, 100 + 10 * row + column) for column, m in enumerate((16, 256, None))]
        for row, (name, make) in enumerate(rows)
    ]


def samples() -> list[list[Tile]]:
    """Return dp-samp as published at three budgets, and with private clusters at four rates."""
    given = {"clusters": 15, "neighbourhood": 1}
    published = [
        (released(DPSamp(epsilon=epsilon, **given), 200 + epsilon), f"as published\nepsilon {epsilon}")
        for epsilon in (1, 3, 10)
    ]
    private = [
        (
            released(DPSamp(epsilon=3, **given, private_clusters=True, rate=rate), 300),
            f"private clusters\nepsilon 3, rate {rate}",
        )
        for rate in ("0.001", "0.01", "0.1", "0.3")
    ]
    return [[original(), *published], private]


def baselines() -> list[Tile]:
    methods = {"sigma 8": Blur(sigma=8), "block 16": Mosaic(block=16), "level 0": Fill(level=0)}
    return [
        original(),
        *(
            (
                released(method, 1),
                f"{method.name}, {words}\n{method.guarantee(height=120, width=88, channels=3)}",
            )
            for words, method in methods.items()
        ),
    ]


def original() -> Tile:
    return data.astronaut()[VIEW], "original\nnot protected"


def worded(method: PixelMethod, words: str, seed: int) -> Tile:
    """Return the view released by `method`, with a text and its noise in two lines."""
    scale = method.noise_scale(height=120, width=88, channels=3) or 0
    return released(method, seed), f"{words}\nnoise scale {scale:.3g} levels"


def singular_values() -> list[list[Tile]]:
    return [
        [
            worded(DPSVD(epsilon=e, rank=i), f"rank {i}, epsilon {e}", 200 + i)
            for e in ("0.001", "0.01", "0.1")
        ]
        for i in (2, 6, 20)
    ]


def cosines() -> list[list[Tile]]:
    """Return dp-pix-gaussian and dct-gaussian with blocks of 8 at three budgets."""
    return [
        [worded(kind(rho=r, block=8, neighbourhood=16), f"{name}, rho {r}", 300) for r in ("0.5", "5", "50")]
        for name, kind in (("dp-pix-gaussian", DPPixGaussian), ("dct-gaussian", DCTGaussian))
    ]


def by_similarity() -> list[list[Tile]]:
    """Return ssim-exponential at two blocks and three exponents, with their costs."""
    rows = []
    for block in (8, 16):
        tiles = [original()]
        for exponent in (2, 10, 50):
            windows = SSIMExponential(epsilon=1, block=block).windows(height=120, width=88, channels=3)
            method = SSIMExponential(epsilon=2 * windows * exponent, block=block)
            tiles.append(labelled(method, f"epsilon {method.epsilon}", None, 200 + exponent))
        rows.append(tiles)
    return rows


def snow() -> list[list[Tile]]:
    """Return snow at three values of delta, and the same after a median."""
    rows: list[list[Tile]] = [[], []]
    for seed, delta in enumerate(("0.1", "0.3", "0.6")):
        photo = data.astronaut().copy()
        photo[FACE] = Snow(delta=delta).release(photo[FACE], bits=SeededBits(200 + seed))
        rows[0].append((photo[VIEW], f"delta {delta}\n(0, {delta}), one pixel"))
        smooth = photo.copy()
        smooth[FACE] = step("median:3")(photo[FACE])
        rows[1].append((smooth[VIEW], f"delta {delta}\nand median:3"))
    return rows


def levels() -> list[Tile]:
    """Return mse-exponential at three budgets, and at one of them with a delta."""
    made = [(f"epsilon {e}", MSEExponential(epsilon=e, block=16)) for e in (20, 200, 2000)]
    made.append(("20 with delta", MSEExponential(epsilon=20, delta="1e-6", block=16)))
    return [labelled(method, name, None, 200 + seed) for seed, (name, method) in enumerate(made)]


def planes() -> list[list[Tile]]:
    """Return bit-planes beside dp-pix with blocks of its groups, at three budgets for one pixel."""
    bits = [(f"epsilon {e}", BitPlanes(epsilon=e, neighbourhood=1)) for e in (20, 60, 200)]
    bits.append(("200, no means", BitPlanes(epsilon=200, neighbourhood=1, drop_coarse=True)))
    sums = [(f"epsilon {e}", DPPix(epsilon=e, block=2, neighbourhood=1)) for e in (20, 60, 200, 1000)]
    return [
        [labelled(method, name, 1, 300 + 10 * row + seed) for seed, (name, method) in enumerate(line)]
        for row, line in enumerate((bits, sums))
    ]


def comparison() -> bytes:
    """Return the sheet of `dpveil compare` with its defaults, for the face box."""
    chosen, _ = lines_of(tuple(PIXEL), ("1", "5", "20"), (256, None), every=True, block=16)
    face = {method.regions: ["176,60,88,120"] for line in chosen for method in line.methods if method}
    made, _ = compare(Photo(data.astronaut()), chosen, face, every=True, bits=SeededBits(5))
    return encode(made.draw(), "png")


if __name__ == "__main__":
    target = Path(sys.argv[1] if len(sys.argv) > 1 else "site/pictures")
    target.mkdir(parents=True, exist_ok=True)
    for file, content in pictures().items():
        (target / file).write_bytes(content)
