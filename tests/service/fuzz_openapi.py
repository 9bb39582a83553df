"""Hold the service to its /openapi.json: schemathesis makes requests from it and looks at the answers.

    python tests/service/fuzz_openapi.py --st PATH/TO/st [--examples 100] [--seed 1]

Twice: a service on this machine alone, and one with keys and a ledger. An answer of 500 or more that is not
documented, a status, type or shape that is not, and a release that can be had after it was deleted are
findings. Afterwards the service must still be ready, hold no upload and have lost and replaced nothing, and
its log have no error. schemathesis is in an environment of its own (`make fuzz-service`).
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
from service_client import server  # noqa: E402

CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "unsupported_method",
    "allow_header_conformance",
    "missing_required_header",
    "use_after_free",
    "ensure_resource_availability",
    "ignored_auth",
)
"""All but two that ask of a schema what only a method knows: which settings fit, and which do not."""


def command(st: str, url: str, examples: int, seed: int, headers: dict[str, str]) -> list[str]:
    words = [st, "run", f"{url}/openapi.json", "--checks", ",".join(CHECKS), "--max-examples", str(examples)]
    words += ["--seed", str(seed), "--continue-on-failure", "--no-color", "--request-timeout", "60"]
    return words + [word for name, value in headers.items() for word in ("--header", f"{name}: {value}")]


@contextlib.contextmanager
def watched(*arguments: str) -> Iterator[tuple[Any, list[dict[str, Any]]]]:
    """Run a service; yield a client, and the lines of its log as they come."""
    lines: list[dict[str, Any]] = []
    with server(*arguments) as (process, client):
        logged = (line for line in process.stderr if line.startswith(b"{"))  # and a last line for people
        reading = threading.Thread(target=lambda: lines.extend(map(json.loads, logged)))
        reading.start()
        yield client, lines
        process.terminate()
        reading.join()


def try_out(st: str, examples: int, seed: int, folder: Path, *, keys: bool) -> list[str]:
    """Return what is wrong."""
    arguments, headers, environment = [], {}, os.environ | {"SCHEMATHESIS_HOOKS": "openapi_hooks"}
    environment["PYTHONPATH"] = str(HERE.parent / "fixtures")
    if keys:
        arguments, headers = with_keys(folder)
        environment["DPVEIL_FUZZ_SUBJECT"] = "album"
    with watched("--keep", "60", *arguments) as (client, lines):
        words = command(st, str(client.base_url).rstrip("/"), examples, seed, headers)
        done = subprocess.run(words, cwd=folder, env=environment, check=False)
        ready, figures = client.get("/readyz"), client.get("/metrics", headers=headers).text
    found = [] if done.returncode == 0 else [f"schemathesis ended with {done.returncode}"]
    found += [] if ready.status_code == 200 else ["the service is no more ready"]
    for name in ("upload_bytes", "busy", "waiting", "workers_replaced", "releases_lost_total"):
        if not re.search(rf"^dpveil_{name} 0\.0$", figures, re.MULTILINE):
            found.append(f"dpveil_{name} is not 0")
    found += [f"the log says {line}" for line in lines if line["level"] == "error"]
    made = float(re.findall(r"^dpveil_releases_total (.*)$", figures, re.MULTILINE)[0])
    print("with keys and a ledger" if keys else "on this machine alone")
    told = Counter((line["route"], line["method"], line["status"]) for line in lines if "route" in line)
    for (route, method, status), count in sorted(told.items()):
        print(f"{count:7,} {method} {route} {status}", flush=True)
    return found if made else [*found, "nothing was released"]


def with_keys(folder: Path) -> tuple[list[str], dict[str, str]]:
    """Return the options of a service with a ledger and a key, and the header with the key."""
    from dpveil.cli import run

    url, file, told = f"sqlite:///{folder}/budget.db", f"{folder}/keys.json", io.StringIO()
    run(["ledger", "limit", "album", "--epsilon", "1000000", "--ledger", url])
    with contextlib.redirect_stdout(told):
        run(["api-key", "new", "fuzz", "--keys", file, "--subject", "album", "--rate", "1000000"])
    options = ["--ledger", url, "--keys", file, "--results", f"{folder}/results.db"]
    return options, {"Authorization": f"Bearer {told.getvalue().strip()}"}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--st", default="st", help="schemathesis' program")
    parser.add_argument("--examples", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    found = []
    for keys in (False, True):
        with tempfile.TemporaryDirectory() as folder:
            found += try_out(options.st, options.examples, options.seed, Path(folder), keys=keys)
    print("\n".join(found) or "no finding")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
