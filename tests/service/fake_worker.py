"""A worker that starts at once and does what the settings say: plan, sleep, end, or lie."""

from __future__ import annotations

import base64
import os
import pickle
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dpveil.processes import LENGTHS, Channel


def serve(channel: Channel) -> None:
    channel.receive()  # its limits
    planned: Iterator[tuple[Any, ...]] = iter(())
    while (message := channel.receive()) is not None:
        asked, photo = message
        settings = asked.get("settings", {})
        told = photo[0].tobytes()[:999].decode("latin-1") if photo else ""  # a photo may also say it
        misbehave(channel, told if told.startswith("until ") else settings.get("plan"))
        if asked["do"] == "release":
            planned = release(channel, settings)
        if asked["do"] in ("release", "draw"):
            answer, *files = next(planned)
        else:
            answer, files = {"planned": settings}, [b"x"] * settings.get("contents", 0)
        channel.send({"told": answer}, *files)
        misbehave(channel, settings.get("after"))


def release(channel: Channel, settings: dict[str, Any]) -> Iterator[tuple[Any, ...]]:
    yield (
        {name: settings.get(name) for name in ("total", "covered")} | {"room": settings.get("room", 10_000)},
    )
    misbehave(channel, settings.get("draw"))
    notes, image = settings.get("notes", []), base64.b64decode(settings["image"])
    told = {"format": "png", "notes": notes, **settings.get("told", {})}
    yield told, settings["certificate"].encode(), image


JUNK = {
    "flood": LENGTHS.pack(2**31, 0),
    "pickle": pickle.dumps({"ready": print}) * 100,
    "large": LENGTHS.pack(2, 2**40) + b"{}",
}


def misbehave(channel: Channel, how: str | None) -> None:
    """Do what a worker should not."""
    if how == "sleep":
        time.sleep(600)
    if how == "doze":
        time.sleep(0.7)
    if how and how.startswith("until "):
        while not Path(how.removeprefix("until ")).exists():
            time.sleep(0.01)
    if how == "end":
        os._exit(1)
    if how == "stale":
        channel.send({"told": {"planned": "of the request before"}})
    if how in JUNK:
        channel.writes.write(JUNK[how])
        channel.writes.flush()
    if how == "memory":
        channel.send({"raised": "MemoryError"})
        os._exit(0)
