"""Errata E1 in numbers: the scale that the thesis prints, private for no ε, and the error of sound ones."""

from __future__ import annotations

from math import exp, log
from typing import Any, Final

import numpy as np
from jaxtyping import Float64

from dpveil.mechanisms.scalar import TruncatedLaplace
from dpveil_research.plots import COLOURS, SOFT, canvas_of, png
from dpveil_research.published_deviations import variable_scale
from dpveil_research.results import Row, to_csv

Floats = Float64[np.ndarray, "..."]


def published_scale(answer: float, epsilon: float, sensitivity: float = 1) -> float:
    """Return the scale for an answer at this distance above the end of the range 0 to infinity.

    Source: Croft thesis 5.35 at the end itself, 5.36 elsewhere; see `variable_scale`.

    >>> [round(published_scale(answer, 1), 3) for answer in (0, 0.9)]
    [1.586, 1.321]
    """
    return float(variable_scale(np.array([float(answer)]), np.array([float(sensitivity)]), epsilon)[0])


def log_density(response: Any, answer: float, scale: float) -> Floats:
    """Return the log density at responses of at least 0 of Laplace noise truncated there and normalised."""
    far = np.abs(np.asarray(response, np.float64) - answer)
    found: Floats = -far / scale - np.log(scale * (2 - np.exp(-answer / scale)))
    return found


EPSILON: Final = 1.0  # the promised ε
PAIR: Final = (0.0, 0.9)  # two answers, in ΔF, whose log-ratios are compared
RESPONSES: Final = (0.9, 5, 10, 20, 50, 100, 200, 500, 1000)
ANSWERS: Final = (0.0, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 50.0)
PUBLISHED, METRIC, RECORD, SNAPPED = (
    "published, not private",
    "truncated, 2ΔF/ε",
    "truncated, one record",
    "snapped Laplace",
)


def truncated_error(answer: float, scale: float) -> float:
    """Return E|y - a| of a Laplace law of this scale around a, truncated below 0 and normalised."""
    cut = exp(-answer / scale)
    return (2 * scale - (scale + answer) * cut) / (2 - cut)


def snapped_error(answer: float, scale: float) -> float:
    """Return E|y - a| of Laplace noise whose responses below 0 move to 0."""
    return scale * (1 - exp(-answer / scale) / 2)


def errors(answer: float) -> dict[str, float]:
    """Return the expected absolute error of each mechanism at an answer, in units of ΔF."""
    return {
        PUBLISHED: truncated_error(answer, published_scale(answer, EPSILON)),
        METRIC: truncated_error(answer, 2 / EPSILON),
        RECORD: truncated_error(answer, 1 / log((1 + exp(EPSILON)) / 2)),
        SNAPPED: snapped_error(answer, 1 / EPSILON),
    }


def log_ratios(responses: Any) -> dict[str, Floats]:
    """Return the largest log-ratio of answers 0 and 0.9 at each response, published and sound.

    The published scale falls with the distance of the answer from the end (Croft thesis theorem 1): no ε
    holds.
    """
    sound = float(TruncatedLaplace(range="0:", sensitivity=1, epsilon=1, step="1/200").scale)
    scales = {PUBLISHED: [published_scale(answer, EPSILON) for answer in PAIR], METRIC: [sound, sound]}
    laws = {
        name: [log_density(responses, answer, scale) for answer, scale in zip(PAIR, own, strict=True)]
        for name, own in scales.items()
    }
    return {name: np.abs(near - away) for name, (near, away) in laws.items()}


def tables() -> tuple[list[Row], list[Row]]:
    found = log_ratios(RESPONSES)
    ratios = []
    for i, y in enumerate(RESPONSES):
        row = {name: f"{values[i]:.4g}" for name, values in found.items()}
        ratios.append({"response": f"{y:g}", **row, "allowed": "0.9"})
    prices = []
    for answer in ANSWERS:
        row = {name: f"{value:.4f}" for name, value in errors(answer).items()}
        prices.append({"answer": f"{answer:g}", **row})
    return ratios, prices


def picture() -> bytes:
    canvas, (left, right) = canvas_of(2)
    far = np.geomspace(1, 1000, 200)
    found = log_ratios(far)
    left.loglog(far, found[PUBLISHED], color=COLOURS[1], lw=2, label="published scales 1.586 and 1.321")
    left.loglog(far, found[METRIC], color=COLOURS[0], lw=2, label="one scale, 2ΔF/ε")
    left.axhline(PAIR[1], color=SOFT, ls="--", lw=1.2, label="allowed: 0.9")
    words = {"xlabel": "response, in ΔF", "ylabel": "|log-ratio| of the answers 0 and 0.9"}
    left.set(title="What a response tells", **words)
    answers = np.linspace(0, 8, 161)
    curves = {name: [errors(float(a))[name] for a in answers] for name in errors(0)}
    for colour, style, (name, values) in zip((1, 0, 2, 3), (":", "-", "-", "-"), curves.items(), strict=True):
        right.plot(answers, values, color=COLOURS[colour], ls=style, lw=2, label=name)
    words = {"xlabel": "distance of the answer to the end, in ΔF", "ylabel": "expected absolute error, in ΔF"}
    right.set(title="What it costs", **words, ylim=(0, None))
    for axes in (left, right):
        axes.legend(frameon=False, fontsize=9)
    return png(canvas)


def make() -> dict[str, bytes]:
    ratios, prices = tables()
    return {"log-ratio.csv": to_csv(ratios), "price.csv": to_csv(prices), "errata-e1.png": picture()}
