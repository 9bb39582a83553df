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

from dpveil.assets.store import default_path
from dpveil.codecs import StoredCodec, load
from dpveil.faces.attribute_model import AttributeModel
from dpveil.faces.face_gallery import FaceGallery
from dpveil.mechanisms.latent import BoxLaplace
from dpveil.metrics.picture_sets import frechet
from dpveil.noise.bits import SeededBits
from dpveil_research.croft_thesis_6 import large, seen
from dpveil_research.faces import Crops, Faces, read_faces
from dpveil_research.li_clifton_2021 import CODE, EACH, FRAME, IMAGES, MEASURES, SEED, measured, series
from dpveil_research.plots import Figure, Line, Panel, draw, grid_of, png
from dpveil_research.results import Row, clustered_mean, estimate, to_csv

CLIPS: Final = (0, 10, 25, 40)
OTHERS: Final = 400
"""Photos of other people to whom the Fréchet distance is taken."""
LEADING: Final = "1-32=4"
"""Weights by hand: four times the share for the components that vary most."""
ENCODED, OPTIMISED, WEIGHTED = "equal shares", "equal shares, optimised codes", f"weights {LEADING}"
COMPARED: Final = 10
"""The clip at which the other two are measured."""
PHOTOS: Final = "photos as they are"
DISTANCE: Final = "frechet"


@dataclass(frozen=True, eq=False)
class Scene:
    """The faces that are released, as the codec sees them, and features of those of other people."""

    codec: StoredCodec
    faces: Faces
    model: AttributeModel
    others: Float64[np.ndarray, "n d"]

    def row(self, label: str, x: str, promise: str, shown: Crops) -> Row:
        """Return the means of all measures, and the distance of the whole set, which has no interval."""
        values = measured(self.faces, shown)
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


def figures() -> tuple[Figure, ...]:
    """Return figure 8 by clip, and a comparison of codes and weights."""
    clips = [Line(series(ENCODED, clip), i) for i, clip in enumerate(CLIPS)]
    ways = [Line(series(name, COMPARED), i) for i, name in enumerate((ENCODED, WEIGHTED, OPTIMISED))]
    counted = {"images": "photos, one of each person"}
    return (
        Figure(
            "figure-8",
            "Figure 8, LFW, in the space of gan",
            _panels(clips, (*MEASURES, DISTANCE)),
            counted=counted,
        ),
        Figure(
            "codes",
            "LFW: weights by hand, and codes by optimisation",
            _panels(ways, MEASURES),
            counted=counted,
        ),
    )


def _panels(lines: Sequence[Line], measures: Sequence[str]) -> tuple[Panel, ...]:
    photos = Line(PHOTOS, 0, ":")
    return tuple(
        Panel(
            "gan",
            measure,
            "ε of a picture",
            (*lines, photos) if measure == DISTANCE else tuple(lines),
            logx=True,
        )
        for measure in measures
    )


Tile = tuple[np.ndarray, str]


def sheets(codec: StoredCodec) -> dict[str, bytes]:
    """Return the sheets of figures 4, 5, 6 and 7, of faces of nobody, a cat and noise."""
    side = codec.canvas[0]
    nobody = seen(FaceGallery.load(default_path("gallery")).faces[[3, 40]], side)
    strange = SeededBits(SEED, "noise").words(side * side * 3 // 8).view(np.uint8).reshape(side, side, 3)
    cat = seen(chelsea()[None, 20:260, 110:350], side)  # type: ignore[no-untyped-call]
    noise = seen(strange[None], side)
    every = np.concatenate([nobody, cat, noise])
    clipped = [
        [(face, "input"), *((_shown(codec, face, clip, None, 0), f"clip {clip} %") for clip in (0, 15, 30))]
        for face in every
    ]
    small = [
        [
            (nobody[0], "input"),
            *((_shown(codec, nobody[0], clip, e, 0), f"ε = {e}, clip {clip} %") for e in (1, 1000, 5000)),
        ]
        for clip in (0, 10)
    ]
    return {
        "figure-4.png": _sheet(clipped, "Figure 4: codes clipped to the box, without noise"),
        "figure-5.png": _sheet(
            _by_each(codec, cat, 12.5, (64, 32, 16, 8, 4), 1), "Figure 5: what is no face"
        ),
        "figure-6.png": _sheet(small, "Figure 6: small ε of a picture"),
        "figure-7-12.png": _sheet(
            _by_each(codec, nobody, 12.5, (64, 32, 16, 8, 4), 2),
            "Figure 7: two draws of each face, clip 12.5 %",
        ),
        "figure-7-25.png": _sheet(
            _by_each(codec, nobody, 25, (16, 8, 4, 2, 1), 2), "Figure 7: two draws of each face, clip 25 %"
        ),
    }


def _by_each(
    codec: StoredCodec, faces: Crops, clip: float, each: Sequence[int], draws: int
) -> list[list[Tile]]:
    return [
        [
            (face, "input"),
            (_shown(codec, face, clip, None, 0), "no noise"),
            *((_shown(codec, face, clip, e * codec.length, draw), f"{e} per number") for e in each),
        ]
        for face in faces
        for draw in range(draws)
    ]


def _shown(codec: StoredCodec, face: np.ndarray, clip: float, epsilon: int | None, draw: int) -> np.ndarray:
    codes = codec.encode(face[None])
    if epsilon is None:
        return np.asarray(codec.decode(codec.statistics.bounds(clip).clip(codes))[0])
    built = BoxLaplace(epsilon=epsilon, clip=clip, allocation="equal")
    bits = SeededBits(SEED, f"sheet {codes.tobytes().hex()[:64]} {clip} {epsilon} {draw}")
    return np.asarray(codec.decode(built.release(codes, codec.statistics, bits=bits))[0])


def _sheet(rows: Sequence[Sequence[Tile]], title: str) -> bytes:
    canvas, grid = grid_of(len(rows), len(rows[0]), side=110, title=title)
    for line, tiles in zip(grid, rows, strict=True):
        for axes, (face, words) in zip(line, tiles, strict=True):
            axes.imshow(face)
            axes.set_title(words, fontsize=8)
    return png(canvas)


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
    made = {f"{figure.name}.png": draw(figure, rows) for figure in figures()}
    return made | sheets(codec) | {"results.csv": to_csv(rows)}
