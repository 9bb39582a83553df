"""ssim-exponential against the enumeration of every window with NumPy, written well, in one run.

Targets: 128×128 RGB, b = 1, p = 3, k′ = 4 (5 547 windows): at least 150 times faster at ε′ = 20, memory at
most 6 times the decoded image. The enumeration takes many seconds, and as long for every window, so it is
timed on 16 windows of the same image, about as long as ours, and scaled to all of them. Both are the best of
several, in turns, in seconds and in processor seconds: ours has two threads, which a busy machine lets wait.
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


def outputs_by_moments() -> tuple[np.ndarray, ...]:
    """Return all outputs, grouped by mean and variance, where each group starts, and its moments."""
    outputs = np.array(list(product((0, 85, 170, 255), repeat=9)))
    moments = np.column_stack([outputs.sum(axis=1), (outputs**2).sum(axis=1)])
    moments, group = np.unique(moments, axis=0, return_inverse=True)
    outputs = outputs[np.argsort(group.ravel(), kind="stable")].astype(float)
    starts = np.searchsorted(np.sort(group.ravel()), np.arange(len(moments) + 1))
    means = moments[:, 0] / 9
    return outputs, np.ascontiguousarray(outputs.T), starts, means, moments[:, 1] / 9 - means**2


OUTPUTS, TRANSPOSED, STARTS, MEANS, VARIANCES = outputs_by_moments()


def enumeration(windows: np.ndarray, exponent: float, unsafe: np.random.Generator) -> np.ndarray:
    """Return one output a window as one writes it with NumPy, with care: all 4^9 weights, then a choice.

    Covariances of a few windows are one product of matrices; all else of SSIM is the same for outputs of one
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
    """Time both at every ε′."""
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
            "enumeration": lambda e=float(exponent): enumeration(sample, e, unsafe),
            "dpveil": lambda m=method: m.release(image, bits=SecureBits()),
        }
        share = len(windows) / len(sample)
        wall = alternate(calls, repeats=15, best=True)
        work = alternate(calls, repeats=15, best=True, clock=time.process_time)
        rows.append(
            {
                "ε′": exponent,
                "enumeration s": round(wall["enumeration"] * share, 1),
                "dpveil s": round(wall["dpveil"], 4),
                "times faster": round(wall["enumeration"] * share / wall["dpveil"]),
                "enumeration processor s": round(work["enumeration"] * share, 1),
                "dpveil processor s": round(work["dpveil"], 4),
                "times less work": round(work["enumeration"] * share / work["dpveil"]),
                "memory / image": round(
                    peak(lambda m=method: m.release(image, bits=SecureBits())) / image.nbytes, 1
                ),
            }
        )
        print(rows[-1], flush=True)
    notes = (
        f"enumeration with NumPy: {SAMPLE} of {len(windows)} windows, scaled",
        "dpveil: two threads",
        "best of 15, on a busy machine",
    )
    report("ssim-exponential", rows, notes=notes)


if __name__ == "__main__":
    main()
