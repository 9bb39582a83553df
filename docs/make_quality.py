"""The plot of codecs by budget, from the recorded benchmark."""

from __future__ import annotations

import json
from pathlib import Path

from make_plots import WARM, png
from matplotlib.figure import Figure

from dpveil.cli.explain import INK, LINE, SOFT

RECORD = Path(__file__).parent.parent / "benchmarks" / "results" / "decoded_quality.json"
COLOURS = {
    "gallery": "#7d7d7d",
    "pca": INK,
    "gan": LINE,
    "mixture": WARM,
    "upconv": "#8a6d1f",
    "stylegan": "#5b3a8e",
}
PANELS = {
    "apart": "sliced Wasserstein distance to real faces, levels",
    "found": "faces found",
    "gender": "gender as before",
}


def quality() -> bytes:
    """Return three measures by budget for each codec, as PNG."""
    rows = json.loads(RECORD.read_text(encoding="utf-8"))["rows"]
    figure = Figure(figsize=(10.5, 4.2), dpi=150, layout="constrained")
    panels = dict(zip(PANELS, figure.subplots(1, len(PANELS)), strict=True))
    real = next(row for row in rows if row["pictures"] == "real faces")
    for measure, plot in panels.items():
        plot.set_xscale("log")
        plot.grid(color="#e4e2dc", lw=0.8)
        plot.spines[["top", "right"]].set_visible(False)
        plot.set_title(PANELS[measure], color=INK, fontsize=10, loc="left")
        plot.set_xlabel("epsilon, pure", color=INK)
        if measure != "gender":
            plot.axhline(real[measure][0], color=SOFT, lw=1.2, ls="--")
        for name, colour in COLOURS.items():
            own = [row for row in rows if row["pictures"] == name and isinstance(row["epsilon"], float)]
            if own:
                points = [row[measure] for row in own]
                middles = [middle for middle, _, _ in points]
                bars = [[m - low for m, low, _ in points], [high - m for m, _, high in points]]
                budgets = [row["epsilon"] for row in own]
                plot.errorbar(budgets, middles, bars, color=colour, lw=2, marker="o", ms=4, label=name)
    panels["apart"].set_ylim(bottom=0)
    panels["gender"].legend(frameon=False)
    return png(figure)
