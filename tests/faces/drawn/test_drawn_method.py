"""The drawn gallery in photos: nothing hidden shows, certificates name it, and no trained file is needed."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from facespace_made import FACE, astronaut

import dpveil
from dpveil import Photo
from dpveil.assets import store
from dpveil.assets.reference import Reference
from dpveil.catalogue import stated
from dpveil.errors import DPVeilError, InvalidParameter, UsageError
from dpveil.faces import Attributes
from dpveil.faces.attribute_model import VALUES
from dpveil.faces.attributes import READER
from dpveil.faces.drawn.figure import DrawnHead, garment_colour
from dpveil.faces.drawn.gallery import DrawnGallery
from dpveil.faces.geometry.align import Similarity
from dpveil.faces.heads import Heads
from dpveil.noise.bits import SeededBits
from dpveil.postprocessing import Step
from dpveil.regions import parse
from dpveil.release.verification import verify

HASH = "sha256:" + 64 * "0"
NAMED = f"drawn-2 sha256:{DrawnGallery().digest}"


class Reader:
    """Reads in every crop what its first pixel says."""

    name = "attributes"
    values = VALUES

    def read(self, crops: np.ndarray) -> dict[str, np.ndarray]:
        first = crops[:, 0, 0, 0].astype(np.int64)
        return {name: first % len(words) for name, words in VALUES.items()}


def kept(attributes: str, **more: Any) -> Attributes:
    reader = Reference("attributes", 64 * "1", None, READER, Reader())
    return Attributes(attributes=attributes, gallery="drawn", model=reader, **more)


def nothing(**more: Any) -> Attributes:
    return Attributes(attributes="none", gallery="drawn", **more)


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the package dpveil-faces."""
    monkeypatch.setattr(store, "PACKAGE", "no_such_package")


def placed(method: Attributes, image: np.ndarray, *boxes: str) -> Heads:
    photo = Photo(image)
    found = method.place(photo, [region for box in boxes for region in parse(box)(photo)])
    assert isinstance(found, Heads)
    return found


@pytest.mark.parametrize("protect", ["head", "box"])
@pytest.mark.parametrize("channels", [1, 3])
def test_no_hidden_pixel_is_read(protect: str, channels: int) -> None:
    """With the places fixed, no change of the protected pixels changes the release by a bit."""
    image = astronaut()[..., :channels].copy()
    method = nothing(protect=protect, placing="box")
    there = placed(method, image, FACE, "300,240,60,70")
    first = there.draw(SeededBits(1), ())
    rng = np.random.default_rng(5)
    hidden = np.zeros(image.shape[:2], bool)
    for region in there.regions:
        hidden[region.box.slices] |= True if region.mask is None else region.mask
    for levels in (0, 255, rng.integers(0, 256, image.shape, np.uint8)):
        there.photo = Photo(np.where(hidden[..., None], np.uint8(levels), image))
        assert np.array_equal(there.draw(SeededBits(1), ()), first)
    assert np.array_equal(first[~hidden], image[~hidden])
    there.photo = Photo(255 - image)  # the check can fail: what is outside does show
    assert not np.array_equal(there.draw(SeededBits(1), ())[hidden], first[hidden])


def test_the_answers_of_randomised_response_are_what_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """2000 crops at ε = 1, within 6.2 deviations: fails by chance with 1 of 10⁹."""
    shown: list[str] = []
    own = DrawnGallery.head

    def seen(self: DrawnGallery, bits: Any, answers: Any) -> DrawnHead:
        shown.append(answers["gender"])
        return own(self, bits, answers)

    monkeypatch.setattr(DrawnGallery, "head", seen)
    crops = np.ones((2000, 128, 128, 3), np.uint8)  # of whom the reader says: female
    figures = kept("gender=1,smile=2").shown(crops, bits=SeededBits(6))
    assert [each.person.gender for each in figures if isinstance(each, DrawnHead)] == shown
    chance = math.e / (math.e + 1)
    assert abs(shown.count("female") - 2000 * chance) < 6.2 * math.sqrt(2000 * chance * (1 - chance))


