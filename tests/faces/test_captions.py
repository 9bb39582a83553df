"""Faces under captions and other things that are found: those are covered once the faces are found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from facespace_made import HEAD, Flat, captioned, replaced

import dpveil
from dpveil import Photo
from dpveil.core.region import Box
from dpveil.faces.objects_beside_faces import GREY_FILL
from dpveil.noise.bits import SeededBits
from dpveil.regions import Faces, Text
from dpveil.regions.faces import Detections, Search
from dpveil.regions.other_finders import Rows
from dpveil.release.words import FACES_TOO

pytest.importorskip("dlib")
LEFT, RIGHT = Box(177, 65, 88, 108), Box(689, 65, 88, 108)
"""From the forehead to the chin."""
HEIGHTS = (0.15, 0.3, 0.45, 0.7)
"""Upper edges of captions, as a share of the height of HEAD."""
DRAWN: dict[str, Any] = {"protect": "head", "attributes": "tone=2"}


@dataclass(frozen=True, kw_only=True)
class Given(Text):
    """Finds one box, whatever the photo shows; as `text`, or as `detected` of another kind."""

    box: Box = HEAD
    word: str = "text"

    @property
    def description(self) -> str:
        return self.word

    def prepare(self) -> None:
        pass

    def rows(self, photo: Photo) -> list[tuple[str, Rows]]:
        """Return the box."""
        noun = "text" if self.word == "text" else "person"
        return [(noun, np.array([[self.box.x, self.box.y, self.box.w, self.box.h, 0.9]]))]


@pytest.fixture
def sees(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a detector see both faces, but none that is covered for a tenth."""

    def of(_: Search, photo: Photo, **__: object) -> Detections:
        shares = [(photo.image[box.slices] == GREY_FILL.level).all(axis=2).mean() for box in (LEFT, RIGHT)]
        boxes = [box for box, share in zip((LEFT, RIGHT), shares, strict=True) if share < 0.1]
        rows = np.array([[box.x, box.y, box.w, box.h, 0.9] for box in boxes]).reshape(-1, 5)
        return Detections(rows, rows[:0], rows[:0])

    monkeypatch.setattr(Search, "of", of)


@pytest.mark.usefixtures("sees")
@pytest.mark.parametrize(
    ("height", "word"), [*((height, "text") for height in HEIGHTS), (0.35, "detected model=sha256:0")]
)
def test_every_face_that_is_found_alone_is_replaced_beside_text_too(height: float, word: str) -> None:
    photo, line = captioned(height)
    plan = dpveil.plan(photo, "attributes", regions=[Faces(), Given(box=line, word=word)], **DRAWN)
    kinds = [region.origin.kind for region in plan.regions]
    assert kinds.count("face") == len(Faces()(photo)) == 2
    where = replaced(plan.regions, photo.image.shape[:2])
    assert all(where[box.slices].mean() > 0.9 for box in (LEFT, RIGHT))
    assert FACES_TOO in plan.in_the_clear


@pytest.mark.usefixtures("sees")
def test_a_face_that_is_covered_wholly_is_placed_by_its_box() -> None:
    photo, _ = captioned(0.9)
    plan = dpveil.plan(photo, "attributes", regions=[Faces(), Given(box=Box(100, 0, 260, 512))], **DRAWN)
    assert replaced(plan.regions, photo.image.shape[:2])[LEFT.slices].mean() > 0.9
    assert plan.release(bits=SeededBits(1)).certificate.regions[0].origin.kind == "face"


def test_pixels_of_text_change_nothing_while_the_same_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither image nor certificate: numbers, places, crops and what completes the photo."""
    rows = np.array([[box.x, box.y, box.w, box.h, 0.9] for box in (LEFT, RIGHT)])
    monkeypatch.setattr(Search, "of", lambda *_, **__: Detections(rows, rows[:0], rows[:0]))
    photo, line = captioned(0.35)
    noise = np.random.Generator(np.random.PCG64(5)).integers(0, 256, (line.h, line.w, 3), np.uint8)
    made = set()
    for level in (None, 0, 255, noise):
        image = photo.image.copy()
        if level is not None:
            image[line.slices] = level
        asked = [Faces(), Given(box=line, margin=0)]
        release = dpveil.plan(Photo(image), "attributes", regions=asked, **DRAWN).release(bits=SeededBits(1))
        made.add((release.certificate.to_text(), release.image.tobytes()))
    assert len(made) == 1


@pytest.mark.usefixtures("sees")
def test_no_pixel_of_text_is_in_the_crop_of_a_face() -> None:
    """With one level as text, a crop holds the level of the cover there, and never that of the text."""
    photo, line = captioned(0.35)
    image = np.clip(photo.image, 10, 245)
    image[line.slices] = (255, 0, 255)
    method, before = Flat(), len(Flat.seen)
    dpveil.plan(Photo(image), method, regions=[Faces(), Given(box=line, margin=0)]).release()
    seen = np.concatenate([np.asarray(crop).reshape(-1, 3) for crop in method.seen[before:]])
    assert not ((seen[:, 0] > 200) & (seen[:, 1] < 60) & (seen[:, 2] > 200)).any()
    assert (seen == GREY_FILL.level).all(axis=1).any()


@pytest.mark.usefixtures("sees")
def test_faces_are_numbered_as_they_are_placed(monkeypatch: pytest.MonkeyPatch) -> None:
    """By their cells in the photo in which text is covered: the order tells nothing finer of its pixels."""
    photo, line = captioned(0.35)
    orders = []

    def by_cells(method: object, seen: Photo, boxes: list[Box]) -> list[int]:
        orders.append((seen.image[line.slices] == GREY_FILL.level).all())
        return [*range(len(boxes))]

    monkeypatch.setattr("dpveil.faces.head_placement.by_cells", by_cells)
    dpveil.plan(photo, "attributes", regions=[Faces(), Given(box=line, margin=0)], **DRAWN)
    assert orders == [True]
