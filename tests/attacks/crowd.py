"""Made people for tests of attacks: simple faces by numbers of each person, other light in each photo."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import cv2
import numpy as np

from dpveil import SeededBits
from dpveil.attacks.base import Background, View

HEIGHT, WIDTH = 56, 46


def face(person, photo, *, height=HEIGHT, width=WIDTH, channels=1):
    """Return a face: hair, skin, eyes, brows and a mouth of the person; light and place of the photo."""
    own, random = np.random.default_rng(1000 + person), np.random.default_rng((person, photo, 7))
    skin, hair, back = own.integers(90, 220), own.integers(10, 200), own.integers(0, 255)
    image = np.full((112, 92), back, np.uint8)
    x, y = (random.normal(scale=1.0, size=2) + np.array([46, 58])).astype(int)
    wide, high = int(own.integers(24, 36)), int(own.integers(36, 48))
    cv2.ellipse(image, (x, y - 8), (wide + 6, high), 0, 0, 360, int(hair), -1)
    cv2.ellipse(image, (x, y), (wide, high), 0, 0, 360, int(skin), -1)
    apart, line, eye = int(own.integers(9, 16)), int(own.integers(2, 6)), int(own.integers(0, 80))
    for side in (-apart, apart):
        cv2.circle(image, (x + side, y - 8), int(own.integers(3, 6)), eye, -1)
        cv2.line(image, (x + side - 6, y - 18), (x + side + 6, y - 18), int(hair), line)
    cv2.ellipse(image, (x, y + 22), (int(own.integers(6, 16)), line), 0, 0, 180, 60, -1)
    light = 1 + 0.08 * random.normal()
    grey = np.clip(image * light + random.normal(scale=3, size=image.shape), 0, 255).astype(np.uint8)
    small = cv2.resize(grey, (width, height), interpolation=cv2.INTER_AREA)[..., None]
    return np.ascontiguousarray(np.broadcast_to(small, (height, width, channels)))


def view(image, hidden=True, **more):
    """Return what is seen of an image of which all is hidden, or what a mask says."""
    mask = np.full(image.shape[:2], hidden) if isinstance(hidden, bool) else hidden
    return View(image, mask, **more)


def released(image, method, key, *, times=1):
    """Return the view of a release by a method, None for nothing, with further releases in `more`."""
    if method is None:
        return view(image, hidden=False)
    shown = [view(method.release(image, bits=SeededBits(3, f"{key} {n}"))) for n in range(times)]
    return replace(shown[0], more=tuple(shown[1:]))


@cache
def sides(method, *, people=8, known=4, probes=2, times=1, make=face):
    """Return the background of an attack, releases of other photos, and whom these show."""
    names = [f"p{person:02}" for person in range(people)]
    mine = [(name, n, make(person, n)) for person, name in enumerate(names) for n in range(known)]
    others = [
        (name, n, make(person, n)) for person, name in enumerate(names) for n in range(known, known + probes)
    ]
    background = Background(
        tuple(view(image, hidden=False) for _, _, image in mine),
        tuple(released(image, method, f"{name} {n}", times=times) for name, n, image in mine),
        tuple(name for name, _, _ in mine),
    )
    shown = [released(image, method, f"{name} {n}", times=times) for name, n, image in others]
    return background, shown, [name for name, _, _ in others]


def part(background, of):
    """Return the part of a background that shows people whose names fit."""
    rows = [row for row, name in enumerate(background.people) if of(name)]
    lists = (background.clean, background.released, background.people)
    return Background(*(tuple(one[row] for row in rows) for one in lists))
