"""Candidates for a gallery: the public faces that may contribute. This takes the longest part of making
one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from jaxtyping import Float64, Int64, UInt8

from dpveil.errors import RegionError
from dpveil.faces.embedding import embedder, of_crop
from dpveil.faces.face_gallery import SIDE
from dpveil.faces.geometry import Frame, Predictor
from dpveil.noise.bits import SeededBits
from dpveil_train import contributors
from dpveil_train.checkpoint import FileCheckpoint
from dpveil_train.crops import CropFile
from dpveil_train.order import Progress

NOBODYS: Final = -1
"""The cell of a crop that is no candidate."""
KEEP: Final = 200
"""Candidates between two checkpoints."""
FRAME: Final = Frame(SIDE)

Numbers = Int64[np.ndarray, " n"]
Crop = UInt8[np.ndarray, "128 128 3"]


@dataclass(eq=False)
class Marked:
    """The candidates so far: indices of their crops, landmarks, embeddings, and the number of crops tried."""

    numbers: list[int] = field(default_factory=list)
    shapes: list[Float64[np.ndarray, "68 2"]] = field(default_factory=list)
    embeddings: list[Float64[np.ndarray, " 128"]] = field(default_factory=list)
    seen: int = 0

    @classmethod
    def of(cls, state: Any) -> Marked:
        """Return the candidates in a checkpoint."""
        if "seen" not in state:
            return cls()
        return cls(state["numbers"].tolist(), [*state["shapes"]], [*state["embeddings"]], int(state["seen"]))

    def state(self) -> dict[str, np.ndarray]:
        """Return the arrays for a checkpoint."""
        return {
            "numbers": np.array(self.numbers, np.int64),
            "shapes": np.array(self.shapes, np.float64).reshape(-1, 68, 2),
            "embeddings": np.array(self.embeddings, np.float64).reshape(-1, 128),
            "seen": np.array(self.seen),
        }


def candidates_of(
    crops: CropFile,
    cells: Numbers,
    seed: int,
    checkpoint: FileCheckpoint,
    progress: Progress,
    most_bridge: float = contributors.MOST_BRIDGE,
) -> Marked:
    """Return up to `PER_CELL` clear faces of each cell of labels, with landmarks and embeddings.

    `cells` has the cell of every crop, or `NOBODYS`; crops are tried in a random order given by `seed`.
    Resumes from `checkpoint`. Raises `UsageError` if dlib or its files are not installed.
    """
    order = np.argsort(SeededBits(seed, "candidates").words(crops.count), kind="stable")
    marked = Marked.of(checkpoint.read())
    full = np.bincount(cells[marked.numbers], minlength=int(cells.max()) + 1)
    landmarks, network = Predictor(68), embedder()
    with progress(len(order) - marked.seen, "landmarks") as step:
        for number in order[marked.seen :].tolist():
            marked.seen += 1
            step()
            if cells[number] == NOBODYS or full[cells[number]] >= contributors.PER_CELL:
                continue
            crop = crops.taken(np.array([number]))[0]
            shape = shape_of(crop, landmarks, most_bridge) if contributors.clear(crop) else None
            if shape is None:
                continue
            full[cells[number]] += 1
            marked.numbers.append(number)
            marked.shapes.append(shape)
            marked.embeddings.append(network(of_crop(crop, FRAME)[None])[0])
            if len(marked.numbers) % KEEP == 0:
                checkpoint.write(marked.state())
    checkpoint.write(marked.state())
    return marked


def shape_of(
    crop: Crop, landmarks: Predictor, most_bridge: float = contributors.MOST_BRIDGE
) -> Float64[np.ndarray, "68 2"] | None:
    """Return the landmarks of a crop, or None if the face is not fit for an average."""
    try:
        found = landmarks.of_crop(crop, FRAME)
    except RegionError:
        return None
    shape = found.all68
    if shape is None:
        return None
    fit = contributors.fit_to_average(crop, shape, found.spread, found.score, most_bridge)
    return shape if fit else None
