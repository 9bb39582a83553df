"""The service at saturation, beside the library's own work in the same run: throughput, p50, p99, memory.

Clients run on the same cores, and fetch the image of every release. `share` is the throughput of the service
divided by that of as many processes as it has workers, which read, plan, release and encode the same photo;
`by cpu` compares processor seconds instead, without those of the clients.
`--minutes M` asks for as long as that, and prints the memory of all processes every tenth of it: the soak.
"""

from __future__ import annotations

import argparse
import http.client
import io
import json
import multiprocessing
import os
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from PIL import Image
from skimage import data

WORKERS, CLIENTS = 2, 6
SETTINGS = {"method": "dp-pix", "epsilon": 20, "block": 16, "neighbourhood": 256, "regions": "176,60,88,120"}
EDGE = "----8c1f"


def photo(width: int, height: int) -> bytes:
    file = io.BytesIO()
    Image.fromarray(data.astronaut()).resize((width, height)).save(file, "JPEG", quality=90)
    return file.getvalue()


def body(contents: bytes, settings: dict[str, object]) -> bytes:
    told = json.dumps(settings).encode()
    head = f'--{EDGE}\r\ncontent-disposition: form-data; name="%s"\r\n\r\n'
    return (
        b"".join(((head % "photo").encode(), contents, b"\r\n", (head % "settings").encode(), told))
        + f"\r\n--{EDGE}--\r\n".encode()
    )


def ticks(process: int) -> float:
    """Return the processor seconds of a server and of its workers so far."""
    children = Path(f"/proc/{process}/task/{process}/children").read_text().split()

    def of(number: object) -> float:
        fields = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    return of(process) + sum(map(of, children))


def library(contents: bytes, begin: float, seconds: float, done: object) -> None:
    """Release as often as the time allows, as one worker would."""
    import cv2

    import dpveil
    from dpveil.noise.backend import compile_now

    cv2.setNumThreads(1)
    compile_now()
    given = {n: v for n, v in SETTINGS.items() if n not in ("method", "regions")}

    def once() -> None:
        plan = dpveil.plan(dpveil.read(contents), "dp-pix", regions=SETTINGS["regions"], **given)
        release = plan.release()
        release.encoded("png")[1].to_text()

    once()
    time.sleep(max(0.0, begin - time.time()))
    count, spent = 0, time.process_time()
    while time.time() < begin + seconds:
        once()
        count += 1
    done.put((count, time.process_time() - spent))  # type: ignore[attr-defined]


def own(contents: bytes, seconds: float) -> tuple[float, float]:
    """Return the library's releases a second in `WORKERS` processes, and the processor seconds of each."""
    context = multiprocessing.get_context("spawn")
    done, begin = context.Queue(), time.time() + 15
    processes = [
        context.Process(target=library, args=(contents, begin, seconds, done)) for _ in range(WORKERS)
    ]
    for process in processes:
        process.start()
    counts, spent = zip(*(done.get() for _ in processes), strict=True)
    for process in processes:
        process.join()
    return sum(counts) / seconds, sum(spent) / sum(counts)


class Load:
    """Clients that ask one after another until the time is over."""

    def __init__(self, port: int, sent: bytes, seconds: float) -> None:
        self.port, self.sent, self.end = port, sent, time.perf_counter() + seconds
        self.times: list[float] = []
        self.other: dict[int, int] = {}

    def ask(self) -> None:
        line = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        headers = {"content-type": f"multipart/form-data; boundary={EDGE}"}
        while (began := time.perf_counter()) < self.end:
            line.request("POST", "/v1/releases", self.sent, headers)
            answer = line.getresponse()
            told = answer.read()
            if answer.status != 201:  # a service that is full, or stops
                self.other[answer.status] = self.other.get(answer.status, 0) + 1
                continue
            line.request("GET", json.loads(told)["image_url"])
            line.getresponse().read()
            self.times.append(time.perf_counter() - began)
        line.close()

    def run(self) -> None:
        threads = [threading.Thread(target=self.ask) for _ in range(CLIENTS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


def memory(process: int) -> dict[str, int]:
    """Return the resident MiB of the server and of its workers together."""
    children = Path(f"/proc/{process}/task/{process}/children").read_text().split()

    def resident(number: object) -> int:
        status = Path(f"/proc/{number}/status").read_text()
        return int(re.search(r"VmRSS:\s+([0-9]+)", status)[1]) // 1024  # type: ignore[index]

    return {"server MiB": resident(process), "workers MiB": sum(map(resident, children))}


def serve(arguments: list[str], sent: bytes, seconds: float, rounds: int = 1) -> list[dict[str, object]]:
    """Return the figures of the service for each of some rounds of that many seconds."""
    command = [sys.executable, "-m", "dpveil", "serve", "--port", "0", "--workers", str(WORKERS), *arguments]
    found = []
    with tempfile.TemporaryFile() as log, subprocess.Popen(command, stderr=log) as process:
        while not (told := re.search(rb":([0-9]+)\n", read(log))):
            time.sleep(0.1)
        port = int(told[1])
        Load(port, sent, 10).run()
        for _ in range(rounds):
            load, before = Load(port, sent, seconds), ticks(process.pid)
            load.run()
            times = sorted(load.times)
            found.append(
                {
                    "releases/s": round(len(times) / seconds, 2),
                    "cpu ms": round(1000 * (ticks(process.pid) - before) / len(times), 1),
                    "p50 ms": round(1000 * statistics.median(times), 1),
                    "p99 ms": round(1000 * times[int(0.99 * len(times))], 1),
                    "other answers": load.other,
                    **memory(process.pid),
                }
            )
        process.terminate()
    return found


def read(file: object) -> bytes:
    file.seek(0)  # type: ignore[attr-defined]
    return file.read()  # type: ignore[attr-defined]


def ledger(folder: str) -> list[str]:
    """Return the options of a service with a ledger and results in files."""
    url = f"sqlite:///{folder}/budget.db"
    limit = [sys.executable, "-m", "dpveil", "ledger", "limit", "album", "--epsilon", "1000000"]
    subprocess.run([*limit, "--ledger", url], check=True, capture_output=True)
    return ["--ledger", url, "--results", f"{folder}/results.db"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=0)
    parser.add_argument("--seconds", type=float, default=20)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        paid = {**SETTINGS, "subject": "album"}
        if options.minutes:
            sent = body(photo(512, 512), paid)
            rounds = serve(ledger(folder), sent, 6 * options.minutes, 10)
            print(json.dumps(rounds, indent=1))
            return
        for width, height in ((512, 512), (4000, 3000)):
            contents = photo(width, height)
            alone = [own(contents, options.seconds)]
            plain = serve([], body(contents, SETTINGS), options.seconds)[0]
            alone.append(own(contents, options.seconds))
            name = Path(folder, f"{width}")
            name.mkdir()
            with_ledger = serve(ledger(str(name)), body(contents, paid), options.seconds)[0]
            rate, cpu = (statistics.mean(figures) for figures in zip(*alone, strict=True))
            print(f"{width}x{height}: the library alone: {rate:.1f} releases/s, cpu {1000 * cpu:.1f} ms")
            for kind, row in (("in memory", plain), ("ledger and results in files", with_ledger)):
                shares = f"share {row['releases/s'] / rate:.2f}, by cpu {1000 * cpu / row['cpu ms']:.2f}"  # type: ignore[operator]
                print(f"  {kind}: {shares}", json.dumps(row))


if __name__ == "__main__":
    main()
