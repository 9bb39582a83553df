"""Figures 5, 7, 10 and 11 of Croft 2022: attacks on made faces, and what may be said of an interval."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from kept_tables import kept_rows
from made_codes import blocks
from test_croft_thesis_6 import scene

from dpveil_research.croft_2022_faces import (
    BASIC,
    HOLDS,
    NOT,
    OPEN,
    PLAN,
    PRIVATE,
    SAME,
    Attacked,
    Plan,
    Point,
    claims,
    interval,
    tables,
    verdict,
)
from dpveil_research.faces import large

TINY = Plan(people=7, known=1, pairs=1, epsilons=(100, 100000), groups=(2,), splits=2)


@cache
def points() -> tuple[Point, ...]:
    return tuple(Attacked(scene(), TINY, embed=blocks).points())


def at(method: str, model: str, x: str) -> dict[str, np.ndarray]:
    (found,) = (one.by_person for one in points() if (one.method, one.model, one.x) == (method, model, x))
    return found


def test_the_attacker_has_other_photos_than_the_one_that_is_released() -> None:
    own = Attacked(scene(), TINY, embed=blocks)
    assert not set(own.known) & set(own.probes)
    assert sorted(own.names[own.probes]) == list(range(7))
    np.testing.assert_array_equal(own.means, blocks(large(own.scene.faces[own.known])))


def test_hardly_any_noise_names_as_many_as_the_codec_alone() -> None:
    clear = Attacked(scene(), Plan(people=7, known=1, pairs=1, epsilons=(10**9,)), embed=blocks)
    found = clear._private(BASIC, 10**9).by_person
    np.testing.assert_array_equal(found["named"], at("codec alone", BASIC, "")["named"])
    np.testing.assert_array_equal(found["two"], found["one"])


def test_groups_hold_everybody_alike_in_one_release() -> None:
    found = at(SAME, BASIC, "2")
    own = [found[name][~np.isnan(found[name])] for name in ("one", "two")]
    assert len(own[0]) == len(own[1]) < 7, "those who are in no two galleries are not counted"
    assert all(((one >= 0) & (one <= 1)).all() for one in own)


@pytest.mark.parametrize(
    ("found", "wanted"),
    [((0.1, 0.02, 0.2), HOLDS), ((0.0, -0.1, 0.1), OPEN), ((-0.1, -0.2, 0.0), NOT), ((0.9, 0.8, 1.1), OPEN)],
)
def test_a_verdict_needs_the_whole_interval(found: tuple[float, float, float], wanted: str) -> None:
    assert verdict(found, 0.0, 1.0) == wanted


def test_nobody_named_is_not_a_measured_zero() -> None:
    mean, low, high = interval(np.append(np.zeros(60), np.nan))
    assert mean == 0
    assert high == -low == pytest.approx(1 - 0.025 ** (1 / 60))


def test_claims_are_made_where_the_paper_makes_them() -> None:
    found = list(claims(points()))
    parrots = {one.about for one in found if one.name == "C16"}
    assert parrots == {f"{PRIVATE} 100"}
    assert {one.about for one in found if one.name == "C15"} == {f"{PRIVATE} 100000"}
    assert {one.about for one in found if one.name == "C17"} == {f"{SAME} 2"}
    gain = at(PRIVATE, BASIC, "100")["parrot"] - at(PRIVATE, BASIC, "100")["named"]
    (own,) = (one.values for one in found if one.name == "C16")
    np.testing.assert_array_equal(own, gain)


def test_tables_and_four_figures_come_out_and_the_kept_table_is_that_of_the_plan() -> None:
    plots = {f"figure-{number}.png" for number in (5, 7, 10, 11)}
    assert set(tables(points())) == {"results.csv", "verdicts.csv", *plots}
    kept = kept_rows("croft-2022-faces")
    assert {one["people"] for one in kept} == {str(PLAN.people)}
    for method, wanted in ((PRIVATE, PLAN.epsilons), (SAME, PLAN.groups)):
        own = [one["x"] for one in kept if (one["method"], one["model"]) == (method, BASIC)]
        assert own == list(map(str, wanted))
