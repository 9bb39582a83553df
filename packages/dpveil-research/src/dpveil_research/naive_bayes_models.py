"""The models of thesis figure 5.3, by series: with the thesis's accounting, and as `PrivateGaussianNB`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

import numpy as np
from jaxtyping import Float64

from dpveil.noise.bits import SeededBits
from dpveil.numbers.naive_bayes import LEVELS, Deviations, Plan, Shares, encode
from dpveil_research.published_deviations import DRAWS, Unsound, laplace
from dpveil_research.uci import Records

FLOOR: Final = 0.01
"""Floor of deviations as a fraction of upper - lower: the model's default."""
TINY: Final = 1e-6
"""A floor that is next to none."""
MOST_STAIRCASE: Final = 6
"""Largest ε of one value at which a staircase is drawn: its draws take e^(ε/2) tries."""
BASELINE: Final = "not private"
VARIABLE, DOUBLE, RECORD = "variable scale (unsound)", "truncated, 2ΔF/ε", "truncated, one record"
SNAPPED, SNAPPED_TINY = "snapped", "snapped, floor 10⁻⁶"
REDRAWN, STAIRCASE = "redrawn (unsound)", "staircase, snapped"
SQUARES, SNAPPED_SQUARES = "one record, variances", "snapped, variances"
THESIS: Final = {
    VARIABLE: ("variable scale", FLOOR),
    RECORD: ("one record", FLOOR),
    DOUBLE: ("2ΔF/ε", FLOOR),
    SNAPPED: ("snapped", FLOOR),
    SNAPPED_TINY: ("snapped", TINY),
    REDRAWN: ("redrawn", FLOOR),
}
OURS: Final[dict[str, tuple[str, str, float]]] = {
    VARIABLE: ("", "variable scale", FLOOR),
    RECORD: ("truncated-laplace", "database-record", FLOOR),
    DOUBLE: ("truncated-laplace", "any-database", FLOOR),
    SNAPPED: ("laplace", "database-record", FLOOR),
    SNAPPED_TINY: ("laplace", "database-record", TINY),
    STAIRCASE: ("staircase", "database-record", FLOOR),
    REDRAWN: ("", "redrawn", FLOOR),
    SQUARES: ("truncated-laplace", "database-record", FLOOR),
    SNAPPED_SQUARES: ("laplace", "database-record", FLOOR),
}
Floats = Float64[np.ndarray, "..."]


@dataclass(frozen=True)
class Model:
    """Class shares, means and deviations; the deviations include their floor."""

    priors: Floats
    means: Floats
    deviations: Floats

    def accuracy(self, records: Records, places: Any) -> float:
        """Return the share of the records with these indices that get their own label."""
        table = records.table
        values = np.clip(records.values[places], table.lower, table.upper)[:, None, :]
        terms = np.log(self.deviations) + ((values - self.means) / self.deviations) ** 2 / 2
        joint = np.log(self.priors) - terms.sum(axis=2)
        return float((joint.argmax(axis=1) == records.labels[places]).mean())


def _groups(records: Records, train: Any) -> Iterator[Floats]:
    values, labels = records.values[train], records.labels[train]
    return (values[labels == label] for label in range(records.classes))


def baseline(records: Records, train: Any) -> Model:
    """Return the model without privacy; the floor is ours."""
    width = np.subtract(records.table.upper, records.table.lower)
    groups = list(_groups(records, train))
    sizes = np.array([max(len(group), 1) for group in groups], np.float64)
    means = np.stack([group.mean(axis=0) if len(group) else width * np.nan for group in groups])
    spread = np.stack([group.std(axis=0) if len(group) else width * np.nan for group in groups])
    middle = np.add(records.table.upper, records.table.lower) / 2
    means, spread = np.where(np.isnan(means), middle, means), np.nan_to_num(spread)
    return Model(sizes / sizes.sum(), means, np.maximum(spread, FLOOR * width))


def thesis_models(records: Records, train: Any, epsilon: float, seed: Sequence[int]) -> dict[str, Model]:
    """Return the thesis's models by series: true class sizes n decide the noise, ΔF = √n·width/(n + 1).

    Means have ΔF = width/(n + 1), sizes 1; each gets ε over the number of all values. Source: Croft thesis
    §5.3.1, Vaidya et al. 2013.
    """
    width = np.subtract(records.table.upper, records.table.lower)
    groups = list(_groups(records, train))
    sizes = np.array([len(group) for group in groups], np.float64)[:, None]
    exact = baseline(records, train)
    share = epsilon / (records.classes * (2 * len(width) + 1))
    bits = SeededBits(seed[0], f"thesis {seed[1:]}")
    noisy = np.maximum(sizes[:, 0] + laplace((len(sizes),), bits) / share, 1)
    means = exact.means + laplace(exact.means.shape, bits) * width / (sizes + 1) / share
    spread = np.stack([group.std(axis=0) if len(group) else width * 0 for group in groups])
    moves = np.sqrt(np.maximum(sizes, 1)) * width / (sizes + 1)
    models = {}
    for series, (name, floor) in THESIS.items():
        found = DRAWS[name](spread, moves, share, SeededBits(seed[0], f"thesis deviations {seed[1:]}"))
        models[series] = Model(noisy / noisy.sum(), means, np.maximum(found, floor * width))
    return models


def our_models(records: Records, train: Any, epsilon: str, seed: Sequence[int]) -> dict[str, Model]:
    """Return the models that `PrivateGaussianNB` fits, by series; neighbours are added or removed."""
    lower, upper = np.array(records.table.lower, float), np.array(records.table.upper, float)
    codes, labels = encode(records.values[train], lower, upper), records.labels[train]
    features, models = codes.shape[1], {}
    parts = (Fraction(1), Fraction(features), Fraction(features))
    shares = Shares.of(Fraction(epsilon), features, parts)
    for series, (mechanism, kind, floor) in OURS.items():
        if series == STAIRCASE and shares.deviation > MOST_STAIRCASE:
            continue
        deviations: Any = Deviations(mechanism, kind, shares.deviation, series in (SQUARES, SNAPPED_SQUARES))
        if not mechanism:
            deviations = Unsound(DRAWS[kind], float(shares.deviation))
        bits = SeededBits(seed[0], " ".join(map(str, seed[1:])))
        found = Plan.of(codes, labels, records.classes, shares, deviations).release(bits)
        sizes = np.maximum(found.counts, 1)
        spread = (upper - lower) * np.maximum(found.deviations, floor)
        models[series] = Model(sizes / sizes.sum(), lower + (upper - lower) * found.means / LEVELS, spread)
    return models
