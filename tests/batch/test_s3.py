"""A server that speaks S3, on this machine: runs over a bucket by the command line, and killed ones."""

from __future__ import annotations

import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import dpveil
from dpveil.ledger import Ledger, Limit
from s3_made import MARKERS, SETTINGS, served

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

COMMAND = ("--method", "dp-pix", "--epsilon", "1", "--block", "8", "--neighbourhood", "16", "--json")
PAYS = ("--ledger", "sqlite:///budget.db", "--subject", "album")
PHOTOS = 12
KILLS = 6


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Yield the address of a server, in a process of its own."""
    for name in ("boto3", "moto", "s3fs"):  # seconds, if every process that collects tests imported them
        pytest.importorskip(name)
    with served(tmp_path_factory.mktemp("server") / "log") as address:
        yield address


@pytest.fixture
def bucket(server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    for name, value in {**SETTINGS, "AWS_ENDPOINT_URL": server}.items():
        monkeypatch.setenv(name, value)
    urllib.request.urlopen(urllib.request.Request(f"{server}/moto-api/reset", method="POST"))  # noqa: S310
    client = pytest.importorskip("boto3").client("s3")
    client.create_bucket(Bucket="bucket")
    with Ledger("sqlite:///budget.db", create=True) as ledger:
        ledger.set_limit("album", Limit("pure", epsilon=10**6))
    return client


def put_photos(client: Any, count: int) -> set[str]:
    """Put photos below in/; return their hashes."""
    photo = np.random.default_rng(1).integers(0, 256, (40, 50, 3), np.uint8)
    hashes = set()
    for number in range(count):
        made = BytesIO()
        Image.fromarray(np.roll(photo, number, axis=1)).save(made, "png")
        client.put_object(Bucket="bucket", Key=f"in/{number:02}.png", Body=made.getvalue())
        hashes.add(hashlib.sha256(made.getvalue()).hexdigest())
    return hashes


def stored(client: Any) -> dict[str, Any]:
    """Return when each object outside of in/ was written."""
    found = client.list_objects_v2(Bucket="bucket").get("Contents", [])
    return {each["Key"]: each["LastModified"] for each in found if not each["Key"].startswith("in/")}


def started(*more: str, **settings: str) -> subprocess.Popen[str]:
    program = (sys.executable, "-m", "dpveil", "obfuscate", "s3://bucket/in", "--out", "s3://bucket/out")
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen((*program, *COMMAND, *more), text=True, env={**os.environ, **settings}, **pipes)  # type: ignore[call-overload]


def ended(running: subprocess.Popen[str]) -> tuple[int, dict[str, Any], str]:
    out, err = running.communicate(timeout=500)
    assert not any(marker in out + err for marker in MARKERS)
    assert "Traceback" not in err
    return running.returncode, json.loads(out) if out else {}, err


def check_bucket(client: Any, originals: set[str]) -> None:
    """No image is without its certificate, nothing is half there, and no original is."""
    names = set(stored(client))
    for name in names:
        data = client.get_object(Bucket="bucket", Key=name)["Body"].read()
        assert hashlib.sha256(data).hexdigest() not in originals
        if not name.endswith(".certificate.json"):
            text = client.get_object(Bucket="bucket", Key=f"{name}.certificate.json")["Body"].read()
            assert json.loads(text)["output"]["sha256"] == hashlib.sha256(data).hexdigest()
    assert not client.list_multipart_uploads(Bucket="bucket").get("Uploads")


def test_a_bucket_is_released_by_two_processes_and_a_rerun_does_what_is_missing(bucket: Any) -> None:
    originals = put_photos(bucket, 3)
    code, told, err = ended(started("--jobs", "2", "--manifest", "rows.csv", *PAYS))
    assert (code, len(told["released"])) == (0, 3), err
    assert told["released"][0]["certificate"] == "s3://bucket/out/00.png.certificate.json"
    check_bucket(bucket, originals)
    first = stored(bucket)
    assert len(first) == 6
    assert not any(marker in Path("rows.csv").read_text() for marker in MARKERS)
    put_photos(bucket, 4)
    code, told, err = ended(started(*PAYS))
    assert (code, len(told["released"]), len(told["skipped"])) == (0, 1, 3), err
    assert first.items() <= stored(bucket).items()
    with Ledger("sqlite:///budget.db") as ledger:
        assert ledger.check().debits == 4


@pytest.mark.slow
def test_killed_runs_cost_what_is_under_way_and_leave_nothing_half_there(bucket: Any) -> None:
    """Fixed seed; the moments differ with the machine, and what is asserted holds for all of them."""
    chance, kills = random.Random(5), 0  # noqa: S311
    originals = put_photos(bucket, PHOTOS)
    while True:
        running, before = started("--jobs", "2", *PAYS), len(stored(bucket))
        while kills < KILLS and running.poll() is None and len(stored(bucket)) == before:
            time.sleep(0.05)
        time.sleep(chance.uniform(0, 0.3))
        if kills < KILLS and running.poll() is None:
            kills += 1
            os.kill(running.pid, signal.SIGKILL)
        out, err = running.communicate(timeout=500)
        time.sleep(1)  # its workers end by themselves
        check_bucket(bucket, originals)
        assert "Traceback" not in err
        if running.returncode >= 0:
            told = json.loads(out)
            assert sum(map(len, told.values())) == PHOTOS
            assert not told["failed"], told["failed"]
            break
    first = stored(bucket)
    assert len(first) == 2 * PHOTOS
    code, told, _ = ended(started(*PAYS))
    assert (code, len(told["skipped"])) == (0, PHOTOS)
    assert stored(bucket) == first
    check_paid(bucket, kills)


def check_paid(client: Any, kills: int) -> None:
    """Every release is paid for once, and no more debits are without one than were under way."""
    Path("seen").mkdir()
    for name in stored(client):
        client.download_file("bucket", name, f"seen/{Path(name).name}")
    outputs = sorted(Path("seen").glob("*.png"))
    found = [dpveil.verify(output) for output in outputs]
    assert all(each.publishable for each in found)
    with Ledger("sqlite:///budget.db") as ledger:
        debits = ledger.check().debits
        payments = [len(ledger.paid_for(each.certificate.output.sha256)) for each in found]  # type: ignore[union-attr]
    assert payments == [1] * PHOTOS
    print(f"{kills} runs killed: {PHOTOS} releases, {debits - PHOTOS} paid and lost")
    assert 0 <= debits - PHOTOS <= 4 * kills
