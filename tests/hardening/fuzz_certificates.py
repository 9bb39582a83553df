"""Feed forged certificates to `verify`: anything but one line each, with nothing else opened, is a finding.

    python tests/hardening/fuzz_certificates.py --files 100000 [--first 0] [--workers 2] [--only INDEX]

Every certificate is a function of its index alone, so a finding is repeated with `--only`. Checksums fit, so
that forgeries come as far as the promise. An audit hook and a watch on questions about files count what is
touched beside the image and its certificate.
"""

import json
import os
import sys
import warnings
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parent.parent))
from fuzzing import Try, main
from hardening_certificates import WATCH, honest, placed, sealed
from hardening_forgeries import forged

HANG = 120
"""Seconds for one certificate; each calibration at the ends of what methods take has up to ten."""
SUSPECT = ("recomputed (", "MemoryError")
"""What a line says where something went wrong that nobody foresaw."""


def one(index: int, originals: dict[str, dict[str, Any]], folder: Path) -> dict[str, Any]:
    """Verify one certificate; `finding` says what was wrong, if anything."""
    from dpveil.cli.verify import _entry, _line
    from dpveil.release.verification import verify

    kind, contents = forged(index, originals)
    image = placed(folder, contents)
    finding = status = ""
    try:
        with WATCH.watching():
            result = verify(image)
        status = result.status
        finding = _unclear(result.problems, [_line(result, None), json.dumps(_entry(result))])
    except Exception as error:  # noqa: BLE001  this is what is looked for
        finding = f"{type(error).__name__}: {error}"
    if strange := WATCH.strange(image):
        finding = finding or f"touched {strange[0]}"
    if sorted(os.listdir(folder)) != sorted([image.name, f"{image.name}.certificate.json"]):  # noqa: PTH208
        finding = finding or "left something behind"
    if kind == "legal" and status != "consistent":
        finding = finding or "an honest certificate is inconsistent"
    return {"kind": kind, "outcome": status, "finding": finding}


def _unclear(problems: tuple[str, ...], lines: list[str]) -> str:
    if len(problems) > 21 or any(len(problem) > 500 for problem in problems):
        return f"{len(problems)} problems"
    if not all(line.isprintable() for line in (*problems, *lines)):
        return f"unprintable: {problems!r:.300}"
    odd = [problem for problem in problems if any(word in problem for word in SUSPECT)]
    return f"unforeseen: {odd[0]}" if odd else ""


def begin(folder: Path) -> Try:
    """Return what verifies the certificate of one index."""
    from dpveil.cli.verify import _line
    from dpveil.io.names import quoted
    from dpveil.release.verification import verify

    warnings.simplefilter("ignore")
    originals = honest()
    for data in originals.values():  # first uses import modules
        _line(verify(placed(folder, sealed(data))), None)
    _line(verify(placed(folder, sealed(data | {"schema": "\ud800"}))), None)
    quoted("\x1b")
    return lambda index: one(index, originals, folder)


if __name__ == "__main__":
    sys.exit(main(__file__, __doc__, begin, hang=HANG))
