"""What the plots of `explain` and `mechanism compare` share: size, colours, and the file."""

from __future__ import annotations

import io
from bisect import bisect_left
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpveil.accounting.meaning import detection_bound
from dpveil.core.guarantee import Guarantee
from dpveil.errors import UnknownName, UsageError
from dpveil.io import write_together
from dpveil.release.explain import Explanation

if TYPE_CHECKING:
    from dpveil.numbers import Candidate


INK = "#1c1e22"


def write_plot(
    path: Path, size: tuple[float, float], draw: Callable[[Any], None], *, replace: bool = False
) -> None:
    """Write what `draw` draws on a figure of `size` inches as PNG.

    Raises `UsageError` without matplotlib, `UnknownName` for another suffix, and `OutputError`, also if the
    file exists and `replace` is false.
    """
    if path.suffix.lower() != ".png":
        raise UnknownName("plot format", path.suffix or str(path), [".png"])
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise UsageError("plots need matplotlib", hint="pip install 'dpveil[plots]'") from error
    figure = Figure(figsize=size, dpi=150, layout="constrained")
    draw(figure)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", metadata={"Software": None})
    write_together([(path, buffer.getvalue())], replace=replace)


def label(axes: Any, title: str, x: str, y: str, *, fontsize: int) -> None:
    """Set the titles of a plot and its axes, with a faint grid and no frame above and to the right."""
    axes.set_xlabel(x, color=INK)
    axes.set_ylabel(y, color=INK)
    axes.set_title(title, color=INK, fontsize=fontsize, loc="left")
    axes.grid(color="#e4e2dc", lw=0.8)
    axes.spines[["top", "right"]].set_visible(False)


USUAL = 1e-3
"""A false-alarm rate that a linear axis can show; if detection is already likely there, the axis is
logarithmic."""
RAREST, DECADES = 300, 6
"""Limits of a logarithmic axis: it starts at 10^-300 or above, and spans six decades."""
LIMITLESS = "No test is ruled out: this photo may be\nrecognised always, without false alarms."
SOFT = "#8a8d94"
LINE = "#0b7a75"


def draw_curve(explanation: Explanation, path: Path, *, replace: bool = False) -> None:
    """Write a PNG with the guarantee's detection bound over all false-alarm rates; raises as `write_plot`."""
    write_plot(path, (6.4, 6.4), partial(_curve, explanation), replace=replace)


def _axis(guarantee: Guarantee) -> tuple[float, float] | None:
    """Return the ends of the false-alarm axis, 0 for a linear one; None if no test is ruled out."""
    if detection_bound(guarantee, USUAL) < 0.9:
        return 0.0, 1.0
    power = bisect_left(range(RAREST + 1), True, key=lambda k: detection_bound(guarantee, 10.0**-k) < 0.05)
    return None if power > RAREST else (10.0**-power, min(1.0, 10.0 ** (DECADES - power)))


def _curve(explanation: Explanation, figure: Any) -> None:
    ends = _axis(explanation.guarantee)
    low, high = ends or (0.0, 1.0)
    axes = figure.add_subplot(xscale="log" if low else "linear", xlim=(low, high), ylim=(0, 1), box_aspect=1)
    alarms = [low * (high / low) ** (k / 400) if low else (k / 400) ** 2 for k in range(401)]
    if ends is None:
        axes.text(0.5, 0.65, LIMITLESS, color=INK, fontsize=12, ha="center")
    else:
        bounds = [detection_bound(explanation.guarantee, alarm) for alarm in alarms]
        axes.fill_between(alarms, bounds, 1, color=LINE, alpha=0.10, label="impossible for any test", lw=0)
        axes.plot(alarms, bounds, color=LINE, lw=2.2, label="highest detection rate")
    axes.plot(alarms, alarms, color=SOFT, lw=1.2, ls="--", label="guessing")
    title = f"{explanation.method.name}: {explanation.guarantee}"
    alarm, seen = "false alarms: the other photo is taken for this one", "detection: this photo is recognised"
    label(axes, title, alarm, seen, fontsize=12)
    axes.legend(loc="lower right", frameon=False)


COLOURS = ["#0b7a75", "#b02a20", "#1c1e22", "#d08a1d", "#4a5fa5"]
COLOURS += ["#8a8d94", "#7b3f8c", "#5a8f29", "#c2557f", "#6b4f2a"]
MARKS = "osD^vP<>X*"


def draw_errors(found: list[list[Candidate]], title: str, path: Path, *, replace: bool = False) -> None:
    """Write a PNG with a line for each mechanism: expected absolute error over epsilon.

    `found` holds the candidates of each epsilon. Raises as `write_plot`.
    """
    write_plot(path, (7.6, 4.8), partial(_errors, found, title), replace=replace)


def _errors(found: list[list[Candidate]], title: str, figure: Any) -> None:
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
