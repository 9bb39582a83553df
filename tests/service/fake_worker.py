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
        settings = message[0]["settings"]
        told = message[1][:999].decode("latin-1")  # a photo may also say it, beside others
        misbehave(told if told.startswith("until ") else settings.get("plan"), answers)
        if message[0]["do"] != "release":
            write(answers, {"planned": settings})
            write(answers, {"done": True})
            continue
        told = {name: settings.get(name) for name in ("total", "covered")}
        write(answers, {**told, "room": settings.get("room", 10_000)})
        if not message[0]["paid"] or (read(requests) or ({},))[0].get("do") == "draw":
            misbehave(settings.get("draw"), answers)
            image = base64.b64decode(settings["image"])
            told = {"certificate": settings["certificate"], "format": "png", "notes": []}
            write(answers, told, image)
        write(answers, {"done": True})


def misbehave(how: str | None, answers: object) -> None:
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
    if how == "pickle":
        sys.stdout.buffer.write(pickle.dumps({"ready": print}) * 100)
        sys.stdout.buffer.flush()
    if how == "large":
        sys.stdout.buffer.write(LENGTHS.pack(2, 2**40) + b"{}")
        sys.stdout.buffer.flush()
    if how == "memory":
        write(sys.stdout.buffer, {"failed": "MemoryError"})
        sys.exit()


if __name__ == "__main__":
    main()
