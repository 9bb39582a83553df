"""Send damaged uploads to the service: anything but an answer below 500 in problem+json or JSON is a finding.

    python tests/service/fuzz_service.py --files 10000 [--first 0] [--workers 2]

Every upload is a function of its index alone. Photos are damaged as in tests/hardening, settings by words
that are exchanged for others, and forms by bytes. At the end no upload may be held and no worker busy; the
figures say how many workers had to be replaced.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
from collections import Counter
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


def fuzz(count: int, first: int = 0, workers: int = 2) -> tuple[Counter[int], list[str], dict[str, float]]:
    """Return the answers by status, the findings, and the figures at the end."""
    from dpveil.service.limits import Limits

    originals, found, answers = seeds(), [], Counter[int]()
    headers = {"content-type": f"multipart/form-data; boundary={EDGE}"}
    with service(Limits(pixels=1_000_000), workers=workers) as (_, client):
        for index in range(first, first + count):
            address, body = upload_of(index, originals)
            answer = client.post(address, content=body, headers=headers)
            answers[answer.status_code] += 1
            told = answer.json()
            if answer.status_code >= 500 or (answer.status_code >= 400) != ("title" in told):
                found.append(f"{index}: {answer.status_code} {answer.text[:300]}")
            if answer.status_code == 201:
                client.delete(f"/v1/releases/{told['id']}")
        figures = re.findall(r"^(dpveil_[a-z_]+) ([-0-9.e+]+)$", client.get("/metrics").text, re.MULTILINE)
    return answers, found, {name: float(value) for name, value in figures}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    answers, found, figures = fuzz(options.files, options.first, options.workers)
    print(dict(answers), figures)
    print("\n".join(found) or "no finding")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
