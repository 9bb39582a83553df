"""Exact noise against NumPy's insecure Laplace, and the integer Laplace of OpenDP and diffprivlib, in one
run.

One thread each. diffprivlib runs in its own environment, which `make bench` creates if possible. Targets
(issue 2): ten million draws no slower than `Generator.laplace` at scales 255 and 4.6·10⁸, at least 200 times
faster per sample than OpenDP's integer vector Laplace, memory at most 3 times the output.
"""

from __future__ import annotations

import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import opendp.prelude as dp

from dpveil.noise import backend
from dpveil.noise.bits import SecureBits
from dpveil.noise.gaussian import discrete_gaussian
from dpveil.noise.integer_matrix import IntegerMatrix, quantise
from dpveil.noise.laplace import discrete_laplace
from timing import alternate, generator, median, peak, report

COUNT = 10_000_000
PEER_COUNT = 20_000
PEER = Path(__file__).parent.parent / ".venv-diffprivlib" / "bin" / "python"
DIFFPRIVLIB = """
import statistics, sys, time
from diffprivlib.mechanisms import Geometric
laplace = Geometric(epsilon=1, sensitivity=int(sys.argv[1]))
def once():
    start = time.perf_counter()
    for _ in range(20_000):
        laplace.randomise(0)
    return (time.perf_counter() - start) / 20_000
print(statistics.median([once() for _ in range(4)][1:]))
"""
NOT_THERE = "diffprivlib was not timed: it is not in .venv-diffprivlib (make bench makes it where it can)."


def plain(call):
    """Run `call` without compiled kernels."""
    backend._State.plain = True
    try:
        return call()
    finally:
        backend._State.plain = False


def opendp_seconds(scale: float) -> float:
    """Return OpenDP's seconds per sample."""
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int)
    laplace = dp.m.make_laplace(*space, scale=scale)
    zeros = [0] * PEER_COUNT
    return median(lambda: laplace(zeros), 3) / PEER_COUNT


def diffprivlib_seconds(scale: int) -> float | None:
    """Return diffprivlib's seconds per sample of its integer mechanism, or None if it is not installed."""
    if not PEER.exists():
        return None
    done = subprocess.run([PEER, "-c", DIFFPRIVLIB, str(scale)], capture_output=True, text=True, check=False)
    return float(done.stdout) if done.returncode == 0 else None


def nearby_matrix() -> IntegerMatrix:
    """Return a 256-level matrix like those of pixel methods."""
    steps = np.abs(np.subtract.outer(np.arange(256), np.arange(256)))
    return quantise([[Fraction(float(w)) for w in row] for row in np.exp(-steps / 64)])


def main() -> None:
    """Print and save the table."""
    backend.compile_now()
    bits, unsafe = SecureBits(), generator()
    rows: list[dict[str, object]] = []
    for scale in (255, 460_000_000):
        times = alternate(
            {
                "ours": lambda scale=scale: discrete_laplace(Fraction(scale), COUNT, bits),
                "NumPy": lambda scale=scale: unsafe.laplace(0, scale, COUNT),
                "plain": lambda scale=scale: plain(lambda: discrete_laplace(Fraction(scale), COUNT, bits)),
            },
            5,
        )
        other, third = opendp_seconds(float(scale)), diffprivlib_seconds(scale)
        memory = peak(lambda scale=scale: discrete_laplace(Fraction(scale), COUNT, bits)) / (8 * COUNT)
        ours = times["ours"]
        rows.append(
            {
                "law": f"discrete Laplace, scale {scale:.3g}",
                "ours ns": round(ours / COUNT * 1e9, 1),
                "plain ns": round(times["plain"] / COUNT * 1e9, 1),
                "NumPy ns": round(times["NumPy"] / COUNT * 1e9, 1),
                "OpenDP ns": round(other * 1e9),
                "diffprivlib ns": "" if third is None else round(third * 1e9),
                "NumPy / ours": round(times["NumPy"] / ours, 2),
                "OpenDP / ours": round(other * COUNT / ours),
                "diffprivlib / ours": "" if third is None else round(third * COUNT / ours),
                "peak / output": round(memory, 2),
            }
        )
    matrix, answers = nearby_matrix(), np.arange(COUNT // 10) % 256
    for law, ours_call, peer_call in (
        (
            "discrete Gaussian, σ = 1000",
            lambda: discrete_gaussian(Fraction(10**6), COUNT // 10, bits),
            lambda: unsafe.normal(0, 1000, COUNT // 10),
        ),
        (
            "256-level integer matrix",
            lambda: matrix.sample(answers, bits),
            lambda: unsafe.integers(0, 256, COUNT // 10),
        ),
    ):
        times = alternate({"ours": ours_call, "NumPy": peer_call}, 5)
        rows.append(
            dict.fromkeys(rows[0], "")
            | {
                "law": law,
                "ours ns": round(times["ours"] / COUNT * 1e10, 1),
                "NumPy ns": round(times["NumPy"] / COUNT * 1e10, 1),
                "NumPy / ours": round(times["NumPy"] / times["ours"], 2),
                "peak / output": round(peak(ours_call) / (8 * COUNT // 10), 2),
            }
        )
    missing = () if PEER.exists() else (NOT_THERE,)
    report("noise", rows, notes=missing)
    for note in missing:
        print(note, file=sys.stderr)


if __name__ == "__main__":
    main()
