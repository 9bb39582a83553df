"""Li & Clifton's figure 8 anew: algorithm 2 as printed against its formula, and a run on made faces."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from made_codes import LENGTH, codecs, crops

from dpveil.mechanisms.latent.base import STEPS
from dpveil_research import li_clifton_2021 as paper
from dpveil_research.plots import draw


@pytest.mark.parametrize("epsilon", [Fraction(1, 3), Fraction(20)])
def test_as_printed_is_the_printed_scale_and_states_what_it_costs(epsilon):
    """Lap(S·w/ε) in steps of S/2^16 with w = 1/m, or up to 1/16 above; erratum E7."""
    codec = codecs()["pca"]
    built = paper.as_printed(epsilon, 10, LENGTH)
    printed = Fraction(STEPS, LENGTH) / epsilon
    assert all(printed <= scale <= printed * Fraction(17, 16) for scale in built.scales(codec.statistics))
    assert str(built.guarantee(codec.statistics)).startswith(f"{float(epsilon * LENGTH**2):g}"[:3])


@pytest.fixture(scope="module")
def rows():
    faces = crops(8, 1, seed=5)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(paper, "EACH", ("1/4", "64"))
        return paper.measure(
            {name: codecs()["dictionary" if "dict" in name else "pca"] for name in paper.SPACES},
            np.full((12, 12, 3), 128, np.uint8),
            faces,
        )


def value(rows, space, series, x, measure):
    [row] = [r for r in rows if (r["sweep"], r["series"], r["x"] or None) == (space, series, x)]
    return float(row[measure])


def test_a_run_has_every_line_of_its_figures(rows):
    for figure in paper.figures():
        assert draw(figure, rows).startswith(b"\x89PNG")
    assert len({(row["sweep"], row["series"], row["x"]) for row in rows}) == len(rows)
    assert {row["images"] for row in rows} == {"8"}


@pytest.mark.parametrize("space", list(paper.SPACES))
@pytest.mark.parametrize("clip", paper.CLIPS)
def test_much_budget_is_near_a_code_without_noise_and_little_is_not(rows, space, clip):
    still = value(rows, space, paper.series(paper.CODE, clip), None, "psnr")
    for mechanism in (paper.OURS, paper.OPTIMAL, paper.TRUNCATED):
        low, high = (
            value(rows, space, paper.series(mechanism, clip), x, "psnr") for x in ("1.5", f"{64 * LENGTH}")
        )
        assert high > still - 0.5
        assert low < high
    printed = value(rows, space, paper.series(paper.PRINTED, clip), "1.5", "psnr")
    assert printed > value(rows, space, paper.series(paper.OURS, clip), "1.5", "psnr")


def test_a_smaller_box_has_less_noise_and_loses_more(rows):
    for space in paper.SPACES:
        wide, narrow = (value(rows, space, paper.series(paper.CODE, c), None, "psnr") for c in (0, 40))
        assert wide > narrow
        wide, narrow = (value(rows, space, paper.series(paper.OURS, c), "1.5", "psnr") for c in (0, 40))
        assert narrow > wide
