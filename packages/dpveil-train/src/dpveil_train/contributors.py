"""Which faces may become part of an average, and which are averaged together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import cv2
import numpy as np
from jaxtyping import Float64, Int64, UInt8
from scipy.linalg import eigh

from dpveil.faces.face_gallery import small
from dpveil.noise.bits import SeededBits
from dpveil_train.averages import FEWEST

COMPONENTS: Final = 40
"""Principal components of the pixels in which neighbours are searched."""
TURNED: Final = 0.35
"""`turn_of` from which a face counts as turned."""
MOST_TURNED: Final = 0.8
"""Largest `turn_of` of a contributor."""
MOST_TURN_DIFFERENCE: Final = 0.3
"""Largest difference of `turn_of` between contributors to one average."""
LEAST_COLOUR: Final = 12
"""Least mean difference between the largest and the least channel, in levels."""
LEAST_SHARP: Final = 60
"""Least variance of the Laplacian, in squared levels."""
MOST_BRIDGE: Final = 1.42
"""Largest `bridge` of a face without glasses."""
MOST_BRIDGE_SEEN: Final = 2.0
"""The same where a model has looked for glasses, since wrinkles have edges, too."""
MOST_SPOT: Final = 10
"""Largest `spot` of a face without a mark between the brows, in levels."""
MOST_SPREAD: Final = 0.03
"""Largest `Landmarks.spread`."""
LEAST_SCORE: Final = 0.5
"""Least `Landmarks.score`."""
MOST_USES: Final = 4
"""Most averages to which one face contributes."""
MOST_SHARED: Final = 5
"""Most contributors that two averages share."""
PER_CELL: Final = 160
"""Most candidates of one cell of labels."""
INNER: Final = (slice(30, 110), slice(24, 104))
"""Rows and columns of the face in a crop of 128 pixels."""

Crop = UInt8[np.ndarray, "128 128 3"]
Numbers = Int64[np.ndarray, " n"]


def clear(crop: Crop) -> bool:
    """Whether a crop is in colour and sharp; the thresholds were chosen by eye."""
    inner = crop[INNER]
    colour = float((inner.max(axis=2).astype(np.int64) - inner.min(axis=2)).mean())
    sharp = float(cv2.Laplacian(cv2.cvtColor(crop, cv2.COLOR_RGB2GRAY), cv2.CV_64F)[INNER].var())
    return colour >= LEAST_COLOUR and sharp >= LEAST_SHARP


def fit_to_average(
    crop: Crop,
    shape: Float64[np.ndarray, "68 2"],
    spread: float,
    score: float,
    most_bridge: float = MOST_BRIDGE,
) -> bool:
    """Whether landmarks are certain, a detector finds the face, and it is not in profile, behind glasses, or
    marked between the brows.

    `spread` and `score` are those of `geometry.Landmarks`.
    """
    if not spread < MOST_SPREAD or not score > LEAST_SCORE:
        return False
    turned = abs(float(turn_of(shape[None])[0]))
    return turned < MOST_TURNED and bridge(crop, shape) < most_bridge and spot(crop, shape) < MOST_SPOT


def turn_of(shapes: Float64[np.ndarray, "n 68 2"]) -> Float64[np.ndarray, " n"]:
    """Return the logarithm of the ratio of the left half's width to the right one's, nose to jaw.

    It is positive if the nose points to the right of the image.
    """
    left, right = shapes[:, 30, 0] - shapes[:, 2, 0], shapes[:, 14, 0] - shapes[:, 30, 0]
    turned: Float64[np.ndarray, " n"] = np.log(np.maximum(left, 0.5) / np.maximum(right, 0.5))
    return turned


def bridge(crop: Crop, shape: Float64[np.ndarray, "68 2"]) -> float:
    """Return the strongest horizontal edge on the bridge of the nose, relative to the face's contrast.

    Glasses have a strong edge there.
    """
    grey = cv2.GaussianBlur(cv2.cvtColor(crop, cv2.COLOR_RGB2GRAY), (0, 0), 1).astype(np.float64)
    inner, width = shape[39, 0], shape[42, 0] - shape[39, 0]
    left, right = (round(float(inner + part * width)) for part in (0.3, 0.7))
    top, bottom = round(float(shape[27, 1] - 4)), round(float(shape[28, 1] + 6))
    edges = np.abs(cv2.Sobel(grey, cv2.CV_64F, 0, 1))[
        max(top, 0) : max(bottom, 0), max(left, 0) : max(right + 1, 0)
    ]
    return float(edges.mean(axis=1).max() / (grey[30:100, 24:104].std() + 1)) if edges.size else np.inf


def spot(crop: Crop, shape: Float64[np.ndarray, "68 2"]) -> float:
    """Return by how much a small place between and above the brows is darker, or redder, than around it, such
    as a bindi: in levels.
    """
    wide = float(np.hypot(*(shape[45] - shape[36])))
    (x, y), reach = (shape[21] + shape[22]) / 2, 0.14 * wide
    rows = slice(max(int(y - 0.34 * wide), 0), max(int(y) + 1, 0))
    columns = slice(max(int(x - reach), 0), max(int(x + reach) + 1, 0))
    lab = cv2.cvtColor(crop, cv2.COLOR_RGB2LAB).astype(np.float32)
    small, wider = (np.asarray(cv2.GaussianBlur(lab, (0, 0), size)) for size in (1.2, 4.0))
    stands_out = (small - wider)[rows, columns]
    if not stands_out.size:
        return 0.0
    return float(np.maximum(-stands_out[..., 0] / 2.55, 1.5 * stands_out[..., 1]).max())


@dataclass(frozen=True, eq=False)
class Candidates:
    """Faces that may contribute: crops, 68 landmarks, embeddings, and the cell of labels of each.

    Contributors to one average must be more than `separation` apart, in distance of embeddings, and the
    average must be more than `nobody` from each of them; both depend on the face's labels.
    """

    crops: UInt8[np.ndarray, "n 128 128 3"]
    shapes: Float64[np.ndarray, "n 68 2"]
    embeddings: Float64[np.ndarray, "n 128"]
    cells: Numbers
    separation: Float64[np.ndarray, " n"]
    nobody: Float64[np.ndarray, " n"]

    @cached_property
    def features(self) -> Float64[np.ndarray, "n k"]:
        """Features for the nearest neighbours: 40 principal components of the pixels, and the landmarks."""
        pixels = small(self.crops).astype(np.float64)
        pixels -= pixels.mean(axis=0)
        last = len(pixels) - 1
        values, codes = eigh(pixels @ pixels.T, subset_by_index=(max(0, last - COMPONENTS + 1), last))
        codes = codes * np.sqrt(np.maximum(values, 0))
        shapes = (self.shapes - self.shapes.mean(axis=0)).reshape(len(codes), -1)
        return np.concatenate([codes, shapes * (codes.std() / max(shapes.std(), 1e-9) / 2)], axis=1)

    @cached_property
    def turns(self) -> Float64[np.ndarray, " n"]:
        """`turn_of` each face."""
        return turn_of(self.shapes)

    def neighbours_of(self, centre: int, allowed: Numbers) -> Numbers | None:
        """Return the ten faces nearest to a centre, itself included, that look like different people.

        They are `allowed`, of the centre's cell, and turned about as much. None if there are fewer than ten.
        """
        mates = allowed[(self.cells[allowed] == self.cells[centre]) & (allowed != centre)]
        mates = mates[np.abs(self.turns[mates] - self.turns[centre]) < MOST_TURN_DIFFERENCE]
        away = np.linalg.norm(self.features[mates] - self.features[centre], axis=1)
        chosen = [centre]
        for mate in mates[np.argsort(away, kind="stable")]:
            from_them = np.linalg.norm(self.embeddings[chosen] - self.embeddings[mate], axis=1)
            if from_them.min() > self.separation[centre]:
                chosen.append(int(mate))
            if len(chosen) == FEWEST:
                return np.array(chosen)
        return None


class Groups:
    """Sets of ten contributors, from one cell after the other, around candidates in a random order.

    `used` counts how often each has contributed. None contributes more than `MOST_USES` times, and a set that
    shares more than `MOST_SHARED` with a kept one is skipped. `seed` determines the order. Cells of one
    of the `kinds`, given for every candidate, share a turn: it is that of the cell with the fewest sets.
    """

    def __init__(self, candidates: Candidates, seed: int, kinds: Numbers | None = None) -> None:
        cells = candidates.cells
        kind_of = cells if kinds is None else kinds
        order = np.argsort(SeededBits(seed, "centres").words(len(cells)), kind="stable")
        self.candidates = candidates
        self.used: Numbers = np.zeros(len(cells), np.int64)
        self._waiting = {int(cell): order[cells[order] == cell].tolist() for cell in np.unique(cells)}
        self._kept: dict[int, list[set[int]]] = {cell: [] for cell in self._waiting}
        self._kind = {int(cell): int(kind) for cell, kind in zip(cells, kind_of, strict=True)}

    def __iter__(self) -> Iterator[Numbers]:
        """Yield sets from each cell in turn; a cell's turn ends when the caller calls `keep` for a set."""
        while self._waiting:
            for kind in sorted({self._kind[cell] for cell in self._waiting}):
                mine = [cell for cell in self._waiting if self._kind[cell] == kind]
                cell = min(mine, key=lambda cell: len(self._kept[cell]))
                kept = len(self._kept[cell])
                while self._waiting[cell] and len(self._kept[cell]) == kept:
                    members = self._next(cell)
                    if members is not None:
                        yield members
                if not self._waiting[cell]:
                    del self._waiting[cell]

    def keep(self, members: Numbers) -> None:
        """Record that an average was made of this set."""
        self.used[members] += 1
        self._kept[int(self.candidates.cells[members[0]])].append(set(members.tolist()))

    def _next(self, cell: int) -> Numbers | None:
        centre = int(self._waiting[cell].pop())
        free = np.flatnonzero(self.used < MOST_USES)
        members = self.candidates.neighbours_of(centre, free) if self.used[centre] < MOST_USES else None
        if members is None:
            return None
        shared = (len(old & set(members.tolist())) for old in self._kept[cell])
        return members if max(shared, default=0) <= MOST_SHARED else None


def likeness_cuts(
    embeddings: Float64[np.ndarray, "n 128"], groups: Numbers, share: float
) -> Float64[np.ndarray, " n"]:
    """Return, for each face, the quantile at `share` of the embedding distances of pairs in its group."""
    cuts = np.empty(len(groups))
    for group in np.unique(groups):
        own = embeddings[groups == group]
        square = (own**2).sum(axis=1)
        separation = np.sqrt(np.maximum(square[:, None] + square - 2 * own @ own.T, 0))
        pairs = separation[np.triu_indices(len(own), 1)]
        cuts[groups == group] = np.quantile(pairs, share) if len(pairs) else 0.0
    return cuts
