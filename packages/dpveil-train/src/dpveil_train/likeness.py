"""Similarity of faces for a gallery: features in which people with different labels are far apart."""

from __future__ import annotations

from typing import Final

import numpy as np
from jaxtyping import Float32, Float64, Int64
from scipy.linalg import eigh

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
    basis = _whitened(pixels)
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


def _whitened(pixels: Pixels) -> Float64[np.ndarray, "pixels k"]:
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
