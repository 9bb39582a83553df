"""What the page on the gallery method says was reached, checked on the table that the repository keeps."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
TABLE = ROOT / "reproduction" / "gallery" / "results.csv"
ROWS = {
    (row["setting"], row["measure"]): row
    for row in csv.DictReader(TABLE.read_text(encoding="utf-8").splitlines())
}
SETTINGS = [setting for setting, measure in ROWS if measure == "strongest"]


def value(setting, measure, end="mean"):
    return float(ROWS[setting, measure][end])


@pytest.mark.parametrize("setting", SETTINGS)
def test_no_attacker_is_better_than_one_who_is_told_four_attributes(setting):
    assert value(setting, "strongest") < value("told", "told")
    every = ("embedding", "embedding, parrot", "knows gallery and method")
    assert value(setting, "strongest") == max(value(setting, name) for name in every)


def test_what_is_reached_at_8():
    assert value("epsilon=8", "face found") == 1
    assert ROWS["epsilon=8", "face found"]["tries"] == "158"
    assert value("epsilon=8", "gender agrees") > 0.94 * value("clean", "gender agrees")
    assert 0.03 < value("epsilon=8", "strongest", "low") < value("epsilon=8", "strongest", "high") < 0.08
    assert value("clean", "embedding") > 0.95  # the attacker is no straw man


def test_little_is_left_to_an_attacker_at_1_and_2():
    assert value("epsilon=1", "strongest", "low") < 0.008 < value("epsilon=1", "strongest", "high") < 0.02
    assert value("epsilon=2", "strongest", "low") < 0.01
    assert value("epsilon=2", "strongest", "high") < 0.022


def test_two_levels_keep_more_than_the_other_laws():
    for law in ("exponential", "permute-and-flip"):
        for measure in ("gender agrees", "perceived-race agrees", "age agrees"):
            assert value("epsilon=8", measure) > value(f"epsilon=8, {law}", measure) + 0.05
