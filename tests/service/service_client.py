"""What tests of the service share: photos, uploads, and a server in a process of its own."""

from __future__ import annotations

import base64
import io
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import httpx
import numpy as np
import pytest
from PIL import Image

FAKE, REAL = "fake_worker:serve", "dpveil.service.worker:serve"
SETTINGS = {"method": "dp-pix", "epsilon": 20, "block": 8, "neighbourhood": 16, "regions": "8,8,32,24"}


def photo(width: int = 64, height: int = 48, *, seed: int = 1, kind: str = "PNG") -> bytes:
    levels = np.random.Generator(np.random.PCG64(seed)).integers(0, 256, (height, width, 3), np.uint8)
    file = io.BytesIO()
    Image.fromarray(levels).save(file, kind)
    return file.getvalue()


def upload(contents: bytes, settings: Any = SETTINGS, **changed: Any) -> dict[str, Any]:
    """Return the parts of an upload for httpx."""
    text = settings if isinstance(settings, str | bytes) else json.dumps({**settings, **changed})
    return {"photo": ("a secret name.png", contents), "settings": (None, text)}


@contextmanager
def server(
    *arguments: str, fake: bool = False, said: list[str] | None = None, **more: Any
) -> Iterator[tuple[subprocess.Popen[bytes], httpx.Client]]:
    """Run `dpveil serve` on a free port, with one worker unless told; yield the process, and a client.

    What it says at the start is added to `said`.
    """
    start = f"from dpveil.service import workers; workers.TARGET = {FAKE if fake else REAL!r}; "
    command = [sys.executable, "-c", start + "from dpveil.cli import main; main()"]
    command += ["serve", "--port", "0", *arguments]
    command += [] if "--workers" in arguments else ["--workers", "1"]
    paths = os.pathsep.join((str(Path(__file__).parent), *sys.path))
    more = {"env": {**os.environ, "PYTHONPATH": paths}} | more
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, **more)
    try:
        lines = [] if said is None else said
        while not lines or (port := re.search(r"^dpveil serves .*:([0-9]+)$", lines[-1])) is None:
            line = process.stderr.readline().decode()  # type: ignore[union-attr]
            assert line, lines
            lines.append(line.rstrip())
        with httpx.Client(base_url=f"http://127.0.0.1:{port[1]}", timeout=60) as client:
            while client.get("/readyz").status_code != 200:
                time.sleep(0.05)
            yield process, client
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        process.wait(60)
        process.stderr.close()  # type: ignore[union-attr]


def workers(process: subprocess.Popen[bytes]) -> list[int]:
    """Return the processes that a server started."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text(encoding="utf-8")
    return [int(child) for child in children.split()]


def kill(number: int) -> None:
    os.kill(number, signal.SIGKILL)


@contextmanager
def service(
    limits: Any = None, *, fake: bool = False, ledger: Any = None, **setup: Any
) -> Iterator[tuple[Any, httpx.Client]]:
    """Run a service with one worker, or one that is a fake, in a thread; yield it and a client."""
    from dpveil.service import workers
    from dpveil.service.limits import Limits
    from dpveil.service.run import Setup, build, running

    chosen = Setup(**{"port": 0, "workers": 1, "limits": limits or Limits(), **setup})
    port: SimpleQueue[int] = SimpleQueue()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(workers, "TARGET", FAKE if fake else REAL)
        made = build(chosen, ledger)
    made.server = running(chosen, made, port.put)
    thread = threading.Thread(target=made.server.run)
    thread.start()
    try:
        with httpx.Client(base_url=f"http://localhost:{port.get(timeout=60)}", timeout=60) as client:
            while client.get("/readyz").status_code != 200:
                time.sleep(0.05)
            yield made, client
    finally:
        made.server.should_exit = True
        thread.join()


def release(name: str = "a", **settings: Any) -> dict[str, Any]:
    """Return settings with which a fake worker releases a real release."""
    image, certificate = RELEASES.get(name) or RELEASES.setdefault(name, _made())
    return {
        "image": base64.b64encode(image).decode(),
        "certificate": certificate.to_text(),
        "total": certificate.composition.to_json(),
        "covered": {"photo": "01" * 32, "pixels": "02" * 32},
        **settings,
    }


def _made() -> tuple[bytes, Any]:
    import dpveil

    made = dpveil.obfuscate(np.full((16, 16, 3), 90, np.uint8), "dp-pix", epsilon=1, block=8)
    return made.encode_with_certificate("png")


RELEASES: dict[str, tuple[bytes, Any]] = {}
