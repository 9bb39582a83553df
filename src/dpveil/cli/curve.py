"""The plot of `dpveil explain`: the highest detection rate for every false-alarm rate."""

from __future__ import annotations

from bisect import bisect_left
from pathlib import Path

from dpveil.accounting.meaning import detection_bound
from dpveil.core.guarantee import Guarantee
from dpveil.errors import UnknownName, UsageError
from dpveil.io import write_together
from dpveil.release.explain import Explanation

USUAL = 1e-3
"""A false-alarm rate that a linear axis can show; if detection is already likely there, the axis is
logarithmic."""
RAREST, DECADES = 300, 6
"""Limits of a logarithmic axis: it starts at 10^-300 or above, and spans six decades."""
LIMITLESS = "No test is ruled out: this photo may be\nrecognised always, without false alarms."
INK = "#1c1e22"
SOFT = "#8a8d94"
LINE = "#0b7a75"


def draw_curve(explanation: Explanation, path: Path, *, replace: bool = False) -> None:
    """Write a PNG with the guarantee's detection bound over all false-alarm rates.

    Raises `UsageError` without matplotlib, `UnknownName` for another suffix, and `OutputError`, also if the
    file exists and `replace` is false.
    """
    if path.suffix.lower() != ".png":
        raise UnknownName("plot format", path.suffix or str(path), [".png"])
    write_together([(path, _png(explanation))], replace=replace)


def _axis(guarantee: Guarantee) -> tuple[float, float] | None:
    """Return the ends of the false-alarm axis, 0 for a linear one; None if no test is ruled out."""
    if detection_bound(guarantee, USUAL) < 0.9:
        return 0.0, 1.0
    power = bisect_left(range(RAREST + 1), True, key=lambda k: detection_bound(guarantee, 10.0**-k) < 0.05)
    return None if power > RAREST else (10.0**-power, min(1.0, 10.0 ** (DECADES - power)))


def _png(explanation: Explanation) -> bytes:
    import io

    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise UsageError("plots need matplotlib", hint="pip install 'dpveil[plots]'") from error
    figure = Figure(figsize=(6.4, 6.4), dpi=150, layout="constrained")
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
    axes.set_xlabel("false alarms: the other photo is taken for this one", color=INK)
    axes.set_ylabel("detection: this photo is recognised", color=INK)
    axes.set_title(f"{explanation.method.name}: {explanation.guarantee}", color=INK, fontsize=12, loc="left")
    axes.legend(loc="lower right", frameon=False)
    axes.grid(color="#e4e2dc", lw=0.8)
    axes.spines[["top", "right"]].set_visible(False)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", metadata={"Software": None})
    return buffer.getvalue()
