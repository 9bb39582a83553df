"""DP-Samp: the published one told apart with certainty; the sound one's exact law over all neighbours.

The law is written here from the papers' equations alone: noisy counts clipped to what n pixels can have (all
that a release reads of them), and which pixels are shown given those. Counts of k intensities, not of 256.
"""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom

from dpveil.accounting.compose import any_of
from dpveil.errors import InvalidParameter
from dpveil.mechanisms.pixel import DPSamp
from dpveil.mechanisms.pixel import dp_samp as sampling
from dpveil.mechanisms.pixel.dp_samp import frequent_levels, histogram, k_means
from dpveil.noise.bits import SeededBits

HIDDEN = -1


def sound(**given):
    return DPSamp(private_clusters=True, **given)


def worst_shown(count, m, epsilon):
    """Equation 4, by trying every number with exact binomials; a float stands for e^ε."""
    good = (
        [
            x
            for x in range(max(0, count - m) + 1)
            if math.comb(count, x) <= math.exp(epsilon) * math.comb(count - m, x)
        ]
        if count > m
        else [0]
    )
    return max(good)


def best_intervals(counts, clusters):
    """k-means by trying every way to cut the intensities into intervals."""
    levels = [level for level, count in enumerate(counts) if count > 0]
    if not levels:
        return 0, []
    clusters = min(clusters, len(levels))

    def cost(part):
        weight = sum(int(counts[v]) for v in part)
        mean = Fraction(sum(int(counts[v]) * v for v in part), weight)
        return sum(int(counts[v]) * (v - mean) ** 2 for v in part)

    best = None
    for cuts in itertools.combinations(range(1, len(levels)), clusters - 1):
        edges = [0, *cuts, len(levels)]
        parts = [levels[a:b] for a, b in itertools.pairwise(edges)]
        total = sum(cost(part) for part in parts)
        if best is None or total < best[0]:
            best = (total, parts)
    return best


# As published


def test_errata_e5_neighbours_told_apart_with_certainty():
    """One pixel changes c from 2 to 1, and x from 1 to 0: the two releases are never the same."""
    method = DPSamp(epsilon=1, clusters=1, neighbourhood=1)
    one, other = np.array([[9, 9]], np.uint8), np.array([[9, 200]], np.uint8)
    first = {method.release(one, bits=SeededBits(k)).tobytes() for k in range(200)}
    second = {method.release(other, bits=SeededBits(k)).tobytes() for k in range(200)}
    assert first == {bytes([9, 9])}  # x = 1: one of two pixels, whichever it is
    assert second == {bytes([127, 127])}  # x = 0: whatever the bits are
    guarantee = method.guarantee(height=1, width=2, channels=1)
    assert guarantee.kind == "heuristic"
    assert any("certainty" in words for words in guarantee.broken_by)


def published_law(image, method):
    """Every set of x pixels of each chosen intensity, all as likely: {what is shown: chance}."""
    counts = [image.count(v) for v in range(max(image) + 1)]
    chosen = [max(part, key=lambda v: (counts[v], -v)) for part in best_intervals(counts, method.clusters)[1]]
    total = sum(counts[v] for v in chosen)
    sets = [[()]]
    for v in chosen:
        x = worst_shown(counts[v], method.neighbourhood, float(method.epsilon) * counts[v] / total)
        sets.append(list(itertools.combinations([i for i, w in enumerate(image) if w == v], x)))
    outcomes = [frozenset(itertools.chain(*choice)) for choice in itertools.product(*sets)]
    return {
        tuple(image[i] if i in s else HIDDEN for i in range(len(image))): 1 / len(outcomes) for s in outcomes
    }


@pytest.mark.parametrize("epsilon", [1, 3, 10, 100])
def test_errata_e5_no_finite_epsilon_holds_as_published(epsilon):
    """DP-Samp claimed pure: among all images of 4 pixels, some release is possible for one neighbour only."""
    method = DPSamp(epsilon=epsilon, clusters=2, neighbourhood=1)
    laws = {image: published_law(image, method) for image in itertools.product((0, 1), repeat=4)}
    lost = 0.0
    for a, b in itertools.permutations(laws, 2):
        if sum(x != y for x, y in zip(a, b, strict=True)) == 1:
            lost = max(lost, sum(p for outcome, p in laws[a].items() if outcome not in laws[b]))
    assert lost == 1  # δ = 1 at every ε


