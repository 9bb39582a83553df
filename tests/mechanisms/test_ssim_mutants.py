"""Mutants of ssim-exponential on larger images than the audit tries: each of them overspends."""

import numpy as np
import pytest

from dpveil.audit.pixel.methods.ssim_exponential import AUDIT
from dpveil.mechanisms.pixel import SSIMExponential

ERRATUM = np.array([[[141, 73], [73, 0]], [[1, 93], [94, 192]]], np.uint8)[..., None]


def simple(*shape):
    """Flat images, checks, and one pixel that is unlike the others."""
    checks = (np.indices(shape)[:2].sum(axis=0) % 2 * 255).astype(np.uint8)
    dots = [np.full(shape, level, np.uint8) for level in (0, 255)]
    dots[0][-1, -1], dots[1][0, 0] = 255, 0
    return np.stack(
        [*(np.full(shape, level, np.uint8) for level in (0, 128, 255)), checks, 255 - checks, *dots]
    )


CASES = {
    "quality without the clip": (SSIMExponential(epsilon=12, window=2), ERRATUM),
    "windows counted as n·c/p²": (SSIMExponential(epsilon=10, window=2, levels=2), simple(1, 3, 1)),
    "factor 2 dropped": (SSIMExponential(epsilon=10, window=2, levels=2), simple(2, 2, 1)),
    "padding outside the budget": (SSIMExponential(epsilon=10, window=2, levels=2), simple(3, 3, 1)),
    "channels not counted": (SSIMExponential(epsilon=10, window=2, levels=2), simple(2, 2, 3)),
}


def largest_loss(version, method, images):
    pairs = np.array([(i, j) for i in range(len(images)) for j in range(len(images)) if i != j])
    return version.distribution(method, images).largest_loss(pairs)


@pytest.mark.parametrize("mutant", AUDIT.mutants, ids=lambda mutant: mutant.name)
def test_every_mutant_costs_more_than_it_promises_and_the_method_does_not(mutant):
    method, images = CASES[mutant.name]
    promised = float(
        method.guarantee(**dict(zip(("height", "width", "channels"), images.shape[1:], strict=True))).epsilon
    )
    assert largest_loss(AUDIT.intact, method, images) <= promised * (1 + 1e-12)
    assert largest_loss(mutant, method, images) > promised
