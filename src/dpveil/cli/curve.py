"""The plot of `dpveil explain`: the highest detection rate for every false alarm rate."""

from __future__ import annotations

from bisect import bisect_left
from pathlib import Path

from dpveil.accounting.meaning import detection_bound
from dpveil.core.guarantee import Guarantee
from dpveil.errors import UnknownName, UsageError
from dpveil.io import write_together
from dpveil.release.explain import Explanation

USUAL = 1e-3
"""False alarms visible on a linear axis; if most is allowed below, the axis is logarithmic."""
RAREST, DECADES = 300, 6
"""The rarest false alarms that a logarithmic axis begins at, as a negative power of ten; its length."""
LIMITLESS = "No test is ruled out: this photo may be\nrecognised always, without false alarms."
INK = "#1c1e22"
SOFT = "#8a8d94"
LINE = "#0b7a75"


def draw_curve(explanation: Explanation, path: Path, *, replace: bool = False) -> None:
    """Write a PNG with the detection bound of the guarantee over all false-alarm rates.

    Raises `UsageError` without matplotlib, and `OutputError`, also for a file that exists unless `replace`.
    """
    if path.suffix.lower() != ".png":
        raise UnknownName("plot format", path.suffix or str(path), [".png"])
    write_together([(path, _png(explanation))], replace=replace)


def _axis(guarantee: Guarantee) -> tuple[float, float] | None:
    """Return the ends of an axis of false alarms that shows the curve; None where nothing is ruled out."""
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
