"""The verdicts of docs/reproduction-faces.md, each checked on the tables that are kept in the repository."""

from __future__ import annotations

from itertools import pairwise

import pytest
from kept_tables import claimed, kept_rows, page

from dpveil_research import faceidp
from dpveil_research import li_clifton_2021 as paper
from dpveil_research import li_clifton_gan as networks
from dpveil_research.faceidp import GAUSSIAN, LAPLACE, OVER, SOUND, UNDER
from dpveil_research.published_faceidp import ALLOCATIONS

CLIFTON = kept_rows("li-clifton-2021", "results")


def curve(space, mechanism, clip, measure):
    """Return the means of a series by x; without noise x is None."""
    name = (space, paper.series(mechanism, clip))
    found = [row for row in CLIFTON if (row["sweep"], row["series"]) == name]
    assert found, name
    return {float(row["x"]) if row["x"] else None: float(row[measure]) for row in found}


def still(space, clip, measure):
    return curve(space, paper.CODE, clip, measure)[None]


def at_each(space, each):
    return each * paper.SPACES[space][1]


def test_the_table_is_that_of_the_settings():
    wanted = {(paper.EVERYWHERE, paper.NOTHING, "")}
    for space, (_, length) in paper.SPACES.items():
        for clip in paper.CLIPS:
            wanted.add((space, paper.series(paper.CODE, clip), ""))
            for name in paper.MECHANISMS:
                for each in paper.EACH:
                    x = f"{float(paper.Fraction(each) * length):g}"
                    wanted.add((space, paper.series(name, clip), x))
    assert {(row["sweep"], row["series"], row["x"]) for row in CLIFTON} == wanted
    assert {row["images"] for row in CLIFTON} == {str(paper.IMAGES)}


# FaceIDP

FACTS = {row["series"]: row for row in kept_rows("faceidp", "pairs")}
TABLES = {name: kept_rows("faceidp", name) for name in ("budgets", "utilities", "recognised", "differences")}


def at(table, series, measure, sweep=None):
    """Return the means of a series by x."""
    found = [
        row for row in TABLES[table] if row["series"] == series and row["sweep"] == (sweep or row["sweep"])
    ]
    assert found, series
    return {float(row["x"]): float(row[measure]) for row in found}


def fact(name):
    return float(FACTS[name]["value"])


def test_the_tables_are_those_of_the_settings():
    both = (OVER, "budgets", faceidp.UTILITIES), (UNDER, "utilities", faceidp.BUDGETS)
    for sweep, table, xs in both:
        for series in ALLOCATIONS:
            assert [r["x"] for r in TABLES[table] if (r["sweep"], r["series"]) == (sweep, series)] == [*xs]
    assert {row["series"] for row in TABLES["utilities"]} == {*ALLOCATIONS, *SOUND}
    assert {row["x"] for row in TABLES["recognised"]} == set(faceidp.LOOKED_AT)
    assert {row["n"] for row in TABLES["recognised"]} == {str(faceidp.PAIRS)}
    promises = {row["guarantee"] for row in TABLES["budgets"] if row["series"].startswith(ALLOCATIONS)}
    assert promises == {"no formal guarantee"}


def test_f1_the_closest_pairs_are_one_person_to_the_recogniser():
    assert fact("B taken for A") == 1
    assert round(fact("distance of A and B"), 2) == 0.51
    assert float(FACTS["distance of A and B"]["value_high"]) < faceidp.SAME == 0.6


def test_f2_no_coordinate_is_outside_of_the_edges():
    assert FACTS["coordinates outside of the edges"]["value_high"] == "0"
    assert round(fact("coordinates outside of α times the edges")) == 31
    assert round(fact("α"), 2) == 0.11


@pytest.mark.parametrize(("more", "at_13"), [("", [193, 294, 431]), (", with δ", [215, 316, 452])])
def test_f3_optimal_is_least_then_partial_then_standard(more, at_13):
    curves = [at("budgets", name + more, "epsilon") for name in ("optimal", "partial", "standard")]
    assert all(one[x] < two[x] < three[x] for one, two, three in [curves] for x in one)
    assert [round(one[13]) for one in curves] == at_13


def test_f4_the_plotted_budgets_are_not_found():
    optimal, whole = (at("budgets", name, "epsilon") for name in ("optimal", "optimal, with δ"))
    assert [round(optimal[x]) for x in (5, 30)] == [311, 127]
    assert [round(whole[x]) for x in (5, 30)] == [333, 149]
    assert round(at("utilities", "optimal", "utility")[2.9], -2) == 81_700 > 150 * 150 * 3 == 67_500


def test_f5_delta_grows_with_the_noise():
    optimal, whole = (at("budgets", name, "epsilon") for name in ("optimal", "optimal, with δ"))
    deltas = {x: round(whole[x] - optimal[x], 2) for x in optimal}
    assert list(deltas.values()) == sorted(deltas.values())
    assert (round(deltas[5]), round(deltas[3000])) == (22, 31)


