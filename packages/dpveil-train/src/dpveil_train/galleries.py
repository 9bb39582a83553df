"""Making a gallery, from shards to its file: selecting, grouping and averaging contributors."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from jaxtyping import Float32, Float64, Int64, UInt8
from scipy.linalg import eigh

from dpveil.assets.cards import Card
from dpveil.assets.store import save
from dpveil.codecs.base import Crops
from dpveil.core.numbers import Json
from dpveil.core.photo import Photo
from dpveil.errors import InvalidParameter, PhotoError, RegionError
from dpveil.faces.attribute_model import READ, AttributeModel
from dpveil.faces.embedding import SAME, embedder, of_crop
from dpveil.faces.face_gallery import SIDE, FaceGallery, small, webp
from dpveil.faces.geometry import Frame, Predictor
from dpveil.noise.bits import SeededBits
from dpveil_train import averages, contributors
from dpveil_train.contributors import Candidates, Groups
from dpveil_train.crops import CropFile
from dpveil_train.labelled import NO_MORE, HandLabels, Labelled, labelled_photos
from dpveil_train.order import FileCheckpoint, Order, Progress, Trained, silent

CELL: Final = ("gender", "age", "perceived-race")
"""Labels that the contributors to a face share."""
BEARD: Final = "beard"
"""A further label of the cell, where a model reads it."""
GROUP: Final = ("gender", "perceived-race")
"""Labels within which distances between people are measured."""
STRANGERS: Final = (0.01, 0.001)
"""Quantiles of the embedding distance between different people of a group, which are the least distances
between the contributors to a face, and between the face and any of them."""

Numbers = Int64[np.ndarray, " n"]
Crop = UInt8[np.ndarray, "128 128 3"]


@dataclass(frozen=True, kw_only=True)
class GalleryOrder(Order):
    """An order for a gallery of up to `faces` faces, from labelled shards.

    With a `model` that reads beards and glasses, bearded people are averaged apart, and those with glasses,
    or of whom it is not sure, are left out. `labels` by hand go before what it reads.
    """

    faces: int = 1024
    model: AttributeModel | None = None
    labels: HandLabels = NO_MORE

    @property
    def cell(self) -> tuple[str, ...]:
        """Labels that the contributors to a face share."""
        return CELL if self.model is None else (*CELL, BEARD)

    def settings(self) -> dict[str, Json]:
        """Return the settings that determine the gallery together with the images and the seed."""
        return {
            "contributors": averages.FEWEST,
            "per_cell": contributors.PER_CELL,
            "uses": contributors.MOST_USES,
            "contributors_apart_at": STRANGERS[0],
            "nobody_at": STRANGERS[1],
            **({} if self.model is None else {"model": self.model.digest}),
            **({"labels": self.labels.digest} if self.labels.digest else {}),
            **super().settings(),
        }


@dataclass(frozen=True, eq=False)
class Nobody:
    """A face of the gallery: its WebP picture, the indices of its contributors among the candidates, the
    embedding distance to the nearest of them, and `contributors.turn_of` it.
    """

    picture: bytes
    members: Numbers
    nearest: float
    turn: float


def train_gallery(order: GalleryOrder, progress: Progress = silent) -> Trained[FaceGallery]:
    """Make faces of nobody from labelled shards, and write the gallery and its card; resumes if interrupted.

    Raises `PhotoError` if no labelled image can be read, `InvalidParameter` if too few can be averaged,
    `UsageError` if dlib or its files are not installed, and the errors of `Order.check` and of writing.
    """
    order.check()
    labels: list[dict[str, int]] = []
    with (
        progress(len(order.paths), "reading") as step,
        CropFile.of(_photos(order, labels, step), (SIDE, SIDE, 3), order.out.parent) as crops,
    ):
        if not crops.count:
            raise crops.failed[0] if crops.failed else PhotoError("the shards contain no labelled pictures")
        table = _table(order, crops, labels)
        checkpoint = _checkpoint(order, crops, table)
        most = contributors.MOST_BRIDGE if order.model is None else contributors.MOST_BRIDGE_SEEN
        cells = _cells(order, table)
        marked = candidates_of(crops, cells, order.seed, checkpoint, progress, most)
        candidates = _candidates(crops, table, marked, cells)
        kinds = _codes(table, CELL)[marked.numbers]
        faces, groups = make_averages(candidates, order, progress, kinds)
        gallery = _gallery(order, crops, table, (candidates, marked), (faces, groups))
        digest = save(gallery, order.out, replace=order.replace)
        checkpoint.remove()
        return Trained(gallery, digest, crops.count, crops.failed)


def _photos(
    order: GalleryOrder, labels: list[dict[str, int]], step: Callable[[], None]
) -> Iterator[Photo | PhotoError]:
    """Yield the photos, and append their labels to `labels`."""
    for found in labelled_photos(order.paths, step, order.labels):
        if isinstance(found, Labelled):
            labels.append(dict(found.labels))
            yield found.photo
        else:
            yield found if isinstance(found, PhotoError) else PhotoError(found.message, hint=found.hint)


def _codes(table: dict[str, Numbers], names: tuple[str, ...]) -> Numbers:
    """Return a number for each face that is unique to its combination of labels."""
    code = np.zeros(len(table[names[0]]), np.int64)
    for name in names:
        code = code * len(READ[name]) + table[name]
    return code


def _table(order: GalleryOrder, crops: CropFile, labels: list[dict[str, int]]) -> dict[str, Numbers]:
    """Return the labels of every crop, and beard and glasses where a model reads them."""
    table = {name: np.array([one[name] for one in labels], np.int64) for name in CELL}
    return table if order.model is None else table | worn(order.model, crops.all_crops(), labels)


def _cells(order: GalleryOrder, table: dict[str, Numbers]) -> Numbers:
    """Return the cell of every crop; `NOBODYS` if it has glasses, or the model is not sure of it."""
    if order.model is None:
        return _codes(table, CELL)
    fit = (table["glasses"] == 0) & (table[BEARD] != UNSURE)
    return np.where(fit, _codes(table, order.cell), NOBODYS)


def _checkpoint(order: GalleryOrder, crops: CropFile, table: dict[str, Numbers]) -> FileCheckpoint:
    """Return the checkpoint of the candidates of this order, crops and labels."""
    labels = hashlib.sha256(np.stack([*table.values()]).tobytes()).hexdigest()
    return order.checkpoint({"crops": crops.digest, "labels": labels})


def _candidates(crops: CropFile, table: dict[str, Numbers], marked: Marked, cells: Numbers) -> Candidates:
    numbers = np.array(marked.numbers, np.int64)
    if len(numbers) < averages.FEWEST:
        problem = f"hold {len(numbers)} faces that may contribute"
        raise InvalidParameter("images", None, problem, hint=f"{averages.FEWEST} are the least")
    embeddings = np.array(marked.embeddings)
    own = {name: values[numbers] for name, values in table.items()}
    apart, nobody = (
        np.minimum(contributors.likeness_cuts(embeddings, _codes(own, GROUP), share), SAME)
        for share in STRANGERS
    )
    shapes = np.array(marked.shapes)
    return Candidates(crops.take(numbers), shapes, embeddings, cells[numbers], apart, nobody)


def make_averages(
    candidates: Candidates, order: GalleryOrder, progress: Progress, kinds: Numbers
) -> tuple[list[Nobody], Groups]:
    """Return the averages that are faces of nobody, of each of `kinds` in turn, up to the number ordered.

    Raises `InvalidParameter` for fewer than two.
    """
    landmarks, network, bits = Predictor(68), embedder(), SeededBits(order.seed, "detail")
    groups, faces = Groups(candidates, order.seed, kinds), list[Nobody]()
    with progress(order.faces, "faces") as step:
        for members in groups:
            face = averages.average(candidates.crops[members], candidates.shapes[members], bits)
            shape = shape_of(face, landmarks)
            if shape is None:
                continue
            away = np.linalg.norm(
                candidates.embeddings[members] - network(of_crop(face, FRAME)[None]), axis=1
            )
            if away.min() <= candidates.nobody[members[0]]:
                continue
            groups.keep(members)
            turn = float(contributors.turn_of(shape[None])[0])
            faces.append(Nobody(webp(face), members, float(away.min()), turn))
            step()
            if len(faces) == order.faces:
                break
    if len(faces) < 2:
        raise InvalidParameter(
            "images", None, "make fewer than two faces of nobody", hint="give more pictures"
        )
    return faces, groups


def _gallery(
    order: GalleryOrder,
    crops: CropFile,
    table: dict[str, Numbers],
    source: tuple[Candidates, Marked],
    result: tuple[list[Nobody], Groups],
) -> FaceGallery:
    (candidates, marked), (faces, groups) = source, result
    pixels = np.concatenate([small(batch) for batch in crops.all_crops()])
    rows = fit_rows(pixels, _codes(table, CELL), np.array(marked.numbers), candidates.turns)
    first = np.array([marked.numbers[face.members[0]] for face in faces])
    labels = {name: table[name][first].astype(np.int8) for name in order.cell}
    agreement = {name: np.ones(len(faces), np.float32) for name in order.cell}
    bins = [contributors.TURNED * side for side in (-1, 1)]
    turns = np.array([face.turn for face in faces])
    labels["pose"] = np.searchsorted(bins, turns).astype(np.int8)
    alike = [np.searchsorted(bins, candidates.turns[face.members]) for face in faces]
    shares = [(own == label).mean() for own, label in zip(alike, labels["pose"], strict=True)]
    agreement["pose"] = np.maximum(np.array(shares, np.float32), np.float32(1 / averages.FEWEST))
    card = Card("gallery", order.data, order.terms, order.seed, order.settings(), _metrics(faces, groups))
    values = {name: READ[name] for name in (*order.cell, "pose")}
    return FaceGallery(tuple(face.picture for face in faces), labels, agreement, values, rows, card)


def _metrics(faces: list[Nobody], groups: Groups) -> dict[str, Json]:
    near = np.array([face.nearest for face in faces])
    cuts = np.array([groups.candidates.nobody[face.members[0]] for face in faces])
    return {
        "candidates": len(groups.used),
        "contributors": int((groups.used > 0).sum()),
        "most_uses_of_one": int(groups.used.max()),
        "smallest_distance_to_a_contributor": round(float(near.min()), 3),
        "median_distance_to_the_nearest_contributor": round(float(np.median(near)), 3),
        "farther_than_0.6_from_all": round(float((near > SAME).mean()), 3),
        "smallest_margin_beyond_strangers": round(float((near - cuts).min()), 3),
    }


NOBODYS: Final = -1
"""The cell of a crop that is no candidate."""
KEEP: Final = 200
"""Candidates between two checkpoints."""
FRAME: Final = Frame(SIDE)


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
            crop = crops.take(np.array([number]))[0]
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


WORN: Final = ("beard", "glasses")
SURE: Final = 0.8
"""Least probability, by the model, of a value that counts as read."""
UNSURE: Final = -1


def worn(
    model: AttributeModel, batches: Iterable[Crops], labels: Sequence[Mapping[str, int]]
) -> dict[str, Numbers]:
    """Return beard and glasses of every crop, as indices of their values, or `UNSURE`.

    Raises `InvalidParameter` if the model does not read them.
    """
    for name in WORN:
        if model.values.get(name) != READ[name]:
            hint = "train it with --labels, which have glasses and beards"
            raise InvalidParameter("model", name, "is not what the model reads", hint=hint)
    scores = np.concatenate([model.scores(crops) for crops in batches])
    found = {}
    for name in WORN:
        own = scores[:, model.columns[name]].astype(np.float64)
        yes: Float64[np.ndarray, " n"] = 1 / (1 + np.exp(np.clip(own[:, 0] - own[:, 1], -50, 50)))
        read = np.where(yes >= SURE, 1, np.where(yes <= 1 - SURE, 0, UNSURE))
        known = np.array([one.get(name, UNSURE) for one in labels], np.int64)
        found[name] = np.where(known == UNSURE, read, known)
    return found


COMPONENTS: Final = 300
"""Principal components of the pixels, before the discriminants."""
DIRECTIONS: Final = 39
"""Most linear discriminants."""
RIDGE: Final = 1e-3
"""Added to the diagonal of the covariance within classes."""
FEW: Final = 100
"""Classes of n faces, fewer than this, have the weight √(n/FEW)."""

Pixels = Float32[np.ndarray, "n pixels"]
Rows = Float32[np.ndarray, "k pixels"]


def fit_rows(
    pixels: Pixels,
    classes: Int64[np.ndarray, " n"],
    numbers: Int64[np.ndarray, " m"],
    turns: Float64[np.ndarray, " m"],
) -> Rows:
    """Return rows whose products with a downscaled crop are its features, rounded to 16-bit floats.

    They are linear discriminants of the classes, each scaled by the root of its ratio of variance between and
    within classes, and the direction of a ridge regression to `turns`, of the faces with indices `numbers`,
    scaled to the deviation of the first discriminant. Source: Fisher 1936.
    """
    basis = _whiten(pixels)
    codes = pixels @ basis - pixels.mean(axis=0) @ basis
    names, place = np.unique(classes, return_inverse=True)
    counts = np.bincount(place)
    means = np.stack([codes[place == k].mean(axis=0) for k in range(len(names))])
    between = (means - means.mean(axis=0)) * np.sqrt(np.minimum(counts, FEW) / FEW)[:, None]
    within = np.cov((codes - means[place]).T) + RIDGE * np.eye(codes.shape[1])
    ratios, turn = eigh(between.T @ between / len(names), within)
    last = np.argsort(ratios)[::-1][: min(DIRECTIONS, len(names) - 1)]
    columns = [turn[:, last] * np.sqrt(np.maximum(ratios[last], 0))]
    if len(numbers) > codes.shape[1]:
        columns.append(_turning(codes[numbers], turns, (codes @ columns[0][:, :1]).std()))
    rows = np.ascontiguousarray((basis @ np.concatenate(columns, axis=1)).T)
    rows /= np.abs(rows).max()
    return rows.astype(np.float16).astype(np.float32)


def _whiten(pixels: Pixels) -> Float64[np.ndarray, "pixels k"]:
    """Return the first principal components as columns, each divided by its slightly enlarged deviation."""
    centred = pixels - pixels.mean(axis=0)
    size = min(centred.shape)
    many = min(COMPONENTS, pixels.shape[1] - 1, len(pixels) // 3)
    wide = len(centred) >= centred.shape[1]
    gram = ((centred.T @ centred if wide else centred @ centred.T) / len(centred)).astype(np.float64)
    values, vectors = eigh(gram, subset_by_index=(size - 1 - many, size - 1))
    values = np.maximum(values, 1e-6)
    if not wide:
        vectors = centred.T @ vectors / np.sqrt(values * len(centred))
    basis: Float64[np.ndarray, "pixels k"] = vectors[:, 1:] / np.sqrt(values[1:] + values[0])
    return basis


def _turning(
    codes: Float64[np.ndarray, "m k"], turns: Float64[np.ndarray, " m"], wide: float
) -> Float64[np.ndarray, "k 1"]:
    """Return the ridge regression of codes to `turns`, scaled to the standard deviation `wide`."""
    inner = codes - codes.mean(axis=0)
    gram = inner.T @ inner
    found = np.linalg.solve(gram + 0.01 * np.trace(gram) * np.eye(len(gram)) / len(gram), inner.T @ turns)
    scaled: Float64[np.ndarray, "k 1"] = (found * (wide / max((inner @ found).std(), 1e-12)))[:, None]
    return scaled
