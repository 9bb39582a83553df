"""One application with one worker for all tests that do not need a process of their own."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from service_client import service


@pytest.fixture(scope="session")
def client() -> Iterator[httpx.Client]:
    """A client of a service that runs in a thread, with small limits and one worker."""
    from dpveil.service.limits import Limits

    limits = Limits(body_bytes=1 << 20, settings_bytes=4096, pixels=50_000)
    with service(limits) as (_, client):
        yield client


@pytest.fixture
def cli_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., Any]:
    """Run the command line with --json and return what it printed."""
    from dpveil import cli

    def run(command: str, *arguments: str, photo: bytes | None = None) -> Any:
        if photo is not None:
            (tmp_path / "photo.png").write_bytes(photo)
        named = [] if photo is None else [str(tmp_path / "photo.png")]
        assert cli.run([command, *named, *arguments, "--json"]) == 0
        return json.loads(capsys.readouterr().out)

    return run
