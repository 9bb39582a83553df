"""ssim-exponential against the straightforward NumPy enumeration of every window, in one run.

Targets: 128×128 RGB, b = 1, p = 3, k′ = 4 (5 547 windows): at least 1000 times faster up to ε′ = 3,
at least 100 times for any ε′ up to 50, memory at most 6 times the decoded image. The straightforward version
takes minutes, so it is timed on 200 windows of the same image and scaled to all of them.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
from PIL import Image
from skimage import data

from dpveil.mechanisms.pixel import SSIMExponential
from dpveil.mechanisms.pixel.ssim.method import _windows
from dpveil.noise import SecureBits, backend
from timing import alternate, generator, peak, report

SIDE = 128
SAMPLE = 200
EXPONENTS = ("0.1", "1", "3", "5", "10", "20", "50")
SIZE = {"height": SIDE, "width": SIDE, "channels": 3}
C1, C2 = (0.01 * 255) ** 2, (0.03 * 255) ** 2
OUTPUTS = np.array(list(product((0.0, 85.0, 170.0, 255.0), repeat=9)))
MEANS, VARIANCES = OUTPUTS.mean(axis=1), OUTPUTS.var(axis=1)


def straightforward(windows: np.ndarray, exponent: float, unsafe: np.random.Generator) -> np.ndarray:
    """Return one output a window as one writes it with NumPy: all 4^9 weights, then a choice.

    What all windows share, the means and variances of the outputs, was computed once, before.
    """
    shown = []
    for x in windows.astype(float):
        covariance = OUTPUTS @ (x - x.mean()) / 9
        ssim = (2 * x.mean() * MEANS + C1) * (2 * covariance + C2)
        ssim /= (x.mean() ** 2 + MEANS**2 + C1) * (x.var() + VARIANCES + C2)
        weights = np.exp(exponent * np.maximum(0, ssim))
        total = np.cumsum(weights)
        shown.append(OUTPUTS[np.searchsorted(total, unsafe.random() * total[-1])])
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
        seconds = alternate(
            {
                "straightforward": lambda e=float(exponent): straightforward(sample, e, unsafe),
                "dpveil": lambda m=method: m.release(image, bits=SecureBits()),
            },
            repeats=2,
        )
        whole = seconds["straightforward"] / len(sample) * len(windows)
        rows.append(
            {
                "ε′": exponent,
                "straightforward s": round(whole, 1),
                "dpveil s": round(seconds["dpveil"], 4),
                "times faster": round(whole / seconds["dpveil"]),
                "memory / image": round(
                    peak(lambda m=method: m.release(image, bits=SecureBits())) / image.nbytes, 1
                ),
            }
        )
        print(rows[-1], flush=True)
    notes = (f"straightforward: {SAMPLE} of {len(windows)} windows, scaled", "two threads")
    report("ssim-exponential", rows, notes=notes)


if __name__ == "__main__":
    main()
