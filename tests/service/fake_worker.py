"""A worker that starts at once and does what the settings say: plan, sleep, end, or lie."""

from __future__ import annotations

import base64
import os
import pickle
import sys
import time
from pathlib import Path

from dpveil.service.wire import LENGTHS, read, write


def main() -> None:
    requests, answers = sys.stdin.buffer, sys.stdout.buffer
    write(answers, {"ready": True})
    while (message := read(requests)) is not None:
        settings, number = message[0]["settings"], message[0]["number"]
        told = message[1][:999].decode("latin-1")  # a photo may also say it, beside others
        misbehave(told if told.startswith("until ") else settings.get("plan"), number)
        if message[0]["do"] != "release":
            contents = b"x" * settings.get("contents", 0)
            write(answers, {"planned": settings, "number": number}, contents)
            write(answers, {"done": True, "number": number})
            misbehave(settings.get("after"), number)
            continue
        told = {name: settings.get(name) for name in ("total", "covered")}
        write(answers, {**told, "room": settings.get("room", 10_000), "number": number})
        if not message[0]["paid"] or (read(requests) or ({},))[0].get("do") == "draw":
            misbehave(settings.get("draw"), number)
            image = base64.b64decode(settings["image"])
            text, notes = settings["certificate"].encode(), settings.get("notes", [])
            told = {"certificate": len(text), "format": "png", "notes": notes, "number": number}
            write(answers, {**told, **settings.get("told", {})}, text + image)
        write(answers, {"done": True, "number": number})


def misbehave(how: str | None, number: str) -> None:
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
    if how == "flood":
        sys.stdout.buffer.write(LENGTHS.pack(2**31, 0))
        sys.stdout.buffer.flush()
    if how == "stale":
        for told in ({"planned": "of the request before"}, {"done": True}):
            write(sys.stdout.buffer, {**told, "number": number})
    if how == "pickle":
        sys.stdout.buffer.write(pickle.dumps({"ready": print}) * 100)
        sys.stdout.buffer.flush()
    if how == "large":
        sys.stdout.buffer.write(LENGTHS.pack(2, 2**40) + b"{}")
        sys.stdout.buffer.flush()
    if how == "memory":
        write(sys.stdout.buffer, {"failed": "MemoryError", "number": number})
        sys.exit()


if __name__ == "__main__":
    main()
