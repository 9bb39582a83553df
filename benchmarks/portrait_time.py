"""What the run time of a portrait reveals: whether the photo showed a face.

`--regions whole` with a face-space method promises that nobody can tell even whether a face was found. Photos
of one size are released in turns: with a face, without one, with a face that fills the photo, and with four
faces. Faces are those of LFW (`lfw_wide`), photos without faces are crops of scikit-image's pictures that
show nobody; for the larger size both are pasted on or cropped from an enlarged one. `AUC` is the probability
that a photo of the row took longer than one with a face: 0.5 is chance. `own noise` is the range of the AUC
between two halves of the photos with a face, in 99 of 100 random splits. Times are processor time of
`obfuscate` without reading or writing, as on an otherwise idle machine. Needs ../shared/data and the default
gallery.
"""

from __future__ import annotations

import sys
import tarfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import cv2
import numpy as np
from skimage import data

from dpveil import Photo
from dpveil.faces import Attributes, Gallery
from dpveil.io import read_bytes
from dpveil.release.pipeline import obfuscate
from timing import generator, report

SHARED = Path(__file__).parent.parent.parent / "shared" / "data"
METHODS = {"gallery": Gallery(epsilon=8), "attributes": Attributes(attributes="gender,age", epsilon=6)}
EMPTY = (
    "coffee",
    "chelsea",
    "rocket",
    "brick",
    "grass",
    "gravel",
    "hubble_deep_field",
    "immunohistochemistry",
)
SMALL, LARGE = (250, 250), (1200, 1600)
SPLITS = 2000


def faces() -> Iterator[np.ndarray]:
    """Yield photos of LFW, 250 × 250, mostly of different people."""
    with tarfile.open(sorted(SHARED.glob("lfw_wide/*.tar"))[0]) as shard:
        for member in shard:
            if member.name.endswith(".jpg"):
                yield read_bytes(shard.extractfile(member).read(), "photo", max_pixels=1 << 20).image


def pieces(size: tuple[int, int], rng: np.random.Generator) -> Iterator[np.ndarray]:
    """Yield crops of pictures without people, at any scale at which one fits."""
    pictures = [getattr(data, name)() for name in EMPTY]
    pictures = [p if p.ndim == 3 else np.repeat(p[..., None], 3, axis=2) for p in pictures]
    while True:
        picture = pictures[rng.integers(len(pictures))]
        least = max(wanted / have for wanted, have in zip(size, picture.shape[:2], strict=True))
        scale = least * rng.uniform(1, 2)
        large = cv2.resize(picture, None, fx=scale, fy=scale, interpolation=cv2.INTER_CUBIC)
        top, left = (
            int(rng.integers(have - wanted + 1)) for have, wanted in zip(large.shape, size, strict=False)
        )
        yield np.ascontiguousarray(large[top : top + size[0], left : left + size[1]])


def made(size: tuple[int, int], count: int) -> dict[str, list[Photo]]:
    """Return `count` photos of every kind, all of one size."""
    rng = generator()
    people, without = faces(), pieces(size, rng)

    def pasted(canvas: np.ndarray, sides: list[int]) -> np.ndarray:
        if size == SMALL and len(sides) == 1 and sides[0] == 250:
            return next(people)
        out = canvas.copy()
        for number, side in enumerate(sides):
            face = cv2.resize(next(people), (side, side), interpolation=cv2.INTER_CUBIC)
            top, left = (int(rng.integers(have - side + 1)) for have in size)
            if len(sides) > 1:
                top, left = (number // 2) * size[0] // 2, (number % 2) * size[1] // 2
            out[top : top + side, left : left + side] = face
        return out

    def filled(_: np.ndarray) -> np.ndarray:
        face = next(people)[60:190, 60:190]
        return cv2.resize(face, size[::-1], interpolation=cv2.INTER_CUBIC)

    half = min(size) // 2
    kinds: dict[str, Callable[[np.ndarray], np.ndarray]] = {
        "a face": lambda canvas: pasted(canvas, [250 if size == SMALL else int(rng.integers(250, 900))]),
        "no face": lambda canvas: canvas,
        "a flat grey": lambda canvas: np.full_like(canvas, int(rng.integers(256))),
        "a face all over": filled,
        "four faces": lambda canvas: pasted(canvas, [half] * 4),
    }
    return {kind: [Photo(make(next(without))) for _ in range(count)] for kind, make in kinds.items()}


def timed(photos: dict[str, list[Photo]], method: object, rounds: int) -> dict[str, np.ndarray]:
    """Return the seconds of every kind, photos × rounds, run in random order."""
    order = [(kind, n, r) for kind, of in photos.items() for n in range(len(of)) for r in range(rounds)]
    found = {kind: np.empty((len(of), rounds)) for kind, of in photos.items()}
    for kind, number, _ in order[: len(order) // rounds : 7]:
        obfuscate(photos[kind][number], method, regions="whole")
    for at in generator().permutation(len(order)):
        kind, number, r = order[at]
        start = time.process_time()
        obfuscate(photos[kind][number], method, regions="whole")
        found[kind][number, r] = time.process_time() - start
    return found


def auc(longer: np.ndarray, shorter: np.ndarray) -> float:
    """Return the probability that a run of the first took longer than one of the second; ties count half."""
    above = np.sign(longer.ravel()[:, None] - shorter.ravel())
    return float((1 + above.mean()) / 2)


def own_noise(times: np.ndarray) -> float:
    """Return the distance from 1/2 of the AUC between two halves of the photos, in 99 of 100 random
    splits.
    """
    rng, half, away = generator(), len(times) // 2, []
    for _ in range(SPLITS):
        order = rng.permutation(len(times))
        away.append(abs(auc(times[order[:half]], times[order[half:]]) - 0.5))
    return float(np.quantile(away, 0.99))


def rows_of(name: str, size: tuple[int, int], found: dict[str, np.ndarray]) -> list[dict[str, object]]:
    """Return a row for each kind of photo."""
    base = found["a face"]
    rows = []
    for kind, seconds in found.items():
        low, middle, high = np.quantile(seconds, (0.05, 0.5, 0.95)) * 1e3
        rows.append(
            {
                "method": name,
                "size": f"{size[1]} × {size[0]}",
                "photo": kind,
                "runs": seconds.size,
                "median ms": round(middle, 1),
                "5 %": round(low, 1),
                "95 %": round(high, 1),
                "AUC": "" if seconds is base else round(auc(seconds, base), 3),
                "own noise": f"0.5 ± {own_noise(base):.3f}",
            }
        )
    return rows


def main() -> None:
    """Print and save the table; `quick` uses fewer photos and saves its figures separately."""
    if not SHARED.is_dir():
        print("needs the shared data sets in ../shared/data", file=sys.stderr)
        return
    quick = "quick" in sys.argv[1:]
    name = next((word for word in sys.argv[1:] if word != "quick"), "portrait_time")
    rows = []
    for size, count, rounds in ((SMALL, 20 if quick else 50, 2), (LARGE, 6 if quick else 16, 1)):
        photos = made(size, count)
        for method in METHODS if size == SMALL else list(METHODS)[:1]:
            rows += rows_of(method, size, timed(photos, METHODS[method], rounds))
    report(f"{name}-quick" if quick else name, rows)


if __name__ == "__main__":
    main()
