"""How real decoded faces are together, by measures that need no borrowed network, and for whom.

UTKFace: what is released are the held-out faces (every 20th, on which no codec here was trained), what they
are compared with are those in training. All pictures, real ones too, take one path: 64 × 64 pixels within the
ellipse that every codec shows, grey beyond. The first row has the held-out faces themselves: no release can
do better, and 0 is out of reach for sets of this size.

- `apart`: sliced Wasserstein distance of levels at 16 × 16 pixels, in grey levels
- `bins different`: share of 100 bins of the training faces that are statistically different (NDB/K, 0.05 by
  chance), and the Jensen-Shannon `divergence` in nats
- `Fréchet`: squared Fréchet distance on the hidden units of dpveil's attribute model, which is no FID
- `told`: the best classifier that tells them from the originals, by everything and by low frequencies alone;
  half of the faces train it (chance 0.5)
- `found`: sure landmarks; `gender`: the attribute model reads what it reads of the original
- `near training`: of 100 pictures, the share nearer to a face in training than all but 5 % of held-out faces
  are, by dlib's embeddings, and the least distance (`nearest`); people are the same below 0.6

Intervals are 95 %, by bootstrap over faces; for `apart` 1.96 deviations over half samples. `--codec
NAME=FILE`, several times, names further codecs; `--sheet FOLDER` draws pictures beside their nearest training
faces, for eyes only: they show people in the training set.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np

from codec_budgets import sized
from dpveil.assets.defaults import default_path
from dpveil.attacks import real_or_made
from dpveil.attacks.resampling import by_person
from dpveil.codecs import load
from dpveil.codecs.neural import shown
from dpveil.errors import DPVeilError, RegionError
from dpveil.faces import Gallery, Latent
from dpveil.faces.attribute_model import VALUES, AttributeModel
from dpveil.faces.embedding import embedder, of_crop
from dpveil.faces.geometry import Frame
from dpveil.faces.geometry.landmarks import predictor
from dpveil.faces.geometry.place import check
from dpveil.faces.portrait import centred
from dpveil.metrics.sets import Bins, colours, frechet, memorised, sliced_wasserstein
from dpveil.noise.bits import SeededBits
from dpveil_train.crops import EVERY
from dpveil_train.labelled import Labelled, labelled
from dpveil_train.landmarks import _face
from heads_classifier import Crop, seen
from timing import report

SHARDS = Path(__file__).parent.parent.parent / "shared" / "data" / "utkface_128"
SIDE, SMALL, BESIDE = 128, 64, 100
HALVES = 20
BUDGETS = (1.0, 10.0, 100.0, 1000.0)
GROUPS = ("gender", "age", "perceived-race")
FEW = 40
"""Groups of fewer faces are left out."""

Crops = np.ndarray
Release = Callable[[Crops], Crops]


@dataclass(frozen=True, eq=False)
class Known:
    """What is computed once: held-out crops with labels, and what the measures need of training faces."""

    held_out: Crops
    labels: dict[str, np.ndarray]
    real: Crops
    training: Crops
    training_labels: dict[str, np.ndarray]
    bins: Bins
    units: np.ndarray
    looks: dict[str, np.ndarray]
    embeddings: np.ndarray
    strangers: np.ndarray
    model: AttributeModel


def path_of_all(crops: Crops) -> Crops:
    """Return pictures as every measure sees them: small, within the public ellipse."""
    small = sized(crops, SMALL).copy()
    small[:, ~shown(SMALL)] = 128
    return small


def embedded(crops: Crops) -> np.ndarray:
    """Return dlib's embedding of each."""
    frame = Frame(SIDE)
    chips = [of_crop(crop, frame) for crop in sized(crops, SIDE)]
    return np.concatenate([embedder()(np.stack(chips[i : i + 64])) for i in range(0, len(chips), 64)])


def seen_by_classifiers(crops: Crops) -> dict[str, np.ndarray]:
    """Return the features by which classifiers tell pictures apart."""
    every = [seen(Crop(crop, shown(SMALL))) for crop in crops]
    return {name: np.stack([one[name] for one in every]) for name in ("everything", "low-pass")}


def told(
    real: dict[str, np.ndarray], made: dict[str, np.ndarray], names: list[str]
) -> dict[str, list[float]]:
    """Return the accuracy of a classifier of each kind of features, with its interval."""
    out = {}
    for name, rows in real.items():
        one = real_or_made(rows[: len(names)], made[name], names)
        out[f"told by {name}"] = _rounded(one.rate, *one.interval())
    return out


def share(right: np.ndarray, names: list[str]) -> list[float]:
    """Return a mean with its interval."""
    found = right.astype(np.float64)
    return _rounded(found.mean(), *by_person(found, names, draws=2000, level=0.95, seed=0))


def _rounded(*numbers: float) -> list[float]:
    return [round(float(one), 3) for one in numbers]


def known(most: int) -> Known:
    """Read the faces; `most` limits those in training."""
    crops, labels = [], []
    for one in labelled(sorted(SHARDS.glob("*.tar"))):
        if isinstance(one, Labelled):
            crops.append(centred(one.photo, (SIDE, SIDE, 3)))
            labels.append([one.labels[name] for name in GROUPS])
    held = np.arange(len(crops)) % EVERY == 0
    every, values = np.stack(crops), dict(zip(GROUPS, np.array(labels).T, strict=True))
    rows = np.flatnonzero(~held)[: most or None]
    training, real = path_of_all(every[rows]), path_of_all(every[held])
    model = AttributeModel.load(default_path("attributes"))
    return Known(
        every[held],
        {name: column[held] for name, column in values.items()},
        real,
        training,
        {name: column[rows] for name, column in values.items()},
        Bins.of(colours(training)),
        model.units(sized(training, SIDE)),
        seen_by_classifiers(real),
        embedded(training),
        embedded(real),
        model,
    )


