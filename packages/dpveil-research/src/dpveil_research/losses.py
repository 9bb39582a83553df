"""Expected losses of a mechanism matrix, with and without remapping (Croft thesis 5.75 to 5.79)."""

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
"""Decimals in which posterior losses are compared."""


@dataclass(frozen=True)
class Tabled:
    """A mechanism matrix with the numbers of its rows and columns; every column sums to 1."""

    answers: Floats
    responses: Floats
    matrix: Float64[np.ndarray, "responses answers"]

    def by_answer(self, measure: str) -> Float64[np.ndarray, " answers"]:
        """Return the expected loss of every true answer.

        A Bayesian user with a uniform prior reports the answer of least expected posterior loss; of several,
        the one nearest the response (the text leaves this open).
        """
        power, remapped = POWERS[measure]
        shown = self.answers[self._guesses(power)] if remapped else self.responses
        loss = np.abs(np.subtract.outer(shown, self.answers)) ** power
        found: Float64[np.ndarray, " answers"] = (self.matrix * loss).sum(axis=0)
        return found

    def expected(self, measure: str) -> float:
        """Return the expected loss for equally likely answers."""
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
        """Return the mean expected loss over these answers, with its 95 % interval."""
        return _interval(self._at(truths, measure))

    def difference(
        self, other: Tabled, truths: Float64[np.ndarray, " n"], measure: str
    ) -> tuple[float, float, float]:
        """Return the mean difference to another mechanism's loss on the same answers, with its 95 %
        interval.
        """
        return _interval(self._at(truths, measure) - other._at(truths, measure))

    def _at(self, truths: Float64[np.ndarray, " n"], measure: str) -> Float64[np.ndarray, " n"]:
        places = np.abs(np.subtract.outer(truths, self.answers)).argmin(axis=1)
        found: Float64[np.ndarray, " n"] = self.by_answer(measure)[places]
        return found


def _interval(losses: Float64[np.ndarray, " n"]) -> tuple[float, float, float]:
    return clustered_mean(losses, [str(i) for i in range(len(losses))])
