"""Croft's thesis, figure 5.3: Gaussian naive Bayes with private deviations, on Banknote, Seeds and Yeast.

Two settings. *thesis*: ε is divided over all numbers of all classes, and sensitivities are computed from the
true class sizes, which is not private whatever the mechanism (errata E13). *ours*: the releases of
`PrivateGaussianNB` (neighbours: one record added or removed), and in addition, in place of its mechanism,
those that are not private either. In both, all mechanisms use the same splits; in ours, also the same noisy
sizes and means.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

import numpy as np
from jaxtyping import Float64

from dpveil.errors import UsageError
from dpveil_research import peer_naive_bayes
from dpveil_research.intervals import clustered_mean
from dpveil_research.naive_bayes_models import (
    BASELINE,
    DOUBLE,
    RECORD,
    REDRAWN,
    SNAPPED,
    SNAPPED_SQUARES,
    SNAPPED_TINY,
    SQUARES,
    STAIRCASE,
    VARIABLE,
    baseline,
    our_models,
    thesis_models,
)
from dpveil_research.plots import Figure, Line, Panel, draw
from dpveil_research.results import Row, estimate, to_csv
from dpveil_research.uci import TABLES, Records

SEED: Final = 503
REPETITIONS: Final = 200
EPSILONS: Final = ("0.1", "0.32", "1", "3.2", "10", "32", "100", "320", "1000", "3200")
PEER: Final = "diffprivlib 0.6"
PEER_PYTHON: Final = Path(".venv-diffprivlib/bin/python")
"""A Python with diffprivlib; `make bench` installs it."""

Accuracies = dict[tuple[str, str, str], list[float]]
"""Accuracies of all repetitions, by sweep, series and ε (empty for the baseline)."""


def run(records: Records, repetitions: int) -> Accuracies:
    """Return the accuracies of every series of both settings on one table."""
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


def run_peer(records: Records, repetitions: int, python: Path) -> Accuracies:
    """Return diffprivlib's accuracies on the same splits, or nothing if its environment is missing."""
    if not python.exists():
        return {}
    orders = [np.concatenate(records.split(repetition, SEED)) for repetition in range(repetitions)]
    with tempfile.TemporaryDirectory() as folder:
        given = Path(folder) / "given.npz"
        np.savez(
            given,
            values=records.values,
            labels=records.labels,
            lower=np.array(records.table.lower, float),
            upper=np.array(records.table.upper, float),
            orders=np.array(orders),
            epsilons=np.array([float(epsilon) for epsilon in EPSILONS]),
        )
        script = str(Path(peer_naive_bayes.__file__))
        done = subprocess.run([str(python), script, str(given)], capture_output=True, check=False)  # noqa: S603
    if done.returncode:
        raise UsageError(f"diffprivlib failed: {done.stderr.decode(errors='replace')[-300:]}")
    return {
        (f"{records.table.name}, ours", PEER, epsilon): accuracies
        for epsilon, accuracies in zip(EPSILONS, json.loads(done.stdout), strict=True)
    }


def rows(found: Accuracies) -> list[Row]:
    """Return a row for every point, with the 95 % interval over repetitions."""
    return [
        {"sweep": sweep, "series": series, "x": x, **_summary(np.array(values))}
        for (sweep, series, x), values in found.items()
    ]


def differences(found: Accuracies) -> list[Row]:
    """Return a row for every series minus `RECORD`, per repetition."""
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


def figures(found: Accuracies) -> list[Figure]:
    """Return a figure for each setting, a panel for each table."""
    made = []
    titles = {
        "thesis": "the thesis' accounting with true class sizes: NOT private, whatever the mechanism",
        "ours": "PrivateGaussianNB, one record added or removed",
    }
    for setting, title in titles.items():
        panels = []
        for sweep in dict.fromkeys(sweep for sweep, _, _ in found if sweep.endswith(setting)):
            series = dict.fromkeys(label for at, label, _ in found if at == sweep)
            lines = tuple(_line(label) for label in series)
            panels.append(Panel(sweep, "accuracy", "ε of the whole model", lines, sweep, logx=True))
        made.append(
            Figure(
                f"figure-5-3-{setting}",
                f"Figure 5.3, {title}",
                tuple(panels),
                counted={"repetitions": "splits into training and test"},
            )
        )
    return made


def _line(series: str) -> Line:
    colours = (RECORD, VARIABLE, DOUBLE, SNAPPED, STAIRCASE, PEER)
    same = {
        SNAPPED_TINY: (SNAPPED, ":"),
        REDRAWN: (VARIABLE, "--"),
        BASELINE: (RECORD, ":"),
        SQUARES: (RECORD, "--"),
        SNAPPED_SQUARES: (SNAPPED, "--"),
    }
    home, style = same.get(series, (series, "-"))
    return Line(series, colours.index(home), style)


def make(
    data: Path, count: int | None, told: Callable[[str], None], peer: Path = PEER_PYTHON
) -> dict[str, bytes]:
    """Return two tables and the plots; `count` is the number of splits per point.

    Without the Python `peer` its series is left out. Raises `UsageError`.
    """
    repetitions = REPETITIONS if count is None else count
    found: Accuracies = {}
    for table in TABLES:
        records = table.read(data)
        found |= run(records, repetitions)
        told(f"{table.name}: {repetitions} splits")
        found |= run_peer(records, repetitions, peer)
    results = rows(found)
    return {
        **{f"{figure.name}.png": draw(figure, results) for figure in figures(found)},
        "naive-bayes.csv": to_csv(results),
        "naive-bayes-differences.csv": to_csv(differences(found)),
    }
