"""Disjoint regions as one release: brute force over all neighbours of tiny photos with some regions."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from dpveil.core.certificate import RegionRecord
from dpveil.core.region import Box
from dpveil.mechanisms.pixel import DPPix, DPPixGaussian
from dpveil.mechanisms.pixel.cells import cell_sums
from dpveil.promise import composition, promise

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
    records = [RegionRecord(f"box {n}", box) for n, box in enumerate(boxes)]
    size = {"width": 99, "height": 99, "channels": 1}
    return composition(method, records, [promise(method, record, **size) for record in records], 1)


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
