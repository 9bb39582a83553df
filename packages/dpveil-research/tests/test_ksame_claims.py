"""The verdicts of docs/reproduction-ksame.md, each checked on the table that is kept in the repository."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest

from dpveil_research.ksame import PLAN

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "reproduction-ksame.md").read_text(encoding="utf-8")
HOME = ROOT / "reproduction" / "croft-2022-ksame"
ROWS = list(csv.DictReader((HOME / "results.csv").read_text(encoding="utf-8").splitlines()))
SETS = ("LFW", "AT&T")
OTHER, VERY, LIKELY = "strongest, other photos", "strongest, very photos", "likelihood, very photos"
PRIVATE, SAME = "croft-metric", "k-same-m"


def found(**wanted: str) -> dict[str, str]:
    """Return the one row that has these values."""
    rows = [row for row in ROWS if all(row[name] == value for name, value in wanted.items())]
    assert len(rows) == 1, (wanted, len(rows))
    return rows[0]


def rate(dataset: str, method: str, x: str, attack: str, *, column: str = "rate", **more: str) -> float:
    where = {"question": "one release", "releases": "1"} | more
    return float(found(dataset=dataset, method=method, x=x, attack=attack, **where)[column])


def rounded(*values: float) -> list[float]:
    return [round(value + 1e-9, 2) for value in values]


def two(dataset: str, method: str, x: str, attack: str, releases: int = 2) -> float:
    return rate(dataset, method, x, attack, question="two releases", releases=str(releases))


def test_every_claim_has_a_check() -> None:
    claims = set(re.findall(r"^\| (K\d+) \|", PAGE, re.MULTILINE))
    own = Path(__file__).read_text(encoding="utf-8")
    checked = set(re.findall(r"^def test_(k\d+)_", own, re.MULTILINE))
    assert {claim.lower() for claim in claims} == checked


def test_the_table_is_that_of_the_plan() -> None:
    assert f"{len(ROWS)} rows" in PAGE
    assert {row["people"] for row in ROWS if row["question"] == "one release"} == {"100", "40"}
    for dataset in SETS:
        here = [row for row in ROWS if row["dataset"] == dataset]
        for method in (PRIVATE, "box-laplace"):
            xs = {r["x"] for r in here if r["method"] == method and r["attack"] == LIKELY}
            assert set(PLAN.epsilons) <= xs
        xs = {row["x"] for row in here if row["method"] == SAME and row["question"] == "one release"}
        assert xs == {str(k) for k in PLAN.groups if k <= (100 if dataset == "LFW" else 40)}
    plots = {path.name for path in HOME.glob("*.png")}
    assert len(plots) == 8
    assert all(f"(reproduction/croft-2022-ksame/{plot})" in PAGE for plot in plots)
    assert all(float(r["rate_low"]) <= float(r["rate"]) <= float(r["rate_high"]) for r in ROWS)


def test_k1_the_risk_falls_with_privacy() -> None:
    values = [rate("LFW", PRIVATE, x, OTHER) for x in ("10000", "1000", "30")]
    assert rounded(*values) == [0.4, 0.2, 0.02]
    assert rounded(*(rate("LFW", SAME, x, OTHER) for x in ("2", "5", "10"))) == [0.2, 0.06, 0.02]
    for dataset in SETS:
        very = [rate(dataset, PRIVATE, x, LIKELY) for x in ("50", "100", "200", "300", "500", "1000")]
        assert very == sorted(very)


def test_k2_the_papers_budgets_protect_from_recognisers_up_to_300() -> None:
    assert rounded(*(rate("LFW", PRIVATE, x, OTHER) for x in ("300", "1000"))) == [0.04, 0.2]
    assert rate("LFW", PRIVATE, "300", OTHER, column="rate_low") <= 0.01
    assert rate("LFW", PRIVATE, "1000", OTHER, column="rate_low") > 0.1
    assert rate("AT&T", PRIVATE, "1000", OTHER) == 0.6
    very = [rate("LFW", PRIVATE, x, LIKELY) for x in ("100", "300", "1000")]
    assert rounded(*very) == [0.08, 0.56, 1.0]
    for dataset in SETS:
        assert rate(dataset, PRIVATE, "100", LIKELY, column="limit") > 0.99
        assert rate(dataset, PRIVATE, "30", LIKELY, column="limit") < 0.3
    assert all(rate("LFW", PRIVATE, x, LIKELY, column="ssim") < 0.12 for x in ("10", "20", "30", "100"))


def test_k3_one_release_of_k_same_keeps_one_in_k() -> None:
    rows = [r for r in ROWS if r["method"].startswith("k-same") and r["question"] == "one release"]
    assert {row["method"] for row in rows} == {"k-same-pixel", SAME, "k-same-furthest"}
    for row in rows:
        assert float(row["rate"]) <= 1 / int(row["x"])
        assert float(row["limit"]) == pytest.approx(1 / int(row["x"]), abs=1e-5)


def test_k4_two_releases_of_k_same_exceed_one_in_k() -> None:
    told, near = "knows the groups", "nearest k, very photos"
    assert rounded(*(two("LFW", SAME, k, told) for k in ("2", "5", "10"))) == [0.88, 0.74, 0.49]
    assert rounded(*(two("LFW", SAME, k, near) for k in ("2", "3", "5"))) == [0.86, 0.56, 0.23]
    assert rounded(*(two("LFW", SAME, "5", "embedding", r) for r in (1, 2))) == [0.04, 0.04]
    for dataset in SETS:
        for k in ("2", "3", "4", "5", "10"):
            row = found(dataset=dataset, question="two releases", method=SAME, x=k, releases="2", attack=told)
            assert float(row["rate_low"]) > 1 / int(k)
            assert two(dataset, SAME, k, told, 1) <= 1 / int(k)


def test_k5_two_releases_keep_the_promise() -> None:
    private = [r for r in ROWS if r["method"] in (PRIVATE, "box-laplace") and r["limit"]]
    assert len(private) > 100
    assert all(float(row["rate"]) <= float(row["limit"]) for row in private)
    budgets = ("100", "200", "300")
    gaps = [rounded(rate("LFW", PRIVATE, x, LIKELY), two("LFW", PRIVATE, x, LIKELY)) for x in budgets]
    assert gaps == [[0.08, 0.15], [0.29, 0.53], [0.56, 0.85]]
    for dataset in SETS:
        for x in PLAN.learned:
            one, other = (
                found(
                    dataset=dataset,
                    question="two releases",
                    method=PRIVATE,
                    x=x,
                    releases=r,
                    attack="embedding",
                )
                for r in "12"
            )
            assert float(one["rate_low"]) <= float(other["rate_high"])
            assert float(other["rate_low"]) <= float(one["rate_high"])
        assert two(dataset, PRIVATE, "50", LIKELY) - rate(dataset, PRIVATE, "50", LIKELY) < 0.02


def test_k6_parrots_gain_at_large_budgets_only() -> None:
    pairs = {
        dataset: [
            rounded(rate(dataset, PRIVATE, x, "embedding, parrot"), rate(dataset, PRIVATE, x, "embedding"))
            for x in ("10000", "3000", "1000")
        ]
        for dataset in SETS
    }
    assert pairs["LFW"] == [[0.4, 0.27], [0.21, 0.21], [0.06, 0.04]]
    assert pairs["AT&T"] == [[0.88, 0.45], [0.7, 0.33], [0.08, 0.18]]
    for dataset in SETS:
        for x in ("300", "1000", "3000", "10000"):
            plain = rate(dataset, PRIVATE, x, "eigenfaces")
            assert rate(dataset, PRIVATE, x, "eigenfaces, parrot") <= plain + 0.03


def test_k7_k_same_resists_parrots() -> None:
    parrots = [r for r in ROWS if r["method"].startswith("k-same") and "parrot" in r["attack"]]
    assert len(parrots) > 50
    assert all(float(row["rate"]) <= 1 / int(row["x"]) for row in parrots)


def test_k8_subtracting_the_known_faces_undoes_k_same() -> None:
    for dataset, share in zip(SETS, (0.37, 0.85), strict=True):
        for k in map(str, PLAN.subtracted):
            more = {"question": "background", "known": str(int(k) - 1)}
            assert rate(dataset, "k-same-pixel", k, "embedding, subtracting", **more) == 1
            assert rate(dataset, SAME, k, "eigenfaces, subtracting", **more) == share
            assert share == rate(dataset, "codec alone", "", "eigenfaces")


def test_k9_candidates_that_are_struck_off() -> None:
    def named(x: str, known: str, dataset: str = "LFW", column: str = "rate") -> float:
        attack = f"striking off, {LIKELY}"
        return rate(dataset, PRIVATE, x, attack, question="background", known=known, column=column)

    budgets = PLAN.struck
    assert rounded(*(named(x, "0") for x in budgets)) == [0.22, 0.28, 0.47, 0.88]
    assert rounded(*(named(x, "3") for x in budgets)) == [0.53, 0.59, 0.75, 0.96]
    for dataset in SETS:
        for x in budgets:
            assert all(named(x, str(n), dataset) <= named(x, str(n), dataset, "limit") for n in range(4))
    same = [
        rate("LFW", SAME, "5", "striking off", question="background", known=str(n), column="rate")
        for n in range(4)
    ]
    assert same == pytest.approx([1 / 5, 1 / 4, 1 / 3, 1 / 2], abs=1e-4)


def test_k10_k_same_keeps_more_in_one_release() -> None:
    assert rounded(rate("LFW", PRIVATE, "300", OTHER, column="ssim")) == [0.17]
    assert rounded(rate("LFW", SAME, "10", OTHER, column="ssim")) == [0.48]
    assert rounded(rate("LFW", SAME, "50", OTHER, column="ssim")) == [0.46]
    for dataset in SETS:
        for x in PLAN.seen:
            risk = rate(dataset, PRIVATE, x, OTHER)
            kept = rate(dataset, PRIVATE, x, OTHER, column="ssim")
            safer = [
                row
                for row in ROWS
                if row["dataset"] == dataset and row["method"] == "k-same-pixel" and row["attack"] == OTHER
                if float(row["rate"]) <= risk
            ]
            assert max(float(row["ssim"]) for row in safer) > kept


def test_what_the_codec_alone_hides() -> None:
    assert rate("LFW", "no codec", "", "embedding") == 1
    assert rate("LFW", "codec alone", "", "embedding") == 0.3
    assert rate("LFW", "codec alone", "", "embedding, parrot") == 0.42
