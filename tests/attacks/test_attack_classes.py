"""Every attack of the table: it names people, guesses about nothing, and keeps to what it sees."""

from __future__ import annotations

import numpy as np
import pytest

from dpveil.attacks import Background, View, identification_rates
from dpveil.attacks.base import CONTEXT, PLACEMENT, has_extra
from dpveil.attacks.faces import Embedding, largest_face
from dpveil.attacks.super_resolution import Restored
from dpveil.attacks.surroundings import Context, Placement
from dpveil.attacks.vectors import PixelDiscriminant
from people_made import background, picture, view

PEOPLE = 8


def probes() -> tuple[list[View], list[str]]:
    return [view(picture(p, 90 + k)) for p in range(PEOPLE) for k in range(2)], [
        f"person {p}" for p in range(PEOPLE) for _ in range(2)
    ]


def test_a_parrot_learns_from_releases_and_names_by_them() -> None:
    """Releases are upside down here: who knows clean photos alone is no better than a guess."""
    clean = background(PEOPLE)
    turned = tuple(view(255 - one.image[::-1]) for one in clean.clean)
    seen, people = probes()
    released = [view(255 - one.image[::-1]) for one in seen]
    for attack in (PixelDiscriminant(), Restored()):
        knows = attack.fit(Background(clean.clean, turned, clean.people))
        assert identification_rates(knows.score(released), people).mean() == 1
        naive = attack.fit(clean)
        assert identification_rates(naive.score(released), people).mean() < 0.5


def framed(person: int, box: tuple[int, int, int, int], *, inside: int = 0, outside: int = 100) -> View:
    """Return a photo with one region, whose surroundings have the pattern of a person."""
    image = np.full((40, 48, 3), outside, np.uint8)
    image[:, :12] = np.random.default_rng(person).integers(0, 256, (40, 12, 3))
    x, y, w, h = box
    hidden = np.zeros((40, 48), np.bool_)
    hidden[y : y + h, x : x + w] = True
    image[hidden] = inside
    return View(image, hidden, {"regions": [{"box": list(box)}, {"box": [0, 0, 1, 1]}]})


def test_the_context_is_not_the_place_and_the_place_is_not_the_context() -> None:
    assert Placement.sees == (PLACEMENT,)
    assert Context.sees == (CONTEXT,)
    boxes = [(14, 4, 12, 16), (20, 10, 20, 24)]
    place = Placement().vectors([framed(p, boxes[0]) for p in range(2)])
    assert (place[0] == place[1]).all()
    assert (Placement().vectors([framed(0, box) for box in boxes])[0] != place[0]).sum() == 0
    nowhere = View(picture(0, 0), np.zeros(picture(0, 0).shape[:2], np.bool_))
    assert np.isnan(Placement().vectors([nowhere])).all()
    everything = Context().vectors([view(picture(p, 0)) for p in range(2)])
    assert not everything.any(), "nothing of these photos is outside"


@pytest.mark.skipif(not has_extra("faces"), reason="needs dpveil install faces")
def test_an_embedding_is_of_the_largest_face_and_missing_without_one() -> None:
    """Kept embeddings are those of the same picture alone."""
    data = pytest.importorskip("skimage.data", reason="needs pip install 'dpveil[demo]'")
    photo = np.asarray(data.astronaut())[:200, 120:320]
    noise = np.random.default_rng(0).integers(0, 256, photo.shape, np.uint8)
    lighter = np.minimum(photo.astype(int) + 25, 255).astype(np.uint8)
    first, none, other, again = Embedding().vectors([view(one) for one in (photo, noise, lighter, photo)])
    assert np.isnan(none).all()
    assert (first == again).all()
    assert 0 < np.linalg.norm(first - other) < 0.6
    box = largest_face(view(photo))
    assert box is not None
    assert box.x < 110 < box.x + box.w
    assert largest_face(view(noise)) is None
    known = Background(
        *2 * (tuple(view(one) for one in (photo, lighter, noise, noise)),), ("a", "a", "b", "b")
    )
    scores = Embedding().fit(known).score([view(photo), view(noise)])
    assert scores.names == ("a", "b")
    assert scores.likeness[0, 0] > scores.likeness[0, 1], "nobody has a face of b"
    assert np.isnan(scores.likeness[1]).all()
