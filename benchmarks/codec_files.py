"""How real faces of codecs of dpveil-faces are at pure budgets, of people whom none was trained on.

`PROBES` portraits of each of `PEOPLE` people of LFW, 128 × 128, aligned by their landmarks, are encoded,
released by `box-truncated-laplace`, and decoded. "face found": landmarks are sure, with 95 % intervals by
bootstrap over people. "apart" is the sliced Wasserstein distance of levels at 16 × 16 pixels to originals of
other people, in grey levels: of releases of half of the people to photos of the others. `gallery` releases
the same crops by the method of that name, without a codec.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dpveil import read
from dpveil.assets.trained_files import default_path
from dpveil.catalogue import build
from dpveil.codecs import load
from dpveil.errors import RegionError
from dpveil.faces import Latent
from dpveil.faces.geometry.align import Frame
from dpveil.faces.geometry.place import place
from dpveil.noise.bits import SeededBits
from dpveil.regions import Faces
from dpveil_research.picture_sets import colours, sliced_wasserstein
from latent_codes import SHARED, SIDE, found, share, sized
from timing import report

FILES = ("dictionary", "aam", "upconv")
PEOPLE, PROBES = 40, 2
PURE = (1, 100, 300, 1000)


def portraits() -> tuple[np.ndarray, list[str]]:
    """Return aligned crops of LFW, and the person of each."""
    finder, crops, people = Faces(margin=0), list[np.ndarray](), list[str]()
    for person in sorted(SHARED.glob("lfw10_128/*"))[::2][:PEOPLE]:
        own = []
        for path in sorted(person.iterdir()):
            photo = read(path)
            box = max((one.box for one in finder.detect(photo)), key=lambda one: one.w * one.h, default=None)
            try:
                own += [] if box is None else [place(photo, box, frame=Frame(SIDE)).crop(photo)]
            except RegionError:
                continue
            if len(own) == PROBES:
                crops, people = crops + own, people + [person.name] * PROBES
                break
    return np.stack(crops), people


def main() -> None:
    """Measure the codecs, and the gallery, at pure budgets."""
    crops, people = portraits()
    first = np.array([person in sorted(set(people))[: PEOPLE // 2] for person in people])
    rows = []
    for name, epsilon, made in releases(crops):
        row = {
            "codec": name,
            "epsilon": epsilon,
            "face found": share(found(made), people),
            "apart": round(sliced_wasserstein(colours(sized(made, SIDE)[first]), colours(crops[~first])), 1),
        }
        print(row, flush=True)
        rows.append(row)
    report("codec_files", rows)


def releases(crops: np.ndarray) -> Iterator[tuple[str, str, np.ndarray]]:
    """Yield what released crops, its budget, and the releases."""
    for name in FILES:
        codec = load(default_path(name))
        small = sized(crops, codec.canvas[0])
        made = codec.decode(codec.encode(small))
        yield name, "none", made
        for epsilon in PURE:
            bits = SeededBits(7, f"{name} {epsilon}")
            made = Latent(codec=codec, epsilon=epsilon).release(small, bits=bits)
            yield name, str(epsilon), made
    for epsilon in (1, 8):
        made = build("gallery", {"epsilon": epsilon}).release(crops, bits=SeededBits(7))
        yield "gallery", str(epsilon), made


if __name__ == "__main__":
    main()
