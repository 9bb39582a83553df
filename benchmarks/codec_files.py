"""What a codec of dpveil-faces keeps and gives away at pure budgets, on faces that none was trained on.

Portraits of LFW, 128 × 128: of each person `KNOWN` photos that the attacker has and `PROBES` that are
released, all different photos, aligned by their landmarks. "named" is the strongest of three attackers: the
nearest mean of dlib's embeddings of originals; of releases (the parrot attack); and the parrot attack on
codes of releases. A release without sure landmarks counts as not named. "face found": landmarks are sure.
"apart" is the sliced Wasserstein distance of levels at 16 × 16 pixels to originals of other people, in grey
levels. Intervals are 95 %, by bootstrap over people. `gallery` releases the same crops by the method of that
name, without a codec.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dpveil import read
from dpveil.assets.store import default_path
from dpveil.attacks import identify, parrot
from dpveil.catalogue import build
from dpveil.codecs import load
from dpveil.errors import RegionError
from dpveil.faces import Latent
from dpveil.faces.embedding import LENGTH, aligned, embedder
from dpveil.faces.geometry import Frame, place
from dpveil.metrics.picture_sets import colours, sliced_wasserstein
from dpveil.noise.bits import SeededBits
from dpveil.regions import Faces
from latent_codes import FACE, SHARED, SIDE, found, share, sized
from timing import report

FILES = ("dictionary",)
PEOPLE, KNOWN, PROBES = 40, 4, 2
PURE = (1, 100, 300, 1000)


def embedded(crops: np.ndarray, sure: np.ndarray) -> np.ndarray:
    """Return dlib's embedding of each crop, NaN where landmarks are not sure."""
    out = np.full((len(crops), LENGTH), np.nan)
    for row in np.flatnonzero(sure):
        out[row] = embedder()(aligned(sized(crops[row : row + 1], SIDE)[0], FACE)[None])[0]
    return out


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


def main() -> None:
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


if __name__ == "__main__":
    main()
