"""Croft 2022 by networks that the run trains: attackers of figures 5 and 15, expressions of figure 9."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from kept_tables import ends, kept_row, kept_rows, read
from made_codes import chips
from test_own_data import rafd, scrub

from dpveil.errors import UsageError
from dpveil_research import croft_2022_expressions, croft_2022_networks
from dpveil_research.croft_2022_expressions import (
    BASIC,
    EXPRESSION,
    GENDER,
    MODELS,
    SIX,
    Measured,
    own_faces,
    read_expressions,
    rendered_faces,
    told_of,
    trained,
)
from dpveil_research.croft_2022_networks import EMBEDDING, LINEAR, NETWORK, taught
from people_made import picture

pytest.importorskip("torch")
TINY = replace(
    croft_2022_expressions.PLAN,
    people=8,
    length=8,
    widths=(8, 16),
    hidden=16,
    steps=2,
    epsilons=(1000, 10000),
    groups=(2,),
)


def test_own_photos_say_their_expression_and_their_gender(tmp_path: Path) -> None:
    faces = own_faces(rafd(tmp_path / "RaFD", 4), 8)
    assert faces.people == 4
    assert sorted(faces.expression.tolist()) == sorted(list(range(6)) * 4)
    assert faces.expressions == SIX
    assert [bool(faces.female[faces.person == one].all()) for one in range(4)] == [True, False, True, False]
    with pytest.raises(UsageError):
        own_faces(scrub(tmp_path / "others"), 8)


def test_a_model_is_told_what_it_keeps_and_nothing_else() -> None:
    faces = rendered_faces(6)
    rows = np.arange(len(faces.person))
    assert not told_of(faces, BASIC, rows).any()
    expression, gender = told_of(faces, EXPRESSION, rows), told_of(faces, GENDER, rows)
    np.testing.assert_array_equal(expression[:, :-1].argmax(axis=1), faces.expression)
    np.testing.assert_array_equal(gender[:, -1] > 0, faces.female)
    assert not expression[:, -1].any()
    assert not gender[:, :-1].any()


def test_expressions_are_learned_from_other_people_than_they_are_read_of() -> None:
    faces = rendered_faces(12)
    loud = faces.crops.copy()
    loud[faces.expression == 1, 40:] = 250
    found = read_expressions(replace(faces, crops=loud), loud)
    assert len(found) == np.count_nonzero(faces.person % 2)
    assert found.all()


@pytest.mark.slow
def test_six_expressions_on_a_tree_of_rafd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpveil_research.faces.embedder", lambda: chips)
    files = croft_2022_expressions.make(8, plan=TINY, own=rafd(tmp_path / "RaFD", 4))
    assert set(files) == {"results.csv", "figure-8.png", "figure-9.png"}
    rows = read(files["results.csv"])
    assert {row["model"] for row in rows} == {"", *MODELS}
    assert {row["photos"] for row in rows} == {"24"}


def test_a_release_follows_from_the_code_and_what_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpveil_research.faces.embedder", lambda: chips)
    faces = rendered_faces(6)
    own = Measured(faces, trained(faces, TINY, lambda words: None), TINY, embed=chips)
    codes = own.generator.codes
    shown = own.shown(EXPRESSION, codes)
    assert shown.shape == faces.crops.shape
    assert (own.shown(BASIC, codes) != shown).any()
    assert (own.private(1000, BASIC) != codes).any()
    groups = own.same(2)
    assert 0 < len(np.unique(groups.round(9), axis=0)) <= faces.people // 2


def test_a_network_learns_whose_releases_it_is_shown() -> None:
    people, photos = 4, 4
    learned = np.stack([picture(p, n) for p in range(people) for n in range(photos)])
    shown = np.stack([picture(p, photos) for p in range(people)])
    assert taught(learned, np.repeat(np.arange(people), photos), shown, np.arange(people)).mean() >= 0.5


def test_the_kept_runs_have_every_attacker_and_model() -> None:
    rows = kept_rows("croft-2022-networks")
    assert {row["attack"] for row in rows if row["figure"] == "5"} == {EMBEDDING, LINEAR, NETWORK}
    assert {row["attack"] for row in rows if row["figure"] == "15"} == {LINEAR, NETWORK}
    assert {row["people"] for row in rows} == {str(croft_2022_networks.PLAN.people)}
    told = kept_rows("croft-2022-expressions")
    assert {row["people"] for row in told} == {str(croft_2022_expressions.PLAN.people)}
    assert {row["model"] for row in told} == {"", *MODELS}


def by_attack(figure: str, series: str, x: str) -> dict[str, list[int]]:
    found = [
        one
        for one in kept_rows("croft-2022-networks")
        if (one["figure"], one["releases of"], one["x"]) == (figure, series, x)
    ]
    return {one["attack"]: [round(100 * end) for end in ends(one, "named")] for one in found}


def test_c20_a_small_network_is_no_stronger_than_the_other_attackers() -> None:
    settings = {(one["figure"], one["releases of"], one["x"]) for one in kept_rows("croft-2022-networks")}
    for setting in settings:
        found = by_attack(*setting)
        _, low, high = found.pop(NETWORK)
        assert all(low <= other[2] and other[1] <= high for other in found.values())
    code = [by_attack("5", "code of a generator", x) for x in ("100", "1000", "10000")]
    rates = {name: [one[name][0] for one in code] for name in (NETWORK, EMBEDDING, LINEAR)}
    assert rates == {NETWORK: [5, 15, 75], EMBEDDING: [5, 15, 70], LINEAR: [5, 15, 95]}
    small = by_attack("15", "Laplace, b = 4", "1000000")
    assert (small[NETWORK], small[LINEAR]) == ([61, 42, 79], [43, 26, 59])
    large = [by_attack("15", f"{name}, b = 16", "1000") for name in ("exponential", "Laplace")]
    assert [(one[NETWORK][0], one[LINEAR][0]) for one in large] == [(21, 25), (23, 29)]
    assert min(one[NETWORK][1] for one in large) > 10


def test_c19_expressions_of_rendered_heads_are_read_no_better_than_by_chance() -> None:
    def found(method: str, x: str, model: str, measure: str = "expression") -> list[int]:
        row = kept_row("croft-2022-expressions", method=method, x=x, model=model)
        return [round(100 * end) for end in ends(row, measure)]

    settings = [("croft-metric", "100"), ("croft-metric", "10000"), ("k-same-m", "2"), ("k-same-m", "5")]
    assert found("none", "", "") == [51, 34, 68]
    told = [found(*setting, EXPRESSION) for setting in settings]
    assert told == [[41, 24, 57], [49, 32, 66], [54, 37, 71], [46, 29, 63]]
    genders = {m: [found(*one, m, "gender")[0] for one in settings] for m in (GENDER, BASIC)}
    assert genders == {GENDER: [61, 82, 76, 81], BASIC: [57, 81, 66, 58]}
