"""Curves with their intervals, from the rows of a run; no photo is drawn."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import log10
from pathlib import Path
from typing import Any, Final

from PIL import Image

from dpveil.errors import UsageError
from dpveil_research.results import columns

PALETTE: Final = 128
"""Colours of a picture that is kept."""
INK: Final = "#1c1e22"
SOFT: Final = "#8a8d94"
DPI: Final = 110
WIDTH: Final = 1.8
"""Of a curve, in points."""
NEARBY: Final = 0.03
"""Points that lie nearer than this, in both axes together, share a label."""
GAP: Final = (24, 52)
"""Pixels between the columns and the rows of a grid of pictures."""
COLOURS: Final = ("#0b7a75", "#b02a20", "#2f4b9c", "#c98a1b", "#7a4fa3", "#4d4d4d", "#c2578a", "#6a9a3b")
MEASURES: Final = {
    "mse": "mean squared error (lower is better)",
    "ssim": "SSIM (higher is better)",
    "accuracy": "accuracy (higher is better)",
    "passed": "share of releases that pass for their eye",
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
OF_PHOTOS: Final = {"images": "photos", "people": "people"}
"""What columns of tables of photos count, as captions say it."""


@dataclass(frozen=True)
class Line:
    """One series with its colour; a series without `x` becomes a horizontal line."""

    series: str
    colour: int
    style: str | tuple[int, tuple[int, ...]] = "-"


@dataclass(frozen=True)
class Panel:
    """A measure by the varied parameter of a sweep, from `low` to `high`."""

    sweep: str
    measure: str
    xlabel: str
    lines: tuple[Line, ...]
    title: str = ""
    logx: bool = False
    logy: bool = False
    low: float = float("-inf")
    high: float = float("inf")
    more: str | None = None
    """Another sweep from which lines may come."""
    bands: bool = True
    """Whether intervals are drawn."""
    beside: bool = False
    """Whether settings stand beside the points, which then are not joined."""


@dataclass(frozen=True)
class Figure:
    """Panels side by side; `name` is the file's name without ending.

    `same` says whether they have one scale, as panels of one measure that are compared. The caption says how
    many of the words of `counted` the rows have in its columns.
    """

    name: str
    title: str
    panels: tuple[Panel, ...]
    same: bool = False
    counted: Mapping[str, str] = field(default_factory=dict)


class Drawing:
    """Rows of tables as the lines of panels, whose names are sweeps."""

    def __init__(self) -> None:
        self.table: list[Mapping[str, str]] = []
        self.lines: dict[str, list[Line]] = {}

    def add(
        self,
        sweep: str,
        line: Line,
        rows: Sequence[Mapping[str, str]],
        measure: str,
        *,
        x: str = "x",
        y: str = "",
        **wanted: str,
    ) -> None:
        """Add the rows that have the values `wanted`, by the columns x and y; without x, as a level line."""
        found = [row for row in rows if all(row[n] == v for n, v in wanted.items()) and row[y or measure]]
        for row in sorted(found, key=lambda row: float(row[x])) if x else found:
            values = [row.get(name, row[y or measure]) for name in columns(y or measure)]
            told = {"sweep": sweep, "series": line.series, "x": row[x] if x else "", "at": row.get("x", "")}
            self.table.append({**told, **dict(zip(columns(measure), values, strict=True))})
        if found:
            self.lines.setdefault(sweep, []).append(line)

    def level(self, sweep: str, line: Line, measure: str, value: float) -> None:
        """Add a level line."""
        self.add(sweep, line, [{measure: str(value)}], measure, x="")

    def panel(self, sweep: str, measure: str, xlabel: str, title: str, **how: Any) -> Panel:
        """Return the panel of a sweep."""
        return Panel(sweep, measure, xlabel, tuple(self.lines[sweep]), title, **how)


def renamed(figures: Sequence[Figure], name: str, own: Path | None) -> list[Figure]:
    """Return the figures with the name of a user's data set in place of this one in their titles."""
    return [replace(one, title=one.title.replace(name, own.name) if own else one.title) for one in figures]


