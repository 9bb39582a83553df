"""FaceIDP's figures 5 and 7: which faces are shown, and what the table says of them."""

from __future__ import annotations

import csv
import io

import numpy as np
import pytest
from made_codes import codecs, crops, embed

from dpveil_research import faceidp_faces
from dpveil_research.faceidp import ORIGINAL
from dpveil_research.faceidp_faces import CLOSEST, SERIES, UTILITIES, files, heads, pairs
from dpveil_research.published_faceidp import OPTIMAL, PARTIAL, STANDARD

PARTS = {"eye of A": (0, (2, 2), 4), "mouth of B": (1, (7, 4), 4)}


@pytest.fixture(scope="module")
def made() -> dict[str, bytes]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(faceidp_faces, "PARTS", PARTS)
        return files(codecs()["dictionary"], crops(12, 1, seed=5).crops, embed)


def test_both_faces_of_both_pairs_are_shown_at_every_setting(made: dict[str, bytes]) -> None:
    table = list(csv.DictReader(io.StringIO(made["faces.csv"].decode())))
    settings = [(row["face"], row["series"], row["utility"]) for row in table]
    once = {(face, series, utility) for face in "AB" for series in SERIES for utility in UTILITIES}
    assert len(settings) == 2 * len(once)
    assert set(settings) == once
    for row in table:
        assert (row["series"] == ORIGINAL) == (row["epsilon"] == "")
        if row["series"] == ORIGINAL:
            assert row["squared_error"] == "0"
            assert (float(row["distance_from_a"]) == 0) == (row["face"] == "A")
        elif row["series"] == STANDARD:
            assert float(row["squared_error"]) > 1


def test_budgets_are_in_the_order_that_follows_from_algebra(made: dict[str, bytes]) -> None:
    table = list(csv.DictReader(io.StringIO(made["faces.csv"].decode())))
    for pair in {row["pair"] for row in table}:
        for utility in UTILITIES:
            own = {
                row["series"]: float(row["epsilon"] or "nan")
                for row in table
                if (row["pair"], row["utility"], row["face"]) == (pair, utility, "B")
            }
            assert own[STANDARD] >= own[PARTIAL] >= own[OPTIMAL] >= 0


def test_figures_are_pictures(made: dict[str, bytes]) -> None:
    assert all(made[f"figure-{number}.png"].startswith(b"\x89PNG") for number in (5, 7))


def test_the_closest_pair_and_one_as_far_apart_as_those_of_lfw() -> None:
    assert pairs(np.array([[0.0], [0.1], [0.61], [3.0]])) == {CLOSEST: [0, 1], "0.51 apart": [1, 2]}


def test_heads_are_the_same_in_every_run_and_differ() -> None:
    two = heads(2)
    assert two.shape == (2, 150, 150, 3)
    assert np.array_equal(heads(1)[0], two[0])
    assert not np.array_equal(*two)
