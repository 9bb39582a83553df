"""The verdicts of docs/reproduction-faces.md on codes, each checked on the tables that are kept."""

from __future__ import annotations

from functools import partial
from math import inf

import pytest
from kept_tables import claimed, curve, ends, kept_row, kept_rows, page, rises

from dpveil_research import faceidp
from dpveil_research import li_clifton_gan as paper
from dpveil_research.faceidp import GAUSSIAN, LAPLACE, OVER, SOUND, UNDER
from dpveil_research.published_faceidp import ALLOCATIONS

GAN, CLIPS = "li-clifton-2021-gan", paper.CLIPS


# FaceIDP

at = partial(curve, "faceidp")


def fact(name: str) -> tuple[float, float, float]:
    return ends(kept_row("faceidp", "pairs", series=name), "value")


def test_the_tables_are_those_of_the_settings() -> None:
    for sweep, table, xs in ((OVER, "budgets", faceidp.UTILITIES), (UNDER, "utilities", faceidp.BUDGETS)):
        for series in ALLOCATIONS:
            rows = kept_rows("faceidp", table)
            assert [r["x"] for r in rows if (r["sweep"], r["series"]) == (sweep, series)] == [*xs]
    assert {row["series"] for row in kept_rows("faceidp", "utilities")} == {*ALLOCATIONS, *SOUND}
    seen = {(row["x"], row["n"]) for row in kept_rows("faceidp", "recognised")}
    assert seen == {(x, str(faceidp.PAIRS)) for x in faceidp.LOOKED_AT}
    ours = [row for row in kept_rows("faceidp", "budgets") if row["series"].startswith(ALLOCATIONS)]
    assert {row["guarantee"] for row in ours} == {"no formal guarantee"}


def test_f1_the_closest_pairs_are_one_person_to_the_recogniser() -> None:
    assert fact("B taken for A")[0] == 1
    mean, _, high = fact("distance of A and B")
    assert round(mean, 2) == 0.51
    assert high < faceidp.SAME == 0.6


def test_f2_no_coordinate_is_outside_of_the_edges() -> None:
    assert fact("coordinates outside of the edges")[2] == 0
    assert round(fact("coordinates outside of α times the edges")[0]) == 31
    assert round(fact("α")[0], 2) == 0.11


@pytest.mark.parametrize(("more", "at_13"), [("", [193, 294, 431]), (", with δ", [215, 316, 452])])
def test_f3_optimal_is_least_then_partial_then_standard(more: str, at_13: list[int]) -> None:
    one, two, three = (
        at("epsilon", "budgets", series=name + more) for name in ("optimal", "partial", "standard")
    )
    assert all(one[x] < two[x] < three[x] for x in one)
    assert [round(found[13]) for found in (one, two, three)] == at_13


def test_f4_the_plotted_budgets_are_not_found() -> None:
    for end, wanted in (("", [311, 127]), (", with δ", [333, 149])):
        found = at("epsilon", "budgets", series=f"optimal{end}")
        assert [round(found[x]) for x in (5, 30)] == wanted
    utility = at("utility", "utilities", series="optimal")[2.9]
    assert round(utility, -2) == 81_700 > 150 * 150 * 3 == 67_500


def test_f5_delta_grows_with_the_noise() -> None:
    optimal, whole = (at("epsilon", "budgets", series=name) for name in ("optimal", "optimal, with δ"))
    deltas = {x: round(whole[x] - optimal[x], 2) for x in optimal}
    assert list(deltas.values()) == sorted(deltas.values())
    assert (round(deltas[5]), round(deltas[3000])) == (22, 31)


def test_f6_optimal_noise_does_not_bring_embeddings_together() -> None:
    here = partial(at, "difference", "differences", sweep="embeddings")
    sums = [sum(here(series=name).values()) for name in ("original", *ALLOCATIONS)]
    assert [round(total, 2) for total in sums] == [4.67, 4.73, 4.71, 4.71]


def test_f7_a_face_is_recognised_through_the_noise() -> None:
    for series in ALLOCATIONS:
        shares = at("taken", "recognised", series=f"{series}, A")
        assert all(share > 0.99 for x, share in shares.items() if x <= 300)
        assert 0.59 < shares[3000] < 0.66
    assert faceidp.PAIRS * faceidp.DRAWS == 120


