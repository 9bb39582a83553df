"""Synthetic data sets against ε: distances from real photos, and classifiers trained on them.

    python benchmarks/synthesis.py SCRATCH [choose|lfw|utkface|...]...

SCRATCH keeps the crops of photos between runs; without further words, everything is measured. The data are
those of `shared/data` beside the project.
"""

from __future__ import annotations

import json
import sys
import tarfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from dpveil.assets.defaults import default_path
from dpveil.codecs.kind import load
from dpveil.faces.attribute_model import AttributeModel, features
from dpveil.faces.gallery import Gallery
from dpveil.io import read_bytes
from dpveil.mechanisms.pixel import DPPix
from dpveil.metrics.sets import Bins, colours, sliced_wasserstein
from dpveil.noise.bits import SeededBits
from dpveil.synthesis import Plan, Simulator, evolve
from timing import RESULTS, load_note, machine

SHARED = Path(__file__).parent.parent.parent / "shared" / "data"
SIDE = 64
LEFT, TOP, ACROSS = 72, 86, 107
"""The square of the face in LFW's aligned photos of 250 × 250 pixels, by the landmarks of 30 of them."""
PICTURES, SEEDS, BINS, PROJECTIONS = 512, (1, 2), 40, 128
DELTA = "1e-6"
EPSILONS, FEW = (1, 2, 4, 8), (1, 4)
AGES = (30, 45, 60, 75)
"""Least ages of all groups of the attribute model but the first."""
NOTES = (
    f"{PICTURES} pictures in each of {len(SEEDS)} sets, {BINS} bins, δ = {DELTA} for each person; means, and"
    " from all sets the least and the most.",
    "Per photo: ε for each photo, which is less to promise than ε for all photos of a person.",
)
Row = dict[str, Any]


def crops_of(name: str, scratch: Path) -> tuple[np.ndarray, list[dict[str, Any]]]:
    """Return a crop of each photo of a data set of shards, and what is known of it."""
    kept, told = scratch / f"{name}.npz", scratch / f"{name}.json"
    if not kept.exists():
        pairs = list(photos(SHARED / name))
        np.savez(kept, crops=np.stack([crop for crop, _ in pairs]))
        told.write_text(json.dumps([facts for _, facts in pairs]), encoding="utf-8")
    return np.load(kept)["crops"], json.loads(told.read_text(encoding="utf-8"))


def photos(folder: Path) -> Iterator[tuple[np.ndarray, dict[str, Any]]]:
    for path in sorted(folder.glob("*.tar")):
        with tarfile.open(path) as shard:
            members = {member.name: member for member in shard}
            for name in sorted(name for name in members if name.endswith(".jpg")):
                photo = read_bytes(shard.extractfile(members[name]).read(), name)
                facts = json.loads(shard.extractfile(members[name[:-4] + ".json"]).read())
                face = photo.image  # UTKFace's are cropped already
                if photo.width != 128:
                    face = face[TOP : TOP + ACROSS, LEFT : LEFT + ACROSS]
                yield cv2.resize(face, (SIDE, SIDE), interpolation=cv2.INTER_AREA), facts


def points_of(name: str, scratch: Path, simulator: Simulator, crops: np.ndarray) -> np.ndarray:
    kept = scratch / f"{name}-points.npy"
    if not kept.exists():
        np.save(kept, simulator.embedded(crops))
    return np.load(kept)


def made(
    simulator: Simulator, points: np.ndarray, people: np.ndarray, seed: int, **settings: Any
) -> np.ndarray:
    plan = Plan(delta=DELTA, people=int(people.max()) + 1, codec=simulator.codec, **settings)
    return evolve(plan, simulator, points, people, SeededBits(seed)).pictures


PER_PHOTO: dict[str, Callable[[np.ndarray, float, SeededBits], np.ndarray]] = {
    "per photo: dp-pix, 16 px": lambda crops, epsilon, bits: np.stack(
        [DPPix(epsilon=epsilon, block=16).release(crop, bits=bits) for crop in crops]
    ),
    "per photo: gallery": lambda crops, epsilon, bits: smaller(
        Gallery(epsilon=epsilon).release(large(crops), bits=bits)
    ),
}
"""Releases of single photos, each ε-DP for any other photo: less to promise than for all of a person."""


