"""Private answers about a column of your own data: mean, count, standard deviation, histogram."""

from dpveil.numbers.queries.answer import Answer
from dpveil.numbers.queries.choice import Candidate, build, candidates, choose
from dpveil.numbers.queries.plan import Plan
from dpveil.numbers.queries.plans import deviation_moves
from dpveil.numbers.queries.statistics import count, histogram, mean, standard_deviation
from dpveil.numbers.queries.table import column
from dpveil.numbers.queries.utility import Utility, utility

__all__ = [
    "Answer",
    "Candidate",
    "Plan",
    "Utility",
    "build",
    "candidates",
    "choose",
    "column",
    "count",
    "deviation_moves",
    "histogram",
    "mean",
    "standard_deviation",
    "utility",
]
