"""Figures 6.18 to 6.20 of Croft's thesis: the experiment, and the verdicts of the page on the kept run."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from kept_tables import FOLDER, Row, kept_row, kept_rows, read

from dpveil_research.croft_pixels import (
    BLURRED,
    EXPONENTIAL,
    LAPLACE,
    PAPER,
    THESIS,
    Comparison,
    crossed,
    make,
    points,
)
from people_made import folder

KEPT = "croft-thesis-6-pixels"


def result(method: str, block: int, epsilon: str, measure: str, after: str = BLURRED) -> float:
    return float(kept_row(KEPT, method=method, b=str(block), after=after, epsilon=epsilon)[measure])


def gains(of: str) -> list[Row]:
    return [row for row in kept_rows(KEPT, "gains") if row["of"] == of]


def holds_zero(row: Row, measure: str) -> bool:
    return float(row[f"{measure}_low"]) <= 0 <= float(row[f"{measure}_high"])


def at_risk(method: str, block: int, risk: float, measure: str) -> float:
    """Return a measure where this share is named, read off the line between points."""
    pairs = sorted(
        (result(method, block, e, "named"), result(method, block, e, measure)) for e in THESIS.epsilons
    )
    return float(np.interp(risk, *zip(*pairs, strict=True)))


def test_the_kept_run_has_every_setting_and_all_photos() -> None:
    told = [(row["series"], row["epsilon"]) for row in kept_rows(KEPT)]
    assert told == [(point.series, point.epsilon) for point in points(THESIS)]
    assert {(row["releases"], row["people"]) for row in kept_rows(KEPT)} == {("80", "40")}


def test_x1_blur_changes_the_risk_little() -> None:
    blurs = gains("blur")
    assert len(blurs) == 42
    assert max(abs(float(row["named"])) for row in blurs) < 0.065
    assert sum(holds_zero(row, "named") for row in blurs) == 41


def test_x2_blur_helps_where_there_is_noise() -> None:
    for row in gains("blur"):
        if row["epsilon"] != "100000" or row["method"] == EXPONENTIAL:
            assert float(row["mse_high"]) < 0 < float(row["ssim_low"])
    last = {row["b"]: row for row in gains("blur") if (row["method"], row["epsilon"]) == (LAPLACE, "100000")}
    assert holds_zero(last["4"], "ssim")
    assert float(last["2"]["mse_low"]) > 0


def test_x3_the_exponential_mechanism_is_ahead_where_pictures_are_noise() -> None:
    apart = {}
    for block, risk in product(THESIS.blocks, (0.3, 0.9, 0.95)):
        ours, theirs = (at_risk(method, block, risk, "ssim") for method in (EXPONENTIAL, LAPLACE))
        apart[block, risk] = ours - theirs
        assert risk > 0.3 or max(ours, theirs) < 0.25
    assert all(0.025 < apart[block, 0.3] < 0.055 for block in THESIS.blocks)
    above = [apart[block, risk] for block in THESIS.blocks for risk in (0.9, 0.95)]
    assert min(above) < 0 < max(above)


def test_x4_smaller_cells_keep_more() -> None:
    for method, wanted in ((EXPONENTIAL, [0.15, 0.19, 0.24]), (LAPLACE, [0.11, 0.15, 0.19])):
        found = [at_risk(method, block, 0.3, "ssim") for block in THESIS.blocks]
        assert found == sorted(found)
        assert [round(one, 2) for one in found] == wanted


def test_x5_at_high_privacy_its_error_is_lower() -> None:
    for row in gains("exponential"):
        if row["epsilon"] in ("100", "300"):
            assert float(row["mse_high"]) < 0
            assert result(EXPONENTIAL, int(row["b"]), row["epsilon"], "named", row["after"]) <= 0.08


def test_x6_neither_is_ahead_at_the_same_budget() -> None:
    for row in gains("exponential"):
        if int(row["epsilon"]) >= 10_000 and row["after"] == BLURRED:
            assert float(row["ssim_high"]) < 0
        if row["epsilon"] == "3000" and row["after"] == BLURRED:
            assert float(row["named_high"]) < 0
            assert -0.295 < float(row["named"]) < -0.18
    assert round(result(EXPONENTIAL, 4, "1000", "named"), 2) == 0.19


def on_lfw(method: str, block: int, epsilon: str) -> Row:
    return kept_row("croft-2022-risk", method=method, b=str(block), epsilon=epsilon)


def where_a_quarter_is_named(method: str, block: int, measure: str) -> float:
    found = [on_lfw(method, block, epsilon) for epsilon in PAPER.epsilons]
    named = [float(one["named"]) for one in found]
    last = next(place for place, share in enumerate(named) if share >= 0.25)
    return float(
        np.interp(
            0.25, named[last - 1 : last + 1], [float(one[measure]) for one in found[last - 1 : last + 1]]
        )
    )


def test_c8_sixteen_pixels_do_not_hide_who_it_is() -> None:
    for method, at_1000, later in ((EXPONENTIAL, 0.11, 0.23), (LAPLACE, 0.08, 0.34)):
        first, last = on_lfw(method, 16, "1000"), on_lfw(method, 16, "31623")
        assert float(first["named_low"]) > 0.02
        assert (round(float(first["named"]), 2), round(float(last["named"]), 2)) == (at_1000, later)
        assert (first["releases"], first["people"]) == ("467", "79")


def test_c9_small_cells_keep_most_ssim_and_large_ones_have_the_least_error() -> None:
    both = [(EXPONENTIAL, 4), (EXPONENTIAL, 8), *((LAPLACE, block) for block in PAPER.blocks)]
    ssim, mse = ({one: where_a_quarter_is_named(*one, name) for one in both} for name in ("ssim", "mse"))
    assert max(ssim, key=lambda one: ssim[one]) == (EXPONENTIAL, 4)
    assert (round(ssim[EXPONENTIAL, 4], 2), round(ssim[LAPLACE, 4], 2)) == (0.46, 0.26)
    assert min(mse, key=lambda one: mse[one]) == (LAPLACE, 16)
    assert (round(mse[LAPLACE, 16], -1), round(mse[LAPLACE, 4], -1)) == (1190, 2240)


@pytest.mark.parametrize(("of", "count"), [(THESIS, 8), (PAPER, 4)])
def test_it_is_made_at_small_size(of: Comparison, count: int, tmp_path: Path) -> None:
    few = replace(of, epsilons=("100", "1000000"), blocks=(4,))
    folder(tmp_path / of.folder)
    files = make(few, tmp_path, None, lambda words: None)
    kept = FOLDER / (KEPT if of is THESIS else "croft-2022-risk")
    assert {path.name for path in kept.iterdir()} == set(files)
    table = read(files["results.csv"])
    assert len(table) == count
    named = {(row["method"], row["epsilon"]): float(row["named"]) for row in table if row["after"] == BLURRED}
    assert named[LAPLACE, "1000000"] == 1 > named[LAPLACE, "100"]
    gained = read(files["gains.csv"])
    assert sum(row["of"] == "blur" for row in gained) == (4 if len(of.afters) == 2 else 0)
    assert sum(row["of"] == "exponential" for row in gained) == count / 2


def test_the_strongest_attack_is_chosen_on_others_than_it_is_counted_on() -> None:
    """Of 60 attackers who guess, the best of all names 40 %: chosen on the same people it would look so."""
    rng = np.random.default_rng(5)
    right = (rng.random((60, 40)) < 0.25).astype(float)
    assert right.mean(axis=1).max() >= 0.4
    assert abs(crossed([guess(one, one) for one in right]).mean() - 0.25) < 0.2
    nearly, other = np.tile([0.0, 0.0, 1.0, 1.0], 10), np.tile([1.0, 1.0, 0.0, 0.0], 10)
    found = crossed([guess(other, np.zeros(40)), guess(nearly, np.ones(40))])
    assert (found == nearly).all(), "of equals the one that is nearer"


def guess(right: np.ndarray, near: np.ndarray) -> Any:
    return SimpleNamespace(people=range(40), right=right, near=near)
