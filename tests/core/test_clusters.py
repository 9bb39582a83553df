"""k-means against groups that are far apart."""

import numpy as np
import pytest

from dpveil.metrics.picture_sets import clusters, squares


@pytest.mark.parametrize("uniform", [[0.1, 0.5, 0.5], [0.99, 0.001, 0.999]])
def test_clusters_find_groups_that_are_apart(uniform):
    rows = np.concatenate([np.random.default_rng(n).normal(20 * n, 1, (50, 3)) for n in range(3)])
    centres, chosen = clusters(rows, np.array(uniform))
    assert sorted(np.bincount(chosen).tolist()) == [50, 50, 50]
    assert np.allclose(np.sort(centres[:, 0]), [0, 20, 40], atol=1)
    assert np.allclose(
        centres[chosen], np.repeat([rows[:50].mean(0), rows[50:100].mean(0), rows[100:].mean(0)], 50, 0)
    )


def test_squares_are_squared_distances():
    rows, centres = np.random.default_rng(1).normal(size=(2, 7, 3))
    expected = ((rows[:, None] - centres) ** 2).sum(axis=2)
    assert np.allclose(squares(rows, centres), expected, atol=1e-12)
    assert (squares(rows + 1e8, rows + 1e8) >= 0).all()
