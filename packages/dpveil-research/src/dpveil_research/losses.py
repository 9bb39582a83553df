"""Expected losses of a mechanism matrix, at face value and remapped (Croft thesis 5.75 to 5.79)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from jaxtyping import Float64, Int64

from dpveil_research.intervals import clustered_mean

POWERS: Final = {"error": (1, False), "bayes": (1, True), "squared": (2, False), "bayes_squared": (2, True)}
"""By measure: the power of the loss, and whether responses are remapped first."""
Floats = Float64[np.ndarray, "..."]
DIGITS: Final = 12


@dataclass(frozen=True)
class Tabled:
    """A mechanism matrix with the numbers of its rows and columns, every column summing to 1."""

    answers: Floats
    responses: Floats
    matrix: Float64[np.ndarray, "responses answers"]

    def by_answer(self, measure: str) -> Float64[np.ndarray, " answers"]:
        """Return the expected loss at every true answer.

        A Bayesian user takes all answers for equally likely and reports the one of least expected loss; of
        several, the one nearest the response (the text leaves this open).
        """
        power, remapped = POWERS[measure]
        shown = self.answers[self._guesses(power)] if remapped else self.responses
        loss = np.abs(np.subtract.outer(shown, self.answers)) ** power
        found: Float64[np.ndarray, " answers"] = (self.matrix * loss).sum(axis=0)
        return found

    def expected(self, measure: str) -> float:
        """Return the expected loss where all answers are equally likely."""
        return float(self.by_answer(measure).mean())

    def _guesses(self, power: int) -> Int64[np.ndarray, " responses"]:
        loss = np.abs(np.subtract.outer(self.answers, self.answers)) ** power
        costs = np.round(self.matrix @ loss / self._likely, DIGITS - 2)
        ties = costs == costs.min(axis=1, keepdims=True)
        far = np.abs(np.subtract.outer(self.responses, self.answers))
        guesses: Int64[np.ndarray, " responses"] = np.where(ties, far, np.inf).argmin(axis=1)
        return guesses

    @cached_property
    def _likely(self) -> Float64[np.ndarray, "responses 1"]:
        found: Float64[np.ndarray, "responses 1"]
        found = np.maximum(self.matrix.sum(axis=1, keepdims=True), 10.0**-DIGITS)
        return found

    def over(self, truths: Float64[np.ndarray, " n"], measure: str) -> tuple[float, float, float]:
        """Return the mean expected loss at these answers, and its 95 % interval."""
        return _interval(self._at(truths, measure))

    def difference(
        self, other: Tabled, truths: Float64[np.ndarray, " n"], measure: str
    ) -> tuple[float, float, float]:
        """Return how much more this one loses at the same answers, and the 95 % interval of that."""
        return _interval(self._at(truths, measure) - other._at(truths, measure))

    def _at(self, truths: Float64[np.ndarray, " n"], measure: str) -> Float64[np.ndarray, " n"]:
        places = np.abs(np.subtract.outer(truths, self.answers)).argmin(axis=1)
        found: Float64[np.ndarray, " n"] = self.by_answer(measure)[places]
        return found


def _interval(losses: Float64[np.ndarray, " n"]) -> tuple[float, float, float]:
    return clustered_mean(losses, [str(i) for i in range(len(losses))])
