"""A worker that starts at once and does what the settings say: plan, sleep, end, or lie."""

from __future__ import annotations

import base64
import os
import pickle
import time
from pathlib import Path

from dpveil.processes import LENGTHS, Channel


def serve(channel: Channel) -> None:
    channel.send({"ready": True})
    while (message := channel.receive()) is not None:
        asked, [photo] = message
        settings, number = asked["settings"], asked["number"]
        told = photo.tobytes()[:999].decode("latin-1")  # a photo may also say it, beside others
        misbehave(channel, told if told.startswith("until ") else settings.get("plan"), number)
        if asked["do"] != "release":
            contents = b"x" * settings.get("contents", 0)
            channel.send({"planned": settings, "number": number}, contents)
            channel.send({"done": True, "number": number})
            misbehave(channel, settings.get("after"), number)
            continue
        told = {name: settings.get(name) for name in ("total", "covered")}
        channel.send({**told, "room": settings.get("room", 10_000), "number": number})
        if not asked["paid"] or (channel.receive() or ({},))[0].get("do") == "draw":
            misbehave(channel, settings.get("draw"), number)
            image = base64.b64decode(settings["image"])
            text, notes = settings["certificate"].encode(), settings.get("notes", [])
            told = {"certificate": len(text), "format": "png", "notes": notes, "number": number}
            channel.send({**told, **settings.get("told", {})}, text + image)
        channel.send({"done": True, "number": number})


JUNK = {
    "flood": LENGTHS.pack(2**31, 0),
    "pickle": pickle.dumps({"ready": print}) * 100,
    "large": LENGTHS.pack(2, 2**40) + b"{}",
}


def misbehave(channel: Channel, how: str | None, number: str) -> None:
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
        for told in ({"planned": "of the request before"}, {"done": True}):
            channel.send({**told, "number": number})
    if how in JUNK:
        channel.writes.write(JUNK[how])
        channel.writes.flush()
    if how == "memory":
        channel.send({"failed": "MemoryError", "number": number})
        os._exit(0)
