"""What `kill_cluster.py` compares when all its runs are over: inputs, outcomes, files and ledger."""

from __future__ import annotations

import hashlib
import json
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from scale_made import paid

from dpveil import verify
from dpveil.ledger import Ledger
from dpveil.scale.files import Row

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
from timing import load, report

KINDS = ("workers killed", "nodes killed", "everything killed")
MEMORY = ("MB of a worker", "MB of a node", "MB of the driver")
VERIFIED = 500
"""Releases that are verified, drawn at random; of all others, the hash is compared."""


def check(folder: Path, wanted: dict[str, str], seen: list[dict[str, Any]], nodes: int) -> dict[str, Any]:
    """Compare inputs, store and ledger after all runs; return the numbers, with what is wrong."""
    files = sorted((folder / "store" / "releases").rglob("*.png"))
    findings = [*check_outcomes(folder, wanted, seen[-1], files), *check_files(files)]
    hashes = Counter(hashlib.sha256(path.read_bytes()).hexdigest() for path in files)
    with Ledger(f"sqlite:///{folder / 'budget.db'}") as ledger:
        ledger.check()
        debits, lost = paid(ledger)
        stored = Counter(entry.event.sha256 for entry in ledger.history() if entry.kind == "stored")
    if hashes != stored:
        findings.append(f"{sum((hashes - stored).values())} unpaid, {sum((stored - hashes).values())} lost")
    if len(files) != debits - lost:
        findings.append(f"{len(files)} releases, and {debits} debits of which {lost} have none")
    told = [each["told"] for each in seen]
    total = {name: sum(each.get(name, 0) for each in told) for name in KINDS}
    most = total["workers killed"] + total["nodes killed"] + nodes * total["everything killed"]
    if lost > most:
        findings.append(f"{lost} debits without a release after {most} deaths of workers")
    statuses = Counter(seen[-1]["outcomes"].values())
    return {
        "inputs": len(wanted),
        "releases": len(files),
        "no region": statuses["no_region"],
        "failed": statuses["failed"],
        "debits": debits,
        "debits without a release": lost,
        **total,
        "runs": len(told),
        "seconds": round(sum(each["seconds"] for each in told[:-1]), 1),
        "seconds of the last run, which finds all": told[-1]["seconds"],
        **{name: max(each.get(name, 0) for each in told) for name in MEMORY},
        "findings": findings[:20],
    }


def check_outcomes(
    folder: Path, wanted: dict[str, str], last: dict[str, Any], files: list[Path]
) -> list[str]:
    """Return what is wrong with the last report, and with the names of releases that workers wrote down."""
    outcomes, findings, names = last["outcomes"], [], dict[str, set[str]]()
    for path, status in wanted.items():
        expected = {"skipped"} if status == "released" else {status}
        if outcomes.get(path) not in expected:
            findings.append(f"{path} is {outcomes.get(path)}")
    if set(outcomes) != set(wanted) or last["entries"] != len(wanted):
        findings.append("the report does not have every input once")
    for log in (folder / "store" / "outcomes").rglob("*.jsonl"):
        for line in log.read_bytes().splitlines():
            row = Row.parse(line.decode(errors="replace"))
            if row is not None and row.release:
                names.setdefault(row.key, set()).add(row.release)
    photos_ = {path for path, status in wanted.items() if status == "released"}
    there = {f"{path.parent.name}/{path.name}" for path in files}
    if set(names) != photos_ or [each for each in names.values() if len(each) != 1]:
        findings.append("not every photo has one name of a release")
    elif {name for each in names.values() for name in each} != there or len(there) != len(photos_):
        findings.append(f"{len(there)} releases of {len(photos_)} photos")
    return findings


def check_files(files: list[Path]) -> list[str]:
    """Return which of some releases do not verify, and how many are not the files of their certificates."""
    some = random.Random(1).sample(files, min(VERIFIED, len(files)))  # noqa: S311
    findings = [f"{path.name} does not verify" for path in some if verify(path).status != "consistent"]
    others = 0
    for path in files:
        stated = json.loads(path.with_name(f"{path.name}.certificate.json").read_bytes())
        others += stated["output"]["sha256"] != hashlib.sha256(path.read_bytes()).hexdigest()
    return [*findings, *([f"{others} are not the files of their certificates"] if others else [])]


def keep(found: dict[str, Any]) -> None:
    """Keep the numbers among the results of benchmarks, with the commit."""
    git = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short", "HEAD"]
    commit = subprocess.run(git, capture_output=True, text=True, check=False).stdout.strip()
    note = f"By tests/scale/kill_cluster.py at commit {commit}. Load of the machine: {load()}."
    report(
        "scale_kills", [{name: value for name, value in found.items() if name != "findings"}], notes=(note,)
    )
