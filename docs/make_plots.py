"""Plots of the documentation, made by the code of this version."""

from __future__ import annotations

import io
import json
from math import exp
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from dpveil.mechanisms.pixel import DPPix, DPPixGaussian

RESULTS = Path(__file__).parent.parent / "benchmarks" / "results"
INK, SOFT, LINE, WARM = "#1c1e22", "#8a8d94", "#0b7a75", "#b02a20"
COLOURS = {
    "gallery": "#7d7d7d",
    "pca": INK,
    "gan": LINE,
    "mixture": WARM,
    "upconv": "#8a6d1f",
    "stylegan": "#5b3a8e",
}
MEASURES = {
    "apart": "sliced Wasserstein distance to real faces, levels",
    "found": "faces found",
    "gender": "gender as before",
}
PANELS = {
    "detector_training": ("AP", "faces found in clean photos, AP at IoU 0.5\n{} people of LFW", 0.0),
    "classifier_training": (
        "accuracy",
        "gender in clean photos, balanced accuracy\n{} photos of UTKFace",
        0.45,
    ),
}
"""Benchmark: its column, its title, and where its axis starts."""
FACE = {"height": 120, "width": 88, "channels": 3}


def axes(**settings: Any) -> tuple[Figure, Any]:
    figure = Figure(figsize=(7.6, 4.8), dpi=150, layout="constrained")
    plot = figure.add_subplot(**settings)
    plot.grid(color="#e4e2dc", lw=0.8)
    plot.spines[["top", "right"]].set_visible(False)
    return figure, plot


def png(figure: Figure) -> bytes:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", metadata={"Software": None})
    return buffer.getvalue()


def detection() -> bytes:
    """Return the detection bound by false-alarm rate at four budgets, as PNG."""
    figure, plot = axes(xlim=(0, 1), ylim=(0, 1))
    alarms = [(step / 400) ** 2 for step in range(401)]
    budgets = (("0.1", 0.35), ("1", 0.55), ("3", 0.75), ("6", 1.0))
    for epsilon, alpha in budgets:
        odds = exp(float(epsilon))  # Kairouz, Oh & Viswanath 2015
        bounds = [min(odds * alarm, 1 - (1 - alarm) / odds) for alarm in alarms]
        plot.plot(alarms, bounds, color=LINE, alpha=alpha, lw=2.4, label=f"epsilon = {epsilon}")
    plot.plot([0, 1], [0, 1], color=SOFT, lw=1.2, ls="--", label="guessing")
    plot.set_xlabel("false alarms: the other photo is taken for this one", color=INK)
    plot.set_ylabel("highest detection rate of any test", color=INK)
    plot.legend(loc="lower right", frameon=False)
    return png(figure)


def what_delta_buys() -> bytes:
    """Return the standard deviation of the noise by epsilon, for a face under any-image, as PNG."""
    figure, plot = axes(xscale="log", yscale="log")
    budgets = ("0.5", "1", "2", "5", "10", "20", "40")
    root = 2**0.5
    shown = (
        ("Laplace, pure", INK, [root * DPPix(epsilon=e, block=16).noise_scale(**FACE) for e in budgets]),
        ("Laplace, delta = 1e-6", WARM, [root * laplace(e) for e in budgets]),
        ("Gaussian, delta = 1e-6", LINE, [gaussian(e) for e in budgets]),
    )
    for name, colour, deviations in shown:
        plot.plot([float(e) for e in budgets], deviations, color=colour, lw=2.2, marker="o", ms=5, label=name)
    plot.axhline(128, color=SOFT, lw=1.2, ls="--")
    plot.text(0.5, 140, "half of the grey levels: above, hardly anything can be seen", color=SOFT)
    plot.set_xticks([float(e) for e in budgets], budgets)
    plot.minorticks_off()
    plot.set_xlabel("epsilon", color=INK)
    plot.set_ylabel("standard deviation in grey levels", color=INK)
    plot.set_title("88 × 120 RGB face, any-image, blocks of 16", color=INK, fontsize=12, loc="left")
    plot.legend(frameon=False)
    return png(figure)


def laplace(epsilon: str) -> float:
    return DPPix(epsilon=epsilon, delta="1e-6", block=16).noise_scale(**FACE)


def gaussian(epsilon: str) -> float:
    return DPPixGaussian(epsilon=epsilon, delta="1e-6", block=16).noise_scale(**FACE)


def quality() -> bytes:
    rows = json.loads((RESULTS / "decoded_quality.json").read_text(encoding="utf-8"))["rows"]
    figure = Figure(figsize=(10.5, 4.2), dpi=150, layout="constrained")
    panels = dict(zip(MEASURES, figure.subplots(1, len(MEASURES)), strict=True))
    real = next(row for row in rows if row["pictures"] == "real faces")
    for measure, plot in panels.items():
        plot.set_xscale("log")
        plot.grid(color="#e4e2dc", lw=0.8)
        plot.spines[["top", "right"]].set_visible(False)
        plot.set_title(MEASURES[measure], color=INK, fontsize=10, loc="left")
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
