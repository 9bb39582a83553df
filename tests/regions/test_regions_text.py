"""Text and plates as regions, with a stand-in for the network: boxes, sentences, choices, and forgeries."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from skimage import data
from text_made import dark, marks  # noqa: F401  a fixture

import dpveil
from dpveil import Photo
from dpveil.core.region import Box
from dpveil.errors import NoRegion, RegionError, UsageError
from dpveil.noise.bits import SeededBits
from dpveil.regions import Text, recogniser, text
from dpveil.regions.text import TextNetwork, decode, upright
from dpveil.release.words import CHANNELS, FACES_TOO, NO_OTHER_TEXT, TEXT_BOX, TEXT_COUNT

GROUND = 180
LINE = Box(40, 30, 120, 16)
LOWER = Box(60, 90, 90, 20)


def page(*boxes: Box, size: tuple[int, int] = (240, 320)) -> Photo:
    image = np.full((*size, 3), GROUND, np.uint8)
    for box in boxes:
        image[box.slices] = 20
    return Photo(image)


def all_dark(photo: Photo, release: np.ndarray) -> bool:
    """Whether every dark pixel was replaced by the level 200."""
    return bool((release[photo.image[..., 0] < 60] == 200).all())


# The search


def test_a_map_becomes_upright_boxes_that_are_wider_and_faint_or_thin_marks_are_none() -> None:
    heat = np.zeros((100, 200), np.float32)
    heat[20:40, 50:150] = 0.9
    heat[60:62, 20:80] = 0.9  # thin, even dilated
    heat[80:95, 20:80] = 0.35
    (row,) = upright(decode(heat, 0.4))
    left, top, width, height, score = row
    assert left < 50 - 8
    assert left + width > 150 + 8
    assert top < 20 - 8
    assert top + height > 40 + 8
    assert 0.8 < score <= 0.9
    assert len(decode(heat, 0.3)) == 2


def test_thick_and_small_uncertain_marks_count_if_letters_are_read_in_them() -> None:
    """A line of any length, and a cross of two, are thin."""
    heat = np.zeros((400, 600), np.float32)
    heat[10:30, 10:590] = heat[10:390, 580:600] = 0.9
    assert len(decode(heat, 0.4, lambda _: False)) == 1
    heat[100:300, 100:400] = 0.9
    heat[350:370, 10:40] = 0.5
    assert len(decode(heat, 0.4, lambda _: False)) == 1
    asked = []
    assert len(decode(heat, 0.4, lambda rectangle: not asked.append(rectangle))) == 3
    assert len(asked) == 2


@pytest.mark.parametrize("gives", ["nan", "shape", "error"])
def test_a_network_that_fails_releases_nothing(gives: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def run_(_: np.ndarray) -> list[np.ndarray]:
        if gives == "error":
            raise ValueError("inside")
        return [np.full((1, 1, 32, 32 if gives == "nan" else 31), np.nan, np.float32)]

    monkeypatch.setattr(text, "fastest", lambda _: lambda _: run_)
    with pytest.raises(RegionError, match="text"):
        TextNetwork(b"")(np.zeros((20, 30, 3), np.uint8), 0.5)


@pytest.mark.usefixtures("marks")
@pytest.mark.parametrize("size", [(240, 320), (60, 90), (1500, 2900)])
@pytest.mark.parametrize("smallest", [8, 16])
def test_every_pixel_of_text_is_covered_in_photos_of_any_size(size: tuple[int, int], smallest: int) -> None:
    """In large photos also at the edges of tiles."""
    bits = np.random.default_rng(1)
    corners = [(int(bits.integers(size[0] - 30)), int(bits.integers(size[1] - 50))) for _ in range(12)]
    photo = page(*(Box(x, y, 48, 28) for y, x in corners), size=size)
    release = dpveil.obfuscate(photo, "fill", level=200, regions=Text(smallest=smallest))
    assert all_dark(photo, release.image)


@pytest.mark.usefixtures("marks")
def test_a_long_line_across_tiles_is_covered() -> None:
    photo = page(Box(20, 700, 2900, 40), Box(1250, 100, 40, 1800), size=(2000, 3000))
    assert all_dark(photo, dpveil.obfuscate(photo, "fill", level=200, regions="text").image)


@pytest.mark.usefixtures("marks")
def test_small_text_is_covered_wherever_tiles_end() -> None:
    """It is too small for the searches of the shrunk photo."""
    photo = page(
        *(Box(x, y, 60, 5) for x in range(5, 2830, 97) for y in (9, 640, 1100, 1270, 1490)), size=(1500, 2900)
    )
    assert all_dark(photo, dpveil.obfuscate(photo, "fill", level=200, regions="text").image)


@pytest.mark.usefixtures("marks")
def test_lines_are_numbered_in_reading_order_searched_once_and_have_the_margin(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls = []
    monkeypatch.setattr(text, "network", lambda: lambda *a: calls.append(1) or dark(*a))
    photo = page(LOWER, LINE)
    found = Text()(photo)
    assert [str(region.origin.in_words()) for region in found] == ["text 1", "text 2"]
    assert found[0].box.y < found[1].box.y
    count = len(calls)
    assert Text()(photo) == found
    assert len(Text(margin=1)(photo)) == 2
    assert len(calls) == count
    (wide, _), (near, _) = Text(margin=1)(photo), Text(margin=0)(photo)
    assert all(side > 10 for side in wide.box.beyond(near.box)[:2])


# Releases


@pytest.mark.usefixtures("marks")
def test_where_nothing_is_found_nothing_is_released_unless_asked() -> None:
    with pytest.raises(NoRegion):
        dpveil.obfuscate(page(), regions="text")
    whole = dpveil.obfuscate(page(), regions="text", if_none="whole")
    assert (whole.image == 127).all()
    copied = dpveil.obfuscate(page(), regions="text", if_none="copy")
    assert copied.certificate.missing == ("text",)
    assert not copied.certificate.guarantees


def test_another_network_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "net.onnx").write_bytes(b"other")
    monkeypatch.setattr(recogniser, "network_path", lambda _: tmp_path / "net.onnx")
    text.network.cache_clear()
    with pytest.raises(UsageError, match="not the one"):
        text.network()


@pytest.mark.usefixtures("marks")
def test_methods_that_replace_faces_cover_text_and_read_nothing_of_it() -> None:
    """Text over most of a face: it is covered before faces are searched for and placed."""
    pytest.importorskip("dlib")
    image = data.astronaut()
    over = Box(210, 80, 30, 60)
    image[image.max(axis=2) < 90] = 90
    image[over.slices] = 20
    asked = {"regions": ["170,60,110,140", "text"], "bits": SeededBits(3)}
    release = dpveil.obfuscate(image, **asked)
    assert [r.origin.kind for r in release.certificate.regions].count("text") == 1
    text = next(r for r in release.certificate.regions if r.origin.kind == "text")
    other = image.copy()
    other[over.slices] = np.random.default_rng(1).integers(0, 59, (over.h, over.w, 3))
    again = dpveil.obfuscate(other, **{**asked, "bits": SeededBits(3)})
    assert (release.image == again.image).all()
    assert text.box.beyond(over)[0] > 0
    assert str(release.certificate.guarantees[1]) == "0-DP, any-image"


# The command line


# Forgeries


@pytest.mark.usefixtures("marks")
def test_text_alone_is_filled_and_the_certificate_says_what_stays(tmp_path: Path) -> None:
    photo = page(LINE, LOWER)
    release = dpveil.obfuscate(photo, regions="text")
    made = release.certificate
    assert (made.method, dict(made.parameters), made.request) == ("fill", {"level": 127}, ("text",))
    assert str(made.composition) == "0-DP, any-image"
    assert made.composition.scope.in_the_clear == (TEXT_BOX, TEXT_COUNT, FACES_TOO, CHANNELS, NO_OTHER_TEXT)
    assert "how long" in TEXT_BOX
    release.save(tmp_path / "page.png")
    assert dpveil.verify(tmp_path / "page.png").status == "consistent"
