"""Who of the training faces has a beard or glasses: by hand where it was labelled, else by a model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import numpy as np
from jaxtyping import Float64, Int64

from dpveil.codecs.base import Crops
from dpveil.errors import InvalidParameter
from dpveil.faces.attribute_model import READ, AttributeModel

NAMES: Final = ("beard", "glasses")
SURE: Final = 0.8
"""Least probability, by the model, of a value that counts as read."""
UNSURE: Final = -1

Numbers = Int64[np.ndarray, " n"]


def worn(
    model: AttributeModel, batches: Iterable[Crops], labels: Sequence[Mapping[str, int]]
) -> dict[str, Numbers]:
    """Return beard and glasses of every crop, as indices of their values, or `UNSURE`.

    Raises `InvalidParameter` if the model does not read them.
    """
    for name in NAMES:
        if model.values.get(name) != READ[name]:
            hint = "train it with --labels, which have glasses and beards"
            raise InvalidParameter("model", name, "is not what the model reads", hint=hint)
    scores = np.concatenate([model.scores(crops) for crops in batches])
    found = {}
    for name in NAMES:
        own = scores[:, model.columns[name]].astype(np.float64)
        yes: Float64[np.ndarray, " n"] = 1 / (1 + np.exp(np.clip(own[:, 0] - own[:, 1], -50, 50)))
        read = np.where(yes >= SURE, 1, np.where(yes <= 1 - SURE, 0, UNSURE))
        known = np.array([one.get(name, UNSURE) for one in labels], np.int64)
        found[name] = np.where(known == UNSURE, read, known)
    return found
