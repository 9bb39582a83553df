"""Croft's thesis, figure 5.3: Gaussian naive Bayes with private deviations, on Banknote, Seeds and Yeast.

Two settings. *thesis*: ε is divided over all numbers of all classes, and sensitivities are computed from the
true class sizes, which is not private whatever the mechanism (errata E13). *ours*: the releases of
`PrivateGaussianNB` (neighbours: one record added or removed), and in addition, in place of its mechanism,
those that are not private either. In both, all mechanisms use the same splits; in ours, also the same noisy
sizes and means.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

import numpy as np
from jaxtyping import Float64, Int64

from dpveil.errors import UsageError
from dpveil.noise.bits import SeededBits
from dpveil.numbers.naive_bayes import LEVELS, Deviations, Plan, Shares, encode
from dpveil_research.plots import Panel, figure
from dpveil_research.published_deviations import DRAWS, Unsound, laplace
from dpveil_research.results import Row, clustered_mean, estimate, to_csv, where


@dataclass(frozen=True)
class Table:
    """A UCI table of thesis figure 5.3: its file, and how a line of it is read.

    `separator` None is any white space; `header` says whether the first line names columns; the first `skip`
    columns are names. The last column is the label. `lower` and `upper` are round numbers around the values,
    which stand for public knowledge. Yeast's features are scores from 0 to 1.
    """

    name: str
    file: str
    separator: str | None
    header: bool
    skip: int
    lower: tuple[float, ...]
    upper: tuple[float, ...]

    def read(self, data: Path) -> Records:
        """Return the records of a file in `data` or `data`/uci. Raises `UsageError` for another layout."""
        path = next((p for p in (data / "uci" / self.file, data / self.file) if p.is_file()), None)
        if path is None:
            raise UsageError(f"{data} has no uci/{self.file}", hint="say with --data where your tables are")
        lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
        rows = [line.split(self.separator) for line in lines[self.header :]]
        try:
            values = np.array([[float(cell) for cell in row[self.skip : -1]] for row in rows], np.float64)
        except ValueError as error:
            raise UsageError(f"{path} is not laid out as the UCI repository has it: {error}") from None
        if values.ndim != 2 or values.shape[1] != len(self.lower):
            raise UsageError(f"{path} does not have {len(self.lower)} features a record")
        classes, labels = np.unique([row[-1].strip() for row in rows], return_inverse=True)
        return Records(self, values, labels.astype(np.int64), len(classes))


@dataclass(frozen=True, eq=False)
class Records:
    """The records of a table: values, labels from 0 on, and the number of classes."""

    table: Table
    values: Float64[np.ndarray, "records features"]
    labels: Int64[np.ndarray, " records"]
    classes: int

    def split(self, repetition: int, seed: int) -> tuple[Int64[np.ndarray, " n"], Int64[np.ndarray, " m"]]:
        """Return the indices of a random 80 % for training, and of the rest."""
        order = np.argsort(SeededBits(seed, f"split {repetition}").words(len(self.labels)), kind="stable")
        first = len(order) * 4 // 5
        return order[:first], order[first:]


TABLES = (
    Table(
        "Banknote",
        "data_banknote_authentication.txt",
        ",",
        True,
        0,
        (-8, -15, -6, -9),
        (8, 15, 18, 3),
    ),
    Table(
        "Seeds",
        "seeds_dataset.txt",
        None,
        True,
        0,
        (10, 12, 0.8, 4.8, 2.6, 0.5, 4.5),
        (22, 18, 0.92, 6.8, 4.1, 8.5, 6.6),
    ),
    Table("Yeast", "yeast.data", None, False, 1, (0,) * 8, (1,) * 8),
)


FLOOR: Final = 0.01  # floor of deviations as a fraction of upper - lower: the model's default
TINY: Final = 1e-6  # a floor that is next to none
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


SEED: Final = 503
REPETITIONS: Final = 200
EPSILONS: Final = ("0.1", "0.32", "1", "3.2", "10", "32", "100", "320", "1000", "3200")
Accuracies = dict[tuple[str, str, str], list[float]]
"""Accuracies of all repetitions, by sweep, series and ε (empty for the baseline)."""


def run(records: Records, repetitions: int) -> Accuracies:
    found: Accuracies = {}
    name = records.table.name
    for repetition in range(repetitions):
        train, test = records.split(repetition, SEED)
        plain = baseline(records, train).accuracy(records, test)
        for setting in ("thesis", "ours"):
            found.setdefault((f"{name}, {setting}", BASELINE, ""), []).append(plain)
        for column, epsilon in enumerate(EPSILONS):
            seed = (SEED, repetition, column)
            models = {
                "thesis": thesis_models(records, train, float(epsilon), seed),
                "ours": our_models(records, train, epsilon, seed),
            }
            for setting, series in models.items():
                for label, model in series.items():
                    place = (f"{name}, {setting}", label, epsilon)
                    found.setdefault(place, []).append(model.accuracy(records, test))
    return found


def rows(found: Accuracies) -> list[Row]:
    return [
        {"sweep": sweep, "series": series, "x": x, **_summary(np.array(values))}
        for (sweep, series, x), values in found.items()
    ]


def differences(found: Accuracies) -> list[Row]:
    made = []
    for (sweep, series, x), values in found.items():
        other = found.get((sweep, RECORD, x))
        if other is not None and series != RECORD:
            labels = {"sweep": sweep, "first": series, "second": RECORD, "x": x}
            made.append(labels | _summary(np.subtract(values, other)))
    return made


def _summary(values: Float64[np.ndarray, " n"]) -> Row:
    numbers = clustered_mean(values, [str(i) for i in range(len(values))])
    return {"repetitions": str(len(values)), **estimate("accuracy", numbers, ".5g")}


STYLES: Final = {
    RECORD: (0, "-"),
    VARIABLE: (1, "-"),
    DOUBLE: (2, "-"),
    SNAPPED: (3, "-"),
    STAIRCASE: (4, "-"),
    SNAPPED_TINY: (3, ":"),
    REDRAWN: (1, "--"),
    BASELINE: (0, ":"),
    SQUARES: (0, "--"),
    SNAPPED_SQUARES: (3, "--"),
}
TITLES: Final = {
    "thesis": "the thesis' accounting with true class sizes: NOT private, whatever the mechanism",
    "ours": "PrivateGaussianNB, one record added or removed",
}


def figures(results: Sequence[Row]) -> dict[str, bytes]:
    made = {}
    for setting, title in TITLES.items():
        panels = []
        for table in TABLES:
            sweep = f"{table.name}, {setting}"
            panels.append(Panel("accuracy", "ε of the whole model", sweep, logx=True))
            for series in dict.fromkeys(row["series"] for row in where(results, sweep=sweep)):
                panels[-1].curve(series, results, *STYLES[series], sweep=sweep, series=series)
        counted = f"{results[0]['repetitions']} splits into training and test; bands are 95 % intervals"
        made[f"figure-5-3-{setting}.png"] = figure(f"Figure 5.3, {title}\n{counted}", *panels)
    return made


def make(data: Path, count: int | None, told: Callable[[str], None]) -> dict[str, bytes]:
    """Return two tables and the plots; `count` is the number of splits per point. Raises `UsageError`."""
    repetitions = REPETITIONS if count is None else count
    found: Accuracies = {}
    for table in TABLES:
        found |= run(table.read(data), repetitions)
        told(f"{table.name}: {repetitions} splits")
    results = rows(found)
    return {
        **figures(results),
        "naive-bayes.csv": to_csv(results),
        "naive-bayes-differences.csv": to_csv(differences(found)),
    }
