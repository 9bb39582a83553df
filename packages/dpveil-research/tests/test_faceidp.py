"""FaceIDP anew: its formulas against written-out ones, errata E18 and E19, and a run on made faces."""

from __future__ import annotations

import dataclasses
import math
from itertools import product

import numpy as np
import pytest
from kept_tables import read
from made_codes import LENGTH, codecs, crops, embed
from scipy.stats import laplace

from dpveil.errors import UsageError
from dpveil.mechanisms.latent import BoxLaplace
from dpveil.noise.bits import SeededBits
from dpveil_research import faceidp, faceidp_faces
from dpveil_research.faceidp import GAUSSIAN, LAPLACE, ORIGINAL, farther
from dpveil_research.faceidp_faces import CLOSEST, SERIES, UTILITIES, files, pairs
from dpveil_research.faces import closest_pairs
from dpveil_research.published_faceidp import ALLOCATIONS, OPTIMAL, STANDARD, Pair, release

PAIR = Pair(
    move=np.array([0.5, -3.0, 2.0, 9.0]),
    low=np.array([-1.0, -2.0, -4.0, -2.0]),
    high=np.array([2.0, 1.0, 1.0, 8.0]),
    alpha=0.5,
    energy=np.array([1.0, 2.0, 0.5, 1.0]),
)


@pytest.mark.parametrize("allocation", ALLOCATIONS)
def test_an_allocation_has_its_utility_and_budget(allocation):
    scales = PAIR.scales(allocation, 13.0)
    assert 2 * np.sum(PAIR.energy * scales**2) == pytest.approx(13)
    assert (scales > 0).tolist() == [allocation == "standard", True, True, True]
    out = PAIR.outside()
    assert PAIR.budget(scales) == pytest.approx(np.sum(PAIR.sensitivity[out] / scales[out]))
    four = PAIR.scales(allocation, 4 * 13.0)
    assert PAIR.budget(four) == pytest.approx(PAIR.budget(scales) / 2)


def test_theorem_7_1_spends_least_among_those_with_the_same_noisy_coordinates():
    random = np.random.default_rng(1)
    best = PAIR.budget(PAIR.scales(OPTIMAL, 13.0))
    for _ in range(200):
        shape = random.uniform(0.1, 3, 4) * PAIR.outside()
        scales = shape * math.sqrt(13 / (2 * float(PAIR.energy @ shape**2)))
        assert PAIR.budget(scales) >= best * (1 - 1e-12)
    assert PAIR.budget(PAIR.scales("partial", 13.0)) > 1.01 * best


@pytest.mark.parametrize("allocation", ALLOCATIONS)
def test_the_whole_epsilon_is_the_log_ratio_of_the_printed_bounds(allocation):
    """ln(P_A⁺/P_B⁻) with the chances of Laplace noise written out (FaceIDP eqs. 31 to 34)."""
    scales = PAIR.scales(allocation, 40.0)
    stays, comes = 1.0, 1.0
    for move, low, high, b in zip(PAIR.move, PAIR.low, PAIR.high, scales, strict=True):
        if b:
            stays = min(stays, laplace.cdf(high / b) - laplace.cdf(low / b))
            comes *= laplace.cdf((0.5 * high - move) / b) - laplace.cdf((0.5 * low - move) / b)
    assert PAIR.budget(scales) + PAIR.excess(scales) == pytest.approx(math.log(stays / comes))


def test_a_release_has_the_utility_that_was_asked_for():
    """Squared Laplace noise deviates by √5 of its mean, 20 000 sums of it by 1.6 %: 12 % is never missed."""
    codec = codecs()["dictionary"]
    face = np.full((12, 12, 3), 128, np.uint8)
    pair = dataclasses.replace(
        PAIR,
        **{name: np.resize(getattr(PAIR, name), LENGTH) for name in ("move", "low", "high")},
        energy=codec.statistics.column_energy / 255**2,
    )
    shown = release(face, codec.atoms.astype(float), pair.scales("standard", 0.2), 20_000, SeededBits(3))
    errors = (((shown.astype(float) - face) / 255) ** 2).sum(axis=(1, 2, 3))
    rounding = face.size / 12 / 255**2
    assert errors.mean() - rounding == pytest.approx(0.2, rel=0.12)


# Errata


def test_errata_e18_a_larger_epsilon_for_more_noise():
    """δ of theorem VI.1 is taken for a constant; it is above n·ln 2 and grows, and with it the whole ε."""
    n = int(PAIR.outside().sum())
    whole = []
    for utility in (1e2, 1e4, 1e6):
        scales = PAIR.scales(OPTIMAL, utility)
        assert PAIR.excess(scales) > n * math.log(2) - 1
        whole.append(PAIR.budget(scales) + PAIR.excess(scales))
    assert whole == sorted(whole)
    shares = [float(s) for s in BoxLaplace(epsilon=3).shares(codecs()["dictionary"].statistics)]
    assert sum(shares) == pytest.approx(1)  # ours: ε is what the shares sum to, whatever the noise


def test_errata_e18_the_largest_ratio_stands_where_the_least_must():
    """Eq. 36 takes -ln of the largest P_B/P_A over pairs, eq. 37 the largest ln(P_A/P_B): not the same."""
    ratios = np.array([1.0, 0.01])  # a pair that nobody tells apart, and one that everybody does
    printed, bound = -math.log(ratios.max()), max(-np.log(ratios))
    assert printed == 0
    assert bound == pytest.approx(math.log(100))


