"""The network for text itself, where the extra is installed: it finds words, and opens no connection."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

import numpy as np
import pytest
from facespace_made import captioned, replaced
from PIL import Image, ImageDraw, ImageFont
from skimage import data

import dpveil
from dpveil import Photo
from dpveil.errors import NoRegion
from dpveil.regions import Faces, Text
from dpveil.regions.recogniser import FILE, has_name, network_path
from dpveil.regions.text import network
from dpveil.release.words import TEXT_CHOICE

pytestmark = pytest.mark.skipif(network_path(FILE) is None, reason="needs pip install 'dpveil[text]'")


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
    assert (image[ink] == 127).mean() > 0.99
    assert (image == 127).mean() < 0.5


@pytest.mark.parametrize("cut", [np.s_[:, :], np.s_[:260, 100:360]])
def test_a_portrait_on_a_page_is_no_text_and_a_large_letter_is(cut: tuple[slice, slice]) -> None:
    page = Image.new("RGB", (620, 877), "white")
    page.paste(Image.fromarray(data.astronaut()[cut]).resize((150, 150)), (300, 500))
    ImageDraw.Draw(page).text((100, 100), "7", fill=(200, 20, 20), font=ImageFont.load_default(200))
    boxes = [region.box for region in Text()(Photo(np.asarray(page)))]
    assert [box.y < 300 for box in boxes if min(box.w, box.h) > 75] == [True]


@pytest.mark.parametrize("angle", [0, 30, 45, 60, 90, 135])
def test_a_plate_is_found_at_any_angle_and_a_long_line_is_none(angle: int) -> None:
    card = Image.new("RGB", (640, 480), (90, 100, 110))
    draw = ImageDraw.Draw(card)
    draw.rectangle((220, 210, 420, 256), fill=(240, 240, 230))
    draw.text((228, 214), "B KL 4207", fill=(20, 20, 20), font=ImageFont.load_default(36))
    photo = Photo(np.asarray(card.rotate(angle, fillcolor=(90, 100, 110))))
    before = photo.image.max(axis=2) < 60
    image = dpveil.obfuscate(photo, regions="plates").image
    assert (image[before] == 127).mean() > 0.95
    draw.rectangle((40, 210, 600, 256), fill=(240, 240, 230))
    letter = "a line of a letter that is much longer than any plate"
    draw.text((60, 220), letter, fill=(20, 20, 20), font=ImageFont.load_default(20))
    long = Photo(np.asarray(card.rotate(angle, fillcolor=(90, 100, 110))))
    if angle % 45 == 0:  # the upright box around a line at other angles is as wide as that of a plate
        with pytest.raises(NoRegion):
            dpveil.obfuscate(long, regions="plates")


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
    assert all((image[part][ink[part]] == 127).mean() > 0.97 for part in rows)
    assert (image == 127).mean() < 0.5


@pytest.mark.parametrize("height", [0.15, 0.4, 0.7])
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


def test_a_portrait_is_no_text_and_a_word_that_fills_the_photo_is() -> None:
    face = data.astronaut()[:230, 120:330]
    portrait = np.pad(face, ((10, 10), (10, 10), (0, 0)))
    large = np.asarray(Image.fromarray(portrait).resize((800, 880)))
    assert dpveil.obfuscate(large, regions="text", if_none="copy").certificate.missing == ("text",)
    mask = Image.new("L", (640, 300), 0)
    ImageDraw.Draw(mask).text((20, 20), "EXIT", fill=255, font=ImageFont.load_default(240))
    ink = np.asarray(mask) > 127
    image = dpveil.obfuscate(np.where(ink, 20, 230).astype(np.uint8), regions="text").image
    assert (image[ink] == 127).mean() > 0.95


def test_two_short_lines_of_a_small_label_are_covered() -> None:
    image = Image.fromarray(data.astronaut()).crop((0, 0, 512, 300))
    ImageDraw.Draw(image).rectangle((300, 200, 380, 232), fill=(240, 235, 220))
    label = np.asarray(image).copy()
    small = {"fill": (30, 30, 30), "font": ImageFont.load_default(10)}
    for n, text in enumerate(("Ward 7b", "Jane Miller")):
        ImageDraw.Draw(image).text((306, 204 + 12 * n), text, **small)
    ink = np.abs(np.asarray(image, np.int16) - label).max(axis=2) > 60
    assert (dpveil.obfuscate(np.asarray(image), regions="text").image[ink] == 127).mean() > 0.97


PAGE = ("ask Jane Miller at the desk", "room 204, third floor", "please wait here until you are called")


@pytest.mark.parametrize(
    ("rule", "replaced"),
    [("names", {0}), ("numbers", {1}), ("desk|called", {0, 2}), ("Smith", set())],
)
def test_lines_stay_that_clearly_say_something_else(rule: str, replaced: set[int], tmp_path: Path) -> None:
    photo, inks = lines_of(PAGE)
    release = dpveil.obfuscate(photo, regions=Text(like=rule), if_none="copy")
    grey = {n for n, ink in enumerate(inks) if (release.image[ink] == 127).mean() > 0.95}
    assert grey == replaced
    assert all((release.image[ink] == photo.image[ink]).all() for n, ink in enumerate(inks) if n not in grey)
    release.save(tmp_path / "page.png")
    made = dpveil.verify(tmp_path / "page.png")
    assert made.status == ("consistent" if replaced else "unprotected")
    assert rule in ("names", "numbers") or rule not in (tmp_path / "page.png.certificate.json").read_text()
    if replaced:
        assert TEXT_CHOICE in made.certificate.composition.scope.in_the_clear


def lines_of(words: Sequence[str], angle: int = 0) -> tuple[Photo, list[np.ndarray]]:
    """Return a photo with a line of each, and their ink."""
    inks = []
    for n, text in enumerate(words):
        mask = Image.new("L", (640, 480), 0)
        ImageDraw.Draw(mask).text((60, 100 + 90 * n), text, fill=255, font=ImageFont.load_default(24))
        inks.append(np.asarray(mask.rotate(angle)) > 127)
    image = np.where(np.any(inks, axis=0), 20, 220).astype(np.uint8)
    return Photo(np.repeat(image[..., None], 3, axis=2)), inks


def test_what_cannot_be_read_is_replaced() -> None:
    photo, inks = lines_of(PAGE, angle=30)
    release = dpveil.obfuscate(photo, regions=Text(like="Smith"))
    image = release.image
    assert any("2 lines" in note for note in release.notes)
    assert all((image[ink] == 127).mean() > 0.95 for ink in inks)


def test_names_are_words_with_a_capital_that_begin_no_sentence() -> None:
    assert not any(map(has_name, ("Open daily 9-17", "no parking", "It is late. We go home.", "204")))
    assert all(
        map(has_name, ("Jane", "Jane Miller", "to Jane", "EXIT", "It is late. Ask Jane", "\u674e\u96f7"))
    )


def test_no_socket_is_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> NoReturn:
        raise AssertionError("a socket was opened")

    network.cache_clear()
    for name in ("socket", "create_connection", "getaddrinfo"):
        monkeypatch.setattr(socket, name, refuse)
    assert len(Text()(words(40)[0])) == 2