@pytest.mark.parametrize("sure", [7.0, 0.2])
def test_every_set_of_so_many_pixels_is_as_likely(sure, monkeypatch):
    """2 of 4 pixels of one intensity and 1 of 3 of another, 3 000 times: binomial tails of 1e-11 each.

    With less than a standard deviation, words are drawn again in most calls: the law stays.
    """
    monkeypatch.setattr(sampling, "SURE", sure)
    levels, bits = np.array([[3, 3, 7, 3, 200], [7, 3, 7, 7, 9]], np.uint8), SeededBits(11)
    asked, counts, draws = [], {}, 3_000
    words = SeededBits.words
    monkeypatch.setattr(SeededBits, "words", lambda self, n: (asked.append(n), words(self, n))[1])
    for _ in range(draws):
        shown = sampling.choose_pixels(levels, {3: (2, 4), 7: (1, 4), 9: (0, 1)}, bits)
        assert shown.sum() == 3
        counts[shown.tobytes()] = counts.get(shown.tobytes(), 0) + 1
    assert (len(asked) > 1.2 * draws) == (sure < 1)
    assert len(counts) == 6 * 4
    for count in counts.values():
        assert min(binom.cdf(count, draws, 1 / 24), binom.sf(count - 1, draws, 1 / 24)) > 1e-11


@pytest.mark.parametrize("share", [0, 1, 300, 29_990, 30_000])
def test_so_many_pixels_are_chosen_in_parts(share):
    levels = (np.arange(200 * 300) % 2 * 90).astype(np.uint8).reshape(200, 300)
    shown = sampling.choose_pixels(levels, {0: (share, 30_000), 90: (17, 30_000)}, SeededBits(2))
    assert (shown & (levels == 0)).sum() == share
    assert (shown & (levels == 90)).sum() == 17


def test_intensities_are_counted_exactly(monkeypatch):
    levels = (np.arange(101 * 99) * 7919 % 251).astype(np.uint8).reshape(101, 99)
    levels[:40] = 255
    expected = np.bincount(levels.ravel(), minlength=256)
    assert np.array_equal(histogram(levels), expected)
    monkeypatch.setattr(sampling, "BAND", 1000)
    assert np.array_equal(histogram(levels), expected)
    assert np.array_equal(histogram(np.stack([levels, levels], axis=2)[:, :, 1]), expected)


# Parts


def test_k_means_is_the_best_of_all():
    unsafe = np.random.default_rng(7)
    for _ in range(60):
        counts = unsafe.integers(0, 6, 9)
        for clusters in (1, 2, 3, 4, 9):
            cost, parts = best_intervals(counts, clusters)
            found = [part.tolist() for part in k_means(counts, clusters)]
            assert sorted(itertools.chain(*found)) == sorted(itertools.chain(*parts))
            again = 0
            for part in found:
                weight = sum(int(counts[v]) for v in part)
                mean = Fraction(sum(int(counts[v]) * v for v in part), weight)
                again += sum(int(counts[v]) * (v - mean) ** 2 for v in part)
            assert float(again) == pytest.approx(float(cost), abs=1e-9)
    assert k_means(np.zeros(5, int), 3) == []
    assert frequent_levels(np.array([0, 4, 4, 0, 1]), 1) == [1]


@pytest.mark.parametrize("count", [1, 2, 3, 16, 17, 400, 5000, 10**6])
@pytest.mark.parametrize("chance", ["1/2", "1/100", "1e-6", "1/3", "0.999"])
def test_any_of_is_never_too_low(chance, count):
    found, chance = any_of(Fraction(chance), count), Fraction(chance)
    if count <= 5000:
        exact = 1 - (1 - chance) ** count
        assert 0 <= found - exact < Fraction(1, 10**12)
    assert float(found) == pytest.approx(-math.expm1(count * math.log1p(-float(chance))), rel=1e-6, abs=2e-12)
    assert found <= 1


def test_a_missing_or_idle_rate_is_refused():
    with pytest.raises(InvalidParameter, match="there is no default") as refusal:
        DPSamp(epsilon=1, clusters=2, neighbourhood=1, private_clusters=True)
    assert refusal.value.name == "rate"
    with pytest.raises(InvalidParameter, match="without private_clusters"):
        DPSamp(epsilon=1, clusters=2, neighbourhood=1, rate="0.1")
    for wrong in (0, 1, -0.1, "lots", True):
        with pytest.raises(InvalidParameter):
            sound(epsilon=1, clusters=2, rate=wrong)
    with pytest.raises(InvalidParameter):
        DPSamp(epsilon=1, clusters=2, private_clusters=1)


def test_delta_counts_the_pixels_that_can_change():
    size = {"height": 3, "width": 3, "channels": 1}
    few = sound(epsilon=1, clusters=2, neighbourhood=2, rate="0.1").guarantee(**size)
    assert few.delta == Fraction(19, 100)
    every = sound(epsilon=1, clusters=2, rate="0.1")
    assert float(every.guarantee(**size).delta) == pytest.approx(1 - 0.9**9)
    assert every.guarantee(**size).relation.name == "any-image"
    assert every.count_scale(9) == 18
    assert sound(epsilon=1, clusters=2, neighbourhood=100, rate="0.1").count_scale(9) == 18
