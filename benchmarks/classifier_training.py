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
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from PIL import Image

import dpveil
from detector_training import DRAWS, SEED, SETS, SETTINGS
from dpveil.attacks.resampling import drawn_people
from dpveil.training.crops import open_shard
from heads_classifier import HOG, SIDE
from timing import load_note, report

DATA = Path(__file__).parent.parent.parent / "shared" / "data" / "utkface_128"
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


def row(name: str, values: np.ndarray, clean: np.ndarray, refused: int) -> dict[str, object]:
    """Return the figures of a setting; the first draw of `values` is the sample itself."""
    return {
        "trained on": name,
        "accuracy": _words(values.mean(axis=0)),
        "sets": ", ".join(f"{one:.3f}" for one in values[:, 0]),
        "lost": _words((clean - values).mean(axis=0)) if name != "clean" else "",
        "not released": refused,
    }


def _words(draws: np.ndarray) -> str:
    low, high = np.quantile(draws[1:], (0.025, 0.975))
    return f"{draws[0]:.3f} [{low:.3f}, {high:.3f}]"


def main() -> None:
    """Print and save the table."""
    if not DATA.is_dir():
        print("needs the shared data sets in ../shared/data", file=sys.stderr)
        return
    size, count = (int(word) for word in (sys.argv[1:] + [str(PHOTOS), str(TESTED)][len(sys.argv) - 1 :]))
    source = photos(DATA)
    sets = [[next(source) for _ in range(size)] for _ in range(SETS)]
    others = [next(source) for _ in range(count)]
    tested, truth = (
        np.stack([features(levels) for _, levels, _ in others]),
        np.array([one[2] for one in others]),
    )
    times = np.concatenate([np.ones((1, count), np.int64), drawn_people(count, DRAWS, SEED)])
    rows: list[dict[str, object]] = []
    clean = np.zeros(0)
    for name, settings in SETTINGS.items():
        found = [hits(settings, taken, tested, truth) for taken in sets]
        values = np.array([balanced(right, truth, times) for right, _ in found])
        clean = clean if rows else values
        rows.append(row(name, values, clean, sum(refused for _, refused in found)))
        print(rows[-1], file=sys.stderr)
    note = f"{SETS} training sets of {size} photos, {count} in the test."
    report("classifier_training", rows, notes=(note, load_note()))


if __name__ == "__main__":
    main()
