"""A gender classifier trained on releases and tested on clean photos.

Gradients (HOG) and a logistic regression are trained on photos of UTKFace, clean or released, with the data
set's own labels, and tested on clean photos. `accuracy` is balanced over the two labels (chance 0.5), the
mean over disjoint training sets, with a 95 % bootstrap interval over the photos in the test; `sets` are its
values by training set, and `lost` is the paired difference from clean photos. UTKFace names nobody: some
people may be in training and test. The model that reads the gender for `attributes` was trained on UTKFace,
too. Needs ../shared/data/utkface_128: `python benchmarks/classifier_training.py [PHOTOS] [TESTED]`.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from PIL import Image

import dpveil
from dpveil_train.crops import open_shard
from heads_classifier import HOG, SIDE
from trained_on_releases import SEED, Score, Task

PHOTOS, TESTED = 120, 1000

Labelled = tuple[str, np.ndarray, int]
"""Name, levels and label of a photo."""


def photos(folder: Path) -> Iterator[Labelled]:
    """Yield the photos of all shards, which are shuffled."""
    labels: list[object] = []
    for path in sorted(folder.rglob("*.tar")):
        with open_shard(path) as shard:
            for name in sorted(name for name in shard.getnames() if name.endswith(".jpg")):
                gender = json.load(shard.extractfile(name.replace(".jpg", ".json")))["gender"]
                labels += [] if gender in labels else [gender]
                levels = np.asarray(Image.open(io.BytesIO(shard.extractfile(name).read())).convert("RGB"))
                yield f"{path.stem}/{name}", levels, labels.index(gender)


def features(levels: np.ndarray) -> np.ndarray:
    """Return the histograms of gradients of a photo."""
    return HOG.compute(cv2.resize(levels, (SIDE, SIDE), interpolation=cv2.INTER_AREA)).ravel()


def hits(settings: dict[str, Any], taken: Sequence[Labelled], tested: np.ndarray, truth: np.ndarray) -> Any:
    """Return whether each clean photo is labelled right after training on releases; and the refused ones."""
    from sklearn.linear_model import LogisticRegression

    seen, labels = [], []
    for name, levels, label in taken:
        try:
            bits = dpveil.SeededBits(SEED, name)
            done = dpveil.plan(levels, **settings).release(bits=bits).image if settings else levels
        except dpveil.DPVeilError:
            continue
        seen.append(features(np.asarray(done)))
        labels.append(label)
    model = LogisticRegression(C=0.1, max_iter=2000, class_weight="balanced").fit(np.stack(seen), labels)
    return model.predict(tested) == truth, len(taken) - len(seen)


def balanced(right: np.ndarray, truth: np.ndarray, times: np.ndarray) -> np.ndarray:
    """Return the mean of both labels' accuracies in each draw; `times` is of shape (draws, photos)."""
    shares = [
        times[:, truth == one] @ right[truth == one] / times[:, truth == one].sum(axis=1) for one in (0, 1)
    ]
    return np.mean(shares, axis=0)


def scorer(tested: Sequence[Labelled], times: np.ndarray) -> Score:
    """Return what trains on releases and gives the balanced accuracy of each draw."""
    seen = np.stack([features(levels) for _, levels, _ in tested])
    truth = np.array([label for _, _, label in tested])

    def score(settings: dict[str, Any], taken: Sequence[Labelled]) -> tuple[np.ndarray, int]:
        right, refused = hits(settings, taken, seen, truth)
        return balanced(right, truth, times), refused

    return score


TASK = Task("classifier_training", "accuracy", "utkface_128", PHOTOS, TESTED, photos, scorer)

if __name__ == "__main__":
    TASK.run()
