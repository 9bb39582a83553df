"""Pictures of the scalar mechanisms, one per page, computed from their laws by this version."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from make_plots import png
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator

from dpveil.cli.explain import INK, LINE, draw_errors
from dpveil.core.numbers import exact
from dpveil.mechanisms.scalar import TABLE, ScalarMechanism
from dpveil.numbers import candidates, utility

WARM = "#b02a20"
QUERY = {"range": (0, 10), "sensitivity": 1}
ANSWERS = (0, 3, 5)
COLOURS = (WARM, LINE, INK)
EPSILONS = ("0.5", "1", "2")


def pictures() -> dict[str, bytes]:
    """Return a picture for every mechanism's page, and the comparison, by file name."""
    drawn = {f"mechanism-{name}.png": law_and_error(name) for name in sorted(TABLE)}
    return drawn | {"mechanism-errors.png": comparison()}


def law_and_error(name: str) -> bytes:
    """Return the law of three answers at epsilon 0.5, and the expected error by answer at three budgets."""
    figure = Figure(figsize=(9.6, 3.9), dpi=150, layout="constrained")
    left, right = figure.subplots(1, 2)
    whole = dict(QUERY, step="1/4") if name in ("laplace", "truncated-laplace", "staircase") else QUERY
    method = TABLE[name](**whole, epsilon="0.5")
    law(left, method)
    for epsilon, alpha in zip(EPSILONS, (0.4, 0.7, 1.0), strict=True):
        errors = error_of(TABLE[name](**QUERY, epsilon=epsilon))
        right.plot(
            range(11), errors, color=LINE, alpha=alpha, lw=2, marker="o", ms=4, label=f"epsilon {epsilon}"
        )
    right.set_ylim(bottom=0)
    right.set_xlabel("true answer", color=INK)
    right.set_ylabel("expected absolute error", color=INK)
    for plot in (left, right):
        plot.minorticks_off()
        plot.legend(frameon=False, loc="lower center", bbox_to_anchor=(0.5, 1), ncols=3, columnspacing=1.2)
        plot.grid(color="#e4e2dc", lw=0.8)
        plot.spines[["top", "right"]].set_visible(False)
    return png(figure)


def law(plot: Any, method: ScalarMechanism) -> None:
    """Draw the probabilities of all responses for three answers; a fine lattice is shown as density."""
    points = method.lattice.value(method.lattice.points)
    step = float(method.lattice.step)
    matrix = method.matrix(responses=[exact(float(p)) for p in points], answers=list(ANSWERS))
    for column, (answer, colour) in enumerate(zip(ANSWERS, COLOURS, strict=True)):
        style = {"color": colour, "label": f"answer {answer}"}
        chances = matrix[:, column]
        if step == 1:
            plot.plot(points, chances, lw=1.4, marker="o", ms=4.5, **style)
        else:
            plot.plot(points, chances / step, lw=1.8, drawstyle="steps-mid", **style)
    plot.set_yscale("log")
    plot.set_xlabel("response", color=INK)
    words = "chance" if step == 1 else f"chance over {step:g}, the step"
    plot.set_ylabel(f"{words}, epsilon 0.5", color=INK)
    plot.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    plot.yaxis.set_major_formatter("{x:g}")


def error_of(method: ScalarMechanism) -> list[float]:
    """Return the expected absolute error of every integer answer."""
    return [utility(method, [exact(answer)]).mean for answer in range(11)]


def comparison() -> bytes:
    """Return the plot of `dpveil mechanism compare --range 0:10 --sensitivity 1`."""
    budgets = ("0.1", "0.2", "0.5", "1", "2", "5")
    found = [candidates(**QUERY, epsilon=epsilon) for epsilon in budgets]
    with TemporaryDirectory() as folder:
        path = Path(folder, "errors.png")
        draw_errors(found, "range 0:10, sensitivity 1, database-record", path)
        return path.read_bytes()
