"""The plot of `dpveil explain`: how often a test can be right, for every rate of false alarms."""

from __future__ import annotations

from pathlib import Path

from dpveil.accounting.meaning import detection_bound
from dpveil.errors import UnknownName, UsageError
from dpveil.io import write_together
from dpveil.release.explain import Explanation

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


def _png(explanation: Explanation) -> bytes:
    import io

    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise UsageError("plots need matplotlib", hint="pip install 'dpveil[plots]'") from error
    figure = Figure(figsize=(6.4, 6.4), dpi=150, layout="constrained")
    axes = figure.add_subplot(aspect="equal", xlim=(0, 1), ylim=(0, 1))
    alarms = [(step / 400) ** 2 for step in range(401)]
    bounds = [detection_bound(explanation.guarantee, alarm) for alarm in alarms]
    axes.fill_between(alarms, bounds, 1, color=LINE, alpha=0.10, label="impossible for any test", lw=0)
    axes.plot(alarms, bounds, color=LINE, lw=2.2, label="highest detection rate")
    axes.plot([0, 1], [0, 1], color=SOFT, lw=1.2, ls="--", label="guessing")
    axes.set_xlabel("false alarms: the other photo is taken for this one", color=INK)
    axes.set_ylabel("detection: this photo is recognised", color=INK)
    axes.set_title(f"{explanation.method.name}: {explanation.guarantee}", color=INK, fontsize=12, loc="left")
    axes.legend(loc="lower right", frameon=False)
    axes.grid(color="#e4e2dc", lw=0.8)
    axes.spines[["top", "right"]].set_visible(False)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", metadata={"Software": None})
    return buffer.getvalue()
