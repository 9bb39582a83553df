"""The Dockerfile, where no Docker is at hand: what it copies is there, and what it runs is what we have."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent


def steps() -> list[tuple[str, str]]:
    """Return the instructions and what follows each."""
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    lines = re.sub(r"\\\n\s*", " ", re.sub(r"^#.*\n", "", text, flags=re.MULTILINE)).splitlines()
    return [(word, rest.strip()) for word, _, rest in (line.partition(" ") for line in lines if line.strip())]


def of(word: str) -> list[str]:
    return [rest for instruction, rest in steps() if instruction == word]


def test_it_is_pinned_not_root_and_fetches_nothing_else() -> None:
    known = {"FROM", "ENV", "COPY", "RUN", "USER", "VOLUME", "EXPOSE", "HEALTHCHECK", "ENTRYPOINT", "CMD"}
    assert {instruction for instruction, _ in steps()} == known
    for base in of("FROM"):
        assert re.fullmatch(r"python:3\.\d+-slim-[a-z]+@sha256:[0-9a-f]{64}( AS build)?", base)
    order = [instruction for instruction, _ in steps()]
    assert of("USER") == ["10001"]
    assert order.index("USER") > max(n for n, word in enumerate(order) if word == "RUN")
    runs = " ".join(of("RUN"))
    assert not re.search(r"curl|wget|apt|sudo|http|--break-system|chmod 777", runs)
    assert "useradd --system --uid 10001" in runs
    assert all("SECRET" not in given and "TOKEN" not in given for given in of("ENV"))


def test_what_it_copies_exists_and_reaches_docker() -> None:
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").split()
    assert ignored[0] == "*"
    for given in of("COPY"):
        if given.startswith("--from"):
            assert given == "--from=build /opt/dpveil /opt/dpveil"
            continue
        *sources, target = given.split()
        assert target.startswith("/source")
        for source in sources:
            assert (ROOT / source).exists()
            assert f"!{source}" in ignored


@pytest.mark.slow
def test_its_steps_make_a_service_that_runs_read_only_and_not_as_root() -> None:
    overlays = Path("/proc/filesystems")
    if os.geteuid() or not overlays.exists() or "\toverlay\n" not in overlays.read_text(encoding="utf-8"):
        pytest.skip("needs root and overlay file systems")
    command = [sys.executable, str(Path(__file__).parent / "run_dockerfile.py")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout[-3000:]}{done.stderr[-3000:]}"
    assert done.stdout.endswith("built, run and asked\n")
