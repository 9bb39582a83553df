"""What runs cost: a model with a start and a cost per photo, fitted to `benchmarks/results/costs.json`.

    python docs/make_costs.py

prints its tables. The page *What runs cost* shows them, and the plot.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from make_plots import WARM, axes, png

from dpveil.batch.state import MOST_BYTES
from dpveil.cli.plots import INK, LINE

RESULTS = Path(__file__).parent.parent / "benchmarks" / "results"
SMALL = "64 × 64, dp-pix"
PRICE = 0.05
"""Dollars for a core and an hour."""
MEMORY = 16e9
"""Bytes of memory of the machine for which limits are stated."""
MEASURED = {
    "workers": ("workers, processor s", 1.0),
    "command": ("command, processor s", 1.0),
    "memory": ("command, MB", 1e6),
    "read": ("read, bytes", 1.0),
    "releases": ("releases, bytes", 1.0),
    "certificates": ("certificates, bytes", 1.0),
    "ledger": ("ledger, bytes", 1.0),
    "state": ("state, bytes", 1.0),
}
"""Columns of the kept table, and the unit of each in seconds or bytes."""
PHOTOS = (1, 1000, 10**6, 10**9)
DIGITS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
Row = dict[str, Any]


@dataclass(frozen=True)
class Line:
    """A cost in seconds or bytes: what a run takes at its start, and for each photo."""

    start: float
    each: float

    @classmethod
    def fitted(cls, photos: Sequence[float], costs: Sequence[float]) -> Line:
        """Return the line with the least squares of relative errors; neither number is negative."""
        weights = 1 / np.maximum(costs, 1e-9)
        columns = np.stack([np.ones(len(photos)), np.array(photos, np.float64)], axis=1)
        start, each = np.linalg.lstsq(columns * weights[:, None], np.ones(len(photos)), rcond=None)[0]
        if start < 0:
            start, each = 0.0, float((columns[:, 1] * weights).sum() / ((columns[:, 1] * weights) ** 2).sum())
        return cls(float(start), max(0.0, float(each)))

    @classmethod
    def above(cls, photos: Sequence[float], costs: Sequence[float]) -> Line:
        """Return the line with the steepest slope between neighbouring sizes that no run is above.

        Sizes are increasing. It is what memory takes, which grows in steps: a fit would be too low somewhere.
        """
        each = max(0.0, float(np.max(np.diff(costs) / np.diff(photos))))
        start = max(cost - each * count for count, cost in zip(photos, costs, strict=True))
        return cls(float(start), each)

    def at(self, photos: float) -> float:
        return self.start + self.each * photos


@cache
def rows() -> list[Row]:
    """Return the measured runs."""
    return list(json.loads((RESULTS / "costs.json").read_text(encoding="utf-8"))["rows"])


CHECKED = max(row["photos"] for row in rows() if row["work"] == SMALL)
"""Small photos of the run that nothing is fitted to: the largest one."""


@cache
def fitted(kind: str) -> dict[str, Line]:
    """Return the costs of a kind of work, fitted to all its runs but the one that checks them.

    A run of one photo has no workers, so it is not fitted either.
    """
    return {name: line_of(kind, name, {1, CHECKED}) for name in MEASURED}


@cache
def model(kind: str) -> dict[str, Line]:
    """Return the costs of a kind of work as they are told: those fitted, but no less than what was measured.

    Memory is that of the line above all runs, the one that checks the others among them. What the command
    takes for a photo is at least that of small ones: it sees no pixels, and runs of few photos are too short
    to tell.
    """
    found = fitted(kind) | {"memory": line_of(kind, "memory", {1})}
    for name in ("command", "memory") if kind != SMALL else ():
        found[name] = Line(found[name].start, max(found[name].each, model(SMALL)[name].each))
    return found


def line_of(kind: str, name: str, without: set[int]) -> Line:
    """Return a cost by the runs of a kind of work but those of the sizes `without`."""
    own = [row for row in rows() if row["work"] == kind and row["photos"] not in without]
    column, unit = MEASURED[name]
    method = Line.above if name == "memory" else Line.fitted
    return method([row["photos"] for row in own], [row[column] * unit for row in own])


def row_of(kind: str, photos: int) -> Row:
    """Return the measured run of so many photos."""
    return next(row for row in rows() if (row["work"], row["photos"]) == (kind, photos))


def cost(kind: str, name: str, photos: float) -> float:
    """Return a cost in seconds or bytes; that of a single photo is measured."""
    if photos == 1:
        column, unit = MEASURED[name]
        return float(row_of(kind, 1)[column] * unit)
    return model(kind)[name].at(photos)


def kinds() -> list[str]:
    """Return the kinds of work, in the order of the table."""
    return list(dict.fromkeys(row["work"] for row in rows()))


def processor(kind: str, photos: float) -> float:
    """Return seconds of processor time of a run, of the command and its workers."""
    return sum(cost(kind, name, photos) for name in ("workers", "command"))


def dollars(kind: str, photos: float) -> float:
    """Return what the processor time of a run costs."""
    return PRICE * processor(kind, photos) / 3600


def kept(kind: str, photos: float) -> float:
    """Return the bytes that a run writes and keeps."""
    return sum(cost(kind, name, photos) for name in ("releases", "certificates", "ledger", "state"))


def most_in_memory(kind: str) -> float:
    """Return how many photos a run may have until its command holds `MEMORY`."""
    memory = model(kind)["memory"]
    return (MEMORY - memory.start) / memory.each


def most_workers(kind: str) -> float:
    """Return how many workers keep one command busy, which is one process."""
    return model(kind)["workers"].each / model(kind)["command"].each


def most_in_a_folder(kind: str) -> float:
    """Return how many releases the state file of one output folder can remember."""
    return MOST_BYTES / model(kind)["state"].each


def debits(callers: str) -> int:
    """Return the debits a second of the kept benchmark of ledgers, on a disk."""
    kept = json.loads((RESULTS / "ledger.json").read_text(encoding="utf-8"))["rows"]
    return next(row["debits a second, disk"] for row in kept if row["callers"] == callers)


def constants() -> str:
    """Return what each photo costs, and the start of a run, by kind of work."""
    lines = [
        ("workers, processor time per photo, ms", lambda m: plain(1000 * m["workers"].each)),
        ("command, processor time per photo, ms", lambda m: plain(1000 * m["command"].each)),
        ("start, processor time, s", lambda m: plain(m["workers"].start + m["command"].start)),
        ("command, memory at the start", lambda m: in_bytes(m["memory"].start)),
        ("command, memory per photo", lambda m: in_bytes(m["memory"].each)),
        *((f"{name}, per photo", lambda m, name=name: in_bytes(m[name].each)) for name in list(MEASURED)[3:]),
    ]
    return table(["", *kinds()], [[name, *(tell(model(kind)) for kind in kinds())] for name, tell in lines])


def check() -> str:
    """Return prediction and measurement of the run that nothing was fitted to."""
    found = row_of(SMALL, CHECKED)
    lines = []
    for name, (column, unit) in MEASURED.items():
        expected, measured = fitted(SMALL)[name].at(CHECKED), found[column] * unit
        tell = in_seconds if column.endswith(" s") else in_bytes
        lines.append([named(name), tell(expected), tell(measured), difference(measured, expected)])
    return table([f"{plain(CHECKED)} small photos", "predicted", "measured", "difference"], lines)


def difference(measured: float, expected: float) -> str:
    """Return by how much a measurement is above what was expected, in per cent.

    >>> difference(104.1, 100), difference(99.9, 100), difference(99.97, 100)
    ('+4.1 %', '−0.1 %', '0.0 %')
    """
    off = f"{100 * (measured / expected - 1):+.1f}"
    return f"{off.replace('-', '−') if float(off) else '0.0'} %"


def sizes() -> str:
    """Return which runs the model is fitted to, which one checks it, and where none could."""
    told = [listed(sizes_of(SMALL)), *(f"{listed(sizes_of(kind))} ({kind})" for kind in kinds()[1:])]
    exact = " Two sizes always fit a line, which says nothing about its error." if two_sizes() else ""
    return (
        f"Small photos were run at {told[0]} to fit the model, and large ones at {' and at '.join(told[1:])}."
        f" No run checks those of large photos.{exact}\n\n"
        f"The run of {plain(CHECKED)} small photos was not used for the fit:"
    )


def sizes_of(kind: str) -> list[int]:
    """Return the sizes of the runs that a kind of work is fitted to."""
    return sorted({row["photos"] for row in rows() if row["work"] == kind} - {1, CHECKED})


def two_sizes() -> bool:
    """Whether some kind of work was run at two sizes only, so that its line is exact."""
    return any(len(sizes_of(kind)) == 2 for kind in kinds())


def listed(numbers: Sequence[int]) -> str:
    """Return numbers with commas and an "and".

    >>> listed([20, 100, 3000])
    '20, 100 and 3000'
    """
    *first, last = map(plain, numbers)
    return f"{', '.join(first)} and {last}"


def named(name: str) -> str:
    words = {"workers": "processor time of workers", "command": "processor time of the command"}
    return words.get(name, "memory of the command" if name == "memory" else f"{name}, bytes")


def predicted() -> str:
    """Return what runs of several sizes cost, by kind of work."""
    lines = []
    for kind in kinds():
        for photos in PHOTOS:
            memory = in_bytes(cost(kind, "memory", photos))
            seconds, paid = processor(kind, photos), dollars(kind, photos)
            told = [in_seconds(seconds), in_dollars(paid), in_bytes(kept(kind, photos)), memory]
            lines.append([kind, count(photos), *told, count(photos)])
    head = ["work", "photos", "processor time", "dollars", "bytes kept", "memory of the command"]
    return table([*head, "ledger writes"], lines)


def limits() -> str:
    """Return where one command on one machine ends, by kind of work."""
    rate = debits("SQLite, 4 threads")
    told = [
        ("releases that one output folder remembers", most_in_a_folder),
        ("photos until the command holds 16 GB", most_in_memory),
        ("workers that one command serves", most_workers),
        (
            f"workers that one ledger serves, at {rate} debits a second",
            lambda kind: rate * model(kind)["workers"].each,
        ),
    ]
    return table(["", *kinds()], [[name, *(rough(limit(kind)) for kind in kinds())] for name, limit in told])


def ledgers() -> str:
    """Return how fast one ledger and two are paid from."""
    kept = json.loads((RESULTS / "ledger_shards.json").read_text(encoding="utf-8"))["rows"]
    return table(list(kept[0]), [[str(row[name]) for name in kept[0]] for row in kept])


def table(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """Return a table of Markdown."""
    every = [head, ["---"] * len(head), *lines]
    return "\n".join(f"| {' | '.join(line)} |" for line in every)


def plain(value: float) -> str:
    """Return a number of about two digits.

    >>> plain(0.0123), plain(7.25), plain(123.4), plain(54321)
    ('0.012', '7.2', '123', '54\u202f321')
    """
    if value < 10:
        return f"{value:.2g}"
    return f"{value:,.0f}".replace(",", "\u202f" if value >= 9999.5 else "")


def rough(value: float) -> str:
    """Return a number of two digits.

    >>> rough(413_512), rough(37.4), rough(23_456_789)
    ('410\u202f000', '37', '23 million')
    """
    value = float(f"{value:.2g}")
    return f"{value / 1e6:.3g} million" if value >= 1e6 else plain(value)


def count(photos: int) -> str:
    """Return a power of ten."""
    power = len(str(photos)) - 1
    return str(photos) if power < 4 else f"10{str(power).translate(DIGITS)}"


def in_seconds(value: float) -> str:
    """Return a time in its unit.

    >>> in_seconds(0.5), in_seconds(900), in_seconds(7200)
    ('0.5 s', '15 min', '2 h')
    """
    size, unit = next(pair for pair in ((3600, "h"), (60, "min"), (0, "s")) if value >= 2 * pair[0])
    return f"{plain(value / (size or 1))} {unit}"


def in_bytes(value: float) -> str:
    """Return a number of bytes in its unit.

    >>> in_bytes(1500), in_bytes(2.5e6), in_bytes(3e14)
    ('1.5 kB', '2.5 MB', '300 TB')
    """
    units = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (0, "B"))
    size, unit = next(pair for pair in units if value >= pair[0])
    return f"{plain(value / (size or 1))} {unit}"


def in_dollars(value: float) -> str:
    """Return dollars.

    >>> in_dollars(0.0004), in_dollars(12.3), in_dollars(12345)
    ('< 0.01', '12', '12\u202f345')
    """
    return "< 0.01" if value < 0.01 else plain(value)


def plot() -> bytes:
    """Return the processor time of all kinds of work by the number of photos, with the runs measured."""
    figure, shown = axes(xscale="log", yscale="log")
    photos = np.logspace(0.5, 9, 86)
    for kind, colour in zip(kinds(), (LINE, INK, WARM), strict=True):
        shown.plot(photos, [processor(kind, n) / 3600 for n in photos], color=colour, lw=2, label=kind)
        for row in (row for row in rows() if row["work"] == kind):
            hours = (row["workers, processor s"] + row["command, processor s"]) / 3600
            apart = (kind, row["photos"]) == (SMALL, CHECKED)
            shown.plot(row["photos"], hours, "o", ms=8, color=colour, mfc="white" if apart else colour)
    shown.set_xlabel("photos; the white point was predicted, not fitted", color=INK)
    shown.set_ylabel("processor time in hours of a core", color=INK)
    other = shown.secondary_yaxis("right", functions=(lambda y: PRICE * y, lambda y: y / PRICE))
    other.set_ylabel(f"dollars, at {PRICE:g} for a core and an hour", color=INK)
    shown.legend(frameon=False)
    return png(figure)


PARTS = {
    "cost_constants": constants,
    "cost_sizes": sizes,
    "cost_check": check,
    "cost_predicted": predicted,
    "cost_limits": limits,
    "cost_ledgers": ledgers,
}

if __name__ == "__main__":
    for part in PARTS.values():
        print(part(), end="\n\n")
