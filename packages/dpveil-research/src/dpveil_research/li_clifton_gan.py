"""Li & Clifton 2021 in a space of networks: figure 8 with a Fréchet distance, and sheets of figures 4 to 7.

The paper's space is StyleGAN's W+, its FID that of Inception. Here the space is that of the `gan` of
dpveil-faces, and the network of the Fréchet distance is dpveil's attribute model, by its hidden units: the
curves can be compared, the numbers cannot. Codes are shown as they are drawn, as in the paper. Sheets show
faces of nobody, a cat and noise; results are of LFW, all seen within the ellipse that the codec shows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Final

import numpy as np
from jaxtyping import Float64
from skimage.data import chelsea

from dpveil.assets.trained_files import default_path
from dpveil.codecs import StoredCodec, load
from dpveil.faces.attribute_model import AttributeModel
from dpveil.faces.face_gallery import FaceGallery
from dpveil.faces.geometry.align import Frame
from dpveil.mechanisms.latent import BoxLaplace
from dpveil.metrics import psnr, ssim
from dpveil.noise.bits import SeededBits
from dpveil_research.faces import Crops, Faces, large, read_faces, seen
from dpveil_research.picture_sets import frechet
from dpveil_research.plots import Panel, figure, sheet
from dpveil_research.results import Row, clustered_mean, estimate, to_csv

SEED: Final = 2021
FRAME: Final = Frame(128)
IMAGES: Final = 79
CLIPS: Final = (0, 10, 25, 40)
EACH: Final = ("1/4", "1", "2", "4", "8", "16", "32", "64")
"""ε of one coordinate: the paper's 1 to 64, and smaller. The ε of a picture is that times the coordinates."""
MEASURES: Final = ("ssim", "psnr")
CODE: Final = "no noise"
OTHERS: Final = 400  # photos of other people to whom the Fréchet distance is taken
LEADING: Final = "1-32=4"  # weights by hand: four times the share for the components that vary most
ENCODED, OPTIMISED, WEIGHTED = "equal shares", "equal shares, optimised codes", f"weights {LEADING}"
COMPARED: Final = 10  # the clip at which the other two are measured
PHOTOS: Final = "photos as they are"
DISTANCE: Final = "frechet"


def series(mechanism: str, clip: int) -> str:
    return f"{mechanism}, clip {clip} %"


@dataclass(frozen=True, eq=False)
class Scene:
    """The faces that are released, as the codec sees them, and features of those of other people."""

    codec: StoredCodec
    faces: Faces
    model: AttributeModel
    others: Float64[np.ndarray, "n d"]

    def row(self, label: str, x: str, promise: str, shown: Crops) -> Row:
        """Return the means of all measures, and the distance of the whole set, which has no interval."""
        pairs = zip(self.faces.crops, shown, strict=True)
        values = np.array(
            [(ssim(a, b, data_range=255), min(psnr(a, b, data_range=255), 100)) for a, b in pairs]
        )
        row = {"series": label, "x": x, "guarantee": promise, "images": str(len(shown))}
        for column, name in enumerate(MEASURES):
            row |= estimate(name, clustered_mean(values[:, column], self.faces.people))
        apart = frechet(self.model.units(large(shown)).astype(np.float64), self.others)
        return {"sweep": self.codec.name, **row, **estimate(DISTANCE, (apart,) * 3)}

    def rows(self) -> Iterator[Row]:
        """Yield the rows of the photos, of codes without noise, and of every clip and ε."""
        plain = self.codec.encode(self.faces.crops)
        yield self.row(PHOTOS, "", "no formal guarantee", self.faces.crops)
        for clip in CLIPS:
            yield from self._rows(ENCODED, clip, "equal", plain)
        yield from self._rows(WEIGHTED, COMPARED, LEADING, plain)
        yield from self._rows(OPTIMISED, COMPARED, "equal", self.codec.optimise(self.faces.crops))

    def _rows(self, name: str, clip: int, allocation: str, codes: np.ndarray) -> Iterator[Row]:
        known, length = self.codec.statistics, self.codec.length
        still = self.codec.decode(known.bounds(clip).clip(codes))
        yield self.row(f"{name}: {series(CODE, clip)}", "", "no formal guarantee", still)
        for each in EACH:
            built = BoxLaplace(epsilon=Fraction(each) * length, clip=clip, allocation=allocation)
            bits = SeededBits(SEED, f"{name} {clip} {each}")
            shown = self.codec.decode(built.release(codes, known, bits=bits))
            yield self.row(
                series(name, clip), f"{float(built.epsilon):g}", str(built.guarantee(known)), shown
            )