def test_errata_e18_slices_are_no_projections():
    """Eq. 30 bounds the chance of all coordinates by that of one between edges found with the others at 0.

    The recogniser accepts |x - y| < 1; B is at (5, 5), which it accepts, with noise of scale 1 on both.
    """
    slice_bound = laplace.cdf(1 - 5) - laplace.cdf(-1 - 5)
    noise = np.random.default_rng(2).laplace(size=(2, 10_000))
    accepted = (np.abs(noise[0] - noise[1]) < 1).mean()
    assert slice_bound < 0.01
    assert accepted > 0.4


def test_errata_e19_what_the_dictionary_does_not_reach_is_shown():
    """Two faces of one code: eq. 13 tells them apart in every draw, a decoded code in none."""
    codec = codecs()["dictionary"]
    atoms = codec.atoms.astype(float)
    random = np.random.default_rng(4)
    rest = random.normal(size=atoms.shape[1])
    rest -= np.linalg.lstsq(atoms.T, rest, rcond=None)[0] @ atoms
    one = np.full((12, 12, 3), 128, np.uint8)
    two = np.clip(np.rint(one + 30 * rest.reshape(one.shape) / np.abs(rest).max()), 0, 255).astype(np.uint8)
    scales = np.full(LENGTH, 20.0)
    for seed in range(20):
        first, second = (release(face, atoms, scales, 1, SeededBits(seed))[0] for face in (one, two))
        along = [float(shown.reshape(-1).astype(float) @ rest) for shown in (first, second)]
        middle = 128 * float(rest.sum()) + float(two.reshape(-1).astype(float) @ rest - 128 * rest.sum()) / 2
        assert along[0] < middle < along[1]
    sound = BoxLaplace(epsilon=50)
    codes = np.repeat(codec.encode(one[None]), 2, axis=0)
    drawn = [codec.decode(sound.release(codes[:1], codec.statistics, bits=SeededBits(7))) for _ in range(2)]
    assert np.array_equal(*drawn)  # a released picture is a function of code and draw alone


# The run


@pytest.fixture(scope="module")
def tables():
    faces = crops(12, 2, seed=5)
    return faceidp.measure(codecs()["dictionary"], faces, 2, embed, lambda words: None)


def test_a_run_has_all_tables_and_every_figure_can_be_drawn(tables):
    assert set(tables) == {"pairs", "budgets", "utilities", "recognised", "differences"}
    assert len(faceidp.figures(tables, "made faces")) == 4
    one, other = (
        row
        for row in farther(tables["differences"])
        if (row["sweep"], row["x"]) == ("codes", "1") and row["series"] in (ORIGINAL, OPTIMAL)
    )
    assert float(other["farther"]) == pytest.approx(
        float(other["difference"]) - float(one["difference"]), rel=1e-3
    )
    for row in tables["recognised"]:
        assert 0 <= float(row["taken"]) <= 1
    promises = {row["series"]: row["guarantee"] for row in tables["budgets"]}
    assert {promises[name] for name in ALLOCATIONS} == {"no formal guarantee"}
    assert promises[LAPLACE].endswith("-DP, latent-cell")
    assert promises[GAUSSIAN].endswith("-zCDP, latent-cell")


def test_little_noise_leaves_a_face_itself_and_much_does_not(tables):
    shares = {(row["series"], row["x"]): float(row["taken"]) for row in tables["recognised"]}
    assert shares["standard, A", "5"] > 0.8
    assert shares["standard, A", "3000"] < 0.2
    for series in (*ALLOCATIONS, LAPLACE, GAUSSIAN):
        assert shares[f"{series}, A", "5"] > shares[f"{series}, A", "3000"]
    facts = {row["series"]: float(row["value"]) for row in tables["pairs"]}
    assert (facts["distance of A and B"] <= 0.6) == (facts["B taken for A"] == 1)
    assert facts["coordinates outside of the edges"] <= facts["coordinates outside of α times the edges"]


def test_pairs_are_closest_first_and_everybody_is_in_one_at_most():
    points = np.array([[0.0], [0.1], [0.12], [5.0], [5.3], [9.0]])
    assert closest_pairs(points, ["a", "a", "b", "c", "d", "e"], 2) == [(1, 2), (3, 4)]
    with pytest.raises(UsageError, match="too few"):
        closest_pairs(points, ["a", "a", "b", "c", "d", "e"], 3)


# Figures 5 and 7

PARTS = {"eye of A": (0, (2, 2), 4), "mouth of B": (1, (7, 4), 4)}


@pytest.fixture(scope="module")
def shown() -> dict[str, bytes]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(faceidp_faces, "PARTS", PARTS)
        return files(codecs()["dictionary"], crops(12, 1, seed=5).crops, embed)


def test_both_faces_of_both_pairs_are_shown_at_every_setting(shown: dict[str, bytes]) -> None:
    assert pairs(np.array([[0.0], [0.1], [0.61], [3.0]])) == {CLOSEST: [0, 1], "0.51 apart": [1, 2]}
    assert set(shown) == {"faces.csv", "figure-5.png", "figure-7.png"}
    table = read(shown["faces.csv"])
    settings = [(row["face"], row["series"], row["utility"]) for row in table]
    assert sorted(settings) == sorted(2 * [*product("AB", SERIES, UTILITIES)])
    for row in table:
        assert (row["series"] == ORIGINAL) == (row["epsilon"] == "")
        assert row["series"] != ORIGINAL or row["squared_error"] == "0"
        assert row["series"] != STANDARD or float(row["squared_error"]) > 1
