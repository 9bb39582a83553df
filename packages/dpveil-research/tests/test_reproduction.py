"""The papers' experiments: runs on tiny trees, intervals against simulation, published laws against ours."""

from __future__ import annotations

import dataclasses
from functools import partial

import numpy as np
import pytest
from kept_tables import FOLDER, read
from PIL import Image
from scipy.stats import chisquare

from dpveil.mechanisms.pixel import DPPix, SSIMExponential
from dpveil.mechanisms.pixel.ssim.quality import shown_levels
from dpveil.noise.bits import SeededBits
from dpveil_research.__main__ import GRIDS, ON_DATA, main
from dpveil_research.data import read_pictures
from dpveil_research.grid import measure, run
from dpveil_research.published import PublishedDPPix, PublishedSSIM, window_ssim
from dpveil_research.results import clustered_mean

TINY = 1e-9
"""The highest probability with which a test of a law may fail by chance; bits are seeded, so none does."""
SIZES = {"reilly-fan-2021": (20, 26), "croft-2022": (48, 48)}


def levels(shape, stream=""):
    words = SeededBits(5, stream).words(int(np.prod(shape)))
    return (words >> np.uint64(56)).astype(np.uint8).reshape(shape)


def tree(folder, experiment, people=3, each=2):
    """Write a data set of the experiment's layout with levels that nobody has seen."""
    data = GRIDS[experiment].dataset
    for person in range(people):
        home = folder / data.folder / f"p{person}"
        home.mkdir(parents=True)
        for number in range(each):
            coarse = levels((6, 8, len(data.mode)), f"{person} {number}").squeeze()
            Image.fromarray(coarse).resize(SIZES[experiment]).save(home / f"{number}.png")
    return folder


def thinned(experiment):
    """Return the experiment with the first and the last point of every series."""
    series = {}
    for setting in experiment.settings:
        series.setdefault((setting.sweep, setting.series), []).append(setting)
    ends = tuple(setting for points in series.values() for setting in dict.fromkeys((points[0], points[-1])))
    return dataclasses.replace(experiment, settings=ends)


# The runs


@pytest.mark.parametrize("name", SIZES)
def test_an_experiment_runs_on_a_tiny_tree_and_writes_tables_and_plots(name, tmp_path, capsys, monkeypatch):
    tree(tmp_path, name)
    experiment = thinned(GRIDS[name])
    small = dataclasses.replace(experiment.dataset, size=SIZES[name][::-1])  # the paper's takes minutes
    experiment = dataclasses.replace(experiment, dataset=small)
    monkeypatch.setitem(ON_DATA, name, partial(measure, experiment))
    assert main([name, "--data", str(tmp_path), "--out", str(tmp_path / "out"), "--count", "2"]) == 0
    out = tmp_path / "out" / name
    kept = {path.name for path in (FOLDER / name).iterdir()}
    assert {path.name for path in out.iterdir()} == kept
    results = read((out / "results.csv").read_bytes())
    assert len(results) == len(experiment.settings)
    assert {row["images"] for row in results} == {row["people"] for row in results} == {"2"}
    assert all(float(row["mse_low"]) <= float(row["mse"]) <= float(row["mse_high"]) for row in results)
    differences = read((out / "differences.csv").read_bytes())
    contrasts = {(row["sweep"], row["first"], row["second"]) for row in differences}
    assert contrasts == set(experiment.contrasts)
    assert capsys.readouterr().out.count("wrote ") == len(kept)


def test_numbers_repeat_whatever_else_is_run(tmp_path):
    experiment = GRIDS["reilly-fan-2021"]
    pictures = list(read_pictures(experiment.dataset, tree(tmp_path, experiment.name), 3))
    some = [setting for setting in experiment.settings if setting.x in ("4", "0.5", "")]
    whole, _ = run(some, pictures, seed=3)
    for setting in some[::5]:
        alone, _ = run([setting], pictures[1:], seed=3)
        assert np.array_equal(alone[setting][:, :2], whole[setting][1:, :2])
    twin = dataclasses.replace(pictures[0], name="twin")
    both, _ = run(some[:1], [pictures[0], twin], seed=3)
    assert both[some[0]][0, 0] != both[some[0]][1, 0]
    other, _ = run(some[:1], pictures, seed=4)
    assert not np.array_equal(other[some[0]][:, 0], whole[some[0]][:, 0])


# The intervals


