"""Small clips as data, for tests of plans: no file is read."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from dpveil.video.facts import Facts, Key, Track
from dpveil.video.plan import VideoPlan

WIDTH, HEIGHT = 640, 480


def facts(frames: int = 100, **changed: Any) -> Facts:
    given: dict[str, Any] = {
        "sha256": "ab" * 32,
        "format": "mp4",
        "codec": "h264",
        "width": WIDTH,
        "height": HEIGHT,
        "time_base": Fraction(1, 25),
        "start": 0,
        "steps": ((1, frames - 1),) if frames > 1 else (),
        "audio": True,
    }
    return Facts(**{**given, **changed})


def face(number: int, *keys: Key, **changed: Any) -> Track:
    given: dict[str, Any] = {"kind": "face", "finder": "faces", "end": "left", "score": 0.75}
    return Track(number=number, keys=keys or (Key(0, 100, 100, 60, 80),), **{**given, **changed})


def whole(frames: int = 100, **changed: Any) -> Track:
    keys = (Key(0, 0, 0, WIDTH, HEIGHT), Key(frames - 1, 0, 0, WIDTH, HEIGHT))
    given: dict[str, Any] = {"number": 1, "kind": "whole", "finder": "whole", "end": "end"}
    return Track(keys=keys if frames > 1 else keys[:1], **{**given, **changed})


def box(number: int = 1, frames: int = 100, x: int = 32, **changed: Any) -> Track:
    keys = (Key(0, x, 40, 64, 48), Key(frames - 1, x, 40, 64, 48))
    given: dict[str, Any] = {"kind": "box", "finder": f"{x},40,64,48", "end": "end"}
    return Track(number=number, keys=keys, **{**given, **changed})


def plan(method: Any, *tracks: Track, **changed: Any) -> VideoPlan:
    known = {"clip": "clip.mp4", "facts": facts(), "request": ("faces",)}
    return VideoPlan(method=method, tracks=tracks, **{**known, **changed})
