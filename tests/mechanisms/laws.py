"""Exact laws of finite methods on tiny images, written with one number at a time: what an audit plugs in.

A law is a list of independent draws: (where it shows, {shown levels: probability}), places being
(row slice, column slice, channel).
"""

import itertools
import math
from collections import defaultdict

from dpveil.noise.matrix import TOTAL

Draws = list[tuple[tuple[slice, slice, int], dict[tuple[int, ...], float]]]


def cells(image, side):
    height, width, channels = image.shape
    for top in range(0, height, side):
        for left in range(0, width, side):
            for channel in range(channels):
                rows, columns = slice(top, min(top + side, height)), slice(left, min(left + side, width))
                yield (rows, columns, channel), image[rows, columns, channel].astype(int)


def mse_exponential(method, image, *, cost=1.0) -> Draws:
    """The law by formula 6.32, from floats: `cost` 2 is the mutant that spends 2ε′."""
    places = list(cells(image, method.block))
    rate = cost * float(method.epsilon) / len(places)
    k = method.levels
    found = []
    for place, levels in places:
        mean = (2 * int(levels.sum()) + levels.size) // (2 * levels.size)
        weights = [math.exp(-rate * (mean - 255 * j / (k - 1)) ** 2 / 255**2) for j in range(k)]
        law = {math.floor(255 * j / (k - 1) + 0.5): w / sum(weights) for j, w in enumerate(weights)}
        found.append((place, {(level,): chance for level, chance in law.items()}))
    return found


def coefficients(levels):
    """The coefficients of a 2 × 2 group, by hand: down, across, cross, coarse."""
    (a, b), (c, d) = levels
    top, bottom = math.floor((a + b) / 2), math.floor((c + d) / 2)
    return [
        top - bottom,
        math.floor(((a - b) + (c - d)) / 2),
        (a - b) - (c - d),
        math.floor((top + bottom) / 2),
    ]


def undone(down, across, cross, coarse):
    """The 2 × 2 group of these coefficients, clamped."""
    top = coarse + math.floor((down + 1) / 2)
    bottom = top - down
    first = across + math.floor((cross + 1) / 2)
    second = first - cross
    pairs = []
    for mean, difference in ((top, first), (bottom, second)):
        left = mean + math.floor((difference + 1) / 2)
        pairs += [left, left - difference]
    return [min(255, max(0, value)) for value in pairs]


def drawn_bits(bands, values):
    """The (band, plane, true bit) of every plane that is drawn, for the coefficients of one group."""
    for place, (band, value) in enumerate(zip(bands, values, strict=True)):
        for plane in band.planes:
            if plane.epsilon:
                yield place, plane, (value < 0) if plane.value == 0 else bool(abs(value) & plane.value)


def bit_planes(method, image) -> Draws:
    """The law of wavelet 1: every outcome of every drawn bit, decoded by Bayes' rule."""
    assert method.wavelet == 1
    height, width, channels = image.shape
    bands = method.bands(height=height, width=width, channels=channels)
    found = []
    for place, levels in cells(image, 2):
        rows, columns = levels.shape
        full = [[int(levels[min(y, rows - 1), min(x, columns - 1)]) for x in (0, 1)] for y in (0, 1)]
        bits = list(drawn_bits(bands, coefficients(full)))
        law = defaultdict(float)
        for outcome in itertools.product((0, 1), repeat=len(bits)):
            chance = 1.0
            for (_, plane, truth), seen in zip(bits, outcome, strict=True):
                q = plane.flip / TOTAL
                chance *= q if seen != truth else 1 - q
            shown = undone(*decoded(bands, bits, outcome, method.drop_coarse))
            kept = tuple(shown[2 * y + x] for y in range(rows) for x in range(columns))
            law[kept] += chance
        found.append((place, dict(law)))
    return found


def decoded(bands, bits, outcome, drop_coarse):
    """The coefficients that these seen bits are decoded to."""
    seen = {(place, plane.value): bit for (place, plane, _), bit in zip(bits, outcome, strict=True)}
    values = []
    for place, band in enumerate(bands):
        estimates = {}
        for plane in band.planes:
            estimates[plane.value] = plane.prior
            if (place, plane.value) in seen:
                q, bit = plane.flip / TOTAL, seen[place, plane.value]
                one = plane.prior * (1 - q if bit else q)
                none = (1 - plane.prior) * (q if bit else 1 - q)
                estimates[plane.value] = one / (one + none)
        total = sum(value * estimate for value, estimate in estimates.items())
        if 0 in estimates:
            total *= 1 - 2 * estimates[0]
        elif drop_coarse:
            total = 128
        values.append(round(total))
    return values
