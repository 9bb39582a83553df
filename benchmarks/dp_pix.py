"""DP-Pix against non-private pixelisation by OpenCV and a straightforward private version, in one run.

Target (issue 2): 12-megapixel RGB at block 16, array in and array out, same number of threads, at most 1.5
times OpenCV's time (area down, nearest up) at 3000 and 2992 rows, peak memory at most 4 times the array. The
two take turns; the straightforward version is timed separately, as it would leave cold caches to the next.
"""

from __future__ import annotations

import cv2
import numpy as np
from skimage.measure import block_reduce

from dpveil.mechanisms.pixel import DPPix
from dpveil.noise import backend
from dpveil.noise.bits import SecureBits
from timing import alternate, generator, median, peak, report

BLOCK = 16
SIZES = ((112, 92, 1), (480, 640, 3), (2992, 4000, 3), (3000, 4000, 3))


def opencv(image: np.ndarray) -> np.ndarray:
    """Return the pixelised image, without privacy."""
    height, width = image.shape[:2]
    small = cv2.resize(image, (-(-width // BLOCK), -(-height // BLOCK)), interpolation=cv2.INTER_AREA)
    return cv2.resize(small, (width, height), interpolation=cv2.INTER_NEAREST)


def straightforward(image: np.ndarray, unsafe: np.random.Generator) -> np.ndarray:
    """Return DP-Pix as usually written with scikit-image and NumPy (partial cells do not matter for the
    time).
    """
    cells = block_reduce(image, (BLOCK, BLOCK, 1), np.mean)
    noisy = cells + unsafe.laplace(0, 255 * 256 * image.shape[2] / 20 / BLOCK**2, cells.shape)
    levels = np.clip(np.rint(noisy), 0, 255).astype(np.uint8)
    return np.kron(levels, np.ones((BLOCK, BLOCK, 1), np.uint8))[: image.shape[0], : image.shape[1]]


def main() -> None:
    """Print and save the table."""
    backend.compile_now()
    bits, unsafe = SecureBits(), generator()
    method = DPPix(epsilon=20, block=BLOCK, neighbourhood=256)
    rows: list[dict[str, object]] = []
    for threads in (1, 2):
        cv2.setNumThreads(threads)
        for shape in SIZES:
            image = unsafe.integers(0, 256, shape, dtype=np.uint8)
            calls = {
                "ours": lambda image=image: method.release(image, bits=bits),
                "OpenCV": lambda image=image: opencv(image),
            }
            times = alternate(calls, 15)
            times["straightforward"] = median(lambda image=image: straightforward(image, unsafe))
            rows.append(
                {
                    "rows × columns × channels": "×".join(map(str, shape)),
                    "OpenCV threads": threads,
                    "ours ms": round(times["ours"] * 1e3, 2),
                    "OpenCV ms (not private)": round(times["OpenCV"] * 1e3, 2),
                    "straightforward ms": round(times["straightforward"] * 1e3, 2),
                    "ours / OpenCV": round(times["ours"] / times["OpenCV"], 2),
                    "straightforward / ours": round(times["straightforward"] / times["ours"], 1),
                    "peak / array, input counted": round(1 + peak(calls["ours"]) / image.nbytes, 2),
                }
            )
    report("dp_pix", rows)


if __name__ == "__main__":
    main()
