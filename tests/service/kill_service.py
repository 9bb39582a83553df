"""Kill the service and its workers at random moments while clients retry by key.

    python tests/service/kill_service.py --rounds 100 [--ledger URL] [--seed 1]

In each round a service starts on the same ledger and results, and clients ask for releases, each under a key
of its own, until they have one. Up to two workers are killed, then the server, with SIGKILL. At the end every
key must have one release, which every retry gets; each file must have been paid for by one debit, which paid
for nothing else; no draw may have begun without a debit; and no process may be left.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
import service_client
from service_client import kill, photo, server, upload, workers

CLIENTS, EACH = 4, 2
"""Clients that ask at the same time, and new keys for each in a round."""
PATIENCE = 60
"""Seconds within which a process that was killed has to be gone."""


@dataclass
class Campaign:
    """What clients saw of each key, and which keys have no release yet."""

    waiting: list[str] = field(default_factory=list)
    shown: dict[str, set[tuple[str, str]]] = field(default_factory=dict)
    answers: Counter[str] = field(default_factory=Counter)
    findings: list[str] = field(default_factory=list)

    def ask(self, client: httpx.Client, key: str) -> bool:
        """Ask for the release of a key; return whether there is one."""
        files = upload(photo(seed=int(key)), subject="album", epsilon=1)
        try:
            answer = client.post("/v1/releases", files=files, headers={"Idempotency-Key": key})
            told = answer.json()
            self.answers[f"{answer.status_code} {told.get('type', '')}".strip()] += 1
            if answer.status_code in (422, 500, 503):
                return False
            if answer.status_code != 201:
                self.findings.append(f"{key}: {answer.text}")
                return True
            sha256 = told["certificate"]["output"]["sha256"]
            self.shown.setdefault(key, set()).add((told["id"], sha256))
            image = client.get(told["image_url"])
            if image.status_code == 200 and hashlib.sha256(image.content).hexdigest() != sha256:
                self.findings.append(f"{key}: another image")
        except (httpx.TransportError, httpx.InvalidURL) as error:
            self.answers[type(error).__name__] += 1
            return key in self.shown
        return True

    def client(self, client: httpx.Client, stop: threading.Event) -> None:
        """Ask for what is waiting until nothing is, or the server is gone."""
        while not stop.is_set():
            try:
                key = self.waiting.pop()
            except IndexError:
                return
            if not self.ask(client, key):
                self.waiting.insert(0, key)
                time.sleep(0.02)


def round_(
    campaign: Campaign,
    arguments: list[str],
    draw: Any,
    *,
    mortal: bool,
    again: Callable[[], None] | None = None,
) -> None:
    """Run a service; if it is `mortal`, kill workers and then the server. `again` adds keys to ask for."""
    with server(*arguments, "--workers", "2") as (process, client):
        stop, log = threading.Event(), threading.Thread(target=process.stderr.read)
        log.start()  # a pipe that nobody reads stops the server
        threads = [threading.Thread(target=campaign.client, args=(client, stop)) for _ in range(CLIENTS)]
        for thread in threads:
            thread.start()
        children = set(workers(process))
        if mortal:
            time.sleep(float(draw.uniform(0, 0.4)))
            for worker in draw.permutation(sorted(children))[: draw.integers(0, 3)]:
                kill(int(worker))
                time.sleep(float(draw.uniform(0, 0.2)))
            children |= set(workers(process))
            stop.set()
            kill(process.pid)
        for thread in threads:
            thread.join()
        if again is not None:
            again()
            campaign.client(client, stop)
        process.terminate()
        log.join()
    until = time.monotonic() + PATIENCE
    while left := [child for child in children if alive(child)]:
        if time.monotonic() > until:
            campaign.findings.append(f"workers are left: {left}")
            return
        time.sleep(0.02)


def alive(number: int) -> bool:
    try:
        return ") Z " not in Path(f"/proc/{number}/stat").read_text(encoding="utf-8")
    except OSError:
        return False


def kills(rounds: int, url: str, folder: Path, seed: int) -> tuple[Campaign, dict[str, int]]:
    """Run the rounds, and one without kills, in which every key is asked for again; return figures, too."""
    from dpveil.ledger import Ledger, Limit

    with Ledger(url, create=True) as made:
        made.set_limit("album", Limit(kind="pure", epsilon=10**6))
    arguments = ["--ledger", url, "--results", str(folder / "results.db"), "--keep", "100000"]
    campaign, draw = Campaign(), np.random.Generator(np.random.PCG64(seed))
    os.environ["TMPDIR"], service_client.REAL = (
        str(folder),
        "noting_worker:serve",
    )  # which notes in that folder
    for number in range(rounds):
        campaign.waiting += map(str, range(number * CLIENTS * EACH, (number + 1) * CLIENTS * EACH))
        round_(campaign, arguments, draw, mortal=True)
    keys, before = rounds * CLIENTS * EACH, 0

    def again() -> None:
        nonlocal before
        campaign.waiting = [str(key) for key in range(keys)]
        before = len((folder / "draws").read_bytes().splitlines())

    round_(campaign, arguments, draw, mortal=False, again=again)
    with Ledger(url) as book:
        checked = book.check()
        payments = [book.paid_for(sha256) for seen in campaign.shown.values() for _, sha256 in seen]
    draws = len((folder / "draws").read_bytes().splitlines())
    figures = {"keys": keys, "draws": draws, "debits": checked.debits, "files": checked.files}
    figures["lost"] = checked.debits - keys
    campaign.findings += judged(campaign, figures, payments, draws - before)
    return campaign, figures


def judged(campaign: Campaign, figures: dict[str, int], payments: list[Any], again: int) -> list[str]:
    """Return what is wrong with the figures."""
    shown = campaign.shown.values()
    entries = {paid.entry for paids in payments for paid in paids}
    wrong = {
        "a key without a release": len(shown) != figures["keys"],
        "a key with two releases": any(len(seen) != 1 for seen in shown),
        "two keys with one release": len({one for seen in shown for one in seen}) != figures["keys"],
        "a file that was not paid for once": any(len(paids) != 1 for paids in payments),
        "a debit that paid for two files": len(entries) != figures["keys"],
        "a draw without a debit": figures["draws"] > figures["debits"],
        "a draw for a retry": again != 0,
        "more files than keys in the ledger": figures["files"] != figures["keys"],
    }
    return [words for words, is_so in wrong.items() if is_so]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--ledger", help="the URL of an empty database; default: SQLite")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        url = options.ledger or f"sqlite:///{place}/budget.db"
        campaign, figures = kills(options.rounds, url, Path(place), options.seed)
    print(figures, dict(campaign.answers))
    print("\n".join(campaign.findings) or "no finding")
    return bool(campaign.findings)


if __name__ == "__main__":
    sys.exit(main())
