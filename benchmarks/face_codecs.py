"""The codecs of dpveil-faces at pure budgets, and private codes as they are drawn beside likely ones.

`python benchmarks/face_codecs.py budgets` keeps `results/codec_files.json`. Portraits of LFW, whom no
codec was trained on, 128 × 128: of each person `KNOWN` photos that the attacker has and `PROBES` that are released, all
different photos, aligned by their landmarks. "named" is the strongest of three attackers: the nearest mean of
dlib's embeddings of originals; of releases (the parrot attack); and the parrot attack on codes of releases. A
release without sure landmarks counts as not named. "face found": landmarks are sure. "apart" is the sliced
Wasserstein distance of levels at 16 × 16 pixels to originals of other people, in grey levels. Intervals are
95 %, by bootstrap over people. `gallery` releases the same crops by the method of that name, without a codec.

`python benchmarks/face_codecs.py codes` keeps `results/latent_codes.json`. Held-out faces of UTKFace are
encoded, released by each mechanism, and decoded from the private code (snapped) and from its likely code, both of one
draw, by `NETWORKS`. "SSIM" is to the same face decoded without noise, "Fréchet" the squared Fréchet distance
to originals of other people on the hidden units of dpveil's attribute model, which is no FID; all pictures
are seen within the public ellipse, grey beyond.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import cv2
import numpy as np

from dpveil import read
from dpveil.assets.store import default_path
from dpveil.attacks import identify, parrot
from dpveil.attacks.resampling import by_person
from dpveil.catalogue import build
from dpveil.codecs import Codec, load
from dpveil.codecs.neural import ellipse_mask
from dpveil.errors import DPVeilError, RegionError
from dpveil.faces import Latent
from dpveil.faces.attribute_model import AttributeModel
from dpveil.faces.embedding import LENGTH, aligned, embedder
from dpveil.faces.geometry import Frame, place
from dpveil.faces.geometry.landmarks import predictor
from dpveil.faces.geometry.place import check
from dpveil.faces.portrait import centred
from dpveil.mechanisms.latent import TABLE
from dpveil.metrics import ssim
from dpveil.metrics.picture_sets import colours, frechet, sliced_wasserstein
from dpveil.noise.bits import SeededBits
from dpveil.regions import Faces
from dpveil_train.crops import photos
from dpveil_train.landmarks import _face
from timing import report

SHARED = Path(__file__).parent.parent.parent / "shared" / "data"
FILES = ("pca", "dictionary", "aam", "gan", "upconv")
NETWORKS = ("gan",)
SIDE, SMALL = 128, 64
FACE = _face(Frame(SIDE))
PEOPLE, KNOWN, PROBES = 40, 4, 2
PURE = (1, 100, 300, 1000)
BUDGETS = (10, 200, 1000)
FACES = 80
EVERY = 20
"""Networks hold out one face of UTKFace in so many, from the first on."""


def sized(crops: np.ndarray, side: int) -> np.ndarray:
    """Return crops of another side."""
    if crops.shape[1] == side:
        return crops
    way = cv2.INTER_AREA if side < crops.shape[1] else cv2.INTER_CUBIC
    return np.stack([cv2.resize(crop, (side, side), interpolation=way) for crop in crops])


def found(crops: np.ndarray) -> np.ndarray:
    """Return for which crops landmarks are sure."""
    out = np.zeros(len(crops), np.bool_)
    for row, crop in enumerate(sized(crops, SIDE)):
        try:
            check(predictor().near(crop, FACE))
            out[row] = True
        except RegionError:
            continue
    return out


def embedded(crops: np.ndarray, sure: np.ndarray) -> np.ndarray:
    """Return dlib's embedding of each crop, NaN where landmarks are not sure."""
    out = np.full((len(crops), LENGTH), np.nan)
    for row in np.flatnonzero(sure):
        out[row] = embedder()(aligned(sized(crops[row : row + 1], SIDE)[0], FACE)[None])[0]
    return out


def share(right: np.ndarray, people: list[str]) -> list[float]:
    """Return a mean with its interval."""
    low, high = by_person(right.astype(np.float64), people, draws=2000, level=0.95, seed=0)
    return [round(float(one), 3) for one in (right.mean(), low, high)]


def portraits() -> tuple[np.ndarray, list[str], np.ndarray]:
    """Return aligned crops of LFW, the person of each, and whether the attacker has it."""
    finder, crops, people = Faces(margin=0), list[np.ndarray](), list[str]()
    for person in sorted(SHARED.glob("lfw10_128/*"))[::2]:
        own = []
        for path in sorted(person.iterdir()):
            photo = read(path)
            box = max((one.box for one in finder.detect(photo)), key=lambda one: one.w * one.h, default=None)
            try:
                own += [] if box is None else [place(photo, box, frame=Frame(SIDE)).crop(photo)]
            except RegionError:
                continue
            if len(own) == KNOWN + PROBES:
                crops, people = crops + own, people + [person.name] * len(own)
                break
        if len(people) == PEOPLE * (KNOWN + PROBES):
            break
    return np.stack(crops), people, np.arange(len(people)) % (KNOWN + PROBES) < KNOWN


