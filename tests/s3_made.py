"""A server of S3 on this machine, and settings for it whose secrets are found again wherever they leak."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

MARKERS = ("key-marker", "secret-marker")
SETTINGS = {
    "AWS_ACCESS_KEY_ID": MARKERS[0],
    "AWS_SECRET_ACCESS_KEY": MARKERS[1],
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_EC2_METADATA_DISABLED": "true",
}


@contextmanager
def served(log: Path) -> Iterator[str]:
    """Yield the address of a server in a process of its own, which writes each request to `log`."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = (sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port))
    with log.open("wb") as file, subprocess.Popen(command, stdout=file, stderr=file) as running:
        try:
            for _ in range(1200):
                with suppress(OSError):
                    urllib.request.urlopen(f"http://127.0.0.1:{port}/moto-api/data.json")
                    break
                time.sleep(0.1)
            yield f"http://127.0.0.1:{port}"
        finally:
            running.kill()