class Measured:
    """Distances from a test set of real crops, as the codec can show them."""

    def __init__(self, simulator: Simulator, real: np.ndarray) -> None:
        self.simulator, self.real = simulator, colours(simulator.masked(real))
        self.bins = Bins.of(self.real, BINS)

    def row(self, name: str, sets: Sequence[np.ndarray], **more: Any) -> Row:
        values = []
        for pictures in sets:
            rows = colours(self.simulator.masked(pictures))
            far = sliced_wasserstein(rows, self.real, projections=PROJECTIONS)
            values.append((far, self.bins.compare(rows).ndb))
        table = np.array(values)
        mean, low, high = table.mean(axis=0), table.min(axis=0), table.max(axis=0)
        found = {
            "set": name,
            **more,
            "wasserstein": [round(float(one[0]), 2) for one in (mean, low, high)],
            "ndb": [round(float(one[1]), 3) for one in (mean, low, high)],
        }
        print(found, flush=True)
        return found


def shuffled(count: int) -> np.ndarray:
    return np.argsort(SeededBits(3, "order").words(count), kind="stable")


def choose(scratch: Path, simulator: Simulator) -> list[Row]:
    """Rounds, compared on people of 45 and more in UTKFace, from which the codec was learned."""
    crops, facts = crops_of("utkface_128", scratch)
    points = points_of("utkface_128", scratch, simulator, crops)
    old = np.flatnonzero([int(one["age"]) >= 45 for one in facts])
    old = old[shuffled(len(old))]
    private, test = old[:3000], old[3000:]
    measured = Measured(simulator, crops[test])
    rows = references(measured, simulator, crops[private])
    for epsilon in (1, 4):
        for rounds in (1, 2, 4):
            settings = {"epsilon": epsilon, "rounds": rounds, "pictures": PICTURES}
            sets = [made(simulator, points[private], np.arange(3000), n, **settings) for n in SEEDS]
            rows.append(measured.row("private evolution", sets, epsilon=epsilon, rounds=rounds))
    return rows


def references(measured: Measured, simulator: Simulator, private: np.ndarray) -> list[Row]:
    nobody = [simulator.pictures(simulator.draw(PICTURES, SeededBits(seed))) for seed in SEEDS]
    real = [private[shuffled(len(private))[n * PICTURES :][:PICTURES]] for n in range(len(SEEDS))]
    return [measured.row("real photos", real), measured.row("faces of nobody, no votes", nobody, epsilon=0)]


def voters(facts: Sequence[dict[str, Any]]) -> tuple[np.ndarray, np.ndarray]:
    """Return the number of each photo's person, and whether it votes: four people in five do."""
    known, numbers = np.unique([str(one["person"]) for one in facts], return_inverse=True)
    numbers = shuffled(len(known)).argsort()[numbers]
    return numbers, numbers < len(known) * 4 // 5


def lfw(scratch: Path, simulator: Simulator) -> list[Row]:
    """LFW: 4300 people with up to 4 photos vote, and the photos of about 1000 others are the test."""
    crops, facts = crops_of("lfw_wide", scratch)
    points = points_of("lfw_wide", scratch, simulator, crops)
    numbers, voting = voters(facts)
    measured = Measured(simulator, crops[~voting])
    print(f"{numbers.max() + 1} people, {int(voting.sum())} photos vote, {int((~voting).sum())} are the test")
    rows = references(measured, simulator, crops[voting])
    for epsilon in EPSILONS:
        settings = {"epsilon": epsilon, "pictures": PICTURES}
        sets = [made(simulator, points[voting], numbers[voting], seed, **settings) for seed in SEEDS]
        rows.append(measured.row("private evolution", sets, epsilon=epsilon))
    return rows


