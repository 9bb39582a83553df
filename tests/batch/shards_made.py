"""Shards for tests, what is in one, and runs over them."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from dpveil.batch.report import Report
from dpveil.batch.run import release_all
from dpveil.batch.tasks import RunSettings, plan_tasks
from dpveil.mechanisms.pixel import DPPix
from dpveil.regions import parse

Given = list[tuple[str, bytes | tarfile.TarInfo]]
"""Names of members, each with its contents, or with all that is told of one without any."""


def picture(width: int = 8, level: int = 100) -> bytes:
    made = io.BytesIO()
    Image.fromarray(np.full((8, width, 3), level, np.uint8)).save(made, "png")
    return made.getvalue()


def shard(path: str, members: Given) -> None:
    Path(path).parent.mkdir(exist_ok=True)
    with tarfile.open(path, "w") as made:
        for name, contents in members:
            told = contents if isinstance(contents, tarfile.TarInfo) else tarfile.TarInfo(name)
            if isinstance(contents, bytes):
                told.size = len(contents)
            made.addfile(told, io.BytesIO(contents) if isinstance(contents, bytes) else None)


def held(path: str = "out/a.tar") -> dict[str, bytes]:
    with tarfile.open(path) as made:
        opened = [(member.name, made.extractfile(member)) for member in made]
        return {name: file.read() for name, file in opened if file is not None}


def link(name: str, kind: bytes) -> tuple[str, tarfile.TarInfo]:
    told = tarfile.TarInfo(name)
    told.type, told.linkname = kind, "/etc/passwd"
    return name, told


def released(source: str = "in", out: str = "out", jobs: int = 1, **changes: Any) -> Report:
    settings: dict[str, Any] = {
        "method": DPPix(epsilon=1, block=4, neighbourhood=4),
        "regions": [parse("whole")],
        "max_pixels": 10_000,
    }
    if "ledger" in changes:
        settings["subject"] = "album"
    given = RunSettings(**settings | changes)
    return release_all(plan_tasks([Path(source)], Path(out)), given, jobs=jobs)


def counts(report: Report) -> tuple[int, int, int]:
    return len(report.released), len(report.skipped), len(report.failed)
