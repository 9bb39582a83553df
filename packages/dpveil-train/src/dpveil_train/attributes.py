"""Training of an attribute model, from shards to its file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

import cv2
import numpy as np
from jaxtyping import Float32, Float64, Int64, UInt8
from scipy.stats import binomtest

from dpveil.assets.model_cards import Card
from dpveil.assets.trained_files import save
from dpveil.core.rationals import Json
from dpveil.errors import DPVeilError, InvalidParameter
from dpveil.faces.attribute_model import CROP_SIDE, READ, AttributeModel, columns_of, features
from dpveil.faces.geometry.align import Frame
from dpveil.faces.portrait_placement import centred
from dpveil.noise.bits import SeededBits
from dpveil_train.labelled import NO_MORE, HandLabels, Labelled, labelled_photos
from dpveil_train.landmarks import Predictor68
from dpveil_train.order import Order, Progress, Trained, refuse_none, silent

HELD_OUT: Final = 5  # the last one of so many images is held out: with many shards, the last shards
LABELLED: Final = ("gender", "age", "perceived-race")  # attributes labelled in the shards
BY_LANDMARKS: Final = ("pose", "smile")  # attributes computed from landmarks; the others are labelled by hand
SHIFT: Final = 0.03  # largest shift of an augmented crop, relative to its side
ZOOM: Final = 0.05  # largest relative change of its scale
TURN: Final = 5.0  # its largest rotation, in degrees
NOSE: Final = 30  # index among the 68 landmarks of the tip of the nose
TURNED: Final = 0.12
"""Offset of the tip of the nose from the eyes' middle, in distances between the eyes, of a turned head."""
WIDE: Final = 0.95  # least width of a smiling mouth, in distances between the eyes
OPEN_LIPS: Final = 0.06  # least gap between the lips of a smiling mouth, in distances between the eyes


@dataclass(frozen=True, kw_only=True)
class AttributeOrder(Order):
    """An order for an attribute model; with `landmarks` 68, it also learns pose and smile.

    It also learns the attributes of `labels`, from the pictures whose values are in it.
    """

    landmarks: int = 5
    labels: HandLabels = NO_MORE

    @property
    def values(self) -> dict[str, tuple[str, ...]]:
        learned = {*LABELLED, *self.labels.names, *(BY_LANDMARKS if self.landmarks == 68 else ())}
        return {name: words for name, words in READ.items() if name in learned}

    def settings(self) -> dict[str, Json]:
        """Return the settings that determine the model together with the images and the seed."""
        own: dict[str, Json] = {"units": UNITS, "epochs": EPOCHS, "landmarks": self.landmarks}
        by_hand: dict[str, Json] = {"labels": self.labels.digest} if self.labels.digest else {}
        return {**own, **by_hand, **super().settings()}


def train_attributes(order: AttributeOrder, progress: Progress = silent) -> Trained[AttributeModel]:
    """Train an attribute model on labelled shards, evaluate it, and write the model and its card.

    Raises `PhotoError` if no labelled image can be read, `UsageError` if landmarks are needed and not
    installed, and the errors of `Order.check` and of writing.
    """
    order.check()
    variants, labels, failed = _read(order, progress)
    count = len(labels)
    refuse_none(count, failed, "give .tar shards with .json labels")
    kept = count - count // HELD_OUT
    card = Card("attributes", order.data, order.terms, order.seed, {**order.settings(), "images": kept})
    seen = np.concatenate([np.stack([one[v] for one in variants[:kept]]) for v in range(4)])
    truth = _truth(labels[:kept], order.values)
    with progress(EPOCHS, "learning") as step:
        model = fit_attributes(
            seen, truth, order.values, card=card, seed=order.seed, epochs=EPOCHS, step=step
        )
    held = np.stack([one[0] for one in variants[kept:]]) if kept < count else np.empty((0, seen.shape[1]))
    metrics = accuracy_metrics(model, held.astype(np.float32), labels[kept:])
    model = replace(model, card=replace(card, metrics=metrics))
    return Trained(model, save(model, order.out, replace=order.replace), count, failed)


