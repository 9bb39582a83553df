"""Figures 5.4 to 5.14 of Croft's thesis: the parts they are made of, and every verdict of the page."""

from __future__ import annotations

import math
from functools import partial
from itertools import pairwise, product

import numpy as np
import pytest
from kept_tables import FOLDER, curve, falls, kept_row, kept_rows, read, signs

from dpveil_research import croft_thesis_5
from dpveil_research.croft_thesis_5 import (
    FAIR,
    FIRST,
    GEOMETRIC,
    LAPLACE,
    POWERS,
    SECOND,
    SEED,
    SERIES,
    SIZES,
    STAIRCASE,
    TRUNCATED,
    UNIFORM,
    count,
    groups,
    mean,
    optimum,
    row,
    tabled,
)

NAME = "croft-thesis-5"
EPSILONS = [float(x) for x in croft_thesis_5.EPSILONS]
MEAN, COUNT = "expected utility, mean", "expected utility, count"


def of(sweep: str, series: str, measure: str = "error") -> dict[float, float]:
    return curve(NAME, measure, sweep=sweep, series=series)


# The parts


def test_linear_programs_are_tables_53_and_54() -> None:
    answers = np.arange(6.0)
    first = optimum(answers, answers, 1, 0.5)
    assert first[1].round(3).tolist() == [0.771, 0.622, 0.378, 0.229, 0.139, 0.084]
    assert first[2].round(3)[:3].tolist() == [0.09, 0.149, 0.245]
    assert np.allclose(first[0], 0)
    second = optimum(answers, answers, 1, 0.5, fair=True)
    assert second[0].round(3).tolist() == [0.315, 0.191, 0.116, 0.07, 0.043, 0.026]
    assert second[2].round(3).tolist() == [0.231, 0.265, 0.315, 0.191, 0.116, 0.07]


@pytest.mark.parametrize("fair", [False, True])
def test_linear_programs_keep_their_constraints_by_a_double_loop(fair: bool) -> None:
    query = mean(3, 0, 2)
    matrix = tabled(query, SECOND if fair else FIRST, "0.7").matrix
    for j, k in product(range(query.size), repeat=2):
        if abs(j - k) <= query.reach:
            assert np.all(matrix[:, j] <= math.exp(0.7) * matrix[:, k] + 1e-7)
    assert np.allclose(matrix, matrix[::-1, ::-1])
    if fair:
        assert np.allclose(np.diag(matrix), matrix[0, 0], atol=1e-7)
        for j in range(query.size):
            for line in (matrix[:, j], matrix[j]):
                assert np.all(np.diff(line[: j + 1]) >= -1e-7)
                assert np.all(np.diff(line[j:]) <= 1e-7)


def test_the_survey_has_the_means_that_the_thesis_names() -> None:
    sizes, degrees = groups(SEED)
    assert abs(sizes.mean() - 2.02) < 0.02
    assert abs(degrees.mean() - 2.27) < 0.08
    assert (sizes.min() >= 1, sizes.max() <= 7) == (True, True)


def test_kept_rows_are_those_of_the_code() -> None:
    for sweep, series, x, query in (
        (MEAN, STAIRCASE, "0.5", mean(10)),
        (COUNT, FIRST, "0.2", count(10)),
        (COUNT, FAIR, "1", count(10)),
    ):
        wanted = row(sweep, series, x, tabled(query, series, x))
        kept = kept_row(NAME, sweep=sweep, series=series, x=x)
        assert [float(kept[n]) for n in POWERS] == pytest.approx([float(wanted[n]) for n in POWERS], rel=1e-4)


@pytest.mark.slow
def test_everything_is_made_at_small_size(monkeypatch: pytest.MonkeyPatch) -> None:
    small = {"EPSILONS": ("0.5",), "SIZES": {"mean": (2,), "count": (2,)}, "FACTORS": ("1",), "SMALL": 2}
    for name, value in small.items():
        monkeypatch.setattr(croft_thesis_5, name, value)
    files = croft_thesis_5.make()
    assert set(files) == {path.name for path in (FOLDER / NAME).iterdir()}
    assert read(files["differences.csv"]) == [r for r in kept_rows(NAME, "differences") if r["x"] == "0.5"]


# The page


def ratios(sweep: str, series: str, measure: str = "error") -> dict[float, float]:
    """Return the losses of a series beside those of the first variant, by x."""
    best = of(sweep, FIRST, measure)
    return {x: value / best[x] for x, value in of(sweep, series, measure).items()}


def test_t1_differences_are_largest_in_small_databases_but_for_normalised_noise() -> None:
    for epsilon in ("0.2", "0.5"):
        sweep = f"database size, mean, ε = {epsilon}"
        assert all(falls(ratios(sweep, series)) for series in (LAPLACE, STAIRCASE, SECOND))
        normalised = ratios(sweep, TRUNCATED)
        assert normalised[20] > normalised[2]
    assert 1.75 < normalised[20] < 1.85


def test_t2_on_counts_the_others_close_in_on_the_optimum_and_fair_late() -> None:
    ratio = {series: ratios("database size, count, ε = 0.5", series) for series in SERIES["count"]}
    assert ratio[GEOMETRIC][50] < 1.01
    assert ratio[SECOND][50] < 1.015
    assert max(ratio[FAIR], key=lambda x: ratio[FAIR][x]) == 10
    assert 1.14 < ratio[FAIR][50] < 1.15


