"""Latent mechanisms by the kind of guarantee that is asked for, and by their metric."""

from __future__ import annotations

from typing import Final

from dpveil.errors import InvalidParameter, UnknownName
from dpveil.mechanisms.latent import TABLE

DEFAULT_MECHANISMS: Final = {"pure": "box-truncated-laplace", "zcdp": "box-gaussian"}
"""Default mechanism for each kind of guarantee."""
METRICS: Final = {name: kind.metric for name, kind in TABLE.items() if kind.metric is not None}
"""The metric of each mechanism with a metric guarantee."""


def of_kind(kind: str, metric: object) -> str:
    """Return the default mechanism of a kind of guarantee; for "metric", the one with that metric."""
    if kind != "metric":
        return DEFAULT_MECHANISMS[kind]
    if metric is None:
        hint = f"epsilon is for one unit of a distance, so name it: {' or '.join(METRICS.values())}"
        raise InvalidParameter("metric", None, "is missing", hint=hint)
    named = [mechanism for mechanism, its in METRICS.items() if its == metric]
    if not named:
        raise UnknownName("metric", str(metric), METRICS.values())
    return named[0]
