"""Figures: captions count what is drawn, covered curves are wider, panels have one scale if asked for."""

from __future__ import annotations

import pytest

from dpveil_research import plots
from dpveil_research.faceidp import farther
from dpveil_research.plots import WIDTH, Figure, Line, Panel, draw, widths

ROWS = [
    {"sweep": sweep, "series": series, "x": x, "n": n, "ssim": y, "ssim_low": y, "ssim_high": y}
    for sweep, series, n, points in (
        ("one", "a", "30", (("1", "0.2"), ("2", "0.3"))),
        ("one", "b", "395", (("1", "0.9"), ("4", "0.8"))),
        ("two", "a", "7", (("1", "0.1"), ("9", "0.1"))),
    )
    for x, y in points
]


def figure(*panels: Panel, same: bool = False) -> Figure:
    return Figure("f", "Title", panels, same=same, counted={"n": "pairs"})


def panel(sweep: str, *series: str, bands: bool = True) -> Panel:
    return Panel(sweep, "ssim", "x", tuple(Line(one, i) for i, one in enumerate(series)), bands=bands)


@pytest.mark.parametrize(
    ("panels", "caption"),
    [
        ((panel("one", "a"),), "Title\n30 pairs; bands are 95 % intervals"),
        ((panel("one", "a", "b"),), "Title\n30 or 395 pairs; bands are 95 % intervals"),
        ((panel("two", "a", bands=False),), "Title\n7 pairs"),
    ],
)
def test_a_caption_counts_the_rows_that_are_drawn_and_no_others(
    panels: tuple[Panel, ...], caption: str
) -> None:
    assert plots._caption(figure(*panels), ROWS) == caption
    assert draw(figure(*panels), ROWS).startswith(b"\x89PNG")


def test_curves_that_later_ones_cover_are_wider() -> None:
    low, high = [(1.0, 0.0), (2.0, 0.0), (3.0, 0.0)], [(1.0, 1.0), (2.0, 1.0), (3.0, 1.0)]
    near = [(x, 0.005) for x, _ in low]
    crossing = [(1.0, 0.0), (2.0, 0.0), (3.0, 0.5)]
    assert widths([low, high]) == [WIDTH, WIDTH]
    assert widths([low, near, high]) == [pytest.approx(1.7 * WIDTH), WIDTH, WIDTH]
    assert widths([low, near, low, high]) == [pytest.approx(w * WIDTH) for w in (2.4, 1.7, 1, 1)]
    assert widths([low, crossing, high]) == [WIDTH] * 3
    assert widths([]) == []


def test_what_noise_adds_is_taken_from_the_same_coordinate() -> None:
    rows = [
        {"sweep": sweep, "series": series, "x": x, "difference": y}
        for sweep, series, x, y in (
            ("codes", "original", "1", "5"),
            ("codes", "original", "2", "3"),
            ("embeddings", "original", "1", "9"),
            ("codes", "optimal", "1", "5.5"),
            ("codes", "optimal", "2", "2"),
            ("embeddings", "optimal", "1", "9.25"),
        )
    ]
    assert [float(row["farther"]) for row in farther(rows)] == [0, 0, 0, 0.5, -1, 0.25]
