"""The law of a whole release, draw by draw, over pairs of images; and mutants, each of which overspends."""

import numpy as np
import pytest
from ssim_law import MUTANTS, law

from dpveil.audit.fit import fit
from dpveil.audit.laws import finite_law
from dpveil.audit.product import Part, product_law
from dpveil.mechanisms.pixel import SSIMExponential
from dpveil.noise.bits import SeededBits

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


def release_law(written, method, images):
    draws = [written(method, image) for image in images]
    parts = [Part(np.array(places, np.int64), looks) for places, looks, _ in draws[0]]
    rows = [np.stack([draw[j][2] for draw in draws]) for j in range(len(parts))]
    return product_law(parts, rows)


def largest_loss(written, method, images):
    pairs = np.array([(i, j) for i in range(len(images)) for j in range(len(images)) if i != j])
    return release_law(written, method, images).largest_loss(pairs)


@pytest.mark.parametrize("name", MUTANTS)
def test_every_mutant_costs_more_than_it_promises_and_the_method_does_not(name):
    method, images = CASES[name]
    promised = float(
        method.guarantee(**dict(zip(("height", "width", "channels"), images.shape[1:], strict=True))).epsilon
    )
    assert largest_loss(law, method, images) <= promised * (1 + 1e-12)
    assert largest_loss(MUTANTS[name], method, images) > promised


def test_releases_follow_the_written_law_window_by_window():
    """Ragged cells, padded windows, three channels: every draw of 2 000 releases, α = 1e-9 each."""
    method = SSIMExponential(epsilon=70, block=2, window=2, levels=2)
    image = (np.arange(5 * 7 * 3) * 83 % 256).astype(np.uint8).reshape(5, 7, 3)
    source = SeededBits(12)
    written = law(method, image)
    releases = np.stack([method.release(image, bits=source) for _ in range(2_000)])
    assert len(written) == method.windows(height=5, width=7, channels=3) == 12
    for places, looks, chances in written:
        rows, columns, channels = np.array(places).T
        alike, outcome = np.unique(looks, axis=0, return_inverse=True)
        merged = finite_law(np.bincount(outcome.ravel(), chances))
        seen = {row.tobytes(): number for number, row in enumerate(alike)}
        drawn = np.array([seen[row.tobytes()] for row in releases[:, rows, columns, channels]])
        assert not fit(drawn, merged).rejected
