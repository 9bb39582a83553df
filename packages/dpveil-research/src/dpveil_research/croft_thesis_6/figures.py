"""Figures 6.15 to 6.17 side by side. No face is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from dpveil_research.croft_thesis_6.plan import PRIVATE, SAME
from dpveil_research.plots import COLOURS, SOFT, canvas_of, label, legend, png
from dpveil_research.results import Row, columns

RISK: Final = "of releases named by the strongest attacker, %"
NAMES: Final = {PRIVATE: "differential privacy, ε beside", SAME: "k-same-m, k beside"}


def figure(rows: Sequence[Row]) -> bytes:
    """Return risk over ε, and SSIM and gender over risk, as PNG. Raises `UsageError` without matplotlib."""
    canvas, (left, middle, right) = canvas_of(3)
    own = [row for row in rows if row["method"] == PRIVATE]
    _curve(left, [float(row["x"]) for row in own], own, "named", 100, PRIVATE)
    for name, style in (("none", "-."), ("codec alone", "--")):
        at = next(row for row in rows if row["method"] == name)
        left.axhline(100 * float(at["named"]), color=SOFT, lw=1.2, ls=style, label=_words(name))
    left.axhline(100 / int(rows[0]["people"]), color=SOFT, lw=1.2, ls=":", label="chance")
    label(left, "Risk (figure 6.15)", "ε of the metric promise", RISK)
    for axes, measure, scale, title, words in (
        (middle, "ssim", 1, "Quality (figure 6.16)", "SSIM (higher is better)"),
        (right, "gender", 100, "Utility (figure 6.17)", "gender read as the person's, %"),
    ):
        for method in NAMES:
            own = [row for row in rows if row["method"] == method]
            risks = [100 * float(row["named"]) for row in own]
            _curve(axes, risks, own, measure, scale, method)
            _spread(axes, own, measure, scale, method)
        label(axes, title, RISK, words)
    for axes in (left, middle, right):
        legend(axes)
    return png(canvas)


def _words(name: str) -> str:
    return {"none": "photos as they are", "codec alone": "encoded and decoded"}[name]


def _curve(
    axes: Any, x: Sequence[float], rows: Sequence[Row], measure: str, scale: float, method: str
) -> None:
    colour = COLOURS[list(NAMES).index(method)]
    mean, low, high = ([scale * float(row[name]) for row in rows] for name in columns(measure))
    away = [[m - a for m, a in zip(mean, low, strict=True)], [b - m for m, b in zip(mean, high, strict=True)]]
    axes.errorbar(
        x, mean, away, color=colour, lw=1.4, marker="o", ms=3.5, elinewidth=0.7, label=NAMES[method]
    )


def _spread(axes: Any, rows: Sequence[Row], measure: str, scale: float, method: str) -> None:
    """Draw the intervals of the risk, and the setting beside each point."""
    colour = COLOURS[list(NAMES).index(method)]
    for row in rows:
        mean, low, high = (100 * float(row[name]) for name in columns("named"))
        y = scale * float(row[measure])
        axes.plot([low, high], [y, y], color=colour, lw=0.7)
        near = {"xytext": (3, 4 if method == PRIVATE else -10), "textcoords": "offset points"}
        axes.annotate(row["x"], (mean, y), fontsize=6.5, color=colour, **near)
