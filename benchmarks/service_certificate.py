"""How long an answer with a large certificate keeps the server: parsed and written, or as it is.

    python benchmarks/service_certificate.py [--rounds 9]

In processor time, by turns, in milliseconds; the median of the rounds. The certificate is a real one whose
regions are repeated, to most of a mebibyte, and to the largest that is taken.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np

import dpveil
from dpveil.core.certificate import parse_certificate
from dpveil.core.envelope import MOST_BYTES
from dpveil.service.answers import release_text, written
from dpveil.service.store import DONE, Result

MOST_REGIONS = 10_000


def certificate(most: int) -> str:
    """Return the text of a certificate of almost `most` bytes."""
    image = np.full((64, 64, 3), 90, np.uint8)
    regions = [f"{x},{y},8,8" for x in range(0, 64, 8) for y in range(0, 64, 8)]
    _, made = dpveil.obfuscate(image, "dp-pix", epsilon=1, block=8, regions=regions).encoded("png")
    times = max(1, min(MOST_REGIONS, int(0.95 * most) // len(made.to_text().encode()) * 64) // 64)
    return replace(made, regions=made.regions * times, guarantees=made.guarantees * times).to_text()


def parsed(result: Result) -> bytes:
    """Return the answer as it was made before: the certificate is read and written."""
    return written({"id": result.id, "certificate": json.loads(str(result.certificate)), "notes": []})


def timed(do: Callable[[], object]) -> float:
    """Return the processor time of a call in milliseconds."""
    begun = time.process_time()
    do()
    return 1000 * (time.process_time() - begun)


def main() -> None:
    """Print a line for each size and way."""
    rounds = argparse.ArgumentParser(description=__doc__)
    rounds.add_argument("--rounds", type=int, default=9)
    count = rounds.parse_args().rounds
    for most in (1 << 20, MOST_BYTES):
        text = certificate(most)
        result = Result("x" * 32, DONE, 0, "png", text, "[]")
        ways: dict[str, Callable[[], object]] = {
            "parsed and written": lambda result=result: parsed(result),  # type: ignore[misc]
            "as it is": lambda result=result: release_text(result),  # type: ignore[misc]
            "checked": lambda text=text: parse_certificate(text),  # type: ignore[misc]
        }
        taken: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(count):
            for name, do in ways.items():
                taken[name].append(timed(do))
        for name, times in taken.items():
            print(f"{len(text.encode()):>10} bytes, {name}: {statistics.median(times):.1f} ms")


if __name__ == "__main__":
    main()