def draw(figure: Figure, table: Sequence[Mapping[str, str]]) -> bytes:
    """Return the figure as PNG; bands are 95 % intervals. Raises `UsageError` without matplotlib."""
    canvas, every = canvas_of(len(figure.panels), same=figure.same)
    canvas.suptitle(_caption(figure, table), color=INK, fontsize=12)
    if figure.same and len({panel.xlabel for panel in figure.panels}) == 1:
        for axes in every[1:]:
            axes.sharex(every[0])
    for axes, panel in zip(every, figure.panels, strict=True):
        _panel(axes, panel, table, columns_of_legend=1 if len(every) > 2 and figure.same else 2)
    return png(canvas)


def _caption(figure: Figure, table: Sequence[Mapping[str, str]]) -> str:
    """Return the title, and below it how many photos, people or the like the drawn rows are of."""
    drawn = [row for row in table if any(_of(panel, row) for panel in figure.panels)]
    found = []
    for column, words in figure.counted.items():
        counts = sorted({int(row[column]) for row in drawn if row.get(column)})
        found.append(f"{' or '.join(map(str, counts))} {words}")
    bands = "; bands are 95 % intervals" if any(panel.bands for panel in figure.panels) else ""
    return f"{figure.title}\n{', '.join(found)}{bands}" if found else figure.title


def _of(panel: Panel, row: Mapping[str, str]) -> bool:
    return row["sweep"] in (panel.sweep, panel.more) and any(
        row["series"] == one.series for one in panel.lines
    )


def canvas_of(count: int, *, same: bool = False) -> tuple[Any, Sequence[Any]]:
    """Return an empty canvas and its panels side by side, of the same scale or not.

    Raises `UsageError` without matplotlib.
    """
    wide = 5.6 if count <= 2 else 4.2
    canvas = _canvas((wide * count * DPI, 5.4 * DPI))
    every = canvas.subplots(1, count, squeeze=False, sharey=same)[0]
    for axes in every:
        axes.grid(color="#e4e2dc", lw=0.8)
        axes.spines[["top", "right"]].set_visible(False)
    return canvas, every


def grid_of(rows: int, columns: int, *, side: int, title: str) -> tuple[Any, Sequence[Sequence[Any]]]:
    """Return an empty canvas and a grid of axes for pictures of about `side` pixels.

    Raises `UsageError` without matplotlib.
    """
    canvas = _canvas((columns * (side + GAP[0]), rows * (side + GAP[1]) + GAP[1]))
    canvas.suptitle(title, color=INK, fontsize=9, x=0.02, ha="left")
    grid = canvas.subplots(rows, columns, squeeze=False, subplot_kw={"xticks": [], "yticks": []})
    for axes in grid.flat:
        axes.spines[:].set_visible(False)
    return canvas, grid


def _canvas(pixels: tuple[float, float]) -> Any:
    try:
        from matplotlib.figure import Figure as Canvas  # half a second, and an extra
    except ImportError as error:
        raise UsageError("plots need matplotlib", hint="pip install 'dpveil[plots]'") from error
    return Canvas(figsize=(pixels[0] / DPI, pixels[1] / DPI), dpi=DPI, layout="constrained")


def label(axes: Any, title: str, x: str, y: str) -> None:
    """Set the titles of a panel and its axes."""
    axes.set_title(title, color=INK, fontsize=11, loc="left")
    axes.set_xlabel(x, color=INK)
    axes.set_ylabel(y, color=INK)


def legend(axes: Any, **style: Any) -> None:
    """Put the legend of a panel below it."""
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.14), frameon=False, **{"fontsize": 8.5, **style})


def png(canvas: Any) -> bytes:
    """Return a canvas as PNG of `PALETTE` colours, a third of the size of one of all."""
    drawn, small = io.BytesIO(), io.BytesIO()
    canvas.savefig(drawn, format="png", metadata={"Software": None})
    few = Image.open(drawn).convert("RGB").quantize(PALETTE, dither=Image.Dither.NONE)
    few.save(small, "PNG", optimize=True)
    return small.getvalue()


