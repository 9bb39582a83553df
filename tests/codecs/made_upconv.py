"""A generator of made people whose decoder is linear, so that what it should do is known."""

from __future__ import annotations

from functools import cache

import numpy as np
from made_faces import CARD, faces

from dpveil.codecs import Statistics, UpConv
from dpveil.codecs.network_codecs import pictures
from dpveil.codecs.upconv import CONDITIONS, embed_crops, generator
from tiny_onnx import decoder

SIDE, COUNT, PEOPLE, EMBEDDED = 20, 10, 24, 9
CANVAS = (SIDE, SIDE, 3)


def people() -> np.ndarray:
    """Return the picture of each person in training."""
    return faces(PEOPLE, seed=1, canvas=CANVAS)


@cache
def made() -> UpConv:
    """Return the codec; its generator adds 0.1 times the gender to the last row, 0.2 of a smile to the first.

    Identities are the leading principal components of the pictures, all above 0, where the identity layer is
    linear, but for the last, which is below 0 for some.
    """
    planes = pictures(people()).reshape(PEOPLE, -1)
    mean = planes.mean(axis=0)
    _, _, axes = np.linalg.svd(planes - mean, full_matrices=False)
    rows = (planes - mean) @ axes[:COUNT].T
    shift = np.abs(rows).max(axis=0) + 0.5
    shift[-1] = 0
    rows = (rows + shift).astype(np.float32)
    back = axes[:COUNT].reshape(COUNT, 3, SIDE, SIDE)
    more = np.zeros((len(CONDITIONS), 3, SIDE, SIDE), np.float32)
    more[0, :, -1], more[1, :, 0] = 0.1, 0.2
    bias = (mean - shift.astype(np.float32) @ axes[:COUNT]).astype(np.float32)
    network = generator(
        np.frombuffer(decoder(np.concatenate([back, more]), bias.reshape(3, SIDE, SIDE)), np.uint8),
        SIDE,
        COUNT,
    )
    kept = axes[:EMBEDDED].astype(np.float16).astype(np.float32)
    gallery = embed_crops(people(), mean, kept).astype(np.float32)
    energy = np.full(COUNT, 127.5**2)
    codes = np.where(rows > 0, rows, 0.2 * rows).astype(np.float64)
    statistics = Statistics.of(codes, energy, seed=1)
    return UpConv(network, rows, gallery, mean, kept, energy, statistics, CANVAS, CARD)