def test_what_is_drawn_depends_on_the_answers_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two people whose responses are equal get the same head: no trait knows what was true."""
    method = kept("gender=3,age=2")
    heads: list[list[Any]] = []
    for level in (0, 255):
        crops = np.full((6, 128, 128, 3), level, np.uint8)
        true = {name: np.full(6, (level > 0) * (len(VALUES[name]) - 1)) for name in VALUES}
        reader = SimpleNamespace(read=lambda _, true=true: true)
        monkeypatch.setitem(method.__dict__, "_reader", reader)
        drawn = SimpleNamespace(draw=lambda true, bits: np.arange(6) % 2)
        monkeypatch.setattr(Attributes, "responses", {"gender": drawn, "age": drawn})
        heads.append([head.person for head in method.shown(crops, bits=SeededBits(4))])  # type: ignore[union-attr]
    assert heads[0] == heads[1]
    assert len(set(map(str, heads[0]))) == 6


def test_what_is_kept_costs_what_it_costs_with_a_file() -> None:
    size = {"height": 100, "width": 80, "channels": 3}
    file = Attributes(attributes="gender=1,age=2", gallery=f"gallery {HASH}", model=f"attributes {HASH}")
    assert kept("gender=1,age=2").guarantee(**size) == file.guarantee(**size)
    assert {*kept("gender=1,age=2").parameters()} == {*file.parameters()}


def test_bits_alone_decide_where_nothing_is_kept() -> None:
    rng = np.random.default_rng(3)
    crops = rng.integers(0, 256, (2, 3, 128, 128, 3), np.uint8)
    first, other = (nothing().release(each, bits=SeededBits(4)) for each in crops)
    assert np.array_equal(first, other)
    assert len({one.tobytes() for one in first}) == 3
    assert nothing().release(crops[0][:0], bits=SeededBits(4)).shape == (0, 128, 128, 3)
    with pytest.raises(InvalidParameter, match="crops"):
        nothing().shown(crops[0][:, 1:], bits=SeededBits(4))
    with pytest.raises(InvalidParameter, match="bits"):
        nothing().shown(crops[0], bits=7)


def test_certificates_name_it_by_version_and_hash(tmp_path: Any) -> None:
    release = dpveil.obfuscate(astronaut(), nothing(placing="box"), regions=FACE, bits=dpveil.SecureBits())
    told = release.certificate.parameters
    assert (told["gallery"], told["model"], told["inpainting"]) == (NAMED, "none", "telea")
    assert str(release.certificate.composition) == "0-DP, any-image"
    release.save(tmp_path / "private.png")
    assert verify(tmp_path / "private.png").problems == ()
    assert stated("attributes", told) == nothing(placing="box")
    for value in ("drawn", f"drawn-2 {HASH}", f"drawn-3 {HASH}", "drawn-2"):
        with pytest.raises(DPVeilError, match="gallery"):
            stated("attributes", {**told, "gallery": value})
    with pytest.raises(UsageError, match="to keep gender"):
        stated("attributes", {**told, "attributes": "gender=1", "epsilon": 1})


def test_the_garment_has_the_colour_below_the_head_and_never_a_hidden_one() -> None:
    to = Similarity(1.0, 0.0, 50.0, 44.0)
    outside, hidden = np.full((120, 100, 3), 7, np.uint8), np.zeros((120, 100), bool)
    outside[96:105] = (10, 200, 30)
    assert garment_colour(to, outside, hidden) == (10, 200, 30)
    hidden[96:105] = True
    assert garment_colour(to, outside, hidden) is None
    assert garment_colour(to, outside[:80], hidden[:80]) is None
    assert garment_colour(to, outside[..., :1], np.zeros((120, 100), bool)) == (10, 10, 10)


class Nameless(Step):
    """A step of a user, whose repr is its address in memory."""

    name = "nameless"
    usual = "nameless:1"
    summary = "does nothing"

    @property
    def description(self) -> str:
        return "nameless:1"

    def __call__(self, image: np.ndarray) -> np.ndarray:
        return image


def test_a_release_does_not_depend_on_where_a_step_lies_in_memory() -> None:
    """Alone in its photo a head is in front of a wall, whose colour a number of the released head chooses."""
    photo, method = (
        Photo(np.full((90, 80, 3), 128, np.uint8)),
        Attributes(attributes="none", gallery="drawn", placing="box", protect="box"),
    )
    steps, bits = [Nameless() for _ in range(6)], (SeededBits(1) for _ in range(6))
    made = (
        dpveil.obfuscate(photo, method, regions="10,10,60,70", bits=one, post_processing=[step])
        for step, one in zip(steps, bits, strict=True)
    )
    releases = [release.image.tobytes() for release in made]
    assert len({repr(step) for step in steps}) == 6
    assert len(set(releases)) == 1
