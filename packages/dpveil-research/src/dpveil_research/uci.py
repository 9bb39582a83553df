"""Tables of records from a user's own copies: features, labels, and round bounds."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Float64, Int64

from dpveil.errors import UsageError
from dpveil.noise.bits import SeededBits


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
