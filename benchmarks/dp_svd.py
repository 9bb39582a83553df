"""DP-SVD against a full economy SVD with NumPy, in one run; dct-gaussian against dp-pix-gaussian.

Target (issue 4): 640×480 grey at rank 6 at least 3 times faster than the full economy SVD, same law. BLAS
threads that wait for a busy processor cost more than they save: on a shared machine, run with
OPENBLAS_NUM_THREADS=1, for all sides alike.
"""

from __future__ import annotations

import os

import numpy as np
from skimage import data

from dpveil.mechanisms.pixel import DPSVD, DCTGaussian, DPPixGaussian
from dpveil.noise import SecureBits, backend
from timing import alternate, generator, peak, report

SIZES = ((480, 640, 1), (480, 640, 3))
RANK = 6


def straightforward(image: np.ndarray, unsafe: np.random.Generator) -> np.ndarray:
    """Return DP-SVD as usually written with NumPy: a full decomposition, and floating-point noise."""
    noise = unsafe.normal(size=RANK * image.shape[2])
    noise *= unsafe.gamma(noise.size) / np.linalg.norm(noise)
    out = np.empty_like(image)
    for channel, z in enumerate(noise.reshape(-1, RANK)):
        u, s, v = np.linalg.svd(image[:, :, channel].astype(float), full_matrices=False)
        out[:, :, channel] = np.rint(np.clip((u[:, :RANK] * (s[:RANK] + z)) @ v[:RANK], 0, 255))
    return out


def pictures(shape: tuple[int, int, int], unsafe: np.random.Generator) -> dict[str, np.ndarray]:
    """Return a photo of that size, tiled from a public one, and noise, whose spectra differ most."""
    photo = data.astronaut()[:480]
    tiled = np.tile(photo, (-(-shape[0] // 480), -(-shape[1] // 512), 1))[: shape[0], : shape[1], : shape[2]]
    return {"photo": np.ascontiguousarray(tiled), "noise": unsafe.integers(0, 256, shape, dtype=np.uint8)}


def main() -> None:
    """Print and save the table."""
    backend.compile_now()
    bits, unsafe = SecureBits(), generator()
    svd, ours = DPSVD(epsilon=1, rank=RANK), DCTGaussian(rho=5, neighbourhood=256)
    theirs = DPPixGaussian(rho=5, block=8, neighbourhood=256)
    rows: list[dict[str, object]] = []
    for shape in SIZES:
        for name, image in pictures(shape, unsafe).items():
            calls = {
                "dp-svd": lambda image=image: svd.release(image, bits=bits),
                "full": lambda image=image: straightforward(image, unsafe),
                "dct-gaussian": lambda image=image: ours.release(image, bits=bits),
                "dp-pix-gaussian": lambda image=image: theirs.release(image, bits=bits),
            }
            times = alternate(calls)
            held = {key: 1 + peak(calls[key]) / image.nbytes for key in ("dp-svd", "dct-gaussian")}
            rows.append(
                {
                    "picture": f"{name} {'×'.join(map(str, shape))}",
                    **{f"{key} ms": round(seconds * 1e3, 1) for key, seconds in times.items()},
                    "full / dp-svd": round(times["full"] / times["dp-svd"], 1),
                    **{f"{key} peak / array": round(value, 1) for key, value in held.items()},
                }
            )
    threads = os.environ.get("OPENBLAS_NUM_THREADS", "as many as there are")
    report("dp_svd", rows, notes=(f"threads of linear algebra: {threads}",))


if __name__ == "__main__":
    main()
