"""ssim-exponential against two NumPy versions that enumerate all outputs of every window, in one run.

Targets: 128×128 RGB, b = 1, p = 3, k′ = 4 (5 547 windows): at ε′ = 20 at least 150 times faster than
`vectorised`, which shares means and variances and computes all outputs of a window at once; memory at most 6
times the decoded image. `careful` also groups outputs by their moments, and processes four windows at once.
Both take many seconds, the same for every window, so they are timed on 16 windows of the same image, about as
long as ours, and scaled to all of them. All are the best of several, in turns, in wall and in processor
seconds: ours has two threads, which have to wait on a busy machine.
"""

from __future__ import annotations

import time
from fractions import Fraction
from itertools import pairwise, product

import numpy as np
from PIL import Image
from skimage import data

from dpveil.mechanisms.pixel import SSIMExponential
from dpveil.mechanisms.pixel.ssim.method import _windows
from dpveil.noise import SecureBits, backend
from timing import alternate, generator, peak, report

SIDE = 128
SAMPLE = 16
EXPONENTS = ("0.1", "1", "3", "5", "10", "20", "50")
SIZE = {"height": SIDE, "width": SIDE, "channels": 3}
C1, C2 = (0.01 * 255) ** 2, (0.03 * 255) ** 2
AT_ONCE = 4


LISTED = np.array(list(product((0.0, 85.0, 170.0, 255.0), repeat=9)))
LISTED_MEANS, LISTED_VARIANCES = LISTED.mean(axis=1), LISTED.var(axis=1)


def vectorised(windows: np.ndarray, exponent: float, unsafe: np.random.Generator) -> np.ndarray:
    """Return one output per window as usually written with NumPy: all 4^9 weights, then a choice.

    Means and variances of the outputs, which all windows share, are computed once beforehand.
    """
    shown = []
    for x in windows.astype(float):
        mean = x.mean()
        ssim = (2 * mean * LISTED_MEANS + C1) * (2 / 9 * (LISTED @ (x - mean)) + C2)
        ssim /= (mean**2 + LISTED_MEANS**2 + C1) * (x.var() + LISTED_VARIANCES + C2)
        total = np.cumsum(np.exp(exponent * np.maximum(0, ssim)))
        shown.append(LISTED[np.searchsorted(total, unsafe.random() * total[-1])])
    return np.array(shown)


def outputs_by_moments() -> tuple[np.ndarray, ...]:
    """Return all outputs grouped by mean and variance, the start of each group, and its moments."""
    outputs = LISTED.astype(int)
    moments = np.column_stack([outputs.sum(axis=1), (outputs**2).sum(axis=1)])
    moments, group = np.unique(moments, axis=0, return_inverse=True)
    outputs = outputs[np.argsort(group.ravel(), kind="stable")].astype(float)
    starts = np.searchsorted(np.sort(group.ravel()), np.arange(len(moments) + 1))
    means = moments[:, 0] / 9
    return outputs, np.ascontiguousarray(outputs.T), starts, means, moments[:, 1] / 9 - means**2


OUTPUTS, TRANSPOSED, STARTS, MEANS, VARIANCES = outputs_by_moments()


def careful(windows: np.ndarray, exponent: float, unsafe: np.random.Generator) -> np.ndarray:
    """Return one output per window with the same law, optimised.

    Covariances of a few windows are one matrix product; the rest of SSIM is the same for outputs with one
    mean and variance, so it is computed for 164 groups. Arrays are reused, and a group is chosen before one
    of its outputs.
    """
    shown = []
    for start in range(0, len(windows), AT_ONCE):
        x = windows[start : start + AT_ONCE].astype(float)
        mean = x.mean(axis=1, keepdims=True)
        gain = exponent * (2 * mean * MEANS + C1) / (mean**2 + MEANS**2 + C1)
        gain /= x.var(axis=1, keepdims=True) + VARIANCES + C2
        weights = ((x - mean) * (2 / 9)) @ TRANSPOSED
        weights += C2
        for group, (low, high) in enumerate(pairwise(STARTS)):
            weights[:, low:high] *= gain[:, group, None]
        np.maximum(weights, 0, out=weights)
        np.exp(weights, out=weights)
        for row in weights:
            groups = np.cumsum(np.add.reduceat(row, STARTS[:-1]))
            group = np.searchsorted(groups, unsafe.random() * groups[-1])
            low, high = STARTS[group : group + 2]
            within = np.cumsum(row[low:high])
            shown.append(OUTPUTS[low + np.searchsorted(within, unsafe.random() * within[-1])])
    return np.array(shown)


def main() -> None:
    """Print and save the table: all versions at every ε′."""
    backend.compile_now()
    photo = data.astronaut()[40:200, 150:310]
    image = np.asarray(Image.fromarray(photo).resize((SIDE, SIDE), Image.Resampling.BOX))
    windows = _windows(image, 3)
    sample = windows[:: len(windows) // SAMPLE][:SAMPLE]
    unsafe, rows = generator(), []
    for exponent in EXPONENTS:
        method = SSIMExponential(epsilon=2 * len(windows) * Fraction(exponent))
        assert method.exponent(**SIZE) == Fraction(exponent)
        calls = {
            "vectorised": lambda e=float(exponent): vectorised(sample, e, unsafe),
            "careful": lambda e=float(exponent): careful(sample, e, unsafe),
            "dpveil": lambda m=method: m.release(image, bits=SecureBits()),
        }
        share = len(windows) / len(sample)
        wall = alternate(calls, repeats=15, best=True)
        work = alternate(calls, repeats=15, best=True, clock=time.process_time)
        row: dict[str, object] = {"ε′": exponent}
        for unit, best in (("s", wall), ("processor s", work)):
            row[f"dpveil {unit}"] = round(best["dpveil"], 4)
            for peer in ("vectorised", "careful"):
                row[f"{peer} {unit}"] = round(best[peer] * share, 1)
                row[f"{peer} / dpveil, {unit}"] = round(best[peer] * share / best["dpveil"])
        held = peak(lambda m=method: m.release(image, bits=SecureBits()))
        rows.append(row | {"memory / image": round(held / image.nbytes, 1)})
        print(rows[-1], flush=True)
    notes = (
        f"vectorised and careful: {SAMPLE} of {len(windows)} windows, scaled",
        "dpveil: two threads",
        "best of 15, on a busy machine",
    )
    report("ssim-exponential", rows, notes=notes)


if __name__ == "__main__":
    main()
