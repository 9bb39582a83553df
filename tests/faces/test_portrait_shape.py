"""Portraits of narrow photos: memory does not grow with the aspect ratio, and no pixel changes by that."""

import tracemalloc

import numpy as np
import pytest

from dpveil.faces import portrait_placement

CROP = np.random.default_rng(3).integers(0, 256, (64, 64, 3)).astype(np.uint8)
MOST_BYTES = 8_000_000


@pytest.mark.parametrize("shape", [(40, 400, 3), (401, 40, 3), (200, 901, 1), (5, 300, 3), (64, 64, 3)])
def test_lines_that_repeat_are_what_would_have_been_computed(monkeypatch, shape):
    shown = portrait_placement.extend_crop_to_size(CROP, shape)
    monkeypatch.setattr(portrait_placement, "REACH", 1e9)
    assert shown.shape == shape
    apart = np.abs(shown.astype(int) - portrait_placement.extend_crop_to_size(CROP, shape))
    assert apart.max() <= 4  # OpenCV rounds places to 1/32 of a pixel, and counts them from the border


@pytest.mark.parametrize("shape", [(1, 30_000, 3), (100_000, 1, 1)])
def test_a_line_of_pixels_takes_little_memory_and_shows_the_crop_in_its_middle(shape):
    tracemalloc.start()
    shown = portrait_placement.extend_crop_to_size(CROP, shape)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (shown.shape, peak < MOST_BYTES) == (shape, True)
    line = shown.reshape(max(shape), -1).astype(int)
    assert (line[: len(line) // 2 - 9] == line[0]).all()
    assert (line[len(line) // 2 + 9 :] == line[-1]).all()
