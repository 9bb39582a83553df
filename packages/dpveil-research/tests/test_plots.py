"""Plots: what a panel takes from a table, and that everything of it is drawn."""

from __future__ import annotations

import pytest
from kept_tables import kept_rows

from dpveil_research import croft_2022_faces, faceidp, li_clifton_gan, reilly_fan_2021
from dpveil_research.plots import Panel, figure

ROWS = [
    {"series": series, "x": x, "ssim": y, "ssim_low": "0", "ssim_high": "1", "error": y}
    for series, x, y in (("a", "10", "0.3"), ("a", "9", "0.2"), ("a", "11", ""), ("b", "", "0.8"))
]


def test_a_curve_has_the_rows_of_its_series_by_x_and_a_constant_is_level() -> None:
    panel = Panel("ssim", "x", logx=True).curve("a", ROWS).curve("of b", ROWS, series="b").curve("c", ROWS)
    panel.level("b", ROWS, series="b").level("chance", 0.5).curve("a, error", ROWS, y="error", series="a")
    shown = {label: [point[:2] for point in points] for label, _, _, points, _ in panel.curves}
    assert shown.pop("a") == shown.pop("a, error") == [[9, 0.2], [10, 0.3]]
    assert {label: at[1] for label, [at] in shown.items()} == {"of b": 0.8, "b": 0.8, "chance": 0.5}
    beside = Panel("ssim", "x", beside=True).curve("a", ROWS)
    assert figure("title", panel, beside, same=True).startswith(b"\x89PNG")


SHOWN = {  # the measure of each panel, its scales, and how many curves and points it has
    "figure-5.png": "named log linear 5 13, named log linear 5 13",
    "figure-7.png": "gender linear linear 3 11, gender linear linear 3 11",
    "figure-10.png": "named log linear 5 13, gain log linear 2 6",
    "figure-11.png": "named log linear 2 10, named log linear 3 15, gain linear linear 3 11",
    "figure-13.png": "epsilon log log 7 62, utility log log 7 65",
    "theorem-6-1.png": "epsilon log log 6 54",
    "recognised.png": "taken log linear 5 35, taken log linear 5 35",
    "figure-9-12.png": "difference linear linear 1 100, farther linear linear 3 300, "
    "difference linear linear 1 128, farther linear linear 3 384",
    "figure-8.png": "ssim log linear 4 32, psnr log linear 4 32, frechet log linear 5 33",
    "codes.png": "ssim log linear 3 24, psnr log linear 3 24",
    "figure-3ab.png": "mse linear log 6 61, ssim linear linear 6 61",
    "figure-5-6.png": "mse linear log 3 19, ssim linear linear 3 19",
    "figure-7-dp-pix.png": "mse log log 6 46, ssim log linear 6 46",
    "table-1.png": "mse log log 6 36, ssim log linear 6 36",
}


def test_figures_show_the_kept_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    def told(title: str, *panels: Panel, same: bool = False) -> str:
        counts = [(len(panel.curves), sum(len(points) for *_, points, _ in panel.curves)) for panel in panels]
        both = zip(panels, counts, strict=True)
        return ", ".join(" ".join(map(str, (panel.measure, *panel.scales, *count))) for panel, count in both)

    for module in (croft_2022_faces, faceidp, li_clifton_gan, reilly_fan_2021):
        monkeypatch.setattr(module, "figure", told)
    faces, gan, iris = "croft-2022-faces", "li-clifton-2021-gan", reilly_fan_2021.IRIS
    four = ("budgets", "utilities", "recognised", "differences")
    made: dict[str, object] = {
        **faceidp.figures({name: kept_rows("faceidp", name) for name in four}, "codes"),
        **croft_2022_faces.figures(kept_rows(faces), kept_rows(faces, "verdicts")),
        **li_clifton_gan.figures(kept_rows(gan)),
        **iris.figures(kept_rows(iris.name), "eyes"),
    }
    assert {name: made[name] for name in SHOWN} == SHOWN
