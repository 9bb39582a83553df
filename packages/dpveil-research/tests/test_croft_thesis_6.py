"""Differential privacy beside k-same in one generator: both on made faces, and how curves are compared."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from kept_tables import Three, ends, kept_row, kept_rows
from made_codes import portrait

from dpveil.assets.trained_files import default_path
from dpveil.codecs import GAN, load
from dpveil.codecs.network_codecs import CLEAR
from dpveil.faces.attribute_model import VALUES
from dpveil.noise.bits import SeededBits
from dpveil_research.croft_thesis_6 import (
    PLAN,
    PRIVATE,
    REPLACED,
    SAME,
    SEED,
    Measures,
    Point,
    Released,
    Scene,
    ahead,
    balanced,
    private,
)
from dpveil_research.embedding_attacks import Identified
from dpveil_research.faces import seen

TINY = replace(PLAN, people=7, photos=2, known=1, draws=2, epsilons=(100, 1000), groups=(2, 3, 4))
FEMALE = np.array([True, False, True, False, True, False, False])


@cache
def scene() -> Scene:
    codec = load(default_path("gan"))
    assert isinstance(codec, GAN)
    crops = np.stack([portrait(person, photo) for person in range(7) for photo in range(2)])
    people = tuple(f"p{person}" for person in range(7) for _ in range(2))
    number, female = np.tile(np.arange(2), 7), np.repeat(FEMALE, 2)
    return Scene(seen(crops, codec.canvas[0]), people, number, female, codec, TINY)


@cache
def releases() -> list[Released]:
    return list(scene().releases())


def test_both_methods_release_every_photo_at_every_setting() -> None:
    found = releases()
    settings = [(one.method, one.x) for one in found]
    # There are three women, so nobody can be one of four.
    wanted = [(PRIVATE, "100"), (PRIVATE, "1000"), (SAME, "2"), (SAME, "3")]
    assert settings == [("none", ""), ("codec alone", ""), (REPLACED, ""), *wanted]
    draws = [len(one.faces) for one in found]
    assert draws == [1, 1, 2, 2, 2, 1, 1]
    assert all(one.faces.shape[1:] == scene().faces.shape for one in found)
    np.testing.assert_array_equal(found[0].faces[0], scene().faces)


def test_the_private_release_is_the_mechanism_and_a_decoder_that_is_told_the_gender() -> None:
    own = scene()
    (first, second), *_ = [one.faces for one in releases() if one.method == PRIVATE]
    assert (first != second).any(axis=(1, 2, 3)).all()
    bits, women = SeededBits(SEED, "100"), np.flatnonzero(own.female)
    codes = private(100).release(own.codec.encode(own.faces[women]), own.codec.statistics, bits=bits)
    np.testing.assert_array_equal(first[women], own.codec.render(codes, gender=CLEAR))
    assert (first[women] != own.codec.render(codes, gender=-CLEAR)).any()
    men = np.flatnonzero(~own.female)
    codes = private(100).release(own.codec.encode(own.faces[men]), own.codec.statistics, bits=bits)
    np.testing.assert_array_equal(first[men], own.codec.render(codes, gender=-CLEAR))


def test_heads_are_replaced_without_a_look_at_the_photos() -> None:
    """The same heads whatever the faces are, in the same shape, and nothing beyond the public ellipse."""
    own = scene()
    shown, again = (
        next(r.faces for r in one.releases() if r.method == REPLACED)
        for one in (own, replace(own, faces=255 - own.faces))
    )
    np.testing.assert_array_equal(shown, again)
    assert (shown[:, :, 0, 0] == 128).all()
    assert len({face.tobytes() for face in shown.reshape(-1, *shown.shape[2:])}) > len(own.faces)


def test_k_same_shares_pictures_in_a_gallery_and_a_gender_alone() -> None:
    own = scene()
    (faces,) = next(one.faces for one in releases() if (one.method, one.x) == (SAME, "2"))
    shared: dict[bytes, list[int]] = {}
    for row, face in enumerate(faces):
        shared.setdefault(face.tobytes(), []).append(row)
    assert len(shared) == 2 * (1 + 2)  # of each gallery one group of women, two of men
    for rows in shared.values():
        assert len(rows) >= 2
        assert len({int(own.number[row]) for row in rows}) == 1
        assert len({bool(own.female[row]) for row in rows}) == 1


def test_people_are_balanced() -> None:
    female = np.arange(100) % 5 == 0
    assert female[balanced(female, 50)].sum() == 20
    assert female[balanced(female, 30)].sum() == 15
    rows = balanced(female, 30)
    assert len(set(rows.tolist())) == 30
    assert (np.diff(rows) > 0).all()
    assert len(balanced(female, 1000)) == 100
    assert len(balanced(np.zeros(3, bool), 2)) == len(balanced(np.ones(3, bool), 2)) == 2


def point(method: str, x: str, named: float, ssim: float) -> Point:
    by = {
        name: np.full(5, float(value)) for name, value in (("named", named), ("ssim", ssim), ("gender", 0.5))
    }
    return Point(method, x, "codes, parrot", by, tuple("abcde"))


def test_curves_are_compared_at_equal_risk_and_nowhere_else() -> None:
    curve = [point(PRIVATE, "900", 0.5, 0.6), point(PRIVATE, "100", 0.1, 0.2)]
    same = [point(SAME, "5", 0.3, 0.3), point(SAME, "2", 0.51, 0.3), point(SAME, "9", 0.09, 0.3)]
    rows = ahead(curve, same)
    assert [row["k"] for row in rows] == ["5", "5", "2", "2", "9", "9"]
    assert all(row["ahead"] == row["ahead_low"] == row["ahead_high"] == "" for row in rows[2:])
    assert float(rows[0]["ahead"]) == pytest.approx(0.1, abs=1e-9)
    assert float(rows[0]["ahead_low"]) == pytest.approx(0.1, abs=1e-3)
    assert float(rows[1]["ahead"]) == 0


def test_the_strongest_attacker_is_reported_with_what_is_kept() -> None:
    measures, faces = Measures(scene()), next(scene().releases())
    found = measures.point(faces)
    assert found.people == tuple(f"p{person}" for person in range(7))
    np.testing.assert_allclose(found.by_person["ssim"], 1)
    best = max(one.rate for one in measures.attacks(faces).values())
    assert found.by_person["named"].mean() == pytest.approx(best)


def test_what_is_kept_is_the_mean_of_a_persons_releases(monkeypatch: pytest.MonkeyPatch) -> None:
    right = np.arange(14) % 4 < 2  # draws of seven people: a person is named in one of two
    monkeypatch.setattr(Measures, "attacks", lambda self, one: {"only": Identified(right, ("",) * 14, 0.1)})
    woman = VALUES["gender"].index("female")
    model = SimpleNamespace(read=lambda crops: {"gender": np.full(len(crops), woman)})
    private_faces = next(one for one in releases() if one.method == PRIVATE)
    found = Measures(scene(), embed=len, model=model).point(private_faces)  # type: ignore[arg-type]
    two = right.reshape(2, 7).mean(axis=0)
    np.testing.assert_array_equal(found.by_person["named"], two)
    np.testing.assert_array_equal(found.by_person["gender"], FEMALE)


# The page

KEPT = "croft-thesis-6"


def at(method: str, x: str, measure: str) -> Three:
    return ends(kept_row(KEPT, method=method, x=x), measure)


def apart(k: str, measure: str) -> Three:
    return ends(kept_row(KEPT, "ahead", k=k, measure=measure), "ahead")


def private_at(measure: str) -> list[Three]:
    return [at(PRIVATE, str(epsilon), measure) for epsilon in PLAN.epsilons]


def test_g1_far_fewer_are_named() -> None:
    assert {row["people"] for row in kept_rows(KEPT)} == {"60"}
    assert len(private_at("named")) == sum(row["method"] == PRIVATE for row in kept_rows(KEPT))
    plain, alone = at("none", "", "named"), at("codec alone", "", "named")
    assert max(private_at("named"))[2] < alone[1] < alone[2] < plain[1]


def test_g2_the_risk_rises_and_stays_above_chance() -> None:
    found = private_at("named")
    assert min(low for _, low, _ in found) > 1 / 60
    assert found[0][2] < found[-1][1]
    assert all(a[2] > b[1] for a, b in pairwise(found))


def test_g3_ssim_is_below_at_every_risk_that_both_have() -> None:
    assert all(apart(k, "ssim")[2] < 0 for k in ("2", "3", "4", "5"))
    assert all(row["ahead"] == "" for row in kept_rows(KEPT, "ahead") if row["k"] in ("10", "20"))
    assert max(at(SAME, k, "named")[0] for k in ("10", "20")) < at(PRIVATE, "100", "named")[0]


def test_g4_gender_is_slightly_below_for_some() -> None:
    assert all(-0.03 < low < high < 0 for _, low, high in (apart(k, "gender") for k in ("3", "4", "5")))
    _, low, high = apart("2", "gender")
    assert low < 0 < high


def test_g5_gender_is_not_below_that_of_photos() -> None:
    plain = at("none", "", "gender")
    assert all(mean > plain[0] for mean, _, _ in private_at("gender"))
    assert min(low for _, low, _ in private_at("gender")) < plain[2]


def test_g6_a_head_replaced_without_a_look_names_fewest_and_keeps_least() -> None:
    named, ssim, gender = (at(REPLACED, "", measure) for measure in ("named", "ssim", "gender"))
    others = [row for row in kept_rows(KEPT) if row["method"] in (PRIVATE, SAME)]
    assert named[0] < min(float(row["named"]) for row in others)
    assert ssim[2] < min(float(row["ssim_low"]) for row in others)
    assert gender[2] < min(float(row["gender_low"]) for row in others)