def utkface(scratch: Path, simulator: Simulator) -> list[Row]:
    """UTKFace: 5000 photos vote, each of somebody else, and 3800 are the test; 1000 train classifiers."""
    crops, facts = crops_of("utkface_128", scratch)
    points = points_of("utkface_128", scratch, simulator, crops)
    private = shuffled(len(crops) * 4 // 5)[:5000]
    test = np.arange(len(crops) - len(crops) // 5, len(crops))  # what the attribute model did not learn from
    measured, count = Measured(simulator, crops[test]), 1000
    classified = Classified(simulator, crops[test], [facts[n] for n in test])
    labels = Classified.labels([facts[n] for n in private[:count]])
    rows = references(measured, simulator, crops[private])
    real = simulator.masked(crops[private[:count]])
    rows.append(classified.row("real photos, their labels", [(real, labels)]))
    rows.append(classified.row("real photos, labels that the model reads", [(real, classified.read(real))]))
    nobody = [simulator.pictures(simulator.draw(count, SeededBits(seed))) for seed in SEEDS]
    labelled = [(one, classified.read(one)) for one in nobody]
    rows.append(classified.row("faces of nobody, no votes", labelled, epsilon=0))
    for epsilon in FEW:
        settings = {"epsilon": epsilon, "pictures": count}
        sets = [made(simulator, points[private], np.arange(5000), seed, **settings) for seed in SEEDS]
        some = [one[shuffled(count)[:PICTURES]] for one in sets]
        rows.append(measured.row("private evolution", some, epsilon=epsilon))
        labelled = [(one, classified.read(one)) for one in sets]
        rows.append(classified.row("private evolution", labelled, epsilon=epsilon))
    return rows


def lfw_per_photo(scratch: Path, simulator: Simulator) -> list[Row]:
    """The same people's photos, released one by one."""
    crops, facts = crops_of("lfw_wide", scratch)
    _, voting = voters(facts)
    measured = Measured(simulator, crops[~voting])
    some = crops[voting][shuffled(int(voting.sum()))[:PICTURES]]
    return [
        measured.row(name, [release(some, epsilon, SeededBits(seed)) for seed in SEEDS], epsilon=epsilon)
        for name, release in PER_PHOTO.items()
        for epsilon in EPSILONS
    ]


def utkface_per_photo(scratch: Path, simulator: Simulator) -> list[Row]:
    """A thousand of the same photos, released one by one, with their labels, which nothing protects."""
    crops, facts = crops_of("utkface_128", scratch)
    private = shuffled(len(crops) * 4 // 5)[:1000]
    test = np.arange(len(crops) - len(crops) // 5, len(crops))
    measured = Measured(simulator, crops[test])
    classified = Classified(simulator, crops[test], [facts[n] for n in test])
    labels, rows = Classified.labels([facts[n] for n in private]), list[Row]()
    for name, release in PER_PHOTO.items():
        for epsilon in FEW:
            pictures = simulator.masked(release(crops[private], epsilon, SeededBits(1)))
            rows.append(measured.row(name, [pictures[:PICTURES]], epsilon=epsilon))
            rows.append(classified.row(name, [(pictures, labels)], epsilon=epsilon))
    return rows


class Classified:
    """Logistic regressions on gradients and colours, tested on real photos with their labels."""

    def __init__(self, simulator: Simulator, crops: np.ndarray, facts: Sequence[dict[str, Any]]) -> None:
        self.model = AttributeModel.load(default_path("attributes"))
        self.rows, self.true = features(large(simulator.masked(crops))), self.labels(facts)

    @staticmethod
    def labels(facts: Sequence[dict[str, Any]]) -> dict[str, np.ndarray]:
        gender = np.array([["male", "female"].index(one["gender"]) for one in facts])
        return {"gender": gender, "age": np.searchsorted(AGES, [int(one["age"]) for one in facts], "right")}

    def read(self, pictures: np.ndarray) -> dict[str, np.ndarray]:
        """Return what the public attribute model reads in pictures, which costs nothing."""
        found = self.model.read(large(pictures))
        return {name: found[name] for name in ("gender", "age")}

    def row(self, name: str, sets: Sequence[tuple[np.ndarray, dict[str, np.ndarray]]], **more: Any) -> Row:
        values: dict[str, list[float]] = {"gender": [], "age": []}
        for pictures, labels in sets:
            scaler = StandardScaler().fit(rows := features(large(pictures)))
            for kind, own in values.items():
                learned = LogisticRegression(C=1e-3, max_iter=200).fit(scaler.transform(rows), labels[kind])
                own.append(float((learned.predict(scaler.transform(self.rows)) == self.true[kind]).mean()))
        told = {
            f"accuracy of {kind}": [round(float(one), 3) for one in (np.mean(own), min(own), max(own))]
            for kind, own in values.items()
        }
        found = {"set": name, **more, **told}
        print(found, flush=True)
        return found


def large(pictures: np.ndarray) -> np.ndarray:
    return np.stack([cv2.resize(one, (128, 128), interpolation=cv2.INTER_CUBIC) for one in pictures])


def smaller(pictures: np.ndarray) -> np.ndarray:
    return np.stack([cv2.resize(one, (SIDE, SIDE), interpolation=cv2.INTER_AREA) for one in pictures])


PARTS = {
    "choose": choose,
    "lfw": lfw,
    "lfw per photo": lfw_per_photo,
    "utkface": utkface,
    "utkface per photo": utkface_per_photo,
}


def main(scratch: Path, parts: Sequence[str]) -> None:
    scratch.mkdir(parents=True, exist_ok=True)
    cv2.setNumThreads(1)
    simulator = Simulator(load(default_path("gan")))
    path = RESULTS / "synthesis.json"
    kept = json.loads(path.read_text(encoding="utf-8"))["rows"] if path.exists() else []
    for name in parts or PARTS:
        found = [{"data": name, **row} for row in PARTS[name](scratch, simulator)]
        kept = [row for row in kept if row["data"] != name] + found
        record = {
            "benchmark": "synthesis",
            "machine": machine(),
            "rows": kept,
            "notes": [*NOTES, load_note()],
        }
        path.write_text(json.dumps(record, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
