"""Private statistics and learning over scalar mechanisms: numbers instead of photos.

`mean`, `count`, `standard_deviation` and `histogram` of a column are planned, which draws nothing, and then
released; `PrivateGaussianNB` is an estimator of scikit-learn (extra `learn`).
"""

from typing import TYPE_CHECKING, Any

from dpveil.numbers.columns import column
from dpveil.numbers.expected_error import Candidate, Utility, build, candidates, choose, utility
from dpveil.numbers.statistics import (
    Answer,
    Plan,
    count,
    count_by,
    histogram,
    mean,
    median,
    quantile,
    standard_deviation,
    total,
)

if TYPE_CHECKING:
    from dpveil.numbers.naive_bayes import PrivateGaussianNB

__all__ = [
    "Answer",
    "Candidate",
    "Plan",
    "PrivateGaussianNB",
    "Utility",
    "build",
    "candidates",
    "choose",
    "column",
    "count",
    "count_by",
    "histogram",
    "mean",
    "median",
    "quantile",
    "standard_deviation",
    "total",
    "utility",
]


def __getattr__(name: str) -> Any:
    if name != "PrivateGaussianNB":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from dpveil.numbers.naive_bayes import PrivateGaussianNB  # needs scikit-learn, which is an extra

    return PrivateGaussianNB