def _read(
    order: AttributeOrder, progress: Progress
) -> tuple[list[np.ndarray], list[dict[str, int]], list[DPVeilError]]:
    """Return features of every image in four augmented variants, its labels, and the images that failed."""
    variants, labels, failed = list[np.ndarray](), list[dict[str, int]](), list[DPVeilError]()
    bits = SeededBits(order.seed, "variants")
    finder = Predictor68() if order.landmarks == 68 else None
    with progress(len(order.paths), "reading") as step:
        for found in labelled_photos(order.paths, step, order.labels):
            if not isinstance(found, Labelled):
                failed.append(found)
                continue
            crop = np.ascontiguousarray(centred(found.photo, (CROP_SIDE, CROP_SIDE, 3)))
            more = {} if finder is None else looks(finder.look(crop, Frame(CROP_SIDE)))
            labels.append({**more, **found.labels})
            variants.append(features(np.stack(list(_variants(crop, bits)))).astype(np.float16))
    return variants, labels, failed


def looks(points: Float64[np.ndarray, "68 2"]) -> dict[str, int]:
    """Return the labels of pose and smile, by fixed rules on 68 landmarks (x, y)."""
    left, right = points[36:42].mean(axis=0), points[42:48].mean(axis=0)
    along = (right - left) / np.hypot(*(right - left))
    apart = float(np.hypot(*(right - left)))
    turned = float((points[NOSE] - (left + right) / 2) @ along) / apart
    wide, gap = (float(np.hypot(*(points[a] - points[b]))) / apart for a, b in ((54, 48), (66, 62)))
    pose = int(turned > -TURNED) + int(turned > TURNED)
    return {"pose": pose, "smile": int(wide > WIDE and gap > OPEN_LIPS)}


def _variants(crop: UInt8[np.ndarray, "s s 3"], bits: SeededBits) -> Iterator[UInt8[np.ndarray, "s s 3"]]:
    numbers = (bits.words(4) >> np.uint64(11)).astype(np.float64) / (1 << 52) - 1
    across, down, zoom, turn = (numbers * [SHIFT * CROP_SIDE, SHIFT * CROP_SIDE, ZOOM, TURN]).tolist()
    middle = ((CROP_SIDE - 1) / 2, (CROP_SIDE - 1) / 2)
    matrix = cv2.getRotationMatrix2D(middle, turn, 1 + zoom) + np.array([[0, 0, across], [0, 0, down]])
    moved = cv2.warpAffine(crop, matrix, (CROP_SIDE, CROP_SIDE), borderMode=cv2.BORDER_REPLICATE)
    for one in (crop, np.asarray(moved, np.uint8)):
        yield one
        yield np.ascontiguousarray(one[:, ::-1])


def _truth(
    labels: list[dict[str, int]], values: Mapping[str, tuple[str, ...]]
) -> dict[str, Int64[np.ndarray, " n"]]:
    """Return the labels of the four variants, one variant after the other; mirroring swaps the pose.

    They are `UNKNOWN` where there are none.
    """
    truth = {}
    for name in values:
        straight = np.array([one.get(name, UNKNOWN) for one in labels], np.int64)
        mirrored = 2 - straight if name == "pose" else straight
        truth[name] = np.concatenate([straight, mirrored, straight, mirrored])
    return truth


def accuracy_metrics(
    model: AttributeModel, seen: np.ndarray, labels: list[dict[str, int]]
) -> dict[str, Json]:
    """Return the accuracy on held-out faces with 95 % confidence intervals (Wilson), in total, by group, and
    by the value itself; of each attribute over the faces whose value is known.
    """
    if not labels:
        return {}
    scores = np.maximum(seen @ model.hidden + model.hidden_bias, 0) @ model.out + model.out_bias
    metrics: dict[str, Json] = {"images": len(labels)}
    for name, columns in model.columns.items():
        told = [(row, one) for row, one in enumerate(labels) if name in one]
        if not told:
            continue
        rows = [row for row, _ in told]
        right = scores[rows, columns].argmax(axis=1) == [one[name] for _, one in told]
        metrics[name] = shares(right)
        if len(told) < len(labels):
            metrics[f"{name}, images with a label"] = len(told)
        for group in dict.fromkeys(("gender", "perceived-race", name)):
            own = np.array([one[group] for _, one in told])
            parts = {word: right[own == place] for place, word in enumerate(READ[group])}
            metrics[f"{name} by {group}"] = ", ".join(
                f"{word} {shares(hits)}" for word, hits in parts.items() if len(hits)
            )
    return metrics


