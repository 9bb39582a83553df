"""Runs whose workers, or which themselves, are killed at random moments: nothing unpaid, double or lost."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import dpveil
from dpveil.ledger import Ledger, Limit

PHOTOS = 8
COMMAND = ("--method", "dp-pix", "--epsilon", "1", "--block", "8", "--neighbourhood", "16", "--json")
PAYS = ("--ledger", "sqlite:///budget.db", "--subject", "album")


def workers_of(process: int) -> list[int]:
    """Return the children of a process, which are workers."""
    found: list[int] = []
    for thread in Path(f"/proc/{process}/task").glob("*/children"):
        with suppress(OSError):
            found += map(int, thread.read_text().split())
    return found


def gone(process: int) -> bool:
    """Whether a process has ended, though perhaps nobody has asked how."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def started(number: int) -> subprocess.Popen[str]:
    program = (sys.executable, "-m", "dpveil", "obfuscate", f"in{number}", "--out", f"out{number}")
    return subprocess.Popen(
        (*program, *COMMAND, *PAYS, "--jobs", "2"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def kill_something(running: subprocess.Popen[str], chance: random.Random) -> tuple[int, int]:
    """Kill a worker, or in one case of five the run, at a random moment; return how many of each.

    In three cases of ten this is while it starts, else once another photo was written.
    """
    starting, before = chance.random() < 0.3, written()
    while running.poll() is None and not (workers_of(running.pid) if starting else written() > before):
        time.sleep(0.001)
    time.sleep(chance.uniform(0, 1.5 if starting else 0.1))
    itself = chance.random() < 0.2
    children = workers_of(running.pid)
    victims = [running.pid] if itself else children
    if running.poll() is not None or not victims:
        return 0, 0
    os.kill(chance.choice(victims), signal.SIGKILL)
    while itself and not all(map(gone, children)):  # they end by themselves
        time.sleep(0.001)
    return (0, 1) if itself else (1, 0)


def written() -> int:
    return len([*Path().glob("out*/*.png")])


def complete(number: int) -> bool:
    return len([*Path(f"out{number}").glob("*.png")]) == PHOTOS


def killed(times: int, seed: int) -> tuple[int, int]:
    """Release folder after folder, rerunning what was killed, until so many processes were killed."""
    chance, counts, number = random.Random(seed), [0, 0], 0  # noqa: S311
    photo = np.random.default_rng(1).integers(0, 256, (160, 200, 3), np.uint8)
    while sum(counts) < times:
        Path(f"in{number}").mkdir()
        for each in range(PHOTOS):
            Image.fromarray(np.roll(photo, each, axis=1)).save(f"in{number}/{each:02}.png")
        while not complete(number):
            running = started(number)
            while running.poll() is None:
                workers, runs = kill_something(running, chance) if sum(counts) < times else (0, 0)
                counts[0], counts[1] = counts[0] + workers, counts[1] + runs
                if runs or sum(counts) >= times:
                    break
            out, err = running.communicate(timeout=300)
            assert "Traceback" not in err
            if running.returncode >= 0:
                told = json.loads(out)
                assert sum(map(len, told.values())) == PHOTOS
                assert all(Path(entry["output"]).exists() for entry in told["released"])
        number += 1
    return counts[0], counts[1]


def check(kills: tuple[int, int]) -> None:
    outputs = sorted(Path().glob("out*/*.png"))
    assert all(dpveil.verify(output).publishable for output in outputs)
    assert not [*Path().glob("out*/.dpveil*")]
    with Ledger("sqlite:///budget.db") as ledger:
        found = ledger.check()
        sha256s = [dpveil.verify(output).certificate.output.sha256 for output in outputs]  # type: ignore[union-attr]
        payments = [ledger.paid_for(sha256) for sha256 in sha256s]
        debits = [(e.event.unit, e.event.draw) for e in ledger.history() if e.kind == "debit"]  # type: ignore[union-attr]
    assert len(set(sha256s)) == len(outputs)
    assert [len(paid) for paid in payments] == [1] * len(outputs), "a release is unpaid, or paid twice"
    assert len(set(debits)) == len(debits) == found.debits, "a debit was lost or counted twice"
    workers, runs = kills
    lost = found.debits - len(outputs)
    print(f"{workers} workers and {runs} runs killed: {len(outputs)} releases, {lost} paid and lost")
    assert 0 <= lost <= 2 * workers + 4 * runs, "a crash cost more than what was under way"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    with Ledger("sqlite:///budget.db", create=True) as ledger:
        ledger.set_limit("album", Limit("pure", epsilon=10**6))


pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="finds workers in /proc")


@pytest.mark.slow
@pytest.mark.usefixtures("here")
def test_two_hundred_kills() -> None:
    check(killed(200, seed=4))
