"""The plot of `dpveil explain`: the highest detection rate for every false-alarm rate."""

from __future__ import annotations

from bisect import bisect_left
from functools import partial
from pathlib import Path
from typing import Any

from dpveil.accounting.meaning import detection_bound
from dpveil.cli.plots import INK, label, write_plot
from dpveil.core.guarantee import Guarantee
from dpveil.release.explain import Explanation

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
    write_plot(path, (6.4, 6.4), partial(_draw, explanation), replace=replace)


def _axis(guarantee: Guarantee) -> tuple[float, float] | None:
    """Return the ends of the false-alarm axis, 0 for a linear one; None if no test is ruled out."""
    if detection_bound(guarantee, USUAL) < 0.9:
        return 0.0, 1.0
    power = bisect_left(range(RAREST + 1), True, key=lambda k: detection_bound(guarantee, 10.0**-k) < 0.05)
    return None if power > RAREST else (10.0**-power, min(1.0, 10.0 ** (DECADES - power)))


def _draw(explanation: Explanation, figure: Any) -> None:
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
