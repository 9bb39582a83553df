"""The service for as long as you like: does memory stay flat, is anything lost, is anything not paid for?

    python benchmarks/service_soak.py --minutes 30        # kept in results/service_soak.json
    python benchmarks/service_soak.py --minutes 1440      # a day

Clients send photos of three sizes at `--rate` releases a second, 0 for as many as they can, and download
each release. Some ask again with their key, some send what is no photo, and some break off. Results expire
after `--keep` seconds, so that they reach a steady size. At the end the server is stopped, and the ledger is
checked: each file that a client saw must have been paid for by one debit, and each debit must have its file.
Memory is that of private pages, looked at every second: the least and the most of each row's time. `grows` is
the median slope of the least over the second half, in an hour. It ends with 1 if anything was lost or unpaid,
or if the least memory is larger by 16 MiB in the last third of the time than in the second: give it ten
minutes at least.
"""

from __future__ import annotations

import argparse
import hashlib
import http.client
import io
import itertools
import json
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

from PIL import Image
from skimage import data

from dpveil.ledger import Ledger, Limit
from timing import load, report

WORKERS, CLIENTS = 2, 4
SETTINGS = {"method": "dp-pix", "epsilon": 20, "block": 16, "neighbourhood": 256}
SETTINGS |= {"regions": "176,60,88,120", "subject": "album"}
EDGE = "----8c1f"
SIZES = ((512, 512),) * 12 + ((1600, 1200),) * 3 + ((4000, 3000),)
FORM = {"content-type": f"multipart/form-data; boundary={EDGE}"}
ROWS = 30  # rows of the table
LEAST = ("server MiB, least", "workers MiB, least")
GROWTH = 16  # MiB by which these may be larger in the last third of the time than in the second


def photo(width: int, height: int) -> bytes:
    file = io.BytesIO()
    Image.fromarray(data.astronaut()).resize((width, height)).save(file, "JPEG", quality=90)
    return file.getvalue()


def body(contents: bytes) -> bytes:
    parts = (("photo", contents), ("settings", json.dumps(SETTINGS).encode()))
    head = f'--{EDGE}\r\ncontent-disposition: form-data; name="%s"\r\n\r\n'
    return b"".join((head % n).encode() + c + b"\r\n" for n, c in parts) + f"--{EDGE}--\r\n".encode()


