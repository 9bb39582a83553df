"""What relations imply, by all pairs of neighbours among small photos and databases, and what is totalled."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from dpveil.accounting import compose, meet, to_approximate
from dpveil.core.guarantee import IMPLIED, RELATIONS, Guarantee, Relation, Scope
from dpveil.errors import UnsupportedRelation
from dpveil.faces.latent import Latent
from dpveil.mechanisms.latent import BoxLaplace
from dpveil.mechanisms.pixel import DPPix
from dpveil.mechanisms.pixel.dp_svd import leading_triples

ALL = [Relation(name) for name in RELATIONS if name != "m-pixels"] + [Relation("m-pixels", m) for m in (1, 2)]
PHOTOS = [
    np.array(levels, np.uint8).reshape(shape)
    for shape in ((1, 2), (3, 1), (2, 2))
    for levels in product((0, 1, 2), repeat=shape[0] * shape[1])
]
"""Every one holds a face, which is all of it."""
DATABASES = [records for size in (1, 2) for records in product("ab", repeat=size)]

ALBUMS = [people for size in (1, 2) for people in product(("", "a", "ab"), repeat=size)]
"""Sets of photos: what each person has."""


def vectors(photo: np.ndarray) -> bytes:
    """Return U and V as `dp-svd` computes and shows them."""
    u, _, v = leading_triples(photo, min(photo.shape))
    return repr((u.shape, v.shape)).encode() + np.ascontiguousarray(u).tobytes() + v.tobytes()


SHOWN = [vectors(photo) for photo in PHOTOS]


def neighbours(relation: Relation) -> set[tuple[str, int, int]]:
    """Return all pairs of neighbours in these worlds, by the words of the relation alone."""
    found: set[tuple[str, int, int]] = set()
    for (i, a), (j, b) in product(enumerate(PHOTOS), repeat=2):
        alike = a.shape == b.shape
        if {
            "any-image": alike,
            "m-pixels": alike and int((a != b).sum()) <= (relation.m or 0),
            "latent-cell": True,
            "singular-values": SHOWN[i] == SHOWN[j],
        }.get(relation.name):
            found.add(("photos", i, j))
    for (i, a), (j, b) in product(enumerate(DATABASES), repeat=2):
        one = len(a) == len(b) and sum(x != y for x, y in zip(a, b, strict=True)) <= 1
        if {"any-database": True, "database-record": one}.get(relation.name):
            found.add(("databases", i, j))
    for (i, a), (j, b) in product(enumerate(ALBUMS), repeat=2):
        one = len(a) == len(b) and sum(x != y for x, y in zip(a, b, strict=True)) <= 1
        if relation.name == "person" and one:
            found.add(("albums", i, j))
    return found


PAIRS = {relation: neighbours(relation) for relation in ALL}


def wrongs() -> list[tuple[Relation, Relation]]:
    """Return where `implies` and the neighbours disagree."""
    return [(a, b) for a, b in product(ALL, repeat=2) if a.implies(b) != (PAIRS[b] <= PAIRS[a])]


def test_a_relation_implies_those_whose_neighbours_are_all_its_own():
    assert wrongs() == []
    assert any(i != j for _, i, j in PAIRS[Relation("singular-values")])


def test_implications_that_are_wrong_are_found(monkeypatch):
    for strong, weak in product(RELATIONS, repeat=2):
        if strong != weak and weak not in IMPLIED.get(strong, ()):
            monkeypatch.setitem(IMPLIED, strong, (*IMPLIED.get(strong, ()), weak))
            assert wrongs(), f"{strong} does not imply {weak}"
            monkeypatch.undo()


@pytest.mark.parametrize("count", [1, 2, 3])
def test_the_meet_holds_for_all_in_any_order_and_is_refused_where_there_is_none(count):
    for relations in product(ALL, repeat=count):
        common = [r for r in relations if all(PAIRS[r] <= PAIRS[other] for other in relations)]
        if common:
            assert meet(*relations) == common[0]
        else:
            with pytest.raises(UnsupportedRelation):
                meet(*relations)


class Mean:
    """A code space: the mean level of a face, in a box that leaves both ends out."""

    in_the_clear = ()
    length = 1
    column_energy = np.ones(1)
    deviations = None

    def bounds(self, clip):
        return type("Box", (), {"low": np.array([30.0]), "high": np.array([200.0])})

    def radius(self, clip):
        return 1.0


def loss(first: np.ndarray, second: np.ndarray, pix: Fraction, code: Fraction) -> Fraction:
    """Return the largest log-ratio of a pixelated face and a drawn code, by the laws of their noise."""
    levels = sum(map(int, first.ravel())) - sum(map(int, second.ravel()))
    ends = [round(min(max(Fraction(int(p.sum()), p.size), 30), 200) / 170 * 2**16) for p in (first, second)]
    return abs(levels) / pix + abs(ends[0] - ends[1]) / code


@pytest.mark.parametrize("m", [None, 1])
def test_a_face_pixelated_and_drawn_anew_costs_what_the_total_says(m):
    """Two releases of 2 pixels: what the worst neighbours lose, from the scales of the noise alone."""
    pix = DPPix(epsilon=1, block=2, neighbourhood=m)
    drawn = BoxLaplace(epsilon="0.5")
    total = compose([drawn.guarantee(Mean()), pix.guarantee(height=2, width=1, channels=1)])
    assert total.relation == (Relation("m-pixels", m) if m else Relation("any-image"))
    of_sums = 2 * Fraction(pix.noise_scale(height=2, width=1, channels=1))
    scales = of_sums, drawn.scales(Mean())[0]
    photos = [np.array(levels, np.uint8).reshape(2, 1) for levels in product((0, 100, 255), repeat=2)]
    near = [(a, b) for a, b in product(photos, repeat=2) if m is None or (a != b).sum() <= m]
    assert max(loss(a, b, *scales) for a, b in near) <= total.epsilon
    worst = max(loss(a, b, *scales) for a, b in product(photos, repeat=2))
    assert worst > Fraction(9, 10) * total.epsilon
    assert (worst > total.epsilon) == (m is not None)  # so that no larger neighbourhood could be stated


def test_an_album_of_pixelated_and_drawn_faces_is_totalled():
    size = {"height": 120, "width": 88, "channels": 3}
    pixelated = DPPix(epsilon=20, block=16).guarantee(**size)
    drawn = Latent(epsilon=300, codec="pca 100 sha256:" + 64 * "0").guarantee(**size)
    small = DPPix(epsilon=2, block=16, neighbourhood=256).guarantee(**size)
    assert str(compose([drawn, pixelated])) == str(compose([pixelated, drawn])) == "320-DP, any-image"
    assert str(compose([pixelated, drawn, small])) == "322-DP, m-pixels (m = 256)"
    every = to_approximate([drawn, pixelated, small], "1e-6")
    assert (every.relation, every.kind) == (Relation("m-pixels", 256), "approximate")
    assert every.epsilon <= 322
    covered = compose([pixelated, drawn]).scope
    assert set(pixelated.scope.in_the_clear + drawn.scope.in_the_clear) == set(covered.in_the_clear)


def test_what_is_not_proven_is_refused():
    row = Guarantee(kind="pure", epsilon=1, relation=Relation("database-record"), scope=Scope("a table"))
    face = Guarantee(kind="pure", epsilon=1, relation=Relation("any-image"), scope=Scope("a face"))
    for together in (compose, lambda parts: to_approximate(parts, "1e-6")):
        with pytest.raises(UnsupportedRelation):
            together([face, row])