def test_f6_optimal_noise_does_not_bring_embeddings_together():
    sums = [
        sum(at("differences", name, "difference", "embeddings").values())
        for name in ("original", *ALLOCATIONS)
    ]
    assert [round(total, 2) for total in sums] == [4.67, 4.73, 4.71, 4.71]


def test_f7_a_face_is_recognised_through_the_noise():
    for series in ALLOCATIONS:
        shares = at("recognised", f"{series}, A", "taken")
        assert all(share > 0.99 for x, share in shares.items() if x <= 300)
        assert 0.59 < shares[3000] < 0.66
    assert faceidp.PAIRS * faceidp.DRAWS == 120


def test_f8_a_real_epsilon_is_in_the_thousands():
    published = at("budgets", "optimal", "epsilon")
    promises = {
        float(row["x"]): float(row["guarantee"].partition("-DP")[0])
        for row in TABLES["recognised"]
        if row["series"] == f"{LAPLACE}, A"
    }
    assert [promises[x] for x in (5, 13, 30)] == [22_840, 14_190, 9_345]
    assert {round(promises[x] / published[x]) for x in (13, 30)} == {74}
    clipped, equal, cut = (at("utilities", name, "utility")[10_000] for name in list(SOUND)[:3])
    assert round(equal / clipped, 2) == 1.19
    assert cut == pytest.approx(clipped, rel=0.015)
    gaussian, laplace = (at("utilities", name, "utility") for name in (GAUSSIAN, LAPLACE))
    assert min(x for x, value in gaussian.items() if value < 100) > 10 * 10_000
    assert min(gaussian) < 10
    assert gaussian[min(gaussian)] == pytest.approx(laplace[10], rel=0.05)


def test_f9_the_codec_hides_more_than_the_noise():
    assert round(fact("squared error of a decoded code")) == 477
    assert fact("decoded code of A taken for A") == pytest.approx(1 / 5, abs=1e-4)


def test_f10_random_measurements_lose_far_more_than_the_code():
    assert round(fact("squared error of a code by random measurements"), -2) == 15_100
    low = float(FACTS["squared error of a code by random measurements"]["value_low"])
    assert low > 25 * fact("squared error of a decoded code")


def test_f11_all_three_allocations_have_one_expected_error_and_budgets_in_order():
    pair = "0.51 apart"
    found = {
        (r["face"], r["series"]): r
        for r in kept_rows("faceidp-faces", "faces")
        if (r["pair"], r["utility"]) == (pair, "13")
    }
    errors = [[f"{float(found[face, name]['squared_error']):.1f}" for name in ALLOCATIONS] for face in "AB"]
    budgets = [f"{float(found['A', name]['epsilon']):.0f}" for name in ALLOCATIONS]
    line = claimed(page("reproduction-faces"), "F11")
    for said in (*errors, budgets):
        assert ", ".join(said) in line
    assert {row["taken_for_a"] for row in found.values()} == {"True"}


# Li & Clifton


@pytest.mark.parametrize("space", list(paper.SPACES))
@pytest.mark.parametrize("measure", paper.MEASURES)
def test_l1_distortion_falls_with_epsilon(space, measure):
    for clip in paper.CLIPS:
        values = curve(space, paper.OURS, clip, measure)
        assert all(values[a] < values[b] for a, b in pairwise(sorted(values)))


@pytest.mark.parametrize("space", list(paper.SPACES))
def test_l2_clips_help_with_noise_and_cost_without(space):
    one = [curve(space, paper.OURS, clip, "ssim")[at_each(space, 1)] for clip in paper.CLIPS]
    assert one == sorted(one)
    none = [still(space, clip, "ssim") for clip in paper.CLIPS]
    assert none == sorted(none, reverse=True)
    most = {clip: curve(space, paper.OURS, clip, "ssim")[at_each(space, 64)] for clip in paper.CLIPS}
    assert abs(most[0] - most[10]) < 0.02
    assert min(most[0], most[10]) > most[25] > most[40]
    assert 15.5 < still(space, 40, "psnr") < 17


@pytest.mark.parametrize("space", list(paper.SPACES))
def test_l3_as_printed_has_no_noise_to_be_seen(space):
    for clip in paper.CLIPS:
        values = curve(space, paper.PRINTED, clip, "ssim")
        assert all(abs(value - still(space, clip, "ssim")) < 1e-3 for value in values.values())
    name = ("pca 100", paper.series(paper.PRINTED, 0), "25")
    [row] = [row for row in CLIFTON if (row["sweep"], row["series"], row["x"]) == name]
    assert row["guarantee"] == "250000-DP, latent-cell"


