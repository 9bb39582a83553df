"""Names by text that is read, and by colours and gradients."""

from __future__ import annotations

import numpy as np
import pytest
from crowd import view

from dpveil.attacks import Background, attack, named, vectors
from dpveil.attacks.base import Memo, installed
from dpveil.attacks.vectors import similarity
from dpveil.bench.drawn import DrawnPlate, DrawnScene


def test_texts_are_as_similar_as_they_have_characters_in_common() -> None:
    assert similarity("AB12CDE", "AB12CDE") == 1
    assert similarity("AB12CDE", "AB13CDE") == pytest.approx(12 / 14)
    assert similarity("ABC", "XYZ") == 0


def test_people_are_named_by_the_nearest_text_and_nothing_read_is_a_failure(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    words = {1: "AB12CDE", 2: "XY98ZWV", 3: "AB12CDF", 4: ""}
    monkeypatch.setattr(vectors, "READ", Memo())
    monkeypatch.setattr(vectors, "_read", lambda image: words[int(image[0, 0, 0])])
    seen = [view(np.full((8, 8, 1), level, np.uint8)) for level in words]
    scores = attack("text").fit(Background(tuple(seen[:2]), tuple(seen[:2]), ("a", "b"))).score(seen)
    assert named(scores, ["a", "b", "a", "a"]).tolist() == [1, 1, 1, 0]
    assert np.isnan(scores.likeness).any(axis=1).tolist() == [False, False, False, True]
    late = Background(tuple(seen[1:3]), tuple(seen[:2]), ("y", "z"))
    enrolled = attack("text").fit(Background(tuple(seen[:2]), tuple(seen[:2]), ("a", "b"))).enrol(late)
    assert named(enrolled.score(seen[1:3]), ["y", "z"]).tolist() == [1, 1]


@pytest.mark.skipif(not installed("text"), reason="needs pip install 'dpveil[text]'")
def test_drawn_plates_are_read() -> None:
    plates = [DrawnPlate.of(number, 0) for number in range(4)]
    assert [vectors.read(plate.read().image) for plate in plates] == [
        plate.text.replace(" ", "") for plate in plates
    ]


def test_rooms_are_named_by_their_looks_and_not_by_what_was_not_replaced() -> None:
    names = [f"r{number}" for number in range(8)]
    known = [DrawnScene.of(number, shot).read().image for number in range(8) for shot in range(4)]
    clean, released = (tuple(view(image, hidden=hidden) for image in known) for hidden in (False, True))
    background = Background(clean, released, tuple(name for name in names for _ in range(4)))
    probes = [DrawnScene.of(number, 4).read().image for number in range(8)]
    fitted = attack("appearance").fit(background)
    assert named(fitted.score([view(one) for one in probes]), names).mean() >= 0.75
    half = np.zeros(probes[0].shape[:2], np.bool_)
    half[:, : half.shape[1] // 2] = True
    painted = [np.where(half[..., None], np.uint8(9), one) for one in probes]
    spoilt = [np.where(half[..., None], np.uint8(9), np.uint8(77)) for one in probes]
    one, two = (fitted.score([view(image, hidden=half) for image in images]) for images in (painted, spoilt))
    assert (one.likeness == two.likeness).all(), "what was not replaced is not read"
