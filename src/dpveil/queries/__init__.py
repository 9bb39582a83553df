"""Private answers about a column of your own data: mean, count, standard deviation, histogram."""

from dpveil.queries.answer import Answer
from dpveil.queries.choice import Candidate, build, candidates, choose
from dpveil.queries.plan import Plan
from dpveil.queries.plans import deviation_moves
from dpveil.queries.statistics import count, histogram, mean, standard_deviation
from dpveil.queries.table import column
from dpveil.queries.utility import Utility, utility

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