def budgets() -> None:
    """Measure the codecs of dpveil-faces, and the gallery, at pure budgets."""
    crops, people, known = portraits()
    clean = embedded(crops, found(crops))
    others, probes = (np.array(people)[rows].tolist() for rows in (known, ~known))
    first = np.array([person in sorted(set(people))[: PEOPLE // 2] for person in people])
    rows = []
    for name, epsilon, made, codes in releases(crops):
        sure = found(made)
        seen = embedded(made, sure)
        attacks = {
            "originals": identify(clean[known], others, seen[~known], probes),
            "releases": parrot(seen[known], others, seen[~known], probes),
        }
        if codes is not None:
            attacks["codes"] = parrot(codes[known], others, codes[~known], probes)
        best = max(attacks, key=lambda one: attacks[one].rate)
        won, mine = attacks[best], sized(made, SIDE)[~known & first]
        row = {
            "codec": name,
            "epsilon": epsilon,
            "named": [round(float(one), 3) for one in (won.rate, *won.interval())],
            "by": best,
            "face found": share(sure[~known], probes),
            "apart": round(sliced_wasserstein(colours(mine), colours(crops[~known & ~first])), 1),
            "chance": round(won.chance, 4),
        }
        print(row, flush=True)
        rows.append(row)
    report("codec_files", rows)


def releases(crops: np.ndarray) -> Iterator[tuple[str, str, np.ndarray, np.ndarray | None]]:
    """Yield what released crops, its budget, the releases, and their codes if a codec did."""
    for name in FILES:
        codec = load(default_path(name))
        small = sized(crops, codec.canvas[0])
        made = codec.decode(codec.encode(small))
        yield name, "none", made, codec.encode(made)
        for epsilon in PURE:
            bits = SeededBits(7, f"{name} {epsilon}")
            made = Latent(codec=codec, epsilon=epsilon).release(small, bits=bits)
            yield name, str(epsilon), made, codec.encode(made)
    for epsilon in (1, 8):
        made = build("gallery", {"epsilon": epsilon}).release(crops, bits=SeededBits(7))
        yield "gallery", str(epsilon), made, None


def codes() -> None:
    """Measure private codes as they are drawn, and likely ones, by mechanism and budget."""
    held_out = islice(photos(sorted((SHARED / "utkface_128").glob("*.tar"))), 0, 2 * FACES * EVERY, EVERY)
    crops = np.stack([centred(one, (SIDE, SIDE, 3)) for one in held_out])
    model = AttributeModel.load(default_path("attributes"))
    beyond = ~ellipse_mask(SMALL)

    def within(pictures: np.ndarray) -> np.ndarray:
        shown = sized(pictures, SMALL).copy()
        shown[:, beyond] = 128
        return shown

    real = within(crops[FACES:])
    units = model.units(sized(real, SIDE))
    rows = []
    for name in NETWORKS:
        codec = load(default_path(name))
        small = sized(crops[:FACES], codec.canvas[0])
        still = within(codec.decode(codec.encode(small)))
        for mechanism, epsilon, kind, made in pairs(codec, small):
            shown = within(made)
            alike = [ssim(a, b, data_range=255) for a, b in zip(still, shown, strict=True)]
            row = {
                "codec": name,
                "mechanism": mechanism,
                "budget": epsilon,
                "codes": kind,
                "SSIM": share(np.array(alike), [str(n) for n in range(FACES)]),
                "found": round(float(found(shown).mean()), 3),
                "apart": round(sliced_wasserstein(colours(shown), colours(real)), 1),
                "Fréchet": round(frechet(model.units(sized(shown, SIDE)), units)),
            }
            print(row, flush=True)
            rows.append(row)
    report("latent_codes", rows)


def pairs(codec: Codec, crops: np.ndarray) -> Iterator[tuple[str, str, str, np.ndarray]]:
    """Yield a mechanism, its budget, which codes are decoded, and the releases: both of one draw."""
    for mechanism, kind in TABLE.items():
        for budget in BUDGETS:
            given = {"mechanism": mechanism, "metric": kind.metric, "epsilon": budget}
            if kind.kind == "zcdp":
                given["rho"] = given.pop("epsilon")
            if mechanism == "pca-basis":
                given["ratio"] = "0.9"  # that of Croft's thesis
            for one in kind.codes:
                try:
                    method = Latent(codec=codec, codes=one, **given)
                    bits = SeededBits(7, f"{mechanism} {budget}")
                    yield mechanism, str(budget), one, method.release(crops, bits=bits)
                except DPVeilError as error:
                    print(codec.name, given, error)


if __name__ == "__main__":
    {"budgets": budgets, "codes": codes}[sys.argv[1]]()
