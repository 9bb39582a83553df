"""Faces that stay, or are replaced, by their likeness to reference photos."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest
from facespace_made import astronaut
from PIL import Image

import dpveil
from dpveil.errors import InvalidParameter, NoRegion
from dpveil.faces import likeness
from dpveil.faces.likeness import Likeness
from dpveil.noise.bits import SeededBits
from dpveil.regions import Faces
from dpveil.release.words import staying_note

pytest.importorskip("dlib")


@cache
def group() -> np.ndarray:
    """Return a photo of the astronaut, and of a man beside her."""
    one = astronaut()[:300, 80:380]
    asked = {"attributes": "gender=1,age=3", "protect": "head", "bits": SeededBits(1)}
    return np.hstack([one, dpveil.obfuscate(one, "attributes", **asked).image[:, ::-1]])


@pytest.fixture
def reference(tmp_path: Path) -> Path:
    """Return another photo of her: smaller, and mirrored."""
    small = Image.fromarray(group()[:, :300]).resize((270, 270))
    Image.fromarray(np.asarray(small)[:, ::-1]).save(tmp_path / "her name.png")
    return tmp_path / "her name.png"


@pytest.mark.parametrize("given", ["keep", "replace", "both"])
def test_the_person_stays_or_is_replaced_and_the_certificate_says_so(given: str, reference: Path) -> None:
    keep, replace = ([reference] if given in (name, "both") else [] for name in ("keep", "replace"))
    finder = Faces(likeness=Likeness.of(keep, replace))
    release = dpveil.obfuscate(group(), regions=finder)
    numbers = {region.origin.number for region in release.certificate.regions}
    assert numbers == {"keep": {2}, "replace": {1}, "both": {1, 2}}[given]
    release.save(reference.with_name("out.png"))
    made = dpveil.verify(reference.with_name("out.png"))
    assert made.status == "consistent"
    assert any("likeness" in text for text in made.certificate.composition.scope.in_the_clear)
    stated = reference.with_name("out.png.certificate.json").read_text()
    assert "-like=" in stated
    assert "her name" not in stated
    face = dpveil.regions.Faces(margin=0).detect(dpveil.Photo(group()))[0].box
    same = (release.image[face.slices] == group()[face.slices]).all()
    assert same == (given == "keep")


def test_doubtful_faces_are_replaced(reference: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    finder = Faces(likeness=Likeness.of([reference], []))
    with pytest.raises(NoRegion):
        finder(dpveil.Photo(group()[:, :300]))
    monkeypatch.setattr(likeness, "SMALLEST", 1000)
    assert [region.origin.number for region in finder(dpveil.Photo(group()))] == [1, 2]
    assert {*staying_note([], by_likeness=True)} <= {*dpveil.plan(group(), regions=finder).warnings}


def test_a_reference_shows_one_clear_face(tmp_path: Path, reference: Path) -> None:
    Image.fromarray(group()).save(tmp_path / "two.png")
    with pytest.raises(InvalidParameter, match="2 faces"):
        Likeness.of([tmp_path / "two.png"], [])
    with pytest.raises(InvalidParameter):
        Faces(likeness=Likeness.of([reference], []), only=(1,))
