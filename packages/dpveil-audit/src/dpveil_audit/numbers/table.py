"""Audits of released numbers: queries, and models if scikit-learn is installed."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING

from dpveil_audit.numbers.queries_table import AUDITS, QueryAudit

if TYPE_CHECKING:
    from dpveil_audit.numbers.learning_table import LearnAudit


def query_audits() -> dict[str, QueryAudit]:
    """Return the audits of the queries, by name."""
    return AUDITS


@cache
def learners() -> dict[str, LearnAudit]:
    """Return the audits of models, by name; empty without the extra `learn`."""
    if find_spec("sklearn") is None:
        return {}
    from dpveil_audit.numbers.learning_table import naive_bayes

    return {"naive-bayes": naive_bayes()}
