"""Send damaged uploads to the service: anything but an answer below 500 in problem+json or JSON is a finding.

    python tests/service/fuzz_service.py --files 10000 [--first 0] [--workers 2]

Every upload is a function of its index alone. Photos are damaged as in tests/hardening, settings by words
that are exchanged for others, and forms by bytes. At the end no upload may be held, no worker busy and no
process left behind; the figures say how many workers had to be replaced, and how memory went.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[1] / "hardening"))
from hardening_mutations import damaged
from hardening_seeds import seeds
from service_client import service

EDGE = "edge"
VALUES: tuple[Any, ...] = (
    *(
        None,
        True,
        [],
        {},
        "",
        "0",
        -1,
        0,
        1,
        2**63,
        10**30,
        1e308,
        0.1,
        "1/3",
        "1e400",
        "NaN",
        "\x00",
        "ä" * 99,
    ),
    *(
        "whole",
        "faces",
        "1,1,9,9",
        "-1,0,1,1",
        [0, 0, 8, 8],
        [[0, 0, 8, 8]],
        ["whole", "whole"],
        "/etc/passwd",
    ),
    *("dp-pix", "snow", "fill", "blur", "mse-exponential", "bit-planes", "dct-gaussian", "dp-svd", "dp-samp"),
    *("png", "webp", "copy", "whole", "strong", "median:3", ["gaussian:1", "median:3"], "all", "1,2"),
)
NAMES = (
    *("method", "regions", "if_none", "at_least", "post_processing", "format", "subject", "epsilon", "delta"),
    *(
        "rho",
        "block",
        "neighbourhood",
        "levels",
        "rank",
        "clusters",
        "window",
        "only",
        "except",
        "margin",
        "x",
    ),
)
USUAL = {"method": "dp-pix", "epsilon": 2, "block": 8, "neighbourhood": 16, "regions": "whole"}


def upload_of(index: int, originals: dict[str, bytes]) -> tuple[str, bytes]:
    """Return the address and the body of one index."""
    rng = random.Random(f"service {index}")  # noqa: S311  no secret depends on it
    name = list(originals)[index % len(originals)]
    contents = damaged(name, originals, rng) if rng.random() < 0.7 else originals[name]
    settings = dict(USUAL)
    for _ in range(rng.choice([0, 0, 1, 1, 2, 4])):
        settings[rng.choice(NAMES)] = rng.choice(VALUES)
    told = json.dumps(settings).encode()
    parts = [("photo", contents), ("settings", told)]
    rng.shuffle(parts)
    body = b"".join(
        f'--{EDGE}\r\ncontent-disposition: form-data; name="{part}"\r\n\r\n'.encode() + data + b"\r\n"
        for part, data in parts
    )
    whole = bytearray(body + f"--{EDGE}--\r\n".encode())
    for _ in range(rng.choice([0] * 8 + [1, 3])):
        whole[rng.randrange(len(whole))] = rng.randrange(256)
    end = rng.randrange(len(whole)) if rng.random() < 0.05 else len(whole)
    return rng.choice(["/v1/plan", "/v1/releases"]), bytes(whole[:end])


@dataclass
class Outcome:
    """What a run found: answers by status and kind, `findings` in words, and the service's figures.

    `memory` has the MiB of private pages of server and workers together, ten times during the run.
    """

    answers: Counter[str]
    findings: list[str]
    figures: dict[str, float]
    memory: list[float]


def wrong(answer: Any) -> str:
    """Return what is wrong with an answer, in words, or nothing."""
    failed, kind = answer.status_code >= 400, answer.headers["content-type"]
    if answer.status_code >= 500:
        return "failed"
    if kind != ("application/problem+json" if failed else "application/json"):
        return f"is of type {kind}"
    told = answer.json()
    if failed and not (told["type"].startswith("urn:dpveil:error:") and told["status"] == answer.status_code):
        return "is no problem"
    clear = 0 < len(told.get("title", "x")) < 500 and told.get("title", "x").isprintable()
    return "" if clear else "has no clear line"


def children() -> list[int]:
    """Return the processes that threads of this one started."""
    tasks = Path("/proc/self/task").glob("*/children")
    return [int(number) for task in tasks for number in task.read_text(encoding="utf-8").split()]


def memory() -> float:
    """Return the MiB of private pages of this process and its children."""
    status = [Path(f"/proc/{number}/status").read_text(encoding="utf-8") for number in ("self", *children())]
    return sum(int(found[1]) for text in status if (found := re.search(r"RssAnon:\s+(\d+)", text))) / 1024


def fuzz(count: int, first: int = 0, workers: int = 2) -> Outcome:
    """Return what became of the uploads `first` to `first + count`."""
    from dpveil.service.limits import Limits

    originals, found = seeds(), Outcome(Counter(), [], {}, [])
    headers = {"content-type": f"multipart/form-data; boundary={EDGE}"}
    before = set(children())
    with service(Limits(pixels=1_000_000), workers=workers) as (_, client):
        for index in range(first, first + count):
            address, body = upload_of(index, originals)
            answer = client.post(address, content=body, headers=headers)
            told = answer.json()
            kind = str(told.get("type", address)).rpartition(":")[2]
            found.answers[f"{answer.status_code} {kind}"] += 1
            if words := wrong(answer):
                found.findings.append(f"{index}: {words}: {answer.status_code} {answer.text[:300]}")
            if answer.status_code == 201:
                client.delete(f"/v1/releases/{told['id']}")
            if (index - first) % (count // 10 or 1) == count // 20:
                found.memory.append(memory())
        figures = re.findall(r"^(dpveil_[a-z_]+) ([-0-9.e+]+)$", client.get("/metrics").text, re.MULTILINE)
    found.figures = {name: float(value) for name, value in figures}
    found.findings += [f"process {number} was left behind" for number in set(children()) - before]
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    found = fuzz(options.files, options.first, options.workers)
    for kind, count in sorted(found.answers.items()):
        print(f"{count:7,} {kind}")
    print(found.figures)
    print("MiB of server and workers:", " ".join(f"{size:.0f}" for size in found.memory))
    print("\n".join(found.findings) or "no finding")
    return bool(found.findings)


if __name__ == "__main__":
    sys.exit(main())
