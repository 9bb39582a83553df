"""What codecs keep and give away at pure budgets and metric ones, on faces that none was trained on.

Portraits of LFW, 128 × 128: of each person `KNOWN` photos that the attacker has and `PROBES` that are
released, all different photos, aligned by their landmarks. Each crop is encoded, its code drawn anew by the
mechanism, decoded, and resized to 128 × 128. "named" is the strongest of these attackers: the nearest mean of
dlib's embeddings of originals; of releases (the parrot attack); and the parrot attack on the codes of
releases. A release without sure landmarks counts as not named. "face found": landmarks are sure. "gender":
dpveil's attribute model reads of the release what it reads of the original; "told" tells
the decoder a gender after randomised response. "apart" is the sliced Wasserstein
distance between colours of releases and of other people's originals, in grey levels, over 512 projections of
pictures of 16 × 16. Intervals are 95 %, by bootstrap over people.

`--codec NAME=FILE`, several times, names the files; `pca` is that of dpveil-faces. `gallery` and `attributes`
release the same crops by the methods of that name, without a codec.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import cv2
import numpy as np

from dpveil import read
from dpveil.assets.defaults import default_path
from dpveil.attacks import identify
from dpveil.attacks.parrot import parrot
from dpveil.attacks.resampling import by_person
from dpveil.catalogue import build
from dpveil.codecs import Codec, load
from dpveil.errors import DPVeilError, RegionError
from dpveil.faces import Latent
from dpveil.faces.attribute_model import AttributeModel
from dpveil.faces.embedding import LENGTH, aligned, embedder
from dpveil.faces.geometry import Frame, place
from dpveil.faces.geometry.landmarks import predictor
from dpveil.faces.geometry.place import check
from dpveil.metrics.sets import colours, sliced_wasserstein
from dpveil.noise.bits import SeededBits
from dpveil.regions import Faces
from dpveil_train.landmarks import _face
from timing import report

SHARED = Path(__file__).parent.parent.parent / "shared" / "data"
KNOWN, PROBES = 4, 2
SIDE = 128
BUDGETS = {
    "pure": [{"epsilon": e} for e in (1, 10, 30, 100, 300, 1000)],
    "told": [{"epsilon": 1, "attributes": f"gender={e}"} for e in (1, 2, 4, 12)],
    "metric": [
        {"epsilon": e, "mechanism": "pca-basis", "metric": "leading-mean"} for e in (30, 100, 300, 1000)
    ],
}
METHODS = (
    ("gallery", {"epsilon": 1}),
    ("gallery", {"epsilon": 8}),
    ("attributes", {"attributes": "none"}),
    ("attributes", {"attributes": "gender=4"}),
)


@dataclass(frozen=True)
class Made:
    """Released crops, what released them, and their codes if a codec did."""

    name: str
    kind: str
    budget: str
    crops: np.ndarray
    codes: np.ndarray | None


def faces(step: int) -> tuple[np.ndarray, list[str], np.ndarray]:
    """Return aligned crops, the person of each, and whether the attacker has it."""
    finder, crops, people, known = Faces(margin=0), [], [], []
    for person in sorted(SHARED.glob("lfw10_128/*"))[::step]:
        own = []
        for path in sorted(person.iterdir()):
            photo = read(path)
            boxes = [found.box for found in finder.detect(photo)]
            try:
                box = max(boxes, key=lambda one: one.w * one.h, default=None)
                if box is not None:
                    own.append(place(photo, box, frame=Frame(SIDE)).crop(photo))
            except RegionError:
                continue
            if len(own) == KNOWN + PROBES:
                break
        if len(own) == KNOWN + PROBES:
            crops += own
            people += [person.name] * len(own)
            known += [True] * KNOWN + [False] * PROBES
    return np.stack(crops), people, np.array(known)


def sized(crops: np.ndarray, side: int) -> np.ndarray:
    """Return crops of another side."""
    if crops.shape[1] == side:
        return crops
    way = cv2.INTER_AREA if side < crops.shape[1] else cv2.INTER_CUBIC
    return np.stack([cv2.resize(crop, (side, side), interpolation=way) for crop in crops])


def looked(crops: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the embedding of each crop, NaN where landmarks are not sure, and whether they are."""
    box, out = _face(Frame(SIDE)), np.full((len(crops), LENGTH), np.nan)
    for row, crop in enumerate(crops):
        try:
            check(predictor().near(crop, box))
            out[row] = embedder()(aligned(crop, box)[None])[0]
        except (RegionError, TypeError):
            continue
    return out, np.isfinite(out).all(axis=1)


