"""Disjoint regions as one release: brute force over all neighbours of tiny photos with some regions."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from dpveil.core.region import Box
from dpveil.mechanisms.pixel import BitPlanes, DCTGaussian, DPPix, DPPixGaussian
from dpveil.mechanisms.pixel.base import cell_sums
from dpveil.release.quote import Quote
from dpveil_audit.pixel.methods import bit_planes, dct_gaussian
from records import record

LAYOUTS = {
    "two squares": ([Box(0, 0, 2, 2), Box(2, 0, 2, 2)], 2),
    "a square and a row": ([Box(0, 0, 2, 2), Box(2, 0, 3, 1)], 2),
    "three rows": ([Box(0, 0, 2, 1), Box(2, 0, 2, 1), Box(4, 0, 2, 1)], 1),
    "uneven rows": ([Box(0, 0, 3, 1), Box(3, 0, 5, 1)], 2),
}


def movements(boxes, block, m):
    """Every movement of the sums of all regions between photos that differ in at most m pixels, by 255."""
    height, width = max(b.y + b.h for b in boxes), max(b.x + b.w for b in boxes)
    for pixels in product((0, 1), repeat=height * width):
        if sum(pixels) <= m:
            changed = 255 * np.array(pixels, np.uint8).reshape(height, width, 1)
            yield [int(s) for box in boxes for s in cell_sums(changed[box.slices], block).ravel()]


def stated(method, boxes):
    records = [record(f"box {n}", box) for n, box in enumerate(boxes)]
    return Quote(method, tuple(records), width=99, height=99, channels=1).total


def scales(of, boxes):
    return {of(height=box.h, width=box.w, channels=1) for box in boxes}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("m", [1, 2, 3, 4, 6])
def test_the_cost_of_all_regions_is_that_of_the_worst_neighbour(layout, m):
    """The largest loss of Laplace noise is Σ|t|/scale, Rényi of Gaussian noise Σt²/(2σ²)·α: exact."""
    boxes, block = LAYOUTS[layout]
    laplace = DPPix(epsilon=2, block=block, neighbourhood=m)
    gaussian = DPPixGaussian(rho=2, block=block, neighbourhood=m)
    moved = list(movements(boxes, block, m))
    found = scales(laplace.sum_scale, boxes)
    worst = max(sum(map(abs, t)) for t in moved) / min(found)
    total = stated(laplace, boxes).epsilon
    assert total == worst if len(found) == 1 else worst <= total == 2 * len(boxes)
    found = scales(gaussian.sum_variance, boxes)
    worst = max(sum(Fraction(x) ** 2 for x in t) for t in moved) / (2 * min(found))
    total = stated(gaussian, boxes).rho
    assert total == worst if len(found) == 1 else total == 2 * len(boxes)


def test_boxes_that_touch_in_one_pixel_add_up():
    method = DPPix(epsilon=2, block=2, neighbourhood=1)
    assert stated(method, [Box(0, 0, 3, 3), Box(3, 0, 3, 3)]).epsilon == 2
    assert stated(method, [Box(0, 0, 3, 3), Box(2, 2, 3, 3)]).epsilon == 4
    assert stated(method, [Box(0, 0, 3, 3), Box(9, 9, 3, 3), Box(11, 11, 3, 3)]).epsilon == 6


# Methods whose noise is more than one number: each group or block by itself, brute force, then all together

SQUARES = [np.array(values, np.uint8).reshape(2, 2, 1) for values in product((0, 1, 127, 255), repeat=4)]
APART = (np.array(SQUARES)[:, None] != np.array(SQUARES)[None]).sum(axis=(2, 3, 4))
SIZES = {
    "one": [{"height": 2, "width": 2, "channels": 1}],
    "two": [{"height": 2, "width": 2, "channels": 1}] * 2,
    "two of two": [{"height": 2, "width": 4, "channels": 1}] * 2,
}


def dearest(costs, groups, m):
    """The most that up to m changed pixels cost over independent groups, given every pair of 2 × 2 images."""
    of = [0.0, *(float(costs[t >= APART].max()) for t in range(1, 5))]
    best = [0.0] * (m + 1)
    for _ in range(groups):
        best = [max(best[left - t] + of[t] for t in range(min(4, left) + 1)) for left in range(m + 1)]
    return best[m]


def costs_of_flips(method, size):
    """The largest log-ratio of any two images of one group: a flip for every bit that differs."""
    bits = bit_planes.drawn_bits(method.bands(**size))
    each = np.array([np.log((2**64 - plane.flip) / plane.flip) for _, plane in bits])
    table = np.array(
        [bit_planes.truth(bits, bit_planes.coefficients(one[:, :, 0].tolist())) for one in SQUARES]
    )
    return np.array([(row != table) @ each for row in table])


def costs_of_coefficients(method, size):
    """ρ of any two images of one block."""
    made = method.plan(**size)
    bounds, inverse = made.transform.bounds, [0.0 if v is None else 1 / float(2 * v) for v in made.variances]
    moved = np.array(
        [np.clip(dct_gaussian.coefficients(method, i)[1], -bounds, bounds)[0] for i in SQUARES]
    ).astype(float)
    return ((moved[:, None] - moved[None]) ** 2) @ np.array(inverse)


@pytest.mark.parametrize("layout", SIZES)
@pytest.mark.parametrize("own", [1, 2, None])
@pytest.mark.parametrize("kind", ["bit-planes", "dct-gaussian"])
def test_what_the_same_noise_costs_under_other_relations_and_over_regions(kind, own, layout):
    """Never less than the dearest of all neighbours with four levels, and not much more."""
    sizes = SIZES[layout]
    if kind == "bit-planes":
        method, costs = BitPlanes(epsilon=30, neighbourhood=own), costs_of_flips
    else:
        method, costs = DCTGaussian(rho=2, block=2, neighbourhood=own), costs_of_coefficients
    pixels = sum(size["height"] * size["width"] for size in sizes)
    table = costs(method, sizes[0])
    for changed in (1, 2, 3, 4, 6, pixels, 2 * pixels, None):
        account = method.account_of(sizes, changed)
        stated = float(account.pure if kind == "bit-planes" else account.rho)
        worst = dearest(table, pixels // 4, min(changed or pixels, pixels))
        assert worst <= stated * (1 + 1e-9)
        assert worst >= 0.45 * stated
    assert method.account_of(sizes[:1], own) == method.account(**sizes[0])


@pytest.mark.parametrize("kind", ["bit-planes", "dct-gaussian"])
def test_regions_under_several_laws_have_no_account_together(kind):
    """A region with fewer groups than m has less noise than one with more."""
    method = (
        BitPlanes(epsilon=3, neighbourhood=4)
        if kind == "bit-planes"
        else DCTGaussian(rho=2, neighbourhood=64)
    )
    small, large = {"height": 2, "width": 2, "channels": 1}, {"height": 32, "width": 32, "channels": 1}
    assert method.account_of([small, large], 4) is None
    assert method.account_of([large, large], 4) is not None


def test_two_faces_under_one_neighbour_cost_what_one_does():
    boxes = [Box(0, 0, 32, 32), Box(40, 0, 32, 32), Box(0, 40, 32, 32)]
    assert stated(BitPlanes(epsilon=3, neighbourhood=4), boxes).epsilon == 3
    assert stated(DCTGaussian(rho=2, neighbourhood=16), boxes).rho < 6
    assert stated(DCTGaussian(rho=2), boxes).rho == 6
    near = [Box(0, 0, 32, 32), Box(31, 31, 32, 32)]
    assert stated(BitPlanes(epsilon=3, neighbourhood=4), near).epsilon == 6
