"""What docs/attacks.md says of the attackers' strength, on the figures that are kept."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
KEPT = ROOT / "benchmarks" / "results" / "attack_strength.json"
CHANCE = 1 / 40
SEVERAL = ("averaged(pixels)", "composed(pixels)")
PAPER = "network of Reilly & Fan"
SAMP = "DP-Samp, k = 48, m = 1, ε = 0.5"
BOUNDED = "DP-Pix, b = 16, any image, ε = 1"
Rates = dict[str, dict[str, tuple[float, float, float]]]


@pytest.fixture
def page() -> str:
    if not KEPT.is_file():
        pytest.skip("the benchmarks are not in this copy")
    return (ROOT / "docs" / "attacks.md").read_text(encoding="utf-8")


@pytest.fixture
def rates(page: str) -> Rates:
    rows = json.loads(KEPT.read_text(encoding="utf-8"))["rows"]
    return {row.pop("attack"): {name: rate for name, rate in row.items() if rate} for row in rows}


def test_networks_and_embeddings_were_run_on_every_setting(rates: Rates) -> None:
    settings = list(rates["pixels"])
    assert len(settings) == 8
    for name in ("network", "residual", "embedding"):
        assert list(rates[name]) == settings


def test_at_every_setting_of_the_paper_an_attack_names_more(rates: Rates, page: str) -> None:
    paper = rates.pop(PAPER)
    of_one = {name: found for name, found in rates.items() if name not in SEVERAL}
    assert len(paper) == 3
    for setting, stated in paper.items():
        assert max(found[setting][1] for found in of_one.values() if setting in found) > stated
    linear = [100 * rates[name][SAMP][0] for name in ("pixels", "restored(pixels)", "eigenfaces", "shown")]
    trained = [100 * rates[name][SAMP][0] for name in ("network", "residual")]
    assert max(linear) < 100 * paper[SAMP] < min(trained)
    told = f"linear attacks and `shown` name {min(linear):.0f} to {max(linear):.0f} %"
    assert f"{told}, `network` {trained[0]:.0f} % and `residual` {trained[1]:.0f} %" in page
    assert f"four releases name {100 * max(rates[name][SAMP][0] for name in SEVERAL):.0f} %" in page


def test_blur_and_mosaics_break_and_any_two_photos_do_not(rates: Rates) -> None:
    rates.pop(PAPER)
    for setting in ("nothing", "blur, σ = 8", "mosaic, b = 16"):
        assert max(found[setting][0] for found in rates.values() if setting in found) >= 0.97
    assert all(found[BOUNDED][1] <= CHANCE for found in rates.values() if BOUNDED in found)


def test_what_knows_clean_photos_alone_names_nobody_in_releases(rates: Rates, page: str) -> None:
    found = rates["embedding"]
    assert found["nothing"][0] == 1
    assert f"under blur {100 * found['blur, σ = 8'][0]:.1f} %" in page
    assert found["mosaic, b = 16"][0] == found["DP-Pix, b = 4, m = 1, ε = 0.5"][0] == 0
    assert f"names {100 * rates['eigenfaces']['Snow, δ = 0.1'][0]:.0f} % by" in page
