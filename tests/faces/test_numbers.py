"""Numbers of faces: methods that replace heads number them by the public grid, and by nothing finer."""

from __future__ import annotations

import json
from fractions import Fraction

import numpy as np
import pytest
from PIL import Image

import dpveil
from dpveil.cli import run
from dpveil.core.photo import Photo
from dpveil.core.region import Box
from dpveil.errors import RegionError
from dpveil.faces import Attributes
from dpveil.faces import head_placement as heads_file
from dpveil.faces.geometry.place import place
from dpveil.noise.bits import SeededBits
from dpveil.regions import Faces, Finder
from dpveil.regions import faces as faces_file
from dpveil.regions.detectors import Detector
from dpveil_audit.faces.made_heads import made_heads

METHOD = Attributes(attributes="none", gallery=made_heads(), protect="head", placing="box")
HIDDEN = 100, 250
"""A hidden pixel, by which the detector's boxes and their order follow."""
SCORES = 0.9, 0.6


def boxes_of(kind: int) -> list[Box]:
    """Two faces; only for kind 1 is the left one so low that it starts another row."""
    return [Box(20, 93 + kind, 90, 108), Box(205, 40, 90, 108)]


def picture(kind: int) -> np.ndarray:
    """A photo, of which only pixels under both heads differ by kind."""
    image = np.random.default_rng(3).integers(0, 256, (300, 320, 3)).astype(np.uint8)
    image[60:140, 220:280] = np.random.default_rng(kind).integers(0, 256, (80, 60, 3))
    image[HIDDEN] = kind
    return image


class TwoFaces(Detector):
    """Finds two faces, a little lower or higher as a hidden pixel says."""

    name = "two-faces"
    threshold = Fraction(3, 10)

    @classmethod
    def is_installed(cls) -> bool:
        return True

    def __call__(self, image: np.ndarray, threshold: float) -> np.ndarray:
        boxes = boxes_of(int(image[HIDDEN][0]))
        rows = [
            [b.x + 0.5, b.y + 0.5, b.w - 1, b.h - 1, score] for b, score in zip(boxes, SCORES, strict=True)
        ]
        return np.array(rows, np.float64)


@pytest.fixture(autouse=True)
def two_faces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(faces_file, "choose", lambda name: TwoFaces())


def released(kind: int, finder: Finder) -> tuple[bytes, str]:
    made = dpveil.obfuscate(picture(kind), METHOD, regions=finder, bits=SeededBits(1))
    return made.image.tobytes(), made.certificate.to_text()


def test_the_order_of_boxes_differs_and_that_of_cells_does_not() -> None:
    for kind in (0, 1):
        photo = Photo(picture(kind))
        scores = [face.score for face in Faces().detect(photo)]
        assert scores == ([*SCORES] if kind == 0 else [*SCORES][::-1])
        assert [face.score for face in Faces(margin=0).detect(photo, METHOD.order)] == [*SCORES]
    cells = [[place(photo, box, landmarks=False).cell for box in boxes_of(kind)] for kind in (0, 1)]
    assert cells[0] == cells[1]


def test_numbers_that_follow_the_boxes_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The defect planted: in the reading order of the detector's boxes, the release tells of them."""
    monkeypatch.setattr(Attributes, "search", lambda method, photo, finders: (photo, None))
    assert released(0, Faces())[0] != released(1, Faces())[0]


def test_faces_in_one_cell_and_faces_that_cannot_be_placed_are_ordered_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    photo, low, high = Photo(picture(0)), *boxes_of(0)
    near = Box(high.x, high.y + 1, high.w, high.h)
    assert heads_file.by_cells(METHOD, photo, [near, low, high]) in ([1, 0, 2], [1, 2, 0])

    def nowhere(*_: object, **__: object) -> None:
        raise RegionError("no place")

    monkeypatch.setattr(heads_file, "place", nowhere)
    assert heads_file.by_cells(METHOD, photo, [high, low]) == [0, 1]


def test_every_command_shows_the_numbers_by_which_faces_are_excepted(
    tmp_path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Image.fromarray(picture(1)).save("group.png")
    planned = ("--method", "attributes", "--attributes", "none", "--protect", "head", "--placing", "box")

    def told(*arguments: str) -> tuple[dict, str]:
        run([*arguments, "--json"])
        out, err = capsys.readouterr()
        return json.loads(out), err

    plain, said = told("faces", "group.png")
    heads, silent = told("faces", "group.png", *planned)
    assert "in another order: name it with --method" in said
    assert "in another order" not in silent
    for faces in (plain, heads):
        assert [(face["number"], face["score"]) for face in faces["faces"]] == [(1, 0.9), (2, 0.6)]
    pixels, _ = told("faces", "group.png", "--method", "blur", "--sigma", "9")
    assert [(face["number"], face["score"]) for face in pixels["faces"]] == [(1, 0.6), (2, 0.9)]
    explained, _ = told("explain", "group.png", *planned, "--except", "2")
    [region] = explained["regions"]
    assert region["box"] == heads["faces"][0]["box"]
    assert region["origin"]["number"] == 1
    [left] = dpveil.plan("group.png", METHOD, regions=Faces(exclude=(1,))).regions
    assert (left.origin.number, left.score) == (2, 0.6)
