"""Feed forged certificates to `verify`: anything but one line each, with nothing else opened, is a finding.

    python tests/hardening/fuzz_certificates.py --files 100000 [--first 0] [--workers 2] [--only INDEX]

Every certificate is a function of its index alone, so a finding is repeated with `--only`. Checksums fit, so
that forgeries come as far as the promise. An audit hook and a watch on questions about files count what is
touched beside the image and its certificate.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parent.parent))
from hardening_certificates import WATCH, honest, placed, sealed
from hardening_forgeries import forged

HANG = 120
"""Seconds for one certificate; each calibration at the ends of what methods take has up to ten."""
SUSPECT = ("recomputed (", "MemoryError")
"""What a line says where something went wrong that nobody foresaw."""


class Hang(BaseException):
    """Not an error that `verify` could catch."""


def one(index: int, originals: dict[str, dict[str, Any]], folder: Path) -> dict[str, Any]:
    """Verify one certificate; `finding` says what was wrong, if anything."""
    from dpveil.cli.verify import _entry, _line
    from dpveil.release.verification import verify

    kind, contents = forged(index, originals)
    image = placed(folder, contents)
    finding, status, start = "", "", time.perf_counter()
    signal.alarm(HANG)
    try:
        with WATCH.watching():
            result = verify(image)
        status = result.status
        finding = _unclear(result.problems, [_line(result, None), json.dumps(_entry(result))])
    except Hang:
        finding = f"no answer for {HANG} seconds"
    except Exception as error:  # noqa: BLE001  this is what is looked for
        finding = f"{type(error).__name__}: {error}"
    signal.alarm(0)
    if strange := WATCH.strange(image):
        finding = finding or f"touched {strange[0]}"
    if sorted(os.listdir(folder)) != sorted([image.name, f"{image.name}.certificate.json"]):  # noqa: PTH208
        finding = finding or "left something behind"
    if kind == "legal" and status != "consistent":
        finding = finding or "an honest certificate is inconsistent"
    seconds = time.perf_counter() - start
    return {"index": index, "kind": kind, "status": status, "finding": finding, "seconds": seconds}


def _unclear(problems: tuple[str, ...], lines: list[str]) -> str:
    if len(problems) > 21 or any(len(problem) > 500 for problem in problems):
        return f"{len(problems)} problems"
    if not all(line.isprintable() for line in (*problems, *lines)):
        return f"unprintable: {problems!r:.300}"
    odd = [problem for problem in problems if any(word in problem for word in SUSPECT)]
    return f"unforeseen: {odd[0]}" if odd else ""


def work(first: int, stop: int, folder: Path) -> None:
    """Verify a range of certificates and print one JSON line for each."""
    from dpveil.cli.verify import _line
    from dpveil.io.names import quoted
    from dpveil.release.verification import verify

    def hang(number: int, frame: object) -> None:
        raise Hang

    signal.signal(signal.SIGALRM, hang)
    warnings.simplefilter("ignore")
    originals = honest()
    for data in originals.values():  # first uses import modules
        _line(verify(placed(folder, sealed(data))), None)
    _line(verify(placed(folder, sealed(data | {"schema": "\ud800"}))), None)
    quoted("\x1b")
    for index in range(first, stop):
        print(json.dumps(one(index, originals, folder)), flush=True)


def fuzz(files: int, *, first: int = 0, workers: int = 2) -> list[dict[str, Any]]:
    """Verify the certificates `first` to `first + files` in `workers` processes; say what became of them."""
    ends = [first + files * part // workers for part in range(workers + 1)]
    with tempfile.TemporaryDirectory() as place:
        started = []
        for number, (a, b) in enumerate(pairwise(ends)):
            folder = Path(place) / str(number)
            folder.mkdir()
            command = [sys.executable, __file__, "--work", str(a), str(b), str(folder)]
            said = (Path(place) / f"{number}.txt").open("w+", encoding="utf-8")
            started.append((a, b, said, subprocess.Popen(command, stdout=said, stderr=subprocess.PIPE)))
        entries = []
        for a, b, said, process in started:
            _, error = process.communicate()
            said.seek(0)
            entries += (own := [json.loads(line) for line in said])
            said.close()
            if process.returncode or len(own) != b - a:
                finding = f"the process died ({process.returncode}): {error.decode()[-300:]}"
                entries.append(
                    {"index": a + len(own), "kind": "lost", "status": "", "finding": finding, "seconds": 0}
                )
    return entries


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--files", type=int, default=100_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--only", type=int, help="verify this one certificate in this process")
    parser.add_argument("--work", nargs=3, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.work:
        work(int(chosen.work[0]), int(chosen.work[1]), Path(chosen.work[2]))
        return 0
    if chosen.only is not None:
        with tempfile.TemporaryDirectory() as folder:
            work(chosen.only, chosen.only + 1, Path(folder))
            print(
                (Path(folder) / "a.png.certificate.json")
                .read_bytes()[:3000]
                .decode(errors="backslashreplace")
            )
        return 0
    start = time.perf_counter()
    entries = fuzz(chosen.files, first=chosen.first, workers=chosen.workers)
    print(f"{len(entries):,} certificates in {time.perf_counter() - start:.0f} s, {chosen.workers} workers")
    for (kind, status), count in sorted(Counter((e["kind"], e["status"]) for e in entries).items()):
        print(f"  {kind:7} {status:13} {count:,}")
    for entry in sorted(entries, key=lambda entry: -entry["seconds"])[:5]:
        print(f"slow: {entry['seconds']:.2f} s, certificate {entry['index']} ({entry['kind']})")
    findings = [entry for entry in entries if entry["finding"]]
    for entry in findings[:40]:
        print(f"FINDING in certificate {entry['index']} ({entry['kind']}): {entry['finding'][:300]}")
    print(f"{len(findings)} findings")
    return 1 if findings or len(entries) != chosen.files else 0


if __name__ == "__main__":
    sys.exit(main())
