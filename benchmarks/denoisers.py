"""What a network and filters make of noisy faces: how near to the original, and whether it names people.

Portraits of LFW, whom no network here has seen, as in `codec_budgets`; 128 × 128. Each face is released by a
pixel method and then post-processed, which is free. The attacker has four other photos of each person,
released and post-processed in the same way, and takes the nearest mean of dlib's embeddings (the parrot
attack), or originals; the stronger counts. "filter" is the filter and strength of `FILTERS` with the highest
PSNR on these very faces: the network is compared with the best choice in hindsight. Intervals are 95 %, by
bootstrap over people.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from codec_budgets import faces, looked, share
from dpveil.assets.defaults import default_path
from dpveil.attacks import identify
from dpveil.attacks.parrot import parrot
from dpveil.catalogue import build
from dpveil.metrics import psnr, ssim
from dpveil.noise.bits import SeededBits
from dpveil.postprocessing import parse
from timing import median, report

SETTINGS = [
    ("dp-pix", {"epsilon": 100, "block": 4, "neighbourhood": 1}),
    ("dp-pix", {"epsilon": 20, "block": 4, "neighbourhood": 1}),
    ("dp-pix", {"epsilon": 5, "block": 4, "neighbourhood": 1}),
    ("dp-pix", {"epsilon": 2, "block": 8, "neighbourhood": 1}),
    ("dp-pix", {"epsilon": 2, "block": 16, "neighbourhood": 4}),
    ("dp-pix-gaussian", {"rho": 1, "block": 4, "neighbourhood": 1}),
    ("snow", {"delta": 0.3}),
    ("snow", {"delta": 0.1}),
]
FILTERS = [
    *(f"gaussian:{n}" for n in (1, 2, 3, 5)),
    *(f"median:{n}" for n in (3, 5, 9, 15)),
    *(f"non-local-means:{n}" for n in (10, 30, 60, 120)),
    *(f"total-variation:{n}" for n in (1, 3)),
]


def applied(text: str, crops: np.ndarray) -> np.ndarray:
    """Return pictures after a step."""
    step = parse(text)
    return np.stack([step(crop) for crop in crops])


def near(crops: np.ndarray, made: np.ndarray) -> float:
    """Return the mean PSNR in dB."""
    return float(np.mean([psnr(a, b, data_range=255) for a, b in zip(crops, made, strict=True)]))


def measured(crops: np.ndarray, made: np.ndarray, people: list[str], known: np.ndarray) -> dict[str, object]:
    """Return how near pictures are to the originals, and how often they name people."""
    clean, found = looked(crops)[0], looked(made)
    seen, sure = found
    others = [person for person, has in zip(people, known, strict=True) if has]
    probes = [person for person, has in zip(people, known, strict=True) if not has]
    ways = ((identify, clean[known]), (parrot, seen[known]))
    won = max((way(rows, others, seen[~known], probes) for way, rows in ways), key=lambda one: one.rate)
    low, high = won.interval()
    return {
        "PSNR": round(near(crops, made), 2),
        "SSIM": round(
            float(np.mean([ssim(a, b, data_range=255) for a, b in zip(crops, made, strict=True)])), 3
        ),
        "face found": share(sure[~known], probes),
        "named": f"{won.rate:.3f} [{low:.3f}, {high:.3f}]",
        "chance": round(won.chance, 3),
    }


def main() -> None:
    """Compare them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--step", type=int, default=4)
    parser.add_argument("--file", type=Path, default=default_path("denoiser"))
    parser.add_argument("--name", default="denoisers")
    asked = parser.parse_args()
    crops, people, known = faces(asked.step)
    network, rows = f"denoiser:{asked.file}", []
    for method, given in SETTINGS:
        release = build(method, given)
        noisy = np.stack([release.release(crop, bits=SeededBits(n, method)) for n, crop in enumerate(crops)])
        best = max(FILTERS, key=lambda text, n=noisy: near(crops, applied(text, n)))
        for name, text in (("none", ""), (best, best), ("denoiser", network)):
            shown = applied(text, noisy) if text else noisy
            words = ", ".join(f"{key} {value}" for key, value in given.items())
            rows.append(
                {"release": f"{method} {words}", "step": name} | measured(crops, shown, people, known)
            )
            print(rows[-1], flush=True)
    step = parse(network)
    print("ms a face:", round(1000 * median(lambda: step(crops[0])), 1))
    report(asked.name, rows)


if __name__ == "__main__":
    main()
