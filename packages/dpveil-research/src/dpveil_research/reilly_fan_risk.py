"""Reilly & Fan 2021, tables IV and V: re-identification on AT&T, by their attacker and by stronger ones.

All 400 photos of 40 people; two of each are attacked, and the attacker has the other eight and its own
releases of them. Methods have the parameters of table I, and m = 1: neighbours differ in one pixel.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Final

from dpveil.attacks.base import Attack, has_extra
from dpveil.attacks.networks import NetworkParrot
from dpveil.attacks.restoration import Restored
from dpveil.attacks.vectors import PixelDiscriminant
from dpveil.bench.data import load
from dpveil.bench.measuring import cells
from dpveil.bench.run import one_thread
from dpveil.bench.setting import Setting
from dpveil.bench.table import Row as Measured
from dpveil.bench.table import rows
from dpveil.errors import UsageError
from dpveil.mechanisms.pixel import DPSVD, DPPix, DPSamp, Fill, Snow
from dpveil.mechanisms.pixel.base import PixelMethod
from dpveil_research.plots import Panel, figure
from dpveil_research.results import Row, estimate, to_csv

MEDIAN: Final = {"Snow-Med": ("median:3",)}  # steps after a release
SVD_OF_ONE: Final = "DP-SVD, levels to 1"
"""The paper states no unit of singular values, which DP-SVD's ε multiplies: levels to 1 are ε/255 to 255."""


def methods(*, block: int, clusters: int, rank: int) -> dict[str, Callable[[str], PixelMethod]]:
    """Return each method as a function of ε, or δ for Snow, with the parameters of table I for a data set."""
    return {
        "DP-Pix": lambda x: DPPix(epsilon=x, block=block, neighbourhood=1),
        "DP-Samp": lambda x: DPSamp(epsilon=x, clusters=clusters, neighbourhood=1),
        "DP-SVD": lambda x: DPSVD(epsilon=x, rank=rank),
        "Snow": lambda x: Snow(delta=x),
        "Snow-Med": lambda x: Snow(delta=x),
        SVD_OF_ONE: lambda x: DPSVD(epsilon=Fraction(x) / 255, rank=rank),
    }


SEED: Final = 2021
FOLDER: Final = "att_faces"
METHODS: Final = methods(block=4, clusters=48, rank=4)
NAMES: Final = tuple(METHODS)
OF_IV: Final = (*NAMES[:3], SVD_OF_ONE)
OF_V: Final = NAMES[3:5]
IV: Final = {
    "0.01": (3, 0, 1),
    "0.05": (9, 3, 3),
    "0.1": (10, 11, 58),
    "0.5": (68, 35, 63),
    "1": (68, 51, 56),
    "5": (83, 77, 59),
    "10": (81, 83, 60),
}
"""Table IV: the percentage of photos that their network names, by ε, for DP-Pix, DP-Samp and DP-SVD."""
V: Final = {
    "0.1": (4, 4),
    "0.33": (13, 5),
    "0.4": (23, 4),
    "0.5": (75, 9),
    "0.6": (86, 54),
    "0.7": (85, 81),
    "0.8": (91, 91),
}
"""Table V: the same by δ, for Snow and for Snow with a median filter after it."""
GREY: Final = "grey"
PUBLISHED: Final = "published"


@dataclass(frozen=True)
class Point:
    """One number of a table: a method at ε or δ, and what the paper measured; None for what it lacks."""

    table: str
    method: str
    x: str
    published: int | None

    @property
    def setting(self) -> Setting:
        method = Fill(level=127) if self.method == GREY else METHODS[self.method](self.x)
        return Setting(method, None, MEDIAN.get(self.method, ()))


def points() -> list[Point]:
    """Return every number of both tables, and a picture that shows nothing."""
    made = []
    for table, numbers, names in (("IV", IV, OF_IV), ("V", V, OF_V)):
        for x, row in numbers.items():
            both = (*row, row[-1]) if table == "IV" else row  # one number of theirs, two units of DP-SVD
            made += [Point(table, name, x, value) for name, value in zip(names, both, strict=True)]
    return [*made, Point("", GREY, "", None)]


def attacks() -> tuple[Attack, ...]:
    """Return the attackers: two linear ones, and the network of the paper's kind where torch is installed."""
    linear: tuple[Attack, ...] = (PixelDiscriminant(), Restored())
    return (*linear, NetworkParrot()) if has_extra(NetworkParrot.needs) else linear


def make(data: Path, count: int | None, told: Callable[[str], None]) -> dict[str, bytes]:
    """Return results.csv and a plot for each table; `count` is the number of people."""
    if not (data / FOLDER).is_dir():
        hint = "say with --data where your data sets are"
        raise UsageError(f"{data / FOLDER} is not a folder", hint=hint)
    table, every = [], points()
    faces = load(data / FOLDER, people=count)
    with one_thread():
        for done, point in enumerate(every, 1):
            found = list(cells(faces, point.setting, attacks(), SEED, ()))
            table += [_row(point, row) for row in rows(found)]
            told(f"{done} of {len(every)} settings")
    return {"results.csv": to_csv(table), **figures(table)}


def _row(point: Point, row: Measured) -> Row:
    attack = row.values["attack"]
    published = "" if point.published is None else f"{point.published / 100:.2f}"
    told = {"table": point.table, "method": point.method, "x": point.x, "attack": attack}
    told |= {"sweep": point.table, "series": f"{point.method}, {attack}", PUBLISHED: published}
    numbers = estimate("named", (row.success, row.low, row.high), ".4f")
    about = {name: row.values[name] for name in ("releases", "people", "chance")}
    return {**told, **numbers, **about}


def figures(table: Sequence[Row]) -> dict[str, bytes]:
    """Return the plots: the strongest attack, and what the paper measured, dotted, which has no intervals."""
    made = {}
    for number, xlabel, names in (("IV", "ε", OF_IV), ("V", "δ", OF_V)):
        panel = Panel("named", xlabel, logx=number == "IV")
        for name in names:
            wanted = {"table": number, "method": name, "attack": "strongest"}
            panel.curve(f"{name}, strongest", table, NAMES.index(name), **wanted)
            if name != SVD_OF_ONE:  # the line of DP-SVD
                panel.curve(f"{name}, {PUBLISHED}", table, NAMES.index(name), ":", y=PUBLISHED, **wanted)
        made[f"table-{number.lower()}.png"] = figure("AT&T, 80 photos of 40 people", panel)
    return made