def apart(one: np.ndarray, two: np.ndarray) -> float:
    """Return the sliced Wasserstein distance of two sets of pictures, in grey levels."""
    return sliced_wasserstein(colours(one), colours(two))


def share(right: np.ndarray, people: Sequence[str]) -> str:
    """Return a mean with its interval."""
    low, high = by_person(right.astype(np.float64), people, draws=2000, level=0.95, seed=0)
    return f"{right.mean():.3f} [{low:.3f}, {high:.3f}]"


def by_codec(name: str, codec: Codec, crops: np.ndarray) -> Iterator[Made]:
    """Yield a release at each budget, with the codes of what is released."""
    small = sized(crops, codec.canvas[0])
    cases = [("none", {}), *((kind, given) for kind, many in BUDGETS.items() for given in many)]
    for kind, given in cases:
        try:
            bits = SeededBits(7, f"{name} {given}")
            made = (
                Latent(codec=codec, **given).release(small, bits=bits)
                if given
                else codec.decode(codec.encode(small))
            )
        except DPVeilError as error:
            print(name, given, error)
            continue
        budget = " + ".join(str(given[n]) for n in ("epsilon", "attributes") if n in given) or "∞"
        yield Made(f"{name}, {codec.length} coordinates", kind, budget, made, codec.encode(made))


def by_method(crops: np.ndarray) -> Iterator[Made]:
    """Yield releases by the methods that need no codec."""
    for name, given in METHODS:
        method = build(name, given)
        made = method.release(crops, bits=SeededBits(7, f"{name} {given}"))
        yield Made(name, "pure", ", ".join(map(str, given.values())), made, None)


def rows_of(releases: Iterable[Made], crops: np.ndarray, people: list[str], known: np.ndarray) -> list[dict]:
    """Return a row for each release."""
    probes = [person for person, has in zip(people, known, strict=True) if not has]
    others = [person for person, has in zip(people, known, strict=True) if has]
    clean, _ = looked(crops)
    model = AttributeModel.load(default_path("attributes"))
    gender, half = model.read(crops)["gender"], len(set(people)) // 2
    first = np.array([person in sorted(set(people))[:half] for person in people])
    mine, theirs = ~known & first, ~known & ~first
    rows = []
    for made in releases:
        shown = sized(made.crops, SIDE)
        seen, found = looked(shown)
        attacks = {
            "originals": identify(clean[known], others, seen[~known], probes),
            "releases": parrot(seen[known], others, seen[~known], probes),
        }
        if made.codes is not None:
            attacks["codes"] = parrot(made.codes[known], others, made.codes[~known], probes)
        best = max(attacks, key=lambda one: attacks[one].rate)
        won = attacks[best]
        low, high = won.interval()
        rows.append(
            {
                "codec": made.name,
                "guarantee": made.kind,
                "epsilon": made.budget,
                "named": f"{won.rate:.3f} [{low:.3f}, {high:.3f}]: {best}",
                "face found": share(found[~known], probes),
                "gender": share((model.read(shown)["gender"] == gender)[~known], probes),
                "apart": round(apart(shown[mine], crops[theirs][: mine.sum()]), 2),
                "chance": round(won.chance, 4),
            }
        )
        print(rows[-1], flush=True)
    return rows


def main() -> None:
    """Run it for every codec."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--codec", action="append", default=[])
    parser.add_argument("--step", type=int, default=2)
    parser.add_argument("--name", default="codec_budgets")
    asked = parser.parse_args()
    files = {"pca": default_path("pca")} | {n: Path(f) for n, _, f in (c.partition("=") for c in asked.codec)}
    crops, people, known = faces(asked.step)
    print(len(crops), "crops of", len(set(people)), "people")
    every = chain(*(by_codec(name, load(file), crops) for name, file in files.items()), by_method(crops))
    rows = rows_of(every, crops, people, known)
    report(asked.name, rows)


if __name__ == "__main__":
    main()