def test_l4_from_which_epsilon_on_a_face_is_ahead_of_the_mean_face():
    [flat] = [row for row in CLIFTON if row["series"] == paper.NOTHING]
    found = {}
    for space in paper.SPACES:
        for clip in paper.CLIPS:
            name = (space, paper.series(paper.OURS, clip))
            ahead = [
                float(row["x"])
                for row in CLIFTON
                if (row["sweep"], row["series"]) == name and float(row["ssim_low"]) > float(flat["ssim_high"])
            ]
            found.setdefault(space, []).append(min(ahead, default=None))
    assert found == {
        "pca 100": [1600, 400, 200, 200],
        "pca 512": [8192, 2048, 1024, 1024],
        "dictionary 100": [1600, 400, 200, None],
    }


def test_l5_optimal_shares_gain_where_coordinates_differ():
    gains = {}
    for space in paper.SPACES:
        ours, equal = (curve(space, name, 10, "psnr") for name in (paper.OPTIMAL, paper.OURS))
        gains[space] = {x: ours[x] - equal[x] for x in ours}
    long = [gain for x, gain in gains["pca 512"].items() if x <= 8192]
    assert round(min(long), 1) == 1.4
    assert round(max(long), 1) == 4.4
    assert max(gains["dictionary 100"].values()) < 0.6


def test_l6_longer_codes_are_ahead_at_thousands_only():
    short, long = (curve(space, paper.OURS, 10, "ssim") for space in ("pca 100", "pca 512"))
    best = {x: max(value for at, value in short.items() if at <= x) for x in long}
    assert [x for x in long if long[x] > best[x]] == [4096, 8192, 16384, 32768]


NETWORKS = kept_rows("li-clifton-2021-gan", "results")


def in_networks(name, clip, measure):
    """Return the means of a series in the space of networks by ε; without noise it is infinite."""
    still = f"{name}: {paper.series(paper.CODE, clip)}"
    found = {float(r["x"]): float(r[measure]) for r in NETWORKS if r["series"] == paper.series(name, clip)}
    [none] = [float(r[measure]) for r in NETWORKS if r["series"] == still]
    return found | {float("inf"): none}


def test_l7_in_networks_distortion_falls_and_the_frechet_distance_at_small_clips():
    for clip in networks.CLIPS:
        for measure in paper.MEASURES:
            values = in_networks(networks.ENCODED, clip, measure)
            assert all(values[a] < values[b] for a, b in pairwise(sorted(values)))
    drawn = {
        clip: [round(v) for x, v in in_networks(networks.ENCODED, clip, "frechet").items() if x < 1e9]
        for clip in networks.CLIPS
    }
    assert {clip: (values[0], values[-1]) for clip, values in drawn.items() if clip < 25} == {
        0: (315, 216),
        10: (253, 226),
    }
    assert drawn[0].index(min(drawn[0])) == paper.EACH.index("8")
    assert [(min(drawn[clip]), max(drawn[clip])) for clip in (25, 40)] == [(270, 281), (421, 443)]
    [photos] = [row for row in NETWORKS if row["series"] == networks.PHOTOS]
    assert (round(float(photos["frechet"])), photos["images"]) == (147, "79")


def test_l8_in_networks_clips_help_with_noise_and_cost_without():
    one = [in_networks(networks.ENCODED, clip, "ssim") for clip in networks.CLIPS]
    assert [each[128] for each in one] == sorted(each[128] for each in one)
    still = [each[float("inf")] for each in one]
    assert still == sorted(still, reverse=True)
    apart = [in_networks(networks.ENCODED, clip, "frechet") for clip in networks.CLIPS]
    assert all(apart[-1][x] == max(each[x] for each in apart) for x in apart[0])


def test_l9_weights_by_hand_gain():
    equal, ours = (in_networks(name, 10, "psnr") for name in (networks.ENCODED, networks.WEIGHTED))
    gains = {x: round(ours[x] - equal[x], 1) for x in equal}
    early = [gain for x, gain in gains.items() if x <= 2048]
    assert (min(early), max(early)) == (0.5, 2.4)
    assert 0 <= max(gain for x, gain in gains.items() if x > 2048) <= 0.3


def test_l10_optimised_codes_are_nearer_where_noise_is_small():
    plain, best = (in_networks(name, 10, "psnr") for name in (networks.ENCODED, networks.OPTIMISED))
    gains = {x: best[x] - plain[x] for x in plain}
    assert round(gains[float("inf")], 1) == 0.5
    late = [gain for x, gain in gains.items() if 2048 <= x < 1e9]
    assert 0.1 < min(late) < max(late) < 0.5
    middle = [gain for x, gain in gains.items() if 128 <= x <= 1024]
    assert (round(min(middle), 1), max(middle) < 0) == (-0.6, True)
