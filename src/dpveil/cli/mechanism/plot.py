"""The plot of `dpveil mechanism compare`: expected error over ε."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpveil.cli.curve import INK
from dpveil.errors import UnknownName, UsageError
from dpveil.io import write_together

if TYPE_CHECKING:
    from dpveil.numbers import Candidate

COLOURS = ["#0b7a75", "#b02a20", "#1c1e22", "#d08a1d", "#4a5fa5"]
COLOURS += ["#8a8d94", "#7b3f8c", "#5a8f29", "#c2557f", "#6b4f2a"]
MARKS = "osD^vP<>X*"


def draw_errors(found: list[list[Candidate]], title: str, path: Path, *, replace: bool = False) -> None:
    """Write a PNG with a line for each mechanism: expected absolute error over epsilon.

    `found` holds the candidates of each epsilon. Raises `UsageError` without matplotlib, `UnknownName` for
    another suffix, and `OutputError`, also if the file exists and `replace` is false.
    """
    if path.suffix.lower() != ".png":
        raise UnknownName("plot format", path.suffix or str(path), [".png"])
    write_together([(path, errors_png(found, title))], replace=replace)


def errors_png(found: list[list[Candidate]], title: str) -> bytes:
    """Return the plot as PNG; raises `UsageError` without matplotlib."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise UsageError("plots need matplotlib", hint="pip install 'dpveil[plots]'") from error
    figure = Figure(figsize=(7.6, 4.8), dpi=150, layout="constrained")
    axes = figure.add_subplot(xscale="log", yscale="log")
    names = sorted({one.name for at in found for one in at if one.utility})
    for place, name in enumerate(names):
        line = [
            (float(o.epsilon), o.utility.mean) for at in found for o in at if o.name == name and o.utility
        ]
        colour, mark = COLOURS[place % len(COLOURS)], MARKS[place % len(MARKS)]
        axes.plot(*zip(*line, strict=True), lw=1.8, label=name, color=colour, marker=mark, ms=4.5)
    _dress(axes, [float(at[0].epsilon) for at in found], title)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", metadata={"Software": None})
    return buffer.getvalue()


def _dress(axes: Any, ticks: list[float], title: str) -> None:
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.minorticks_off()
    axes.yaxis.set_major_formatter("{x:g}")
    axes.set_xlabel("epsilon", color=INK)
    axes.set_ylabel("expected absolute error", color=INK)
    axes.set_title(title, color=INK, fontsize=11, loc="left")
    axes.legend(frameon=False, fontsize=9)
    axes.grid(color="#e4e2dc", lw=0.8)
    axes.spines[["top", "right"]].set_visible(False)