def test_interval_covers_the_mean_of_alike_photos():
    """19 of 20 intervals of 40 people × 2 photos cover 0: of 1 200, within 6.1 deviations of that (1e-9)."""
    words = SeededBits(8).words(1200 * 120) / 2.0**64 - 0.5
    people, own = words[: 1200 * 40].reshape(1200, 40), words[1200 * 40 :].reshape(1200, 40, 2)
    values = (3 * people[:, :, None] + own).reshape(1200, 80)
    names = [str(i // 2) for i in range(80)]

    def coverage(labels):
        ends = [clustered_mean(row, labels)[1:] for row in values]
        return np.mean([low <= 0 <= high for low, high in ends])

    assert coverage(names) == pytest.approx(0.95, abs=0.0384)
    assert coverage([str(i) for i in range(80)]) < 0.9116


# The published laws


def test_published_dp_pix_is_ours_where_blocks_divide():
    image = levels((32, 48))
    one, other = (m(epsilon=2, block=8, neighbourhood=3) for m in (PublishedDPPix, DPPix))
    assert np.array_equal(*(m.release(image, bits=SeededBits(4)) for m in (one, other)))


def test_published_dp_pix_gives_small_cells_the_noise_of_large_ones():
    image = np.full((9, 8 * 3000), 128, np.uint8)
    given = {"epsilon": 2, "block": 8, "neighbourhood": 1}
    spreads = []
    for method in (PublishedDPPix(**given), DPPix(**given)):
        shown = method.release(image, bits=SeededBits(6))[:, ::8].astype(float)
        spreads.append(shown[8].std() / shown[0].std())
    assert spreads[0] == pytest.approx(1, abs=0.18)  # 6.1 deviations
    assert spreads[1] > 6  # one scale on sums, and an eighth of the area: 8 times


def law_of_similarity(window, exponent, edges):
    """Return how likely SSIM lies between the edges, of all 4^9 outputs with P(y) ∝ exp(ε′·SSIM)."""
    grid = np.indices((4,) * 9).reshape(9, -1).T
    outputs = shown_levels(4)[grid].reshape(-1, 3, 1)
    true = np.tile(window.reshape(3, 3, 1), (len(outputs) // 3, 1, 1))
    near = window_ssim(true, outputs).reshape(-1)
    weights = np.exp(exponent * near)
    return np.histogram(near, edges, weights=weights)[0] / weights.sum()


@pytest.mark.parametrize("clip", [False, True])
def test_published_ssim_has_the_printed_law(clip):
    """Chi-square over six intervals of SSIM at 10 000 windows; clipped draws are rejected as unclipped."""
    window = np.array([[20, 60, 90], [120, 200, 30], [255, 10, 140]], np.uint8)
    image = np.tile(window, (100, 100))
    exponent = 3
    method = PublishedSSIM(epsilon=2 * exponent * 10_000, block=1, clip=clip)
    drawn = method.release(image, bits=SeededBits(11))[:, :, None]
    near = window_ssim(image[:, :, None], drawn).reshape(-1)
    edges = np.array([-1, -0.3, -0.1, 0, 0.2, 0.5, 1.0])
    expected = 10_000 * law_of_similarity(window, exponent, edges)
    fit = chisquare(np.histogram(near, edges)[0], expected)
    assert fit.pvalue < TINY**2 if clip else fit.pvalue > TINY


def test_published_ssim_leaves_what_windows_do_not_fill_to_laplace():
    image = levels((35, 44, 3))  # 9 × 11 cells of 4 pixels, of which 9 × 9 are windows
    given = {"epsilon": 10**6, "block": 4}
    shown = PublishedSSIM(**given).release(image, bits=SeededBits(2))
    alone = DPPix(**given).release(image, bits=SeededBits(2))
    assert np.array_equal(shown[:, 36:], alone[:, 36:])
    assert set(np.unique(shown[:, :36])) <= set(shown_levels(4))
    small = PublishedSSIM(**given).release(image[:8], bits=SeededBits(2))
    assert np.array_equal(small, DPPix(**given).release(image[:8], bits=SeededBits(2)))


def test_published_window_budget_and_laplace_remainder_add_to_epsilon():
    """Erratum E2 counts windows of a padded grid; the paper's own remainder of Laplace noise adds up."""
    side, block, channels, epsilon = 128, 8, 3, 1000
    cells = side // block
    inside = cells // 3 * 3
    exponent = SSIMExponential(epsilon=epsilon * inside**2 / cells**2).exponent(
        height=inside, width=inside, channels=channels
    )
    assert exponent == pytest.approx(epsilon * 9 * block**2 / (2 * side**2 * channels))
    of_windows = 2 * exponent * (inside // 3) ** 2 * channels
    scale = DPPix(epsilon=epsilon, block=block).noise_scale(height=side, width=side, channels=channels)
    of_cells = (cells**2 - inside**2) * channels * 255 / scale
    assert float(of_windows) + of_cells == pytest.approx(epsilon)
    padded = SSIMExponential(epsilon=epsilon, block=block).windows(height=side, width=side, channels=channels)
    assert float(2 * exponent * padded) == pytest.approx(1.2656 * epsilon, rel=1e-4)
