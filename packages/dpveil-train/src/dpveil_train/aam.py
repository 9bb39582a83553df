"""Training of an active appearance model."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final

import numpy as np
from jaxtyping import Bool, Float32, Float64

from dpveil.assets.model_cards import Card
from dpveil.codecs.aam import AAM, STAGES, Mesh, Parameters, Shapes, ShapeSpace, Steps, energy_of
from dpveil.codecs.base import Canvas, Crops
from dpveil.codecs.pca import PCA
from dpveil.codecs.statistics import Statistics
from dpveil.core.parameters import check_count
from dpveil.errors import InvalidParameter
from dpveil_train import pca
from dpveil_train.order import Source

PASSES: Final = 1 + STAGES + 1 + pca.PASSES + 1  # passes over the training crops
OF_SHAPE: Final = 8  # one coordinate in this many is shape; the others are texture
LEAST: Final = 1e-6  # least variance of a component of shape, in squared pixels summed over all landmarks

Marker = Callable[[Crops], Shapes]
"""Returns the landmarks of crops, (x, y) in pixels; NaN for crops where they are uncertain."""


def train_aam(
    source: Source,
    *,
    card: Card,
    seed: int,
    length: int = 100,
    landmarks: Marker,
) -> AAM:
    """Return a model of `length` coordinates, of which one in `OF_SHAPE` is shape.

    `landmarks` returns at least 12 points for each crop, and is not needed after training; crops with
    uncertain landmarks are left out. Makes `PASSES` passes over `source`, with memory for a batch, the
    landmarks, and what `train_pca` needs. Raises `InvalidParameter` if crops are too few or too similar.
    Source: Cootes, Edwards & Taylor 2001.
    """
    check_count(length, "length")
    marks, canvas = all_marks(source, landmarks, length)
    sure = np.isfinite(marks).all(axis=(1, 2))
    space, true = space_of(marks[sure], length, max(1, length // OF_SHAPE), canvas)
    kept = only(source, sure)
    steps = regressions(kept, space, true)
    found = np.concatenate([space.fit(crops, steps) for crops in kept()])
    card = replace(card, settings={**card.settings, "images_with_landmarks": int(sure.sum())})
    moved = at_rest(kept, space, found)
    texture = texture_of(moved, card, seed, length, length - len(space.basis))
    own = np.concatenate([texture.codes_of(crops) for crops in moved()])
    codes = np.concatenate([found, own], axis=1)
    statistics = Statistics.of(codes, energy_of(space, texture), seed=seed)
    return AAM(space, steps, texture, statistics, canvas, card)


def all_marks(source: Source, landmarks: Marker, length: int) -> tuple[Float64[np.ndarray, "n k 2"], Canvas]:
    """Return the landmarks of all crops, NaN where uncertain, and the canvas.

    Raises `InvalidParameter` if no more than `length` crops have certain landmarks, or if crops differ in
    shape.
    """
    found: list[Shapes] = []
    canvas = (0, 0, 0)
    for crops in source():
        canvas = canvas if found else (crops.shape[1], crops.shape[2], crops.shape[3])
        if crops.shape[1:] != canvas:
            raise InvalidParameter("images", None, "are not of one shape", hint="give crops of one canvas")
        found.append(landmarks(crops))
    marks = np.concatenate(found) if found else np.zeros((0, 0, 2))
    count = int(np.isfinite(marks).all(axis=(1, 2)).sum())
    if count <= length:
        problem = f"is not below the number of training images with sure landmarks, {count}"
        raise InvalidParameter("length", length, problem, hint="give more images")
    return marks, canvas


def only(source: Source, sure: Bool[np.ndarray, " n"]) -> Source:
    """Return the source of the crops for which the mask `sure` is true."""

    def kept_crops() -> Iterator[Crops]:
        start = 0
        for crops in source():
            which = sure[start : start + len(crops)]
            start += len(crops)
            if which.any():
                yield crops[which]

    return kept_crops


def space_of(
    marks: Float64[np.ndarray, "n k 2"], length: int, of_shape: int, canvas: Canvas
) -> tuple[ShapeSpace, Parameters]:
    """Return the first `of_shape` principal components of the landmarks, and the parameters of each crop.

    Raises `InvalidParameter` if `length` leaves no coordinates for texture, or shapes vary too little.
    """
    if of_shape >= length:
        raise InvalidParameter("length", length, "is too short for shape and texture", hint="2 or more")
    mesh = Mesh.over(marks.mean(axis=0), canvas[0], canvas[1])
    shapes = mesh.make_valid(marks)
    space, variances = shape_space(shapes, of_shape, mesh)
    if not variances[of_shape - 1] > LEAST:
        problem = f"asks for {of_shape} components of shape, in which the images do not vary"
        raise InvalidParameter("length", length, problem, hint="lower it or give more images")
    return space, space.parameters(shapes)


def regressions(source: Source, space: ShapeSpace, true: Parameters) -> Steps:
    """Return `STAGES` regressions, each trained on the result of those before it."""
    steps: Steps = np.zeros((0, len(space.basis), space.features_seen), np.float32)
    for _ in range(STAGES):
        stage, start = Regression(), 0
        for crops in source():
            at = space.fit(crops, steps)
            stage.add(space.features(crops, at), true[start : start + len(crops)] - at)
            start += len(crops)
        steps = np.concatenate([steps, stage.solve()[None]])
    return steps


def at_rest(source: Source, space: ShapeSpace, found: Parameters) -> Source:
    """Return the source of the same crops warped to the mean shape."""

    def crops_at_rest() -> Iterator[Crops]:
        start = 0
        for crops in source():
            shapes = space.shapes(found[start : start + len(crops)])
            start += len(crops)
            yield space.mesh.to_rest(crops, shapes)  # float levels, which PCA accepts

    return crops_at_rest


def texture_of(source: Source, card: Card, seed: int, length: int, of_texture: int) -> PCA:
    """Return the eigenfaces of crops in the mean shape; raises `InvalidParameter`, naming `length`."""
    try:
        return pca.train_pca(source, card=card, seed=seed, length=of_texture)
    except InvalidParameter as error:
        problem = f"leaves {of_texture} components for texture, more than images vary in"
        raise InvalidParameter("length", length, problem, hint=error.hint) from error


RIDGE: Final = 0.5  # ridge penalty, relative to the mean variance of the features


class Regression:
    """The ridge regression of one stage, accumulated batch by batch."""

    def __init__(self) -> None:
        self._count = 0
        self._squares: np.ndarray = np.zeros(())
        self._products: np.ndarray = np.zeros(())

    def add(self, features: Float32[np.ndarray, "n f"], missing: Parameters) -> None:
        self._squares = self._squares + features.T @ features
        self._products = self._products + features.T @ missing.astype(np.float32)
        self._count += len(features)

    def solve(self) -> Float32[np.ndarray, "k f"]:
        """Return the coefficients; the last feature, a constant, has no penalty."""
        from scipy.linalg import solve

        squares = self._squares.astype(np.float64) / self._count
        mean = squares[-1, :-1]
        variance = float((np.diag(squares)[:-1] - mean**2).mean())
        ridge = np.full(len(squares), RIDGE * variance + 1e-9)
        ridge[-1] = 0
        squares[np.diag_indices_from(squares)] += ridge
        found = solve(squares, self._products.astype(np.float64) / self._count, assume_a="pos")
        return np.ascontiguousarray(found.T, np.float32)


def shape_space(shapes: Shapes, length: int, mesh: Mesh) -> tuple[ShapeSpace, Float64[np.ndarray, " d"]]:
    """Return the first `length` principal components of shapes, and all variances in squared pixels."""
    moves = (shapes - mesh.rest).reshape(len(shapes), -1)
    values, turn = np.linalg.eigh(moves.T @ moves / len(moves))
    basis = np.ascontiguousarray(turn[:, ::-1][:, :length].T)
    basis *= np.where(basis.sum(axis=1) < 0, -1.0, 1.0)[:, None]
    codes = moves @ basis.T
    return ShapeSpace(mesh, basis, np.stack([codes.min(axis=0), codes.max(axis=0)])), values[::-1]
