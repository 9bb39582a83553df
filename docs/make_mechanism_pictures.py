"""Pictures of the scalar mechanisms, one per page, computed from their laws by this version."""

from __future__ import annotations

from typing import Any

from make_plots import INK, LINE, png
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator

from dpveil.core.rationals import exact
from dpveil.core.registry import SCALAR
from dpveil.mechanisms.scalar import ScalarMechanism
from dpveil.numbers import Candidate, candidates, utility

WARM = "#b02a20"
QUERY = {"range": (0, 10), "sensitivity": 1}
ANSWERS = (0, 3, 5)
COLOURS = (WARM, LINE, INK)
EPSILONS = ("0.5", "1", "2")
LINES = ["#0b7a75", "#b02a20", "#1c1e22", "#d08a1d", "#4a5fa5"]
LINES += ["#8a8d94", "#7b3f8c", "#5a8f29", "#c2557f", "#6b4f2a"]
MARKS = "osD^vP<>X*"


def pictures() -> dict[str, bytes]:
    """Return a picture for every mechanism's page, and the comparison, by file name."""
    drawn = {f"mechanism-{name}.png": law_and_error(name) for name in sorted(SCALAR)}
    return drawn | {"mechanism-errors.png": comparison()}


def law_and_error(name: str) -> bytes:
    """Return the law of three answers at epsilon 0.5, and the expected error by answer at three budgets."""
    figure = Figure(figsize=(9.6, 3.9), dpi=150, layout="constrained")
    left, right = figure.subplots(1, 2)
    whole = dict(QUERY, step="1/4") if name in ("laplace", "truncated-laplace", "staircase") else QUERY
    method = SCALAR[name](**whole, epsilon="0.5")
    law(left, method)
    for epsilon, alpha in zip(EPSILONS, (0.4, 0.7, 1.0), strict=True):
        errors = error_of(SCALAR[name](**QUERY, epsilon=epsilon))
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
    return [utility(method, [exact(answer)]).mean for answer in range(11)]


def comparison() -> bytes:
    """Return the plot of the expected errors of all mechanisms on the range 0:10 with sensitivity 1."""
    budgets = ("0.1", "0.2", "0.5", "1", "2", "5")
    found = [candidates(**QUERY, epsilon=epsilon) for epsilon in budgets]
    figure = Figure(figsize=(7.6, 4.8), dpi=150, layout="constrained")
    draw_errors(found, "range 0:10, sensitivity 1, database-record", figure)
    return png(figure)


def draw_errors(found: list[list[Candidate]], title: str, figure: Figure) -> None:
    """Draw a line for each mechanism: expected absolute error over epsilon."""
    axes = figure.add_subplot(xscale="log", yscale="log")
    names = sorted({one.name for at in found for one in at if one.utility})
    for place, name in enumerate(names):
        line = [
            (float(o.epsilon), o.utility.mean) for at in found for o in at if o.name == name and o.utility
        ]
        colour, mark = LINES[place % len(LINES)], MARKS[place % len(MARKS)]
        axes.plot(*zip(*line, strict=True), lw=1.8, label=name, color=colour, marker=mark, ms=4.5)
    ticks = [float(at[0].epsilon) for at in found]
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.minorticks_off()
    axes.yaxis.set_major_formatter("{x:g}")
    axes.set_xlabel("epsilon", color=INK)
    axes.set_ylabel("expected absolute error", color=INK)
    axes.set_title(title, color=INK, fontsize=11, loc="left")
    axes.grid(color="#e4e2dc", lw=0.8)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=9)
