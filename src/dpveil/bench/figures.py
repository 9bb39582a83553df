"""Plots of the report, as SVG."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from typing import Any, Final

from dpveil.bench.league import Place

COLOURS: Final = ("#0b7a75", "#b3541e", "#5b4b9a", "#1f6fb2", "#a0225a", "#5d7a1f", "#8a6d1d", "#444a55")
MARKS: Final = "osD^vP*X"
FORMAL: Final = ("pure", "approximate", "zcdp", "metric")
INK: Final = "#1c1e22"


def frontier(places: Sequence[Place]) -> str | None:
    """Return the plot of risk against SSIM as base64 of an SVG; None without matplotlib."""
    try:
        import matplotlib as mpl
        from matplotlib.figure import Figure
    except ImportError:
        return None
    with mpl.rc_context({"svg.hashsalt": "dpveil", "svg.fonttype": "none", "font.family": "sans-serif"}):
        figure = Figure(figsize=(8.4, 5.2), layout="constrained")
        _draw(figure.add_subplot(), places)
        buffer = io.BytesIO()
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    return base64.b64encode(buffer.getvalue()).decode()


def _draw(axes: Any, places: Sequence[Place]) -> None:
    names = list(dict.fromkeys(place.method for place in places))
    for number, name in enumerate(names):
        own = sorted((place for place in places if place.method == name), key=lambda place: place.ssim)
        colour, mark = COLOURS[number % len(COLOURS)], MARKS[number % len(MARKS)]
        x, y = [place.ssim for place in own], [place.risk for place in own]
        wide = [[place.risk - place.low for place in own], [place.high - place.risk for place in own]]
        face = colour if own[0].kind in FORMAL else "white"
        axes.errorbar(x, y, yerr=wide, color=colour, lw=1, marker=mark, mfc=face, ms=6, capsize=2, label=name)
    axes.set_xlabel("SSIM: how much of the picture is left", color=INK)
    axes.set_ylabel("risk: share of people named", color=INK)
    axes.set_ylim(-0.02, 1.04)
    axes.grid(color="#e4e2dc", lw=0.8)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5))
