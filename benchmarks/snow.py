"""Snow against NumPy's insecure version, in one run.

Target (issue 4): 12 megapixels in at most 1.5 times the time of `np.random.random`, comparing and painting.
"""

from __future__ import annotations

import numpy as np

from dpveil.mechanisms.pixel import Snow
from dpveil.noise.bits import SecureBits
from timing import alternate, generator, peak, report

SHAPES = ((112, 92, 1), (480, 640, 3), (3000, 4000, 1), (3000, 4000, 3))
DELTA = 0.3


def numpy_snow(image: np.ndarray) -> np.ndarray:
    """Return Snow as usually written with NumPy, from an insecure generator."""
    mask = np.random.random(image.shape[:2]) < 1 - DELTA
    out = image.copy()
    out[mask] = 127
    return out


def main() -> None:
    """Print and save the table."""
    bits, unsafe, method = SecureBits(), generator(), Snow(delta=DELTA)
    rows: list[dict[str, object]] = []
    for shape in SHAPES:
        image = unsafe.integers(0, 256, shape, dtype=np.uint8)
        calls = {
            "ours": lambda image=image: method.release(image, bits=bits),
            "NumPy": lambda image=image: numpy_snow(image),
        }
        times = alternate(calls, 9)
        rows.append(
            {
                "rows × columns × channels": "×".join(map(str, shape)),
                "ours ms": round(times["ours"] * 1e3, 2),
                "NumPy ms (unsafe)": round(times["NumPy"] * 1e3, 2),
                "ours / NumPy": round(times["ours"] / times["NumPy"], 2),
                "peak / array, input counted": round(1 + peak(calls["ours"]) / image.nbytes, 2),
            }
        )
    report("snow", rows)


if __name__ == "__main__":
    main()
