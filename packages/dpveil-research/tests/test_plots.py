"""Plots: what a panel takes from a table, and that everything of it is drawn."""

from __future__ import annotations

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