def shares(right: np.ndarray) -> str:
    """Return the share of true values with its 95 % confidence interval (Wilson)."""
    ends = binomtest(int(right.sum()), len(right)).proportion_ci(method="wilson")
    return f"{right.mean():.3f} ({ends.low:.3f} to {ends.high:.3f})"


UNITS: Final = 192  # hidden units
EPOCHS: Final = 8
BATCH: Final = 128
RATE: Final = 1e-3  # learning rate at the start, from where it falls as a cosine
DECAY: Final = 1e-3  # weight decay, multiplied by the learning rate at every step
DROPPED: Final = (0.1, 0.3)  # shares of the features and of the hidden units that dropout leaves out
LEAST_SPREAD: Final = 1e-2  # added to the standard deviations by which features are divided
LEAST: Final = 40  # least number of training images
UNKNOWN: Final = -1  # the label of an image whose value of an attribute is not known

Features = Float32[np.ndarray, "n f"]
Labels = Mapping[str, Int64[np.ndarray, " n"]]


def fit_attributes(
    features: Features,
    labels: Labels,
    values: Mapping[str, tuple[str, ...]],
    *,
    card: Card,
    seed: int,
    units: int = UNITS,
    epochs: int = EPOCHS,
    step: Callable[[], None] = lambda: None,
) -> AttributeModel:
    """Return the model trained to predict `labels`, indices into `values`, from `features`.

    A label of `UNKNOWN` is left out of the loss, the sum of each attribute's mean cross entropy. `features`
    may be 16-bit floats. `step` is called after each of `epochs`. The result is a function of the arguments
    on the same machine with the same number of threads. Raises `InvalidParameter` for fewer than 40 rows.
    """
    import torch
    from torch import nn
    from torch.nn.functional import cross_entropy

    if len(features) < LEAST:
        raise InvalidParameter(
            "images", len(features), "are too few", hint=f"give {LEAST} or more with labels"
        )
    mean = features.mean(axis=0, dtype=np.float64).astype(np.float32)
    spread = np.sqrt(_variance(features, mean)) + np.float32(LEAST_SPREAD)
    columns, size = columns_of(values), min(BATCH, len(features))
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        inner = nn.Linear(features.shape[1], units)
        outer = nn.Linear(units, sum(map(len, values.values())))
        for layer in (inner, outer):
            nn.init.uniform_(layer.weight, *(sign * (3 / layer.in_features) ** 0.5 for sign in (-1, 1)))
            nn.init.zeros_(layer.bias)
        network = nn.Sequential(nn.Dropout(DROPPED[0]), inner, nn.ReLU(), nn.Dropout(DROPPED[1]), outer)
        decayed = {"params": [inner.weight, outer.weight], "weight_decay": DECAY}
        biases = {"params": [inner.bias, outer.bias], "weight_decay": 0.0}
        optimiser = torch.optim.AdamW([decayed, biases], lr=RATE)
        falling = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, epochs * (len(features) // size))
        for _ in range(epochs):
            order = torch.randperm(len(features)).numpy()
            for start in range(0, len(features) // size * size, size):
                rows = np.sort(order[start : start + size])
                scores = network(torch.from_numpy((features[rows].astype(np.float32) - mean) / spread))
                loss = torch.zeros(())
                for name, its in columns.items():
                    wanted = torch.from_numpy(labels[name][rows])
                    total = cross_entropy(scores[:, its], wanted, ignore_index=UNKNOWN, reduction="sum")
                    loss = loss + total / (wanted != UNKNOWN).sum().clamp(min=1)
                optimiser.zero_grad()
                loss.backward()
                optimiser.step()
                falling.step()
            step()
    kept = [one.detach().numpy().copy() for one in (inner.weight.T, inner.bias, outer.weight.T, outer.bias)]
    hidden = (kept[0] / spread[:, None]).astype(np.float16).astype(np.float32)  # as stored in a file
    out = kept[2].astype(np.float16).astype(np.float32)
    return AttributeModel(values, hidden, kept[1] - mean @ hidden, out, kept[3], card)


def _variance(features: Features, mean: Float32[np.ndarray, " f"]) -> Float32[np.ndarray, " f"]:
    total = np.zeros(len(mean))
    for start in range(0, len(features), 1024):
        part = features[start : start + 1024].astype(np.float32) - mean
        total += np.einsum("nf,nf->f", part, part, dtype=np.float64)
    return (total / len(features)).astype(np.float32)
