"""The gain of a scale that varies with the answer, for responses that end at B (beyond Croft thesis §5.1.2).

On the lattice 0, h, ..., B with ΔF = 1, the answer x gets the law ∝ e^(-r(x)·|y - x|) on all points.
Log-ratios of adjacent answers may be at most ε·h, which gives ε·d at every distance. The rates r(x) of least
mean expected error come from dynamic programming over a fine table of rates. Log-ratios are piecewise linear
in y, so that four responses suffice: 0, x, x + h and B.

The least error of *any* mechanism with that promise is a lower bound. It is the optimum of a linear program,
which for chains of answers is the geometric mechanism with Bayesian remapping; that is what is computed
(Ghosh, Roughgarden & Sundararajan 2012).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from jaxtyping import Float64

from dpveil_research.croft_thesis_5 import Tabled
from dpveil_research.errata_e1 import published_scale
from dpveil_research.plots import COLOURS, SOFT, canvas_of, label, png
from dpveil_research.results import Row, to_csv

EPSILON: Final = 1.0
STEPS: Final = 4
"""Lattice points per ΔF."""
ENDS: Final = (2, 4, 8, 16, 32, 64)
"""Ends B of the responses, in ΔF."""
CELLS: Final = 12
"""Rates of the table per largest change that one step could allow."""
FINEST: Final = 0.004
"""Largest distance of rates in the table, relative to ε."""
ROUND: Final = 1e-9
"""Relative margin on the budget for rounding."""
Floats = Float64[np.ndarray, "..."]
OPTIMAL, UNIFORM, SNAPPED, PUBLISHED, BOUND = (
    "best scales",
    "one scale, least valid",
    "snapped Laplace",
    "published scales, not private",
    "any mechanism",
)


@dataclass(frozen=True)
class Chain:
    """Answers and responses 0, 1/steps, ..., end, in units of ΔF."""

    end: int
    epsilon: float = EPSILON
    steps: int = STEPS

    @property
    def points(self) -> Floats:
        """All points."""
        return np.arange(self.end * self.steps + 1) / self.steps

    @property
    def budget(self) -> float:
        """The largest log-ratio of adjacent answers."""
        return self.epsilon / self.steps

    def log_totals(self, rates: Floats) -> Float64[np.ndarray, "answers rates"]:
        """Return ln Σ_y e^(-rate·|y - x|) for every answer x and rate."""
        below, ratio = self.points[:, None], -rates / self.steps
        sides = -np.expm1(-rates * below + ratio) - np.expm1(-rates * (self.end - below) + ratio)
        found: Float64[np.ndarray, "answers rates"] = np.log(sides / -np.expm1(ratio) - 1)
        return found

    def laws(self, rates: Float64[np.ndarray, " answers"]) -> Tabled:
        """Return the mechanism in which answer x has rate r(x)."""
        weights = np.exp(-np.abs(np.subtract.outer(self.points, self.points)) * rates)
        return Tabled(self.points, self.points, weights / weights.sum(axis=0))

    def cost(self, table: Tabled) -> float:
        """Return the largest log-ratio of adjacent answers per ΔF between them."""
        with np.errstate(divide="ignore"):
            logs = np.log(table.matrix)
        return float(np.abs(np.diff(logs, axis=1)).max()) * self.steps

    def snapped(self) -> Tabled:
        """Return Laplace noise of scale ΔF/ε on the lattice, snapped to its ends."""
        decay = np.exp(-self.budget)
        weights = decay ** (np.abs(np.subtract.outer(self.points, self.points)) * self.steps)
        weights *= (1 - decay) / (1 + decay)
        weights[[0, -1]] /= 1 - decay
        return Tabled(self.points, self.points, weights)

    def published(self) -> Tabled:
        """Return the mechanism of the published scales on this lattice."""
        return self.laws(np.array([1 / published_scale(float(x), self.epsilon) for x in self.points]))

    def uniform(self) -> Tabled:
        """Return the mechanism of one rate for all answers, the largest valid one, by bisection."""
        low, high = self.epsilon / 2, self.epsilon
        for _ in range(50):
            middle = (low + high) / 2
            held = self.cost(self.laws(np.full(len(self.points), middle))) <= self.epsilon
            low, high = (middle, high) if held else (low, middle)
        return self.laws(np.full(len(self.points), low))

    def table(self) -> Floats:
        """Return the rates of the programme, close enough for several choices per step."""
        width = min(1.5 / (self.end * self.steps * CELLS), FINEST) * self.epsilon
        return np.arange(0.35 * self.epsilon, 1.25 * self.epsilon, width)


def best_rates(chain: Chain, table: Floats | None = None) -> Float64[np.ndarray, " answers"]:
    """Return the rates of least mean expected absolute error among all private ones of a table.

    A rate may change by at most 72 positions of the table from one answer to the next.
    """
    rates, points = chain.table() if table is None else table, chain.points
    totals = chain.log_totals(rates)
    losses = np.stack([_losses(chain, x, rates) for x in points])
    window = 6 * CELLS
    shifts = np.arange(-window, window + 1)
    value, back = losses[0], np.zeros((len(points), len(rates)), np.int64)
    for k in range(1, len(points)):
        before = np.arange(len(rates))[:, None] + shifts
        inside = (before >= 0) & (before < len(rates))
        before = np.clip(before, 0, len(rates) - 1)
        allowed = inside & (
            _steepness(chain, k, rates, before, totals) <= chain.budget - ROUND * chain.budget
        )
        reached = np.where(allowed, value[before], np.inf)
        choice = reached.argmin(axis=1)
        back[k] = before[np.arange(len(rates)), choice]
        value = losses[k] + reached[np.arange(len(rates)), choice]
    place = int(value.argmin())
    chosen = [place]
    for k in range(len(points) - 1, 0, -1):
        place = int(back[k, place])
        chosen.append(place)
    return rates[chosen[::-1]]


def _losses(chain: Chain, x: float, rates: Floats) -> Floats:
    """Return the expected absolute error of answer x for each rate."""
    far = np.abs(chain.points - x)
    weights = np.exp(-np.multiply.outer(rates, far))
    found: Floats = weights @ far / weights.sum(axis=1)
    return found


def _steepness(chain: Chain, k: int, rates: Floats, before: Any, totals: Floats) -> Floats:
    """Return the largest log-ratio of answers k - 1 and k, for each rate of k and those of k - 1 in
    `before`.
    """
    x, z, here, earlier = chain.points[k - 1], chain.points[k], rates[:, None], rates[before]
    norms = totals[k - 1][before] - totals[k][:, None]
    found = np.zeros(before.shape)
    for y in (0.0, x, z, float(chain.end)):
        np.maximum(found, np.abs(norms + earlier * abs(y - x) - here * abs(y - z)), out=found)
    return found


def mechanisms(end: int) -> dict[str, Tabled]:
    """Return every mechanism of the comparison for responses that end at `end`."""
    chain = Chain(end)
    return {
        OPTIMAL: chain.laws(best_rates(chain)),
        UNIFORM: chain.uniform(),
        SNAPPED: chain.snapped(),
        PUBLISHED: chain.published(),
    }


def rows() -> tuple[list[Row], dict[int, Floats]]:
    """Return errors by end of the responses and mechanism, and the best scales by end."""
    found, scales = [], {}
    for end in ENDS:
        chain, tables = Chain(end), mechanisms(end)
        scales[end] = np.array([mechanism_scale(tables[OPTIMAL], k) for k in range(len(chain.points))])
        for name, table in tables.items():
            losses = table.by_answer("error")
            found.append(_row(end, name, losses, chain, f"{chain.cost(table):.4f}"))
        remapped = tables[SNAPPED].by_answer("bayes")
        found.append(_row(end, BOUND, remapped, chain, f"{EPSILON:.4f}"))
    return found, scales


def mechanism_scale(table: Tabled, k: int = 0) -> float:
    """Return the scale of answer k, computed from its law."""
    law, points = table.matrix[:, k], table.answers
    other = k + 1 if k + 1 < len(law) else k - 1
    return float(abs(points[other] - points[k]) / np.log(law[k] / law[other]))


def _row(end: int, name: str, losses: Floats, chain: Chain, cost: str) -> Row:
    places = {mark: mark * chain.steps for mark in (0, 1, 4)}
    marks = {f"at {mark}": f"{losses[k]:.4f}" if k < len(losses) else "" for mark, k in places.items()}
    return {"end": str(end), "mechanism": name, "epsilon": cost, "mean": f"{losses.mean():.4f}", **marks}


def picture(table: list[Row], scales: dict[int, Floats]) -> bytes:
    """Return the plot of scales, and of mean errors by the end of the responses, as PNG."""
    canvas, (left, right) = canvas_of(2)
    for colour, (end, values) in enumerate(scales.items()):
        left.plot(np.linspace(0, 1, len(values)), values, color=COLOURS[colour], lw=2, label=f"B = {end}")
    one = mechanism_scale(Chain(ENDS[-1]).uniform())
    left.axhline(one, color=SOFT, ls="--", lw=1.2, label=f"one scale: {one:.2f}")
    label(left, "Best scales, ε = 1", "answer / B", "best scale, in ΔF")
    styles = {OPTIMAL: "-", UNIFORM: "-", SNAPPED: "-", PUBLISHED: ":", BOUND: "--"}
    for colour, (name, style) in enumerate(styles.items()):
        shown = [row for row in table if row["mechanism"] == name]
        x, y = ([float(row[key]) for row in shown] for key in ("end", "mean"))
        right.plot(x, y, color=COLOURS[colour], ls=style, lw=2, marker="o", ms=3.5, label=name)
    right.set_xscale("log", base=2)
    right.set_xticks(ENDS, [str(end) for end in ENDS])
    error = "mean expected absolute error, in ΔF"
    label(right, "What they err by", "end of the responses B, in ΔF", error)
    for axes in (left, right):
        axes.legend(frameon=False, fontsize=9)
    return png(canvas)


def make() -> dict[str, bytes]:
    """Return every file of the experiment by its name."""
    table, scales = rows()
    best = [
        {"end": str(end), "answer": f"{k / STEPS:g}", "scale": f"{value:.4f}"}
        for end, values in scales.items()
        for k, value in enumerate(values)
    ]
    return {
        "errors.csv": to_csv(table),
        "scales.csv": to_csv(best),
        "half-infinite.png": picture(table, scales),
    }
