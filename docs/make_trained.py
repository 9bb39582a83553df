"""The plot of models trained on releases, from the recorded benchmarks."""

from __future__ import annotations

import json
from pathlib import Path

from make_plots import WARM, png
from matplotlib.figure import Figure

from dpveil.cli.explain import INK, LINE, SOFT

RESULTS = Path(__file__).parent.parent / "benchmarks" / "results"
PANELS = {
    "detector_training": ("AP", "faces found in clean photos, AP at IoU 0.5\n{} people of LFW", 0.0),
    "classifier_training": (
        "accuracy",
        "gender in clean photos, balanced accuracy\n{} photos of UTKFace",
        0.45,
    ),
}
"""Benchmark: its column, its title, and where its axis starts."""


def trained() -> bytes:
    """Return what models reach in clean photos, by what they were trained on, with intervals, as PNG."""
    figure = Figure(figsize=(10.5, 3.6), dpi=150, layout="constrained")
    for plot, (name, (column, title, floor)) in zip(
        figure.subplots(1, 2, sharey=True), PANELS.items(), strict=True
    ):
        rows = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))["rows"]
        names, figures = ([row[key] for row in rows] for key in ("trained on", column))
        for place, (middle, low, high) in enumerate(figures):
            bars = [[middle - low], [high - middle]]
            colour = WARM if names[place] == "clean" else LINE
            plot.errorbar([middle], [place], xerr=bars, color=colour, marker="o", ms=5, lw=2)
        plot.axvline(figures[0][0], color=SOFT, lw=1, ls="--")
        plot.set_yticks(range(len(names)), names, color=INK)
        plot.set_xlim(floor, 1)
        plot.grid(axis="x", color="#e4e2dc", lw=0.8)
        plot.spines[["top", "right"]].set_visible(False)
        plot.set_title(title.format(rows[0]["tested"]), color=INK, fontsize=10, loc="left")
    plot.invert_yaxis()  # shared by both
    return png(figure)
