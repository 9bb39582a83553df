"""Reilly & Fan 2021, tables II to V, on eyes: the experiment, and the verdicts on the kept run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from kept_tables import Row, curve, falls, kept_row, kept_rows, least, read, rises

from dpveil_research import reilly_fan_eyes
from dpveil_research.iris import Code
from dpveil_research.reilly_fan_2021 import EPSILONS, EYES, IRIS
from dpveil_research.reilly_fan_eyes import FILLED, FILTERS, PUBLISHED, SNOWY, baselines, drawn, make
from dpveil_research.reilly_fan_risk import SVD_OF_ONE


def of(method: str, x: str, kind: str = "as it is") -> Row:
    return kept_row("reilly-fan-2021-eyes", method=method, x=x, filter=kind)


def value(method: str, x: str, measure: str = "passed", kind: str = "as it is") -> float:
    return float(of(method, x, kind)[measure])


def test_the_kept_run_has_every_number_of_the_tables() -> None:
    for method, numbers in PUBLISHED.items():
        for x, (pupils, gaze, passed) in numbers.items():
            for kind in FILTERS:
                if kind != FILLED or method in SNOWY:
                    found = of(method, x, kind)
                    assert (found["releases"], found["eyes"]) == ("120", "40")
                    assert float(found["pupils_published"]) == pupils
                    assert found["gaze_published"] == ("" if gaze is None else str(gaze))
                    assert float(found["passed_published"]) == passed
    assert value("nothing", "") > 0.99


def test_r16_dp_pix_and_dp_svd_do_not_resist() -> None:
    assert min(value("DP-SVD", x, "passed_low") for x in PUBLISHED["DP-SVD"]) > 0.94
    of_one = [round(100 * value(SVD_OF_ONE, x)) for x in PUBLISHED[SVD_OF_ONE]]
    assert of_one == [0, 0, 2, 47, 83, 98, 98], "they: nobody at any of these budgets"
    assert all(value("DP-Pix", x) == 0 for x in ("0.01", "0.05", "0.1"))
    assert (round(value("DP-Pix", "0.5"), 2), round(value("DP-Pix", "0.5", kind="gaussian"), 2)) == (
        0.65,
        0.88,
    )
    assert min(value("DP-Pix", x, "passed_low") for x in ("1", "5", "10")) > 0.97


def test_r17_dp_samp_lets_many_pass_at_large_epsilon() -> None:
    assert all(value("DP-Samp", x) == 0 for x in ("0.01", "0.05", "0.1", "0.5", "1"))
    assert [round(value("DP-Samp", x), 2) for x in ("5", "10")] == [0.34, 0.82]
    assert value("DP-Samp", "5", "passed_low") > 0.07


def test_r18_snow_gives_irises_away_without_a_median() -> None:
    assert value("Snow", "0.33", "passed_low") > 0.86
    assert value("Snow", "0.1", "passed_low", FILLED) > 0.97
    assert value("Snow", "0.1") == 0
    for x in ("0.33", "0.4", "0.5"):
        assert value("Snow-Med", x, "passed_high", "gaussian") < value("Snow", x, "passed_low")


def test_r19_the_gaze_error_of_dp_pix_depends_on_epsilon() -> None:
    errors = [value("DP-Pix", x, "gaze") for x in PUBLISHED["DP-Pix"]]
    assert errors == sorted(errors, reverse=True)
    assert (round(errors[0]), round(errors[3], 1)) == (18, 0.7)
    assert value("DP-Pix", "0.01", "pupils_high") < value("DP-Pix", "0.1", "pupils_low")


def test_r20_the_gaze_of_dp_svd_and_snow() -> None:
    assert {round(value("DP-SVD", x, "gaze"), 1) for x in PUBLISHED["DP-SVD"]} == {0.2}
    of_one = [value(SVD_OF_ONE, x, "gaze") for x in ("0.01", "0.1", "0.5", "1")]
    assert [round(error, 1) for error in of_one] == [15.8, 11.2, 0.7, 0.3], "they: 57, 22, 2.6, 2.2"
    assert value("Snow", "0.8", "gaze_high") < value("Snow", "0.33", "gaze_low")


def test_it_is_made_at_small_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    few = {"DP-SVD": {"10": (77, 2.07, 0)}, "Snow": {"0.1": (0, None, 0)}}
    monkeypatch.setattr(reilly_fan_eyes, "PUBLISHED", few)
    monkeypatch.setattr(reilly_fan_eyes, "METHODS", {name: reilly_fan_eyes.METHODS[name] for name in few})
    files = make(tmp_path, 4, lambda words: None)
    assert set(files) == {"crr.png", "results.csv"}
    table = read(files["results.csv"])
    passed = {(one["method"], one["filter"]): float(one["passed"]) for one in table}
    assert passed["DP-SVD", "as it is"] >= 0.75
    assert passed["Snow", FILLED] >= 0.75 > passed["Snow", "as it is"]


def test_the_threshold_is_that_of_other_eyes_and_own_photos_pass() -> None:
    eyes = drawn(6, 4)
    known = baselines(eyes)
    assert 0.2 < known.threshold < 0.4
    assert {len(codes) for codes in known.codes.values()} == {2}
    own, other = eyes.items[3].read().image, eyes.items[7].read().image
    assert known.passes(eyes.items[3].person, own)
    assert not known.passes(eyes.items[3].person, other)
    assert not known.passes(eyes.items[3].person, np.full_like(own, 128))
    assert all(isinstance(code, Code) for codes in known.codes.values() for code in codes)


# Figures 3 and 7, on drawn eyes


def on_eyes(sweep: str, series: str, measure: str) -> dict[float, float]:
    return curve(IRIS.name, measure, sweep=sweep, series=series)


def test_the_kept_run_on_eyes_is_that_of_the_settings() -> None:
    points = [(one.sweep, one.series, one.x) for one in IRIS.settings]
    assert [(row["sweep"], row["series"], row["x"]) for row in kept_rows(IRIS.name)] == points
    assert {row["images"] for row in kept_rows(IRIS.name)} == {str(IRIS.images)}


def test_r21_a_best_block_exists_at_every_budget() -> None:
    best = [least(on_eyes("dp-pix over block", f"ε = {e}", "mse")) for e in EPSILONS]
    assert best == [20, 10, 8, 4, 3]


def test_r22_dp_samp_exceeds_06_where_grey_has_nearly_that() -> None:
    most = [max(on_eyes("dp-samp over clusters", f"ε = {e}", "ssim").values()) for e in EPSILONS]
    assert [round(most[place], 2) for place in (0, 1, 4)] == [0.59, 0.62, 0.75]
    grey = next(row for row in kept_rows(IRIS.name) if row["series"].startswith("grey"))
    assert (round(float(grey["ssim"]), 2), round(float(grey["mse"]))) == (0.58, 1844)


def test_r23_rank_costs_at_a_small_budget_with_levels_to_one() -> None:
    sweep = "dp-svd over rank, levels to 1"
    few = {x: value for x, value in on_eyes(sweep, "ε = 0.1", "mse").items() if x >= 2}
    assert rises(few)
    assert least(on_eyes(sweep, "ε = 5", "mse")) == 16


def test_r24_snow_on_eyes() -> None:
    error = on_eyes("snow over delta", "snow", "mse")
    assert falls(error)
    plain, median = (on_eyes("snow over delta", name, "ssim") for name in ("snow", "snow, then 3×3 median"))
    assert [round(plain[x], 2) for x in (0.1, 0.2, 0.85)] == [0.36, 0.33, 0.55]
    assert [round(median[x], 2) for x in (0.1, 0.4, 0.85)] == [0.58, 0.34, 0.86]


def test_r25_a_larger_neighbourhood_costs() -> None:
    pix, samp = (on_eyes("over neighbourhood", f"{name}, ε = 10", "mse") for name in (EYES.pix, EYES.samp))
    assert rises(pix)
    assert (round(pix[1]), round(pix[10304]), round(samp[10304])) == (136, 17866, 1844)