def figures(rows: Sequence[Row]) -> dict[str, bytes]:
    """Return figure 8 by clip, and a comparison of codes and weights."""
    clips = [series(ENCODED, clip) for clip in CLIPS]
    ways = [series(name, COMPARED) for name in (ENCODED, WEIGHTED, OPTIMISED)]
    made = {}
    for file, title, names, measures in (
        ("figure-8", "Figure 8, LFW, in the space of gan", clips, (*MEASURES, DISTANCE)),
        ("codes", "LFW: weights by hand, and codes by optimisation", ways, MEASURES),
    ):
        panels = [Panel(measure, "ε of a picture", logx=True) for measure in measures]
        for panel in panels:
            for name in names:
                panel.curve(name, rows)
            if panel.measure == DISTANCE:
                panel.curve(PHOTOS, rows, 0, ":")
        made[f"{file}.png"] = figure(
            f"{title}\n{rows[0]['images']} photos, one of each person; bands are 95 % intervals", *panels
        )
    return made


Tile = tuple[np.ndarray, str, str]
EACH_OF_7: Final = {12.5: (64, 32, 16, 8, 4), 25: (16, 8, 4, 2, 1)}  # ε of one number by the clip of figure 7


def sheets(codec: StoredCodec) -> dict[str, bytes]:
    """Return the sheets of figures 4, 5, 6 and 7, of faces of nobody, a cat and noise."""
    side = codec.canvas[0]
    nobody = seen(FaceGallery.load(default_path("gallery")).faces[[3, 40]], side)
    strange = SeededBits(SEED, "noise").words(side * side * 3 // 8).view(np.uint8).reshape(side, side, 3)
    cat = seen(chelsea()[None, 20:260, 110:350], side)  # type: ignore[no-untyped-call]
    every = np.concatenate([nobody, cat, seen(strange[None], side)])

    def row(face: np.ndarray, *shown: tuple[float, int | None, str], draw: int = 0) -> list[Tile]:
        released = [(_shown(codec, face, clip, epsilon, draw), words, "") for clip, epsilon, words in shown]
        return [(face, "input", ""), *released]

    def by_each(faces: Crops, clip: float, draws: int) -> list[list[Tile]]:
        budgets = [(clip, e * codec.length, f"{e} per number") for e in EACH_OF_7[clip]]
        return [row(f, (clip, None, "no noise"), *budgets, draw=draw) for f in faces for draw in range(draws)]

    clips = [(clip, None, f"clip {clip} %") for clip in (0, 15, 30)]
    small = [[(clip, e, f"ε = {e}, clip {clip} %") for e in (1, 1000, 5000)] for clip in (0, 10)]
    rows = {
        "4": ([row(face, *clips) for face in every], "codes clipped to the box, without noise"),
        "5": (by_each(cat, 12.5, 1), "what is no face"),
        "6": ([row(nobody[0], *one) for one in small], "small ε of a picture"),
        "7-12": (by_each(nobody, 12.5, 2), "two draws of each face, clip 12.5 %"),
        "7-25": (by_each(nobody, 25, 2), "two draws of each face, clip 25 %"),
    }
    return {
        f"figure-{n}.png": sheet(tiles, f"Figure {n[0]}: {words}", 110) for n, (tiles, words) in rows.items()
    }


def _shown(codec: StoredCodec, face: np.ndarray, clip: float, epsilon: int | None, draw: int) -> np.ndarray:
    codes = codec.encode(face[None])
    if epsilon is None:
        return np.asarray(codec.decode(codec.statistics.bounds(clip).clip(codes))[0])
    built = BoxLaplace(epsilon=epsilon, clip=clip, allocation="equal")
    bits = SeededBits(SEED, f"sheet {codes.tobytes().hex()[:64]} {clip} {epsilon} {draw}")
    return np.asarray(codec.decode(built.release(codes, codec.statistics, bits=bits))[0])


def make(data: Path, count: int | None, told: Callable[[str], None]) -> dict[str, bytes]:
    """Return the table, the plots and the sheets; `count` is the number of photos.

    Needs dpveil-faces. Raises `UsageError`.
    """
    codec, model = load(default_path("gan")), AttributeModel.load(default_path("attributes"))
    side = codec.canvas[0]
    others = seen(read_faces(data, FRAME, OTHERS, half=0).crops, side)
    own = read_faces(data, FRAME, IMAGES if count is None else count, half=1)
    told("faces aligned")
    units = model.units(large(others)).astype(np.float64)
    rows = list(Scene(codec, Faces(seen(own.crops, side), own.people), model, units).rows())
    return figures(rows) | sheets(codec) | {"results.csv": to_csv(rows)}
