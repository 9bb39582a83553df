"""Making a gallery, from shards to its file: selecting, grouping and averaging contributors."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Int64, UInt8

from dpveil.assets.cards import Card
from dpveil.assets.store import save
from dpveil.core.numbers import Json
from dpveil.core.photo import Photo
from dpveil.errors import InvalidParameter, PhotoError
from dpveil.faces.attribute_model import READ, AttributeModel
from dpveil.faces.embedding import SAME, embedder, of_crop
from dpveil.faces.face_gallery import SIDE, FaceGallery, small, webp
from dpveil.faces.geometry import Predictor
from dpveil.noise.bits import SeededBits
from dpveil_train import averages, contributors
from dpveil_train.by_hand import HandLabels
from dpveil_train.candidates import FRAME, NOBODYS, Marked, candidates_of, shape_of
from dpveil_train.checkpoint import FileCheckpoint
from dpveil_train.contributors import Candidates, Groups
from dpveil_train.crops import CropFile
from dpveil_train.labelled import NO_MORE, Labelled, labelled
from dpveil_train.likeness import fit_rows
from dpveil_train.order import Order, Progress, Trained, silent
from dpveil_train.wearing import UNSURE, worn

NAMES: Final = ("gender", "age", "perceived-race", "pose")
"""Labels of a gallery's faces."""
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
        faces, groups = made(candidates, order, progress, kinds)
        gallery = _gallery(order, crops, table, (candidates, marked), (faces, groups))
        digest = save(gallery, order.out, replace=order.replace)
        checkpoint.remove()
        return Trained(gallery, digest, crops.count, crops.failed)


def _photos(
    order: GalleryOrder, labels: list[dict[str, int]], step: Callable[[], None]
) -> Iterator[Photo | PhotoError]:
    """Yield the photos, and append their labels to `labels`."""
    for found in labelled(order.paths, step, order.labels):
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
    return Candidates(crops.taken(numbers), shapes, embeddings, cells[numbers], apart, nobody)


def made(
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
