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
PAGE = " ".join((ROOT / "docs" / "methods" / "gallery.md").read_text(encoding="utf-8").split())
SETTINGS = [setting for setting, measure in ROWS if measure == "strongest"]


def value(setting, measure, end="mean"):
    return float(ROWS[setting, measure][end])


def said(setting, measure):
    """Return a rate and its interval as the page writes them."""
    mean, low, high = (f"{100 * value(setting, measure, end):.1f}" for end in ("mean", "low", "high"))
    return f"{mean} % ({low} to {high})"


@pytest.mark.parametrize("setting", SETTINGS)
def test_no_attacker_is_better_than_one_who_is_told_four_attributes(setting):
    assert value(setting, "strongest") < value("told", "told")
    every = ("embedding", "embedding, parrot", "knows gallery and method")
    assert value(setting, "strongest") == max(value(setting, name) for name in every)


def test_what_is_reached_at_8():
    assert value("epsilon=8", "face found") == 1
    assert ROWS["epsilon=8", "face found"]["tries"] == "158"
    assert value("epsilon=8", "gender agrees") > 0.94 * value("clean", "gender agrees")
    assert value("epsilon=8", "strongest", "low") > 0.03
    assert f"strongest attacker names {said('epsilon=8', 'strongest')}." in PAGE
    assert f"race label and pose, names {said('told', 'told')}" in PAGE
    assert value("clean", "embedding") > 0.95  # the attacker is no straw man


def test_the_page_says_what_is_left_to_an_attacker_at_1_and_2():
    """At ε = 1 the strongest of three is just above chance: the page once said that it is at chance."""
    at_1, at_2 = (said(f"epsilon={epsilon}", "strongest") for epsilon in (1, 2))
    assert f"At ε = 1 the strongest names {at_1}, at ε = 2 {at_2}, and chance is 0.6 %" in PAGE
    assert value("epsilon=1", "strongest", "high") < 0.02
    assert value("epsilon=2", "strongest", "high") < 0.022


def test_two_levels_keep_more_than_the_other_laws():
    for law in ("exponential", "permute-and-flip"):
        for measure in ("gender agrees", "perceived-race agrees", "age agrees"):
            assert value("epsilon=8", measure) > value(f"epsilon=8, {law}", measure) + 0.05
