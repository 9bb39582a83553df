"""The verdicts of docs/reproduction-thesis-6.md, each checked on the tables that are kept here."""

from __future__ import annotations

import csv
import re
from itertools import pairwise
from pathlib import Path

from dpveil_research.croft_thesis_6 import PLAN, PRIVATE, SAME

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "reproduction-thesis-6.md").read_text(encoding="utf-8")
HOME = ROOT / "reproduction" / "croft-thesis-6"
CHANCE = 1 / 60
Three = tuple[float, float, float]


def rows(table: str) -> list[dict[str, str]]:
    return list(csv.DictReader((HOME / f"{table}.csv").read_text(encoding="utf-8").splitlines()))


def at(method: str, x: str, measure: str) -> Three:
    (row,) = (one for one in rows("results") if (one["method"], one["x"]) == (method, x))
    mean, low, high = (float(row[f"{measure}{end}"]) for end in ("", "_low", "_high"))
    return mean, low, high


def ahead(k: str, measure: str) -> Three:
    (row,) = (one for one in rows("ahead") if (one["k"], one["measure"]) == (k, measure))
    mean, low, high = (float(row[f"ahead{end}"]) for end in ("", "_low", "_high"))
    return mean, low, high


def said(found: Three, digits: int) -> str:
    mean, low, high = (f"{abs(one):.{digits}f}" for one in found)
    return f"{mean} ({low} to {high})"


def percent(found: Three) -> str:
    mean, low, high = (f"{100 * one:.1f}".replace("100.0", "100") for one in found)
    return f"{mean} % ({'0' if low == '0.0' else low} to {high})"


def epsilons() -> list[str]:
    return [str(one) for one in PLAN.epsilons]


def test_every_claim_has_a_check() -> None:
    claims = set(re.findall(r"^\| (G\d+) \|", PAGE, re.MULTILINE))
    own = Path(__file__).read_text(encoding="utf-8")
    assert {claim.lower() for claim in claims} == set(re.findall(r"^def test_(g\d+)_", own, re.MULTILINE))


def test_the_table_is_that_of_the_page() -> None:
    assert {row["people"] for row in rows("results")} == {"60"}
    assert [row["x"] for row in rows("results") if row["method"] == PRIVATE] == epsilons()
    assert [row["x"] for row in rows("results") if row["method"] == SAME] == ["2", "3", "4", "5", "10", "20"]
    assert "60 people of LFW" in PAGE


def test_g1_far_fewer_are_named() -> None:
    most = max(epsilons(), key=lambda x: at(PRIVATE, x, "named")[0])
    plain, alone = at("none", "", "named"), at("codec alone", "", "named")
    assert at(PRIVATE, most, "named")[2] < alone[1] < alone[2] < plain[1]
    few, many = (percent(at(PRIVATE, x, "named")) for x in ("100", most))
    assert f"{few} at 100 and {many} at {most}, where most are named" in PAGE
    assert f"Of photos as they are {percent(plain)}, of decoded ones without noise {percent(alone)}" in PAGE
    assert f"chance {100 * CHANCE:.1f} %" in PAGE


def test_g2_the_risk_rises_and_stays_above_chance() -> None:
    found = [at(PRIVATE, x, "named") for x in epsilons()]
    assert min(low for _, low, _ in found) > CHANCE
    assert found[0][2] < found[-1][1]
    assert all(a[2] > b[1] for a, b in pairwise(found))


def test_g3_ssim_is_below_at_every_risk_that_both_have() -> None:
    for k in ("2", "3", "4", "5"):
        mean, low, high = ahead(k, "ssim")
        assert high < 0
        assert said((mean, high, low), 3) in PAGE
    assert all(row["ahead"] == "" for row in rows("ahead") if row["k"] in ("10", "20"))
    few = [at(SAME, k, "named") for k in ("10", "20")]
    assert max(mean for mean, _, _ in few) < at(PRIVATE, "100", "named")[0]
    assert f"For k = 10 and 20 there is nothing to compare: {percent(few[0])} and {percent(few[1])}" in PAGE


def test_g4_gender_is_slightly_below_for_some() -> None:
    first = "{} points below ({} to {}) where k = 3"
    for k, told in (("3", first), ("4", "{} ({} to {}) where 4"), ("5", "{} ({} to {}) where 5")):
        mean, low, high = ahead(k, "gender")
        assert -0.03 < low < high < 0
        assert told.format(*(f"{-100 * one:.1f}" for one in (mean, high, low))) in PAGE
    mean, low, high = (f"{100 * one:.1f}".replace("-", "−") for one in ahead("2", "gender"))
    assert ahead("2", "gender")[1] < 0 < ahead("2", "gender")[2]
    assert f"({mean} above, {low} to {high})" in PAGE


def test_g5_gender_is_not_below_that_of_photos() -> None:
    found = [at(PRIVATE, x, "gender") for x in epsilons()]
    plain = at("none", "", "gender")
    least, most = (f"{100 * end(found)[0]:.1f}" for end in (min, max))
    assert f"{least} to {most} % at every ε, where photos as they are have {percent(plain)}" in PAGE
    assert all(mean > plain[0] for mean, _, _ in found)
    assert min(low for _, low, _ in found) < plain[2]
