"""How strong attackers are on AT&T's faces: what is known to be broken must break (slow)."""

from __future__ import annotations

import numpy as np
import pytest
from crowd import sides
from PIL import Image

from dpveil.attacks.labels import attack
from dpveil.attacks.measures import equal_error, identification, verification
from dpveil.mechanisms.pixel import DPSVD, Blur, DPPix, Mosaic, Snow

BROKEN = [
    (None, 0.9),
    (Blur(sigma=8), 0.9),
    (Mosaic(block=16), 0.9),
    (DPPix(epsilon="0.5", block=4, neighbourhood=1), 0.8),
    (DPSVD(epsilon="0.01", rank=4), 0.85),
    (DPSVD(epsilon=10, rank=4), 0.85),
    (Snow(delta="0.1"), 0.85),
]
"""Methods, and least shares of photos that the linear discriminant names: below what it reaches, 0.9 to 1."""


@pytest.fixture(scope="module")
def photos(shared):
    folder = shared / "att_faces"
    if not folder.is_dir():
        pytest.skip("needs ../shared/data/att_faces, which is not part of the project")
    return {
        (person, photo): np.asarray(Image.open(folder / f"s{person + 1}/{photo + 1}.pgm"))[..., None]
        for person in range(40)
        for photo in range(10)
    }


@pytest.mark.slow
@pytest.mark.parametrize(("method", "least"), BROKEN, ids=lambda value: str(value))
def test_what_is_broken_breaks(photos, method, least):
    """Reilly & Fan's split, 8 and 2, and their table I; the paper reports 0.68, 0.6 and 0.04 for the last."""
    background, shown, people = sides(
        method, people=40, known=8, make=lambda person, photo: photos[person, photo]
    )
    scores = attack("pixels").fit(background).score(shown)
    assert identification(scores, people).value >= least
    assert equal_error(scores, people).value <= 0.06
    assert verification(scores, people, far=0.01).value >= 0.8


@pytest.mark.slow
def test_what_has_a_bound_for_whole_photos_holds(photos):
    """At ε = 1 of 40 people e/(e + 39) = 6.5 % are named at most: over 26 of 80 below 1e-9."""
    method = DPPix(epsilon=1, block=16)
    background, shown, people = sides(
        method, people=40, known=8, make=lambda person, photo: photos[person, photo]
    )
    for label in ("pixels", "eigenfaces", "shown", "subspaces", "restored"):
        assert identification(attack(label).fit(background).score(shown), people).value * 80 <= 26