def _panel(axes: Any, panel: Panel, table: Sequence[Mapping[str, str]], *, columns_of_legend: int) -> None:
    if panel.logx:
        axes.set_xscale("log")
    if panel.logy:
        axes.set_yscale("log")
    curves = []
    for line in panel.lines:
        points = [
            tuple(float(row[name] or "nan") for name in ("x", *columns(panel.measure)))
            for row in table
            if _of(panel, row) and row["series"] == line.series
        ]
        curves.append([p for p in points if p[0] != p[0] or panel.low <= p[0] <= panel.high])
    for line, shown, width in zip(panel.lines, curves, widths(curves, log=panel.logy), strict=True):
        _line(axes, line, shown, 0 if panel.beside else width, bands=panel.bands)
    if panel.beside:
        _settings(axes, [row for row in table if _of(panel, row) and row["x"]], panel.measure)
    if panel.xlabel == "k":
        groups = sorted({point[0] for curve in curves for point in curve if point[0] == point[0]})
        axes.set_xticks(groups, [f"{k:g}" for k in groups])
        axes.minorticks_off()
    label(axes, panel.title, panel.xlabel, MEASURES[panel.measure])
    legend(axes, ncols=columns_of_legend, handlelength=3.2)


def _settings(axes: Any, rows: Sequence[Mapping[str, str]], measure: str) -> None:
    """Write settings beside points; those of near points of a series share one label."""
    near: dict[tuple[str, float, float], list[str]] = {}
    for row in rows:
        name, x, y = row["series"], float(row["x"]), float(row[measure])
        alike = (at for at in near if at[0] == name and abs(at[1] - x) + abs(at[2] - y) < NEARBY)
        near.setdefault(next(alike, (name, x, y)), []).append(row["at"])
    for (_, *at), those in near.items():
        words = ", ".join(those) if len(those) < 4 else f"{those[0]} to {those[-1]}"
        axes.annotate(words, at, fontsize=6.5, xytext=(4, 4), textcoords="offset points")


def widths(curves: Sequence[Sequence[tuple[float, ...]]], *, log: bool = False) -> list[float]:
    """Return the width of each curve of points (x, y, ...): one that later ones cover is wider than they are.

    A curve covers another if at three in four of its points they differ by 1 % of the range of all, or less.
    """
    ys = [_height(point[1], log=log) for curve in curves for point in curve]
    near = 0.01 * (max(ys) - min(ys)) if ys else 0.0
    found: list[float] = []
    for number, curve in enumerate(curves):
        over = 0
        for other in curves[number + 1 :]:
            at = {point[0]: _height(point[1], log=log) for point in other}
            alike = [abs(at[x] - _height(y, log=log)) <= near for x, y, *_ in curve if x in at]
            over += len(alike) > 0 and 4 * sum(alike) >= 3 * len(curve)
        found.append(WIDTH * (1 + 0.7 * over))
    return found


def _height(y: float, *, log: bool) -> float:
    return log10(y) if log and y > 0 else y


def _line(axes: Any, line: Line, points: Sequence[tuple[float, ...]], width: float, *, bands: bool) -> None:
    colour = COLOURS[line.colour % len(COLOURS)]
    if not points:
        raise UsageError(f"no row of the run is called {line.series!r}", hint="run the experiment again")
    if points[0][0] != points[0][0]:
        axes.axhline(points[0][1], color=SOFT, lw=1.2, ls=line.style, label=line.series)
        return
    x, mean, low, high = zip(*points, strict=True)
    if not width:
        away = [[abs(m - e) for m, e in zip(mean, end, strict=True)] for end in (low, high)]
        axes.errorbar(
            x, mean, away, ls="none", color=colour, marker="o", ms=3.5, elinewidth=0.6, label=line.series
        )
        return
    if bands:
        axes.fill_between(x, low, high, color=colour, alpha=0.15, lw=0)
    axes.plot(x, mean, color=colour, lw=width, ls=line.style, marker="o", ms=3.2, label=line.series)
