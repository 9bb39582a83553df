"""What docs/learning.md says of figure 5.3, checked on the tables that are kept in the repository."""

import csv
from pathlib import Path

import pytest

from dpveil_research.naive_bayes import (
    DOUBLE,
    RECORD,
    SNAPPED,
    SNAPPED_TINY,
    SQUARES,
    VARIABLE,
)

FOLDER = Path(__file__).parents[3] / "reproduction" / "naive-bayes"
RESULTS, DIFFERENCES = (
    list(csv.DictReader((FOLDER / f"naive-bayes{end}.csv").read_text(encoding="utf-8").splitlines()))
    for end in ("", "-differences")
)
TABLES = ("Banknote", "Seeds", "Yeast")


def signs(sweep, series):
    """Return by ε whether a series is ahead of one record (1), behind it (-1), or undecided (0)."""
    rows = [row for row in DIFFERENCES if (row["sweep"], row["first"]) == (sweep, series)]
    assert rows
    return {
        float(row["x"]): (float(row["accuracy_low"]) > 0) - (float(row["accuracy_high"]) < 0) for row in rows
    }


def mean(sweep, series, x):
    [row] = [row for row in RESULTS if (row["sweep"], row["series"], row["x"]) == (sweep, series, x)]
    return float(row["accuracy"])


def ahead(sweep, series, sign=1):
    return [x for x, found in signs(sweep, series).items() if found == sign]


def test_every_point_has_200_splits():
    assert {row["repetitions"] for row in RESULTS} == {"200"}


@pytest.mark.parametrize("table", ["Banknote", "Seeds"])
def test_the_ranking_of_truncated_mechanisms_is_the_thesis_one_in_its_accounting(table):
    assert len(ahead(f"{table}, thesis", VARIABLE)) >= 3
    assert ahead(f"{table}, thesis", VARIABLE, -1) == []
    assert len(ahead(f"{table}, thesis", DOUBLE, -1)) >= 3
    assert ahead(f"{table}, thesis", DOUBLE) == []


@pytest.mark.parametrize("table", ["Banknote", "Seeds"])
def test_snapping_is_not_behind_everywhere_and_is_far_behind_with_next_to_no_floor(table):
    assert len(ahead(f"{table}, thesis", SNAPPED)) >= 2
    assert len(ahead(f"{table}, thesis", SNAPPED, -1)) >= 1
    assert len(ahead(f"{table}, ours", SNAPPED)) >= 3
    assert len(ahead(f"{table}, ours", SNAPPED, -1)) >= 1
    assert mean("Seeds, thesis", SNAPPED, "100") - mean("Seeds, thesis", SNAPPED_TINY, "100") > 0.15


def test_one_record_is_ahead_of_the_double_scale_without_the_unsound_one():
    for table in ("Banknote", "Seeds"):
        assert ahead(f"{table}, ours", DOUBLE, -1)
        assert ahead(f"{table}, ours", DOUBLE) == []


@pytest.mark.parametrize("table", TABLES)
def test_variances_are_ahead_of_deviations_from_where_anything_is_learned(table):
    found = signs(f"{table}, ours", SQUARES)
    assert all(found[x] == 1 for x in (1, 3.2, 10))
    assert mean(f"{table}, ours", SQUARES, "3.2") > mean(f"{table}, ours", RECORD, "3.2") + 0.05
