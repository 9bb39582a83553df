"""Curves with 95 % intervals from the rows of a run, and sheets of pictures, by matplotlib."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from PIL import Image

from dpveil.errors import UsageError
from dpveil_research.results import columns, where

PALETTE: Final = 128  # colours of a picture that is kept
INK: Final = "#1c1e22"
SOFT: Final = "#8a8d94"
DPI: Final = 110
NEARBY: Final = 0.03  # points that lie nearer than this, in both axes together, share a label
COLOURS: Final = ("#0b7a75", "#b02a20", "#2f4b9c", "#c98a1b", "#7a4fa3", "#4d4d4d", "#c2578a", "#6a9a3b")
MEASURES: Final = {
    "mse": "mean squared error (lower is better)",
    "ssim": "SSIM (higher is better)",
    "accuracy": "accuracy (higher is better)",
    "named": "share of photos that are named (lower is more private)",
    "expression": "share of photos whose expression is read rightly",
    "cpu_ms": "processor time of one photo, ms",
    "error": "expected absolute error",
    "bayes": "expected absolute error, after Bayesian remapping",
    "psnr": "PSNR, dB (higher is better)",
    "frechet": "Fréchet distance (lower is better)",
    "epsilon": "ε (smaller says more)",
    "utility": "squared error (lower is better)",
    "taken": "share of pictures taken for A",
    "difference": "mean absolute difference of B and A",
    "farther": "the same, minus that without noise",
    "rate": "share that is named rightly",
    "gender": "share whose gender is read rightly",
    "gain": "difference of shares that are named",
}
"""Axis labels of the measures."""
Style = str | tuple[int, tuple[int, ...]]
Table = Sequence[Mapping[str, str]]


class Panel:
    """A measure by x: curves of rows of a table, and level lines."""

    def __init__(
        self,
        measure: str,
        xlabel: str,
        title: str = "",
        *,
        logx: bool = False,
        logy: bool = False,
        bands: bool = True,
        beside: bool = False,
    ) -> None:
        """`bands`: intervals are drawn; `beside`: settings stand beside points, which are not joined."""
        self.measure, self.xlabel, self.title = measure, xlabel, title
        self.scales = ("log" if logx else "linear", "log" if logy else "linear")
        self.bands, self.beside = bands, beside
        self.curves: list[tuple[str, int, Style, list[list[float]], list[str]]] = []

    def curve(
        self,
        label: str,
        rows: Table,
        colour: int | None = None,
        style: Style = "-",
        *,
        x: str = "x",
        y: str = "",
        **wanted: str,
    ) -> Panel:
        """Add the rows with the values `wanted`, by default the series of this name, by the columns x and y.

        A row without x becomes a level line.
        """
        names = columns(y or self.measure)
        found = [row for row in where(rows, **wanted or {"series": label}) if row[names[0]]]
        found = sorted(found, key=lambda row: float(row[x] or 0))
        points = [
            [float(row.get(n) or row[names[0]] if n != x else row[n] or "nan") for n in (x, *names)]
            for row in found
        ]
        if points:
            own = len(self.curves) if colour is None else colour
            self.curves.append((label, own, style, points, [row.get("x", "") for row in found]))
        return self

    def level(self, label: str, value: float | Table, style: Style = ":", **wanted: str) -> Panel:
        """Add a level line: a number, or the measure of the one row with these values."""
        rows = where(value, **wanted) if not isinstance(value, float | int) else [{self.measure: str(value)}]
        return self.curve(label, [{**row, "x": "", "series": label} for row in rows[:1]], 0, style)

    def draw(self, axes: Any, columns_of_legend: int) -> None:
        axes.set(xscale=self.scales[0], yscale=self.scales[1])
        for label, colour, style, points, names in self.curves:
            at, mean, low, high = np.array(points).T
            shown = COLOURS[colour % len(COLOURS)]
            if np.isnan(at[0]):
                axes.axhline(mean[0], color=SOFT, lw=1.2, ls=style, label=label)
            elif self.beside:
                look = {"ls": "none", "marker": "o", "ms": 3.5, "elinewidth": 0.6}
                axes.errorbar(at, mean, [mean - low, high - mean], color=shown, label=label, **look)
                _write_settings(axes, at, mean, names)
            else:
                if self.bands:
                    axes.fill_between(at, low, high, color=shown, alpha=0.15, lw=0)
                axes.plot(at, mean, color=shown, lw=1.8, ls=style, marker="o", ms=3.2, label=label)
        axes.set_title(self.title, color=INK, fontsize=11, loc="left")
        axes.set_xlabel(self.xlabel, color=INK)
        axes.set_ylabel(MEASURES[self.measure], color=INK)
        if not self.curves:
            return
        below = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.14), "frameon": False}
        axes.legend(**below, fontsize=8.5, ncols=columns_of_legend, handlelength=3.2)


def _write_settings(axes: Any, x: np.ndarray, y: np.ndarray, names: Sequence[str]) -> None:
    near: dict[tuple[float, float], list[str]] = {}
    for *at, name in zip(x, y, names, strict=True):
        alike = (other for other in near if abs(other[0] - at[0]) + abs(other[1] - at[1]) < NEARBY)
        near.setdefault(next(alike, (at[0], at[1])), []).append(name)
    for place, those in near.items():
        words = ", ".join(those) if len(those) < 4 else f"{those[0]} to {those[-1]}"
        axes.annotate(words, place, fontsize=6.5, xytext=(4, 4), textcoords="offset points")


def figure(title: str, *panels: Panel, same: bool = False) -> bytes:
    """Return panels side by side, `same` on one scale, as PNG. Raises `UsageError` without matplotlib."""
    canvas, every = canvas_of(len(panels), same=same)
    canvas.suptitle(title, color=INK, fontsize=12)
    if same and len({panel.xlabel for panel in panels}) == 1:
        for axes in every[1:]:
            axes.sharex(every[0])
    for axes, panel in zip(every, panels, strict=True):
        panel.draw(axes, 1 if len(every) > 2 and same else 2)
    return png(canvas)


def canvas_of(count: int, *, same: bool = False) -> tuple[Any, Sequence[Any]]:
    """Return an empty canvas and its axes side by side. Raises `UsageError` without matplotlib."""
    canvas = _canvas(((5.6 if count <= 2 else 4.2) * count * DPI, 5.4 * DPI))
    every = canvas.subplots(1, count, squeeze=False, sharey=same)[0]
    for axes in every:
        axes.grid(color="#e4e2dc", lw=0.8)
        axes.spines[["top", "right"]].set_visible(False)
    return canvas, every


def sheet(rows: Sequence[Sequence[tuple[np.ndarray, str, str]]], title: str, side: int) -> bytes:
    """Return a grid of pictures of about `side` pixels, each with words above and below, as PNG.

    Raises `UsageError` without matplotlib.
    """
    canvas = _canvas((len(rows[0]) * (side + 24), len(rows) * (side + 52) + 52))
    canvas.suptitle(title, color=INK, fontsize=9, x=0.02, ha="left")
    grid = canvas.subplots(len(rows), len(rows[0]), squeeze=False, subplot_kw={"xticks": [], "yticks": []})
    for axes, (picture, above, below) in zip(grid.flat, (tile for row in rows for tile in row), strict=True):
        axes.spines[:].set_visible(False)
        axes.imshow(picture, interpolation="nearest")
        axes.set_title(above, color=INK, fontsize=8)
        axes.set_xlabel(below, color=SOFT, fontsize=7)
    return png(canvas)


def _canvas(pixels: tuple[float, float]) -> Any:
    try:
        from matplotlib.figure import Figure  # half a second, and an extra
    except ImportError as error:
        raise UsageError("plots need matplotlib", hint="pip install 'dpveil[plots]'") from error
    return Figure(figsize=(pixels[0] / DPI, pixels[1] / DPI), dpi=DPI, layout="constrained")


def png(canvas: Any) -> bytes:
    drawn, small = io.BytesIO(), io.BytesIO()
    canvas.savefig(drawn, format="png", metadata={"Software": None})
    few = Image.open(drawn).convert("RGB").quantize(PALETTE, dither=Image.Dither.NONE)
    few.save(small, "PNG", optimize=True)
    return small.getvalue()
