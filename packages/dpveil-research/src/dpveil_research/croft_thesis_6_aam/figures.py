"""Figure 6.7: people named by ε and by k, one figure for each data set. No face is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from dpveil_research.croft_2022_faces.plan import PRIVATE, SAME
from dpveil_research.croft_thesis_6_aam.measure import DECODED, PHOTOS
from dpveil_research.croft_thesis_6_aam.plan import ALONE, GENERATOR, INSIDE
from dpveil_research.plots import COLOURS, INK, SOFT, canvas_of, label, legend, png
from dpveil_research.results import Row, columns

WORDS: Final = {
    INSIDE: "AAM, face in its photo",
    ALONE: "AAM, face on grey",
    GENERATOR: "generator, whole head",
}
AXES: Final = {PRIVATE: ("differential privacy", "ε of the metric promise"), SAME: ("k-same-m", "k")}
APART: Final = 1.06
"""Neighbouring curves are moved apart by this factor, so that none hides another."""


def figure(dataset: str, found: Sequence[Row]) -> bytes:
    """Return the figure of a data set as PNG. Raises `UsageError` without matplotlib."""
    own = [row for row in found if row["dataset"] == dataset]
    canvas, every = canvas_of(2, same=True)
    for axes, method in zip(every, AXES, strict=True):
        for colour, look in enumerate(WORDS):
            _curve(axes, [row for row in own if (row["look"], row["method"]) == (look, method)], colour)
        _levels(axes, own)
        axes.set_xscale("log")
        if method == SAME:
            _groups(axes, own)
        label(axes, AXES[method][0], AXES[method][1], "people named by the strongest attacker, %")
        axes.set_ylim(0, 103)
        legend(axes, ncols=2)
    about = f"Figure 6.7: {own[0]['people']} people of {dataset}, one photo each protected"
    canvas.suptitle(f"{about}; bars are 95 % intervals over people", color=INK, fontsize=11)
    return png(canvas)


def _curve(axes: Any, rows: Sequence[Row], colour: int) -> None:
    x = [float(row["x"]) * APART ** (colour - 1) for row in rows]
    mean, low, high = ([100 * float(row[name]) for row in rows] for name in columns("named"))
    away = [[m - a for m, a in zip(mean, low, strict=True)], [b - m for m, b in zip(mean, high, strict=True)]]
    style = {"color": COLOURS[colour], "lw": 1.4, "marker": "o", "ms": 3.5, "elinewidth": 0.8}
    axes.errorbar(x, mean, away, label=WORDS[rows[0]["look"]], **style)


def _levels(axes: Any, own: Sequence[Row]) -> None:
    (plain,) = (row for row in own if row["look"] == PHOTOS)
    axes.axhline(100 * float(plain["named"]), color=SOFT, lw=1.1, ls="-.", label="photos as they are")
    for colour, look in enumerate(WORDS):
        (row,) = (row for row in own if (row["look"], row["method"]) == (look, DECODED))
        level = 100 * float(row["named"])
        axes.axhline(level, color=COLOURS[colour], lw=1.0, ls="--", label=f"{WORDS[look]}, no noise")
    axes.axhline(100 / int(plain["people"]), color=SOFT, lw=1.1, ls=":", label="chance")


def _groups(axes: Any, own: Sequence[Row]) -> None:
    ticks = [int(row["x"]) for row in own if (row["look"], row["method"]) == (INSIDE, SAME)]
    axes.plot(ticks, [100 / k for k in ticks], color=INK, ls="--", lw=1.2, label="1/k")
    axes.set_xticks(ticks, [str(tick) for tick in ticks])
    axes.minorticks_off()