def test_f8_a_real_epsilon_is_in_the_thousands() -> None:
    published = at("epsilon", "budgets", series="optimal")
    rows = [row for row in kept_rows("faceidp", "recognised") if row["series"] == f"{LAPLACE}, A"]
    promises = {float(row["x"]): float(row["guarantee"].partition("-DP")[0]) for row in rows}
    assert [promises[x] for x in (5, 13, 30)] == [22_840, 14_190, 9_345]
    assert {round(promises[x] / published[x]) for x in (13, 30)} == {74}
    utility = {name: at("utility", "utilities", series=name) for name in SOUND}
    clipped, equal, cut = (utility[name][10_000] for name in list(SOUND)[:3])
    assert round(equal / clipped, 2) == 1.19
    assert cut == pytest.approx(clipped, rel=0.015)
    gaussian = utility[GAUSSIAN]
    assert min(x for x, value in gaussian.items() if value < 100) > 10 * 10_000
    assert min(gaussian) < 10
    assert gaussian[min(gaussian)] == pytest.approx(utility[LAPLACE][10], rel=0.05)


def test_f9_the_codec_hides_more_than_the_noise() -> None:
    assert round(fact("squared error of a decoded code")[0]) == 477
    assert fact("decoded code of A taken for A")[0] == pytest.approx(1 / 5, abs=1e-4)


def test_f10_random_measurements_lose_far_more_than_the_code() -> None:
    mean, low, _ = fact("squared error of a code by random measurements")
    assert round(mean, -2) == 15_100
    assert low > 25 * fact("squared error of a decoded code")[0]


def test_f11_all_three_allocations_have_one_expected_error_and_budgets_in_order() -> None:
    rows = [
        r for r in kept_rows("faceidp-faces", "faces") if (r["pair"], r["utility"]) == ("0.51 apart", "13")
    ]
    found = {(row["face"], row["series"]): row for row in rows}
    errors = [[f"{float(found[face, name]['squared_error']):.1f}" for name in ALLOCATIONS] for face in "AB"]
    budgets = [f"{float(found['A', name]['epsilon']):.0f}" for name in ALLOCATIONS]
    line = claimed(page("reproduction-faces"), "F11")
    assert all(", ".join(said) in line for said in (*errors, budgets))
    assert {row["taken_for_a"] for row in rows} == {"True"}


# Li & Clifton in the space of networks


def in_networks(name: str, clip: int, measure: str) -> dict[float, float]:
    """Return the means of a series by ε; without noise it is infinite."""
    (none,) = curve(GAN, measure, series=f"{name}: {paper.series(paper.CODE, clip)}").values()
    return curve(GAN, measure, series=paper.series(name, clip)) | {inf: none}


def test_l7_in_networks_distortion_falls_and_the_frechet_distance_at_small_clips() -> None:
    for clip in CLIPS:
        assert all(rises(in_networks(paper.ENCODED, clip, measure)) for measure in paper.MEASURES)
    drawn = {
        clip: [round(v) for x, v in in_networks(paper.ENCODED, clip, "frechet").items() if x < inf]
        for clip in CLIPS
    }
    assert [(drawn[clip][0], drawn[clip][-1]) for clip in (0, 10)] == [(315, 216), (253, 226)]
    assert drawn[0].index(min(drawn[0])) == paper.EACH.index("8")
    assert [(min(drawn[clip]), max(drawn[clip])) for clip in (25, 40)] == [(270, 281), (421, 443)]
    photos = kept_row(GAN, series=paper.PHOTOS)
    assert (round(float(photos["frechet"])), photos["images"]) == (147, "79")


def test_l8_in_networks_clips_help_with_noise_and_cost_without() -> None:
    ssim = [in_networks(paper.ENCODED, clip, "ssim") for clip in CLIPS]
    assert [one[128] for one in ssim] == sorted(one[128] for one in ssim)
    assert [one[inf] for one in ssim] == sorted((one[inf] for one in ssim), reverse=True)
    apart = [in_networks(paper.ENCODED, clip, "frechet") for clip in CLIPS]
    assert all(apart[-1][x] == max(one[x] for one in apart) for x in apart[0])


def test_l9_weights_by_hand_gain() -> None:
    equal, ours = (in_networks(name, 10, "psnr") for name in (paper.ENCODED, paper.WEIGHTED))
    gains = {x: round(ours[x] - equal[x], 1) for x in equal}
    early = [gain for x, gain in gains.items() if x <= 2048]
    assert (min(early), max(early)) == (0.5, 2.4)
    assert 0 <= max(gain for x, gain in gains.items() if x > 2048) <= 0.3


def test_l10_optimised_codes_are_nearer_where_noise_is_small() -> None:
    plain, best = (in_networks(name, 10, "psnr") for name in (paper.ENCODED, paper.OPTIMISED))
    gains = {x: best[x] - plain[x] for x in plain}
    assert round(gains[inf], 1) == 0.5
    assert all(0.1 < gain < 0.5 for x, gain in gains.items() if 2048 <= x < inf)
    middle = [gain for x, gain in gains.items() if 128 <= x <= 1024]
    assert (round(min(middle), 1), max(middle) < 0) == (-0.6, True)
