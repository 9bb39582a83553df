"""The plot of `dpveil mechanism compare`: expected error over ε."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpveil.cli.plots import label, write_plot

if TYPE_CHECKING:
    from dpveil.numbers import Candidate

COLOURS = ["#0b7a75", "#b02a20", "#1c1e22", "#d08a1d", "#4a5fa5"]
COLOURS += ["#8a8d94", "#7b3f8c", "#5a8f29", "#c2557f", "#6b4f2a"]
MARKS = "osD^vP<>X*"


def draw_errors(found: list[list[Candidate]], title: str, path: Path, *, replace: bool = False) -> None:
    """Write a PNG with a line for each mechanism: expected absolute error over epsilon.

    `found` holds the candidates of each epsilon. Raises as `write_plot`.
    """
    write_plot(path, (7.6, 4.8), partial(_draw, found, title), replace=replace)


def _draw(found: list[list[Candidate]], title: str, figure: Any) -> None:
    axes = figure.add_subplot(xscale="log", yscale="log")
    names = sorted({one.name for at in found for one in at if one.utility})
    for place, name in enumerate(names):
        line = [
            (float(o.epsilon), o.utility.mean) for at in found for o in at if o.name == name and o.utility
        ]
        colour, mark = COLOURS[place % len(COLOURS)], MARKS[place % len(MARKS)]
        axes.plot(*zip(*line, strict=True), lw=1.8, label=name, color=colour, marker=mark, ms=4.5)
    ticks = [float(at[0].epsilon) for at in found]
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.minorticks_off()
    axes.yaxis.set_major_formatter("{x:g}")
    label(axes, title, "epsilon", "expected absolute error", fontsize=11)
    axes.legend(frameon=False, fontsize=9)
