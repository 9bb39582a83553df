"""Li & Clifton's figure 8 anew: algorithm 2 as printed against its formula, and a run on made faces."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from made_codes import LENGTH, codecs, crops

from dpveil.mechanisms.latent.base import STEPS
from dpveil_research import li_clifton_2021 as paper


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


def test_a_run_has_its_figures_and_budget_buys_what_a_code_without_noise_shows(rows):
    assert len(paper.figures(rows)) == len(paper.SPACES) + 1
    assert len({(row["sweep"], row["series"], row["x"]) for row in rows}) == len(rows)
    assert {row["images"] for row in rows} == {"8"}
    for space in paper.SPACES:
        still, ours = {}, {}
        for clip in paper.CLIPS:
            least, most = (
                {m: value(rows, space, paper.series(m, clip), x, "psnr") for m in paper.MECHANISMS}
                for x in ("1.5", f"{64 * LENGTH}")
            )
            still[clip] = value(rows, space, paper.series(paper.CODE, clip), None, "psnr")
            ours[clip] = least[paper.OURS]
            for mechanism in (paper.OURS, paper.OPTIMAL, paper.TRUNCATED):
                assert least[mechanism] < most[mechanism] > still[clip] - 0.5
            assert least[paper.PRINTED] > least[paper.OURS]
        assert still[0] > still[40], "a smaller box loses more"
        assert ours[0] < ours[40], "and has less noise"
