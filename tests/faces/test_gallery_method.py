"""The gallery method: its law over faces, what it refuses, and that it shows nothing but faces of nobody."""

from __future__ import annotations

from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
from made_nobody import CARD

import dpveil.assets.trained_files
from dpveil.assets.file_reference import terms_of
from dpveil.assets.trained_files import save
from dpveil.errors import InvalidParameter, ModelError, UsageError
from dpveil.faces.face_gallery import FaceGallery, webp
from dpveil.faces.gallery_method import Gallery
from dpveil.mechanisms.latent.base import TIME
from dpveil.mechanisms.rank_choice import RankChoice
from dpveil.noise.bits import SeededBits
from dpveil_audit.distributions import finite_distribution
from dpveil_audit.fit import fit

SIZE = {"height": 90, "width": 70, "channels": 3}
BY_HASH = "gallery sha256:" + 64 * "a"


def grey(level):
    return np.full((128, 128, 3), level, np.uint8)


def nobody(count=12):
    """Faces of one level each; features see the level alone."""
    pictures = tuple(webp(grey(20 * number + 10)) for number in range(count))
    row = np.full((1, 3072), 1 / 3072, np.float32)
    return FaceGallery(pictures, {}, {}, {}, np.zeros(len(pictures), np.int8), row, CARD)


FACES = nobody()


def shown(own, crops, seed):
    """Which faces of the gallery are released: every crop has to be one of them, bit by bit."""
    released = own.release(crops, bits=SeededBits(seed))
    numbers = (released[:, 64, 64, :1] == FACES.faces[:, 64, 64, 0]).argmax(axis=1)
    assert np.array_equal(FACES.faces[numbers], released)
    return numbers


def order(level):
    """The faces from the nearest to the farthest, by hand."""
    away = [abs(level - float(face.mean())) for face in FACES.faces]
    return sorted(range(len(away)), key=lambda number: (away[number], number))


@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(5)])
def test_every_two_faces_keep_epsilon(epsilon):
    """The chance of every face for crops of all kinds, from their order by hand."""
    own = Gallery(epsilon=epsilon, gallery=FACES)
    choice = RankChoice(count=12, epsilon=epsilon)
    laws = []
    for level in (0, 55, 100, 121, 255):
        ranks = np.argsort(order(level))
        laws.append(np.log([float(choice.probabilities[rank]) for rank in ranks]))
    worst = max(float((a - b).max()) for a, b in permutations(laws, 2))
    assert 0 < worst <= float(epsilon) * (1 + 1e-12)
    assert own.guarantee(**SIZE).epsilon == epsilon
    assert str(own.guarantee(**SIZE)) == f"{float(epsilon):g}-DP, any-image"


@pytest.mark.parametrize("level", [0, 100, 255])
def test_faces_are_drawn_by_their_rank(level):
    """Against the law by hand: a right sampler is rejected with probability 1e-9 at most."""
    own = Gallery(epsilon=3, gallery=FACES)
    crops = np.repeat(grey(level)[None], 800, axis=0)
    ranks = np.argsort(order(level))[shown(own, crops, seed=level)]
    law_ = finite_distribution([float(p) for p in RankChoice(count=12, epsilon=3).probabilities])
    assert not fit(ranks, law_).is_rejected
    assert fit(np.minimum(ranks + 1, 11), law_).is_rejected
    other = [float(p) for p in RankChoice(count=12, epsilon=8).probabilities]
    assert fit(ranks, finite_distribution(other)).is_rejected


def test_crops_of_one_order_are_one_to_it():
    """Nothing but the order of distances reaches the draw."""
    own = Gallery(epsilon=2, gallery=FACES)
    plain = np.repeat(grey(87)[None], 50, axis=0)
    noise = np.random.default_rng(1).integers(-20, 21, (50, 64, 128, 3))
    loud = plain.astype(np.int64)
    loud[:, :64] += noise
    loud[:, 64:] -= noise  # of the same mean: features see no more
    assert np.array_equal(shown(own, plain, 3), shown(own, loud.astype(np.uint8), 3))
    assert own.frame.size == 128


def test_certificates_name_the_gallery_by_its_hash(tmp_path, monkeypatch):
    save(FACES, tmp_path / "mine.safetensors")
    own = Gallery(epsilon=1, gallery=tmp_path / "mine.safetensors")
    told = own.parameters()
    assert told["gallery"] == f"gallery sha256:{FACES.digest}"
    assert str(tmp_path) not in str(told)
    assert terms_of([own])[f"gallery sha256:{FACES.digest}"] == CARD.terms
    assert set(told) == {"epsilon", "near", "gallery", "protect", "placing"}
    again = Gallery(**{name: value for name, value in told.items() if value is not None})
    assert again == own
    assert again.guarantee(**SIZE) == own.guarantee(**SIZE)
    monkeypatch.setattr(dpveil.assets.trained_files, "PACKAGE", "no_such_package")
    with pytest.raises(ModelError, match="not available"):
        again.prepare(**SIZE)
    with pytest.raises(UsageError, match="the default gallery of faces is not installed") as refusal:
        Gallery(epsilon=1)
    assert "dpveil-faces" in refusal.value.hint


@pytest.mark.parametrize(
    ("more", "match"),
    [
        ({"epsilon": None}, "epsilon"),
        ({"epsilon": 0}, "epsilon"),
        ({"near": 0}, "near"),
        ({"gallery": 3}, "gallery"),
        ({"gallery": "attributes sha256:" + 64 * "a"}, "gallery"),
    ],
)
def test_bad_parameters_are_refused(more, match):
    with pytest.raises(InvalidParameter, match=match):
        Gallery(**{"epsilon": 1, "gallery": BY_HASH, **more})


def test_what_cannot_be_drawn_is_refused_before_it_is_paid_for():
    with pytest.raises(InvalidParameter, match="near = 12 does not fit"):
        Gallery(epsilon=1, near=12, gallery=FACES).prepare(**SIZE)
    with pytest.raises(InvalidParameter, match="too large for a choice among 12"):
        Gallery(epsilon=99, gallery=FACES).prepare(**SIZE)
    own = Gallery(epsilon=1, gallery=FACES)
    own.prepare(**SIZE)
    with pytest.raises(InvalidParameter, match="crops"):
        own.release(np.zeros((1, 127, 128, 3), np.uint8), bits=SeededBits(1))
    with pytest.raises(InvalidParameter, match="bits"):
        own.release(np.zeros((1, 128, 128, 3), np.uint8), bits=7)
    assert own.release(np.zeros((0, 128, 128, 3), np.uint8), bits=SeededBits(1)).shape == (0, 128, 128, 3)


def test_sorting_takes_its_time_and_the_certificate_says_so():
    named = Gallery(epsilon=8, gallery="gallery sha256:" + 64 * "0")
    assert TIME in named.guarantee(height=9, width=9, channels=3).scope.in_the_clear