def found(crops: Crops) -> np.ndarray:
    """Return for which crops landmarks are sure."""
    box, out = _face(Frame(SIDE)), np.zeros(len(crops))
    for row, crop in enumerate(sized(crops, SIDE)):
        try:
            check(predictor().near(crop, box))
            out[row] = 1
        except RegionError:
            continue
    return out


def apart(made: Crops, real: Crops) -> list[float]:
    """Return the sliced Wasserstein distance and its interval."""
    rows, others = colours(made), colours(real)
    words = SeededBits(5, "halves").words(HALVES * len(rows)).reshape(HALVES, -1)
    halves = [np.argsort(one, kind="stable")[: len(rows) // 2] for one in words]
    off = 1.96 * np.std([sliced_wasserstein(rows[half], others) for half in halves])
    whole = sliced_wasserstein(rows, others)
    return _rounded(whole, whole - off, whole + off)


def row_of(name: str, budget: object, made: Crops, know: Known, sheet: Path | None) -> dict[str, object]:
    """Return all measures of one set of pictures."""
    names = [f"{n:04}" for n in range(len(made))]
    rows, bins = colours(made), know.bins.compare(colours(made))
    nearest = memorised(embedded(made[:BESIDE]), know.embeddings, know.strangers)
    read = [know.model.read(sized(crops, SIDE))["gender"] for crops in (know.real[: len(made)], made)]
    if sheet:
        pairs = [made[:BESIDE], know.training[nearest.rows]]
        bands = [np.concatenate(list(one[i : i + 20]), 1) for i in range(0, BESIDE, 20) for one in pairs]
        cv2.imwrite(str(sheet / f"{name} {budget}.png".replace(" ", "-")), np.concatenate(bands)[..., ::-1])
    return {
        "pictures": name,
        "epsilon": budget,
        "apart": apart(made, know.training),
        "bins different": round(bins.ndb, 2),
        "divergence": round(bins.divergence, 3),
        "Fréchet": round(frechet(know.model.units(sized(made, SIDE)), know.units), 1),
        **told(know.looks, seen_by_classifiers(made), names),
        "found": share(found(made), names),
        "gender": share(read[0] == read[1], names),
        "near training": round(nearest.share, 2),
        "nearest": round(nearest.distances.min(), 2),
        "samples": len(rows),
    }


def groups_of(name: str, budget: object, made: Crops, know: Known) -> Iterator[dict[str, object]]:
    """Yield a row for each group: how far its pictures are from its faces in training."""
    seen_there, read = found(made), know.model.read(sized(made, SIDE))["gender"]
    kept = know.model.read(sized(know.real, SIDE))["gender"] == read
    for attribute in GROUPS:
        for number, value in enumerate(VALUES[attribute]):
            own = know.labels[attribute] == number
            if own.sum() < FEW:
                continue
            theirs = know.training[know.training_labels[attribute] == number]
            names = [str(n) for n in np.flatnonzero(own)]
            yield {
                "pictures": name,
                "epsilon": budget,
                "group": f"{attribute}: {value}",
                "apart": apart(made[own], theirs),
                "of real ones": apart(know.real[own], theirs),
                "found": share(seen_there[own], names),
                "gender": share(kept[own].astype(float), names),
                "samples": int(own.sum()),
            }


def releases(files: dict[str, Path]) -> Iterator[tuple[str, object, Release]]:
    """Yield what is measured: a name, a budget, and what makes pictures of crops."""
    yield "real faces", "-", lambda crops: crops
    for budget in BUDGETS[:2]:
        method = Gallery(epsilon=budget)
        yield "gallery", budget, lambda crops, one=method: one.release(crops, bits=SeededBits(1))
    for name, file in files.items():
        codec = load(file)
        side = codec.canvas[0]
        yield name, "∞", lambda crops, c=codec, s=side: c.decode(c.encode(sized(crops, s)))
        for budget in BUDGETS:
            bits = SeededBits(7, f"{name} {budget}")
            made = Latent(codec=codec, epsilon=budget)
            yield name, budget, lambda crops, m=made, b=bits, s=side: m.release(sized(crops, s), bits=b)
        if hasattr(codec, "samples"):
            yield f"{name}, samples", "-", lambda crops, c=codec: c.samples(len(crops), SeededBits(3))


def main() -> None:
    """Measure every codec."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--codec", action="append", default=[])
    parser.add_argument("--faces", type=int, default=0, help="most held-out faces; all by default")
    parser.add_argument("--training", type=int, default=0, help="most faces in training; all by default")
    parser.add_argument("--sheet", type=Path)
    parser.add_argument("--name", default="decoded_quality")
    asked = parser.parse_args()
    files = {name: default_path(name) for name in ("pca", "gan")}
    files |= {name: Path(file) for name, _, file in (one.partition("=") for one in asked.codec)}
    know = known(asked.training)
    rows, groups = [], []
    for name, budget, release in releases(files):
        try:
            made = path_of_all(release(know.held_out[: asked.faces or None]))
        except DPVeilError as error:
            print(name, budget, error)
            continue
        rows.append(row_of(name, budget, made, know, asked.sheet))
        print(rows[-1], flush=True)
        if len(made) == len(know.real) and budget in ("-", 1.0):
            groups += groups_of(name, budget, made, know)
    report(asked.name, rows)
    if groups:
        report(f"{asked.name}_groups", groups)


if __name__ == "__main__":
    main()
