"""Reilly & Fan 2021, figures 3 and 7, on drawn eyes: the verdicts on the kept run."""

from __future__ import annotations

from kept_tables import curve, falls, kept_rows, least, rises

from dpveil_research.reilly_fan_2021 import EPSILONS, EYES, IRIS


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
