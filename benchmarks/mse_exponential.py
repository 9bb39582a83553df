"""MSE exponential mechanism and bit planes against straightforward NumPy, in one run.

Targets (issue 4): mse-exponential at 12 megapixels at least 500 times faster than NumPy's weights of all
levels, under 12 ns a pixel and channel, and no method above 6 times the decoded image.
"""

from __future__ import annotations

import numpy as np

from dpveil.mechanisms.pixel import BitPlanes, MSEExponential, PixelMethod
from dpveil.noise import SecureBits, backend
from timing import alternate, generator, peak, report

SHAPE = (3000, 4000, 3)
PART = (40, 250, 3)
"""The straightforward versions are timed on this shape, as their time is proportional to the pixels."""


def weigh_all_levels(image: np.ndarray, rate: float, unsafe: np.random.Generator) -> np.ndarray:
    """Return levels drawn as usually written: 256 weights per pixel and channel, cumulated and searched."""
    levels = np.arange(256)
    weights = np.exp(-rate * (image.reshape(-1, 1).astype(float) - levels) ** 2 / 255**2)
    sums = np.cumsum(weights, axis=1)
    drawn = (sums < unsafe.random((len(sums), 1)) * sums[:, -1:]).sum(axis=1)
    return drawn.astype(np.uint8).reshape(image.shape)


def flip_all_planes(image: np.ndarray, chance: float, unsafe: np.random.Generator) -> np.ndarray:
    """Return pixels with each of the eight bits flipped with the same probability, in floating point."""
    bits = np.unpackbits(image.reshape(-1, 1), axis=1)
    return np.packbits(bits ^ (unsafe.random(bits.shape) < chance), axis=1).reshape(image.shape)


def main() -> None:
    """Print and save the table."""
    backend.compile_now()
    bits, unsafe = SecureBits(), generator()
    image = unsafe.integers(0, 256, SHAPE, dtype=np.uint8)
    part = np.ascontiguousarray(image[: PART[0], : PART[1]])
    cases: list[tuple[str, PixelMethod, object]] = [
        ("mse-exponential, b = 1", MSEExponential(epsilon=20), "levels"),
        ("mse-exponential, b = 1, (20, 1e-6)", MSEExponential(epsilon=20, delta="1e-6"), "levels"),
        ("mse-exponential, b = 2", MSEExponential(epsilon=20, block=2), "levels"),
        ("bit-planes, 12 bits of 2×2 RGB", BitPlanes(epsilon=60, neighbourhood=1), "planes"),
    ]
    rows: list[dict[str, object]] = []
    for name, method, peer in cases:
        naive = (
            (lambda: weigh_all_levels(part, 2.0, unsafe))
            if peer == "levels"
            else (lambda: flip_all_planes(part, 0.1, unsafe))
        )
        calls = {"ours": lambda method=method: method.release(image, bits=bits), "NumPy": naive}
        times = alternate(calls, 5)
        ours, other = times["ours"] / image.size * 1e9, times["NumPy"] / part.size * 1e9
        rows.append(
            {
                "12 megapixels RGB": name,
                "ours ns / pixel-channel": round(ours, 2),
                "NumPy ns / pixel-channel": round(other, 1),
                "NumPy / ours": round(other / ours, 1),
                "peak / array, input counted": round(1 + peak(calls["ours"]) / image.nbytes, 2),
            }
        )
    report("mse_exponential", rows)


if __name__ == "__main__":
    main()
