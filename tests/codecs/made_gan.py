"""Linear encoders and decoders in place of trained ones: eigenfaces as networks."""

from __future__ import annotations

from functools import cache

import numpy as np
from made_faces import CARD, faces

from dpveil.codecs import GAN, Statistics
from dpveil.codecs.network_codecs import CONDITIONS, EncoderDecoder, ellipse_mask, pictures
from tiny_onnx import decoder, encoder

SIDE, COUNT = 20, 12
CANVAS = (SIDE, SIDE, 3)


@cache
def made(kind: type[EncoderDecoder] = GAN) -> EncoderDecoder:
    """Return the codec; that of `gan` adds 0.1 times yaw to the top row, and gender to the last one."""
    planes = pictures(faces(90, seed=1, canvas=CANVAS))
    rows = planes.reshape(len(planes), -1).astype(np.float64)
    mean = rows.mean(axis=0)
    _, _, directions = np.linalg.svd(rows - mean, full_matrices=False)
    directions = directions[:COUNT].astype(np.float32)
    weights = directions.reshape(COUNT, 3, SIDE, SIDE)
    more = np.zeros((len(CONDITIONS), 3, SIDE, SIDE), np.float32)
    more[0, :, -1], more[1, :, 0] = 0.1, 0.1
    back = decoder(np.concatenate([weights, more[: len(kind.conditions)]]), mean.astype(np.float32))
    there = encoder(weights, -(directions @ mean.astype(np.float32)))
    both = kind.networks(*(np.frombuffer(one, np.uint8) for one in (there, back)), SIDE, COUNT)
    codes = (rows - mean) @ directions.T.astype(np.float64)
    energy = np.full(COUNT, 127.5**2)
    statistics = Statistics.of(codes, energy, seed=1, deviations=codes.std(axis=0))
    zero, basis = np.zeros(COUNT, np.float32), np.eye(COUNT, dtype=np.float32)
    return kind(*both, zero, basis, energy, statistics, CANVAS, CARD)


def beyond() -> np.ndarray:
    return ~ellipse_mask(SIDE)
