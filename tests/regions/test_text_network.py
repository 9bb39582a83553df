"""The network for text itself, where the extra is installed: it finds words, and opens no connection."""

from __future__ import annotations

import socket
from typing import NoReturn

import numpy as np
import pytest
from facespace_made import captioned, replaced
from PIL import Image, ImageDraw, ImageFont

import dpveil
from dpveil import Photo
from dpveil.regions import Faces, Text
from dpveil.regions.text import network, network_path

pytestmark = pytest.mark.skipif(network_path() is None, reason="needs pip install 'dpveil[text]'")


def words(height: int, angle: int = 0) -> tuple[Photo, np.ndarray]:
    """Return a photo with two words, and which pixels are their ink."""
    mask = Image.new("L", (640, 480), 0)
    for at, text in (((180, 150), "Jane Miller"), ((180, 260), "Room 204")):
        ImageDraw.Draw(mask).text(at, text, fill=255, font=ImageFont.load_default(height))
    ink = np.asarray(mask.rotate(angle))
    return Photo((200 - ink[..., None] // 255 * np.array([180, 170, 160])).astype(np.uint8)), ink > 127


@pytest.mark.parametrize(("height", "angle"), [(14, 0), (40, 0), (30, 30), (30, 90), (30, 180)])
def test_words_are_covered(height: int, angle: int) -> None:
    photo, ink = words(height, angle)
    image = dpveil.obfuscate(photo, regions="text").image
    assert (image[ink] == 0).mean() > 0.99
    assert (image == 0).mean() < 0.5


def screenshot() -> tuple[Photo, np.ndarray]:
    """Return a window with a title, a dark list and a page of lines, and which pixels are ink."""
    plain = Image.new("RGB", (800, 600), (236, 236, 240))
    draw = ImageDraw.Draw(plain)
    draw.rectangle((0, 0, 800, 36), fill=(52, 101, 164))
    draw.rectangle((0, 36, 220, 576), fill=(40, 42, 54))
    draw.rectangle((240, 60, 780, 560), fill=(255, 255, 255))
    image = plain.copy()
    draw = ImageDraw.Draw(image)
    places = [((12, 8), 16, "Inbox - jane.miller@example.org", (255, 255, 255))]
    places += [((14, 60 + 34 * n), 14, f"Contact {n}: +49 30 5550{n}1", (248, 248, 242)) for n in range(9)]
    places += [
        ((256, 80 + 30 * n), 13, f"Line {n} of a letter to Jane Miller, 4{n} High Street", (30, 30, 30))
        for n in range(15)
    ]
    places += [((12, 580), 12, "3 unread, last login 10:41 from Leeds", (90, 90, 90))]
    for at, size, text, colour in places:
        draw.text(at, text, fill=colour, font=ImageFont.load_default(size))
    shown, before = np.asarray(image, np.int16), np.asarray(plain, np.int16)
    return Photo(shown.astype(np.uint8)), np.abs(shown - before).max(axis=2) > 60


def test_every_line_of_a_screenshot_is_covered() -> None:
    photo, ink = screenshot()
    image = dpveil.obfuscate(photo, regions="text").image
    rows = [slice(8, 30), *(slice(60 + 34 * n, 80 + 34 * n) for n in range(9)), slice(578, 600)]
    rows += [slice(80 + 30 * n, 98 + 30 * n) for n in range(15)]
    assert all((image[part][ink[part]] == 0).mean() > 0.97 for part in rows)
    assert (image == 0).mean() < 0.5


@pytest.mark.parametrize("height", [0.15, 0.3, 0.4, 0.5, 0.7])
def test_every_face_under_a_caption_is_replaced(height: float) -> None:
    pytest.importorskip("dlib")
    photo, _ = captioned(height)
    faces = Faces(margin=0)(photo)
    asked = {"protect": "head", "attributes": "tone=2"}
    plan = dpveil.plan(photo, "attributes", regions="faces+text", **asked)
    kinds = [region.origin.kind for region in plan.regions]
    assert kinds.count("face") == len(faces)
    assert "text" in kinds
    where = replaced(plan.regions, photo.image.shape[:2])
    assert all(where[face.box.slices].mean() > 0.9 for face in faces)


def test_no_socket_is_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> NoReturn:
        raise AssertionError("a socket was opened")

    network.__globals__["_network"].cache_clear()
    for name in ("socket", "create_connection", "getaddrinfo"):
        monkeypatch.setattr(socket, name, refuse)
    assert len(Text()(words(40)[0])) == 2
