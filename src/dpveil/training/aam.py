"""The steps by which an active appearance model is learned, each of which may go on from a checkpoint."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

import numpy as np
from jaxtyping import Bool, Float64

from dpveil.codecs.base import Canvas, Card, Crops, Source
from dpveil.training.checkpoint import Checkpoint
from dpveil.codecs.fitting import STAGES, Parameters, Regression, ShapeSpace, Steps, shape_space
from dpveil.codecs.mesh import Mesh, Shapes
from dpveil.codecs.pca import PCA
from dpveil.errors import InvalidParameter

LEAST: Final = 1e-6
"""Variance in squared pixels, over all landmarks, below which a component of shape is nothing."""

Marker = Callable[[Crops], Shapes]
"""Finds the landmarks of crops, (x, y) in pixels; not finite where it is not sure."""


def all_marks(
    source: Source, landmarks: Marker, length: int, checkpoint: Checkpoint
) -> tuple[Float64[np.ndarray, "n k 2"], Canvas]:
    """Return the landmarks of all crops, not finite where they are not sure, and the canvas.

    Raises `InvalidParameter` where those that are sure are no more than coordinates, and where crops are
    not of one canvas.
    """
    state = checkpoint.read()
    if "marks" in state:
        height, width, channels = (int(side) for side in state["canvas"])
        return state["marks"], (height, width, channels)
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
    checkpoint.write({"done": np.array(1), "marks": marks, "canvas": np.array(canvas)})
    return marks, canvas


def only(source: Source, sure: Bool[np.ndarray, " n"]) -> Source:
    """Return the source of those crops that are `sure`, by their number."""

    def kept() -> Iterator[Crops]:
        start = 0
        for crops in source():
            which = sure[start : start + len(crops)]
            start += len(crops)
            if which.any():
                yield crops[which]

    return kept


def space_of(
    marks: Float64[np.ndarray, "n k 2"], length: int, of_shape: int, canvas: Canvas
) -> tuple[ShapeSpace, Parameters]:
    """Return the first `of_shape` components of landmarks, and the parameters of each crop's.

    Raises `InvalidParameter` where nothing is left of `length` for texture, or shapes vary too little.
    """
    if of_shape >= length:
        raise InvalidParameter("length", length, "is too short for shape and texture", hint="2 or more")
    mesh = Mesh.over(marks.mean(axis=0), canvas[0], canvas[1])
    shapes = mesh.sound(marks)
    space, variances = shape_space(shapes, of_shape, mesh)
    if not variances[of_shape - 1] > LEAST:
        problem = f"asks for {of_shape} components of shape, in which the images do not vary"
        raise InvalidParameter("length", length, problem, hint="lower it or give more images")
    return space, space.parameters(shapes)


def regressions(source: Source, space: ShapeSpace, true: Parameters, checkpoint: Checkpoint) -> Steps:
    """Return `STAGES` regressions, each learned where those before it leave the crops."""
    state = checkpoint.read()
    done = min(max(int(state.get("done", np.array(1))) - 1, 0), STAGES)
    empty = np.zeros((0, len(space.basis), space.features_seen), np.float32)
    steps: Steps = state["steps"][:done] if done else empty
    for number in range(done, STAGES):
        stage, start = Regression(), 0
        for crops in source():
            at = space.fit(crops, steps)
            stage.add(space.features(crops, at), true[start : start + len(crops)] - at)
            start += len(crops)
        steps = np.concatenate([steps, stage.solved()[None]])
        checkpoint.write({**state, "done": np.array(2 + number), "steps": steps})
    return steps


def at_rest(source: Source, space: ShapeSpace, found: Parameters) -> Source:
    """Return the source of the same crops moved to the mean shape."""

    def moved() -> Iterator[Crops]:
        start = 0
        for crops in source():
            shapes = space.shapes(found[start : start + len(crops)])
            start += len(crops)
            yield space.mesh.to_rest(crops, shapes)  # PCA takes levels that are no whole numbers, too

    return moved


def texture_of(
    source: Source, card: Card, seed: int, length: int, of_texture: int, checkpoint: Checkpoint
) -> PCA:
    """Return the eigenfaces of crops in the mean shape. Raises `InvalidParameter`, about all coordinates."""
    try:
        return PCA.train(source, card=card, seed=seed, length=of_texture, checkpoint=checkpoint)
    except InvalidParameter as error:
        problem = f"leaves {of_texture} components for texture, more than images vary in"
        raise InvalidParameter("length", length, problem, hint=error.hint) from error