def test_t3_coarser_categories_help_laplace_only_where_they_end_within_the_range() -> None:
    names = ["× 1/2", "× 1", "× 2", "× 5", "× 10", "× 20"]
    within, at_ends = (
        [of(f"discretisation {place}, Laplace, snapped", name)[0.1] for name in names]
        for place in ("within", "at the ends")
    )
    assert within == sorted(within, reverse=True)
    assert at_ends[-1] > at_ends[0]
    assert all(a <= b * 1.0005 for a, b in pairwise(at_ends))


def test_t4_at_high_privacy_uniform_responses_beat_snapped_ones() -> None:
    small = "database size, mean, ε = 0.2"
    for sweep, series, wanted in (
        (MEAN, LAPLACE, [0.1]),
        (MEAN, STAIRCASE, [0.1]),
        (small, LAPLACE, [2, 3, 4]),
    ):
        flat = of(sweep, UNIFORM)
        assert [x for x, value in of(sweep, series).items() if value > flat[x]] == wanted


def test_t5_linear_program_gains_little_from_finer_categories() -> None:
    for place in ("at the ends", "within"):
        sweep = f"discretisation {place}, linear program, variant 1"
        half, one, two, twenty = (of(sweep, f"× {factor}") for factor in ("1/2", "1", "2", "20"))
        for x in EPSILONS:
            values = [half[x], one[x], two[x]]
            assert max(values) < 1.021 * min(values)
            assert twenty[x] > one[x]


def test_t6_variant_1_is_best_everywhere_and_cannot_be_beaten_by_remapping() -> None:
    sweeps = [(MEAN, "mean"), (COUNT, "count")]
    sweeps += [(f"database size, {q}, ε = {e}", q) for q in SIZES for e in ("0.2", "0.5")]
    for sweep, query in sweeps:
        best = of(sweep, FIRST)
        for series, measure in product(SERIES[query], ("error", "bayes")):
            assert all(v >= best[x] * (1 - 1e-5) for x, v in of(sweep, series, measure).items())


def test_t7_remapped_geometric_is_variant_1() -> None:
    assert ratios(COUNT, GEOMETRIC, "bayes") == pytest.approx(dict.fromkeys(EPSILONS, 1), rel=1e-4)
    face, best = of(COUNT, GEOMETRIC), of(COUNT, FIRST, "bayes")
    assert [x for x in face if face[x] < best[x] * 1.0001] == [0.7, 1, 1.5, 2]


def test_t8_variant_2_is_second_at_face_value_on_means_but_not_on_counts() -> None:
    second = of(MEAN, SECOND)
    for series in (LAPLACE, STAIRCASE, TRUNCATED, UNIFORM):
        assert all(v > second[x] for x, v in of(MEAN, series).items())
    second, geometric = of(COUNT, SECOND), of(COUNT, GEOMETRIC)
    assert [x for x in EPSILONS if geometric[x] < second[x]] == [0.5, 0.7, 1, 1.5, 2]


def test_t9_remapped_variant_2_is_near_but_not_marginally_on_counts() -> None:
    for sweep, most in ((MEAN, 1.03), (COUNT, 1.09)):
        assert most - 0.015 < max(ratios(sweep, SECOND, "bayes").values()) < most


def both(query: str, series: str, measure: str) -> tuple[dict[float, float], dict[float, float]]:
    """Return the losses within the range and on three times the range."""
    wide = of(f"extended range, {query}", f"{series} (ext)", measure)
    return of(f"expected utility, {query}", series, measure), wide


def test_t10_three_times_the_range_costs_snapped_mechanisms_twice_the_error() -> None:
    for query, series in (("mean", STAIRCASE), ("count", GEOMETRIC)):
        kept, wide = both(query, series, "error")
        assert wide[0.1] > 2 * kept[0.1]


def test_t11_remapping_makes_up_for_the_range_and_normalised_laplace_gains() -> None:
    for query, series in (("mean", STAIRCASE), ("mean", LAPLACE), ("count", GEOMETRIC)):
        kept, wide = both(query, series, "bayes")
        assert wide == pytest.approx(kept, rel=6e-3)
    kept, wide = both("mean", TRUNCATED, "bayes")
    assert all(v < kept[x] for x, v in wide.items())


def test_t12_linear_programs_do_not_care_for_more_range() -> None:
    for setting in product(("mean", "count"), (FIRST, SECOND), ("error", "bayes")):
        kept, wide = both(*setting)
        assert wide == pytest.approx(kept, rel=2e-3)


ahead = partial(signs, NAME, series=f"{SECOND} - {FIRST}")
"""Whether variant 2 errs more (1) or less (-1) than variant 1 on the survey, by ε."""


def test_t13_on_the_survey_variant_1_is_not_always_best_at_face_value() -> None:
    assert list(ahead("error", sweep="survey, mean").values()) == [-1, 1, 1, 1, 1, 1, -1, -1]
    assert list(ahead("error", sweep="survey, count").values()) == [1, 1, 1, 1, -1, 1, 1, 1]


def test_t14_on_the_survey_variant_2_does_not_lead_after_remapping_at_high_privacy() -> None:
    assert list(ahead("bayes", sweep="survey, mean").values()) == [1, 1, 1, 0, 0, 1, -1, -1]