class Clients:
    """Clients of one service, what they were `shown` by key, and what answers there were."""

    def __init__(self, port: int, rate: float) -> None:
        self.port, self.rate = port, rate
        self.bodies = {size: body(photo(*size)) for size in set(SIZES)}
        self.shown: dict[str, str] = {}
        self.answers: Counter[str] = Counter()
        self.wrong: list[str] = []
        self.over = threading.Event()
        self.numbers = itertools.count()

    def run(self) -> list[threading.Thread]:
        threads = [threading.Thread(target=self._client) for _ in range(CLIENTS)]
        for thread in threads:
            thread.start()
        return threads

    def _client(self) -> None:
        line = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        due = time.monotonic()
        while not self.over.wait(max(0.0, due - time.monotonic())):
            due = max(due, time.monotonic() - 5) + (CLIENTS / self.rate if self.rate else 0)
            number = next(self.numbers)
            try:
                self._one(line, number)
            except (OSError, http.client.HTTPException) as error:
                self.wrong.append(f"{number}: {type(error).__name__}")
                line.close()
        line.close()

    def _one(self, line: http.client.HTTPConnection, number: int) -> None:
        sent = self.bodies[SIZES[number % len(SIZES)]]
        if number % 20 == 7:
            self._expect(*self._ask(line, sent.replace(b"JFIF", b"none", 1)[:-5000], "damaged"), 400)
            self._expect(*self._ask(line, body(b"no photo"), "none"), 422)
        if number % 50 == 9:
            self._break_off(sent)
        status, told = self._ask(line, sent, str(number))
        if not self._expect(status, told, 201):
            return
        line.request("GET", told["image_url"])
        image = line.getresponse().read()
        sha256 = told["certificate"]["output"]["sha256"]
        if hashlib.sha256(image).hexdigest() != sha256:
            self.wrong.append(f"{number}: another image")
        self.shown[str(number)] = sha256
        if number % 10 == 3:
            again = self._ask(line, sent, str(number))[1]
            if again.get("id") != told["id"]:
                self.wrong.append(f"{number}: another release for the same key")

    def _ask(self, line: http.client.HTTPConnection, sent: bytes, key: str) -> tuple[int, dict]:
        """Ask until it is made or refused: it may wait, or take long."""
        while True:
            line.request("POST", "/v1/releases", sent, FORM | {"idempotency-key": key})
            answer = line.getresponse()
            told = json.loads(answer.read())
            if answer.status not in (202, 503):
                return answer.status, told
            self.answers[str(answer.status)] += 1
            time.sleep(1)

    def _expect(self, status: int, told: dict, wanted: int) -> bool:
        self.answers[str(status)] += 1
        if status != wanted:
            self.wrong.append(f"{status} {told.get('title')}")
        return status == wanted

    def _break_off(self, sent: bytes) -> None:
        head = f"POST /v1/releases HTTP/1.1\r\nhost: localhost\r\ncontent-length: {len(sent)}\r\n"
        head += "".join(f"{name}: {value}\r\n" for name, value in FORM.items()) + "\r\n"
        with socket.create_connection(("127.0.0.1", self.port)) as line:
            line.sendall(head.encode() + sent[: len(sent) // 2])
        self.answers["broken off"] += 1


def private(process: int | str) -> float:
    """Return the MiB of private pages of a process."""
    status = Path(f"/proc/{process}/status").read_text()
    return int(re.search(r"RssAnon:\s+([0-9]+)", status)[1]) / 1024  # type: ignore[index]


def memory(process: int) -> dict[str, float]:
    """Return the MiB of private pages of the server, and of its workers together."""
    children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    return {"server": private(process), "workers": sum(map(private, children))}


def minute(process: int, folder: Path, clients: Clients, begun: float, until: float) -> dict[str, object]:
    """Wait until that moment, and return what the service held meanwhile."""
    seen = [memory(process)]
    while (left := until - time.monotonic()) > 0:
        time.sleep(min(1, left))
        seen.append(memory(process))
    files = {
        name: sum(f.stat().st_size for f in folder.glob(f"{name}.db*")) for name in ("results", "budget")
    }
    return {
        "minute": round((time.monotonic() - begun) / 60, 1),
        "releases": len(clients.shown),
        **{
            f"{name} MiB, {word}": round(chosen(each[name] for each in seen), 1)
            for name in ("server", "workers")
            for word, chosen in (("least", min), ("most", max))
        },
        "open files": len([*Path(f"/proc/{process}/fd").iterdir()]),
        "threads": len([*Path(f"/proc/{process}/task").iterdir()]),
        "results MB": round(files["results"] / 1e6, 1),
        "ledger MB": round(files["budget"] / 1e6, 1),
    }


def grows(rows: list[dict[str, object]], name: str) -> float:
    """Return the median slope of a column over the second half of the time, in units an hour."""
    points = [(float(row["minute"]) / 60, float(row[name])) for row in rows[len(rows) // 2 :]]  # type: ignore[arg-type]
    pairs = itertools.combinations(points, 2)
    return round(statistics.median((b[1] - a[1]) / (b[0] - a[0]) for a, b in pairs if b[0] > a[0]), 2)


def more(rows: list[dict[str, object]], name: str) -> float:
    """Return by how much the median of a column in the last third of the time is above that of the second."""
    third = len(rows) // 3
    second, last = (
        statistics.median(float(row[name]) for row in part)  # type: ignore[arg-type]
        for part in (rows[third:-third], rows[-third:])
    )
    return last - second


def soak(folder: Path, minutes: float, rate: float, keep: int) -> tuple[list[dict[str, object]], list[str]]:
    """Return the rows, and in words what was found; what is wrong begins with "WRONG"."""
    url = f"sqlite:///{folder}/budget.db"
    with Ledger(url, create=True) as made:
        made.set_limit("album", Limit(kind="pure", epsilon=10**9))
    command = [sys.executable, "-m", "dpveil", "serve", "--port", "0", "--workers", str(WORKERS)]
    command += ["--ledger", url, "--results", f"{folder}/results.db", "--keep", str(keep)]
    with (folder / "log").open("w+b") as log, subprocess.Popen(command, stderr=log) as process:
        while not (told := re.search(rb"http://[^ ]+:([0-9]+)\n", Path(log.name).read_bytes())):
            time.sleep(0.1)
        clients, rows, begun = Clients(int(told[1]), rate), [], time.monotonic()
        threads = clients.run()
        for number in range(1, ROWS + 1):
            rows.append(minute(process.pid, folder, clients, begun, begun + 60 * minutes * number / ROWS))
            print(json.dumps(rows[-1]), file=sys.stderr, flush=True)
        clients.over.set()
        for thread in threads:
            thread.join()
        line = http.client.HTTPConnection("127.0.0.1", int(told[1]))
        line.request("GET", "/metrics")
        figures = dict(
            re.findall(r"^(dpveil_[a-z_]+) ([-0-9.e+]+)$", line.getresponse().read().decode(), re.M)
        )
        line.close()
        process.terminate()
        process.wait(120)
    grown = [name for name in LEAST if more(rows, name) > GROWTH]
    clients.wrong += [f"{name} grew by {more(rows, name):.0f}" for name in grown]
    return rows, verdict(url, clients, figures, process.returncode)


def verdict(url: str, clients: Clients, figures: dict[str, str], code: int) -> list[str]:
    """Return what the ledger and the figures say of what clients saw."""
    with Ledger(url) as book:
        checked = book.check()
        payments = Counter(len(book.paid_for(sha256)) for sha256 in clients.shown.values())
    files = set(clients.shown.values())
    said = [f"answers {dict(clients.answers)}", f"{checked.debits} debits, {checked.files} files"]
    wrong = [*clients.wrong[:20]]
    if (checked.debits, checked.files, len(files), payments) != (*[len(files)] * 3, Counter({1: len(files)})):
        wrong.append(f"debits, files and what was seen differ: {checked}, {len(files)} seen, {payments}")
    for name in ("releases_lost_total", "workers_replaced", "upload_bytes", "busy", "waiting"):
        if float(figures[f"dpveil_{name}"]):
            wrong.append(f"dpveil_{name} is {figures[f'dpveil_{name}']} at the end")
    if code:
        wrong.append(f"the server ended with {code}")
    return [*said, *(f"WRONG: {words}" for words in wrong)] if wrong else [*said, "0 lost, 0 unpaid"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--rate", type=float, default=2)
    parser.add_argument("--keep", type=int, default=300)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rows, said = soak(Path(folder), options.minutes, options.rate, options.keep)
    steady = {name: grows(rows, name) for name in (*LEAST, "results MB")}
    notes = (
        f"{options.minutes:g} minutes at {options.rate:g} releases a second.",
        f"Results expire after {options.keep} s.",
        f"grows in an hour, second half: {steady}",
        *said,
        f"Load at the end: {load()}.",
    )
    report("service_soak", rows, notes=notes)
    print("\n".join(notes))
    return any(words.startswith("WRONG") for words in said)


if __name__ == "__main__":
    sys.exit(main())
