"""Clips in memory for tests of rendering: boxes that move over a moving background."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from dpveil.faces.attributes_method import Attributes
from dpveil.mechanisms.method import Method
from dpveil.noise.bits import SeededBits
from dpveil.video.facts import Frame, Key, Track
from dpveil.video.frame_renderer import Renderer
from dpveil.video.places import Scene
from dpveil.video.track_draws import Drawn, draw, paint
from dpveil_audit.faces.made_heads import made_heads

WIDTH, HEIGHT = 160, 120


def drawn_heads(**more: Any) -> Attributes:
    """Heads of a made gallery."""
    return Attributes(**{"gallery": made_heads(), "placing": "box", "protect": "head", **more})


def image(index: int, seed: int = 0) -> np.ndarray:
    """Return a frame: a smooth pattern that moves, and noise."""
    y, x = np.mgrid[:HEIGHT, :WIDTH]
    waves = [90 + 40 * np.sin((x + 2 * index + 9 * c) / 17) + 30 * np.cos((y - index) / 13) for c in range(3)]
    noise = np.random.default_rng([seed, index]).integers(-6, 7, (HEIGHT, WIDTH, 3))
    out = np.clip(np.stack(waves, axis=-1) + noise, 0, 255).astype(np.uint8)
    out.setflags(write=False)
    return out


def frames(count: int, start: int = 0) -> list[Frame]:
    return [Frame(n, 40 * n, image(n)) for n in range(start, count)]


def moving(number: int = 1, *, last: int = 20, at: tuple[float, float] = (60, 40), **more: Any) -> Track:
    """Return the track of a face of 30 × 40 pixels that moves to the right."""
    keys = [
        Key(
            f,
            round(at[0] + f),
            round(at[1] + 3 * math.sin(f / 4)),
            30,
            40,
            more.get("roll", 0),
            more.get("yaw"),
        )
        for f in range(0, last + 1, 5)
    ]
    return Track(number=number, kind=more.get("kind", "face"), finder="faces", keys=tuple(keys), end="end")


def scene_of(tracks: Sequence[Track], method: Method | None = None, **more: Any) -> Scene:
    made = {"width": WIDTH, "height": HEIGHT, "rate": 10.0, "method": method or drawn_heads()}
    return Scene(**made, tracks=tuple(tracks), margin=Fraction(1, 4), **more)


def rendered(scene: Scene, *, seed: int = 1, shots: int = 0) -> Renderer:
    """Return a renderer with a draw for each track, in frames of `image` with this noise."""
    draws: dict[int, Drawn] = {}
    layers = {}
    for track in scene.tracks:
        first = image(track.keys[0].frame, shots)
        draws[track.number] = draw(scene, track, track.keys[0], first, SeededBits(seed))
        if scene.shows_face(track):
            layers[track.number] = paint(
                scene, draws[track.number], track, image(scene.painted_at(track).frame, shots)
            )
    return Renderer(scene, draws, layers)
