"""Differential privacy beside k-same in one generator: both on made faces, and how curves are compared."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from dpveil.assets.store import default_path
from dpveil.codecs import GAN, load
from dpveil.codecs.gan import CLEAR
from dpveil.errors import UsageError
from dpveil.noise.bits import SeededBits
from dpveil_research.croft_thesis_6 import PLAN, make
from dpveil_research.croft_thesis_6.measure import Measures, Point, ahead, between
from dpveil_research.croft_thesis_6.plan import PRIVATE, SAME, SEED, private
from dpveil_research.croft_thesis_6.scene import Scene, balanced, seen

TINY = replace(PLAN, people=7, photos=2, known=1, draws=2, epsilons=(100, 1000), groups=(2, 3, 4))
FEMALE = np.array([True, False, True, False, True, False, False])


def portrait(person: int, photo: int) -> np.ndarray:
    """A made face: smooth waves that are the person's, and a little that is the photo's."""
    a = 0.8 * SeededBits(4, f"person {person}").words(12) / 2.0**64
    a = a + 0.2 * SeededBits(4, f"photo {person} {photo}").words(12) / 2.0**64
    y, x = np.mgrid[0:128, 0:128] / 128
    waves = sum(a[2 * i] * np.sin((i + 1) * (x + a[2 * i + 1]) * 3) * np.cos((i + 2) * y) for i in range(6))
    levels = 120 + 45 * np.asarray(waves)
    return np.clip(np.stack([levels, 0.9 * levels, 0.8 * levels], axis=2), 0, 255).astype(np.uint8)


@cache
def scene() -> Scene:
    codec = load(default_path("gan"))
    assert isinstance(codec, GAN)
    crops = np.stack([portrait(person, photo) for person in range(7) for photo in range(2)])
    people = tuple(f"p{person}" for person in range(7) for _ in range(2))
    number, female = np.tile(np.arange(2), 7), np.repeat(FEMALE, 2)
    return Scene(seen(crops, codec.canvas[0]), people, number, female, codec, TINY)


def test_both_methods_release_every_photo_at_every_setting() -> None:
    found = list(scene().releases())
    settings = [(one.method, one.x) for one in found]
    # There are three women, so nobody can be one of four.
    wanted = [(PRIVATE, "100"), (PRIVATE, "1000"), (SAME, "2"), (SAME, "3")]
    assert settings == [("none", ""), ("codec alone", ""), *wanted]
    draws = [len(one.faces) for one in found]
    assert draws == [1, 1, 2, 2, 1, 1]
    assert all(one.faces.shape[1:] == scene().faces.shape for one in found)
    np.testing.assert_array_equal(found[0].faces[0], scene().faces)


def test_the_private_release_is_the_mechanism_and_a_decoder_that_is_told_the_gender() -> None:
    own = scene()
    (first, second), *_ = [one.faces for one in own.releases() if one.method == PRIVATE]
    assert (first != second).any(axis=(1, 2, 3)).all()
    bits, women = SeededBits(SEED, "100"), np.flatnonzero(own.female)
    codes = private(100).release(own.codec.encode(own.faces[women]), own.codec.statistics, bits=bits)
    np.testing.assert_array_equal(first[women], own.codec.render(codes, gender=CLEAR))
    assert (first[women] != own.codec.render(codes, gender=-CLEAR)).any()


def test_k_same_shares_pictures_in_a_gallery_and_a_gender_alone() -> None:
    own = scene()
    (faces,) = next(one.faces for one in own.releases() if (one.method, one.x) == (SAME, "2"))
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


def test_intervals_of_a_difference_resample_people_in_both_alike() -> None:
    values = np.array([0.0, 0.2, 0.4, 0.6, 0.8])
    curve = [point(PRIVATE, str(n), risk, 0) for n, risk in enumerate((0.0, 1.0))]
    for one in curve:
        one.by_person["ssim"][:] = values + 0.05
    other = point(SAME, "2", 0.5, 0)
    other.by_person["ssim"][:] = values
    row = ahead(curve, [other])[0]
    for end in ("", "_low", "_high"):
        assert float(row[f"ahead{end}"]) == pytest.approx(0.05, abs=1e-4)


def test_points_are_joined_in_order_of_risk() -> None:
    assert between(0.25, np.array([0.5, 0.0]), np.array([1.0, 0.0])) == 0.5


def test_the_strongest_attacker_is_reported_with_what_is_kept() -> None:
    measures = Measures(scene())
    faces = next(one for one in scene().releases() if one.method == "none")
    found = measures.point(faces)
    assert found.people == tuple(f"p{person}" for person in range(7))
    np.testing.assert_allclose(found.by_person["ssim"], 1)
    attacks = [attack(faces).rate for attack in measures._attacks().values()]
    assert found.by_person["named"].mean() == pytest.approx(max(attacks))


@pytest.mark.slow
def test_the_whole_run_on_a_tree_of_faces(tmp_path: Path) -> None:
    for person in range(8):
        home = tmp_path / "lfw10_128" / f"p{person}"
        home.mkdir(parents=True)
        for photo in range(2):
            Image.fromarray(portrait(person, photo)).save(home / f"{photo}.jpg")
    plan = replace(TINY, draws=1, epsilons=(1000,), groups=(2,))
    with pytest.raises(UsageError, match="too few people for a group: take more people with --count"):
        make(tmp_path, 1, plan=plan)
    files = make(tmp_path, 8, plan=plan)
    assert set(files) == {"results.csv", "ahead.csv", "trade-off.png"}
    rows = list(csv.DictReader(io.StringIO(files["results.csv"].decode())))
    assert [row["method"] for row in rows][:3] == ["none", "codec alone", PRIVATE]
    assert files["trade-off.png"].startswith(b"\x89PNG")
