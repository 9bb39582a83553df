"""Li & Clifton 2021, figure 8: SSIM and PSNR by ε at four clips, in the code spaces available here.

The paper's space is StyleGAN's W+, 18 × 512 numbers for photos of 1024 × 1024 pixels, with bounds from 3 500
photos. Here: LFW faces of 128 × 128 pixels in the spaces of `pca` and `dictionary`, trained on other people.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Final

import numpy as np
from jaxtyping import Float64

from dpveil.codecs import PCA, Codec, Dictionary
from dpveil.core.rationals import Number
from dpveil.faces.geometry.align import Frame
from dpveil.mechanisms.latent import BoxLaplace, BoxTruncatedLaplace, LatentMechanism
from dpveil.metrics import psnr, ssim
from dpveil.noise.bits import SeededBits
from dpveil_research.faces import Crops, Faces, read_faces, trained
from dpveil_research.plots import Panel, figure
from dpveil_research.results import Row, clustered_mean, estimate, to_csv

SEED: Final = 2021
TRAINING: Final = 1500
IMAGES: Final = 79
FRAME: Final = Frame(128)
CLIPS: Final = (0, 10, 25, 40)
EACH: Final = ("1/4", "1", "2", "4", "8", "16", "32", "64")
"""ε of one coordinate: the paper's 1 to 64, and smaller. The ε of a picture is that times the coordinates."""
SPACES: Final[dict[str, tuple[type[Codec], int]]] = {
    "pca 100": (PCA, 100),
    "pca 512": (PCA, 512),
    "dictionary 100": (Dictionary, 100),
}
LONGEST: Final = "pca 512"
OURS, OPTIMAL, TRUNCATED, PRINTED = "equal shares", "optimal shares", "truncated", "as printed"
EVERYWHERE: Final = "all"  # the sweep of what is the same in all spaces
MEASURES: Final = ("ssim", "psnr")
TOP: Final = 255
NOTHING: Final = "mean face: shows nothing"
CODE: Final = "no noise"
Values = Float64[np.ndarray, "n measures"]


def as_printed(epsilon: Number, clip: Number, length: int) -> BoxLaplace:
    """Return the mechanism that algorithm 2 draws as printed, Lap(S_j·w_j/ε) with w_j = 1/m (erratum E7).

    That is the noise of Lap(S_j/(w_j·ε′)) at ε′ = m²·ε, which the guarantee states.

    >>> as_printed(1, 0, 100).epsilon
    Fraction(10000, 1)
    """
    return BoxLaplace(epsilon=Fraction(epsilon) * length**2, clip=clip, allocation="equal")


MECHANISMS: Final[dict[str, Callable[[Fraction, int, int], LatentMechanism]]] = {
    OURS: lambda epsilon, clip, length: BoxLaplace(epsilon=epsilon, clip=clip, allocation="equal"),
    OPTIMAL: lambda epsilon, clip, length: BoxLaplace(epsilon=epsilon, clip=clip),
    TRUNCATED: lambda epsilon, clip, length: BoxTruncatedLaplace(
        epsilon=epsilon, clip=clip, allocation="equal"
    ),
    PRINTED: as_printed,
}


def series(mechanism: str, clip: int) -> str:
    return f"{mechanism}, clip {clip} %"


def measured(faces: Faces, shown: Crops) -> Values:
    """Return SSIM and PSNR in dB of pictures against the original faces."""
    both = zip(faces.crops, shown, strict=True)
    return np.array([(ssim(a, b, data_range=TOP), min(psnr(a, b, data_range=TOP), 100.0)) for a, b in both])


def space_rows(name: str, codec: Codec, faces: Faces) -> list[Row]:
    """Return a row for every clip, mechanism and ε in one space, and for codes without noise."""
    codes = codec.encode(faces.crops)
    made = []
    for clip in CLIPS:
        still = codec.decode(codec.statistics.bounds(clip).clip(codes))
        made.append(_row(name, series(CODE, clip), "", "no formal guarantee", measured(faces, still), faces))
        for mechanism, build in MECHANISMS.items():
            for each in EACH:
                epsilon = Fraction(each) * codec.length
                built = build(epsilon, clip, codec.length)
                bits = SeededBits(SEED, f"{name} {mechanism} {clip} {each}")
                shown = codec.decode(built.release(codes, codec.statistics, bits=bits))
                promise = str(built.guarantee(codec.statistics))
                label = series(mechanism, clip)
                made.append(_row(name, label, f"{float(epsilon):g}", promise, measured(faces, shown), faces))
    return made


def _row(space: str, label: str, x: str, promise: str, values: Values, faces: Faces) -> Row:
    row = {"sweep": space, "series": label, "x": x, "guarantee": promise, "images": str(len(values))}
    for column, name in enumerate(MEASURES):
        row |= estimate(name, clustered_mean(values[:, column], faces.people))
    return row


def measure(spaces: Mapping[str, Codec], average: Crops, faces: Faces) -> list[Row]:
    """Return all rows: those of every space, and of the mean training face, which shows nothing."""
    same = np.broadcast_to(average, faces.crops.shape)
    flat = _row(EVERYWHERE, NOTHING, "", "no formal guarantee", measured(faces, same), faces)
    return [flat, *(row for name, codec in spaces.items() for row in space_rows(name, codec, faces))]


COUNTED: Final = "photos, one of each person; bands are 95 % intervals"


def figures(rows: Sequence[Row]) -> dict[str, bytes]:
    """Return figure 8 for every space, and a comparison of the sound mechanisms."""
    clips = [
        (series(name, clip), i, style)
        for name, style in ((OURS, "-"), (PRINTED, "--"))
        for i, clip in enumerate(CLIPS)
    ]
    ways = [(series(name, 10), i, "-") for i, name in enumerate((OURS, OPTIMAL, TRUNCATED))]
    every = [
        (
            f"figure-8-{space.replace(' ', '-')}",
            f"Figure 8, LFW, in {space}: sound, and as printed (broken)",
            space,
            clips,
        )
        for space in SPACES
    ]
    made = {}
    for file, title, space, lines in [
        *every,
        ("shares", f"LFW: three sound ways to spend ε in {LONGEST}", LONGEST, ways),
    ]:
        panels = [Panel(measure, "ε of a picture", logx=True) for measure in MEASURES]
        for panel in panels:
            for name, colour, style in lines:
                panel.curve(name, rows, colour, style, sweep=space, series=name)
            panel.curve(NOTHING, rows, 0, ":")
        made[f"{file}.png"] = figure(f"{title}\n{rows[0]['images']} {COUNTED}", *panels)
    return made


def make(data: Path, count: int | None, told: Callable[[str], None]) -> dict[str, bytes]:
    """Return the table and the plots; `count` is the number of photos. Raises `UsageError`."""
    crops = read_faces(data, FRAME, TRAINING, half=0).crops
    faces = read_faces(data, FRAME, IMAGES if count is None else count, half=1)
    told("faces aligned")
    spaces: dict[str, Codec] = {}
    for name, (kind, length) in SPACES.items():
        spaces[name] = trained(kind, crops, length, SEED)
        told(f"{name} trained")
    average = np.rint(crops.mean(axis=0)).astype(np.uint8)
    rows = measure(spaces, average, faces)
    return figures(rows) | {"results.csv": to_csv(rows)}
