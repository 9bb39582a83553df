"""Plots of the table: one file for each question and data set. No face is drawn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from dpveil_research.ksame_data import GROUPS, LIKELIHOOD, OTHER_BEST, PAPER, VERY, VERY_BEST
from dpveil_research.plots import COLOURS, INK, SOFT, canvas_of, label, legend, png, widths
from dpveil_research.results import Row

SAME: Final = "k-same-m"
RATE: Final = "named rightly"
EPSILON: Final = "ε of the metric promise"
GROUP: Final = "k"
BANDS: Final = "; bands are 95 % intervals over people"
NEARBY: Final = 0.05
"""Points of a method that lie nearer than this, in both axes together, share a label."""
SIDES: Final = ((4, 3), (-4, -3), (-4, 3), (4, 3), (4, -3))
"""Where each method's labels stand, right and up of its points."""
NEAR: Final = ("embedding", "eigenfaces", "embedding, parrot", "eigenfaces, parrot")


@dataclass(frozen=True)
class Curve:
    """The rows with the values of `where`, plotted over `x` in a colour and style."""

    label: str
    colour: int
    where: dict[str, str]
    style: str = "-"
    column: str = "rate"
    x: str = "x"


def figures(found: Sequence[Row]) -> dict[str, bytes]:
    """Return every plot by its file's name. Raises `UsageError` without matplotlib."""
    made = {}
    makers: tuple[tuple[str, Callable[[str, Sequence[Row]], Any]], ...] = (
        ("one-release", _one),
        ("two-releases", _two),
        ("background", _background),
        ("trade-off", _trade_off),
    )
    for name in dict.fromkeys(row["dataset"] for row in found):
        rows = [row for row in found if row["dataset"] == name]
        for question, make in makers:
            file = f"{question}-{name.lower().replace('&', '')}.png"
            made[file] = png(make(name, rows))
    return made


def _one(name: str, rows: Sequence[Row]) -> Any:
    canvas, (left, right) = canvas_of(2)
    _title(canvas, f"One release, {name}: who is named rightly", rows)
    where = {"question": "one release", "releases": "1"}
    for axes, method, names, xlabel in (
        (left, PAPER, (*NEAR, LIKELIHOOD), EPSILON),
        (right, SAME, (*NEAR, GROUPS), GROUP),
    ):
        curves = [
            Curve(attack, i, where | {"method": method, "attack": attack}) for i, attack in enumerate(names)
        ]
        bound = "what nobody exceeds" if method == PAPER else "1/k"
        curves.append(Curve(bound, 5, where | {"method": method, "attack": names[-1]}, "--", "limit"))
        _draw(axes, curves, rows, method, xlabel)
        _levels(axes, rows)
        _legend(axes)
    return canvas


def _two(name: str, rows: Sequence[Row]) -> Any:
    canvas, (left, right) = canvas_of(2)
    _title(canvas, f"Two releases of one photo, {name}: who is named rightly", rows)
    curves = []
    for style, releases in (("-", "1"), ("--", "2")):
        here = {"method": PAPER, "releases": releases}
        for colour, attack in enumerate((LIKELIHOOD, "embedding")):
            question = "two releases" if attack == "embedding" or releases == "2" else "one release"
            where = here | {"attack": attack, "question": question}
            curves.append(Curve(f"{attack}, {releases}", colour, where, style))
        where = curves[-2].where
        curves.append(Curve(f"what nobody exceeds, {releases}", 5, where, style, "limit"))
    _draw(left, curves, rows, PAPER, EPSILON)
    curves = []
    for style, releases in (("-", "1"), ("--", "2")):
        for colour, attack in enumerate((GROUPS, f"{GROUPS}, embedding", "embedding", f"nearest k, {VERY}")):
            where = {"method": SAME, "releases": releases, "attack": attack, "question": "two releases"}
            curves.append(Curve(f"{attack}, {releases}", colour, where, style))
    curves.append(Curve("1/k", 5, curves[0].where, ":", "limit"))
    _draw(right, curves, rows, SAME, GROUP)
    _legend(left)
    _legend(right)
    return canvas


def _background(name: str, rows: Sequence[Row]) -> Any:
    canvas, (left, right) = canvas_of(2)
    _title(canvas, f"Background knowledge, {name}: who is named rightly", rows)
    curves = []
    for colour, method in enumerate(("k-same-pixel", SAME)):
        for style, view in (("-", "embedding"), ("--", "eigenfaces")):
            where = {"question": "background", "method": method, "attack": f"{view}, subtracting"}
            curves.append(Curve(f"{method}, {view}", colour, where, style))
    curves.append(Curve("1/k", 5, curves[0].where, ":", "limit"))
    _draw(left, curves, rows, "the other faces of the group are known", GROUP)
    _levels(left, rows)
    where = {"question": "background", "method": SAME, "attack": "striking off"}
    curves = [Curve(SAME, 5, where, x="known")]
    for colour, epsilon in enumerate(
        dict.fromkeys(r["x"] for r in rows if r["attack"].startswith("striking off, "))
    ):
        where = {"question": "background", "method": PAPER, "x": epsilon}
        curves.append(Curve(f"{PAPER}, ε = {epsilon}", colour, where, x="known"))
    _draw(right, curves, rows, "some are known to be elsewhere", "struck off, of 5 like people")
    _legend(left)
    _legend(right)
    return canvas


def _trade_off(name: str, rows: Sequence[Row]) -> Any:
    canvas, every = canvas_of(2)
    _title(canvas, f"What is kept and who is named, {name}", rows, "")
    for axes, attack in zip(every, (OTHER_BEST, VERY_BEST), strict=True):
        here = [row for row in rows if row["attack"] == attack and row["x"]]
        for colour, method in enumerate(dict.fromkeys(row["method"] for row in here)):
            of_it = [row for row in here if row["method"] == method]
            rate, ssim = ([float(row[key]) for row in of_it] for key in ("rate", "ssim"))
            axes.plot(rate, ssim, "o", color=COLOURS[colour], ms=4, label=method)
            _beside(axes, list(zip(rate, ssim, strict=True)), [one["x"] for one in of_it], colour)
        label(axes, f"{attack}; ε or k beside each point", RATE, "SSIM (higher is better)")
        _legend(axes)
    every[0].sharex(every[1])
    every[0].autoscale(axis="x")
    return canvas


def _title(canvas: Any, words: str, rows: Sequence[Row], bands: str = BANDS) -> None:
    people = max(int(row["people"]) for row in rows)
    canvas.suptitle(f"{words}\n{people} people{bands}", color=INK, fontsize=12)


def _beside(axes: Any, points: Sequence[tuple[float, float]], names: Sequence[str], colour: int) -> None:
    """Write settings beside points, each method's on its own side; those of near points share one label."""
    near: dict[tuple[float, float], list[str]] = {}
    for point, name in zip(points, names, strict=True):
        own = next((at for at in near if abs(at[0] - point[0]) + abs(at[1] - point[1]) < NEARBY), point)
        near.setdefault(own, []).append(name)
    right, up = SIDES[colour % len(SIDES)]
    style = {"ha": "left" if right > 0 else "right", "va": "bottom" if up > 0 else "top", "fontsize": 6.5}
    for at, those in near.items():
        words = ", ".join(those) if len(those) < 3 else f"{those[0]} to {those[-1]}"
        axes.annotate(
            words, at, xytext=(right, up), textcoords="offset points", color=COLOURS[colour], **style
        )


def _draw(axes: Any, curves: Sequence[Curve], rows: Sequence[Row], title: str, xlabel: str) -> None:
    """Draw every curve that has points; budgets and group sizes on a logarithmic axis."""
    places: set[float] = set()
    if xlabel in (EPSILON, GROUP):
        axes.set_xscale("log")
    drawn = [(curve, _rows_of(curve, rows)) for curve in curves]
    drawn = [(curve, mine) for curve, mine in drawn if mine]
    points = [[(float(row[c.x]), float(row[c.column])) for row in mine] for c, mine in drawn]
    for (curve, mine), at, width in zip(drawn, points, widths(points), strict=True):
        x, y = zip(*at, strict=True)
        places |= set(x)
        colour = COLOURS[curve.colour]
        if curve.column == "rate":
            low, high = ([float(row[f"rate_{end}"]) for row in mine] for end in ("low", "high"))
            axes.fill_between(x, low, high, color=colour, alpha=0.13, lw=0)
        axes.plot(x, y, color=colour, lw=width, ls=curve.style, marker="o", ms=2.8, label=curve.label)
    if xlabel != EPSILON:
        axes.set_xticks(sorted(places), [f"{place:g}" for place in sorted(places)])
        axes.minorticks_off()
    label(axes, title, xlabel, RATE)


def _rows_of(curve: Curve, rows: Sequence[Row]) -> list[Row]:
    """Return the rows of a curve in the order of x."""
    wanted = curve.where.items()
    mine = [row for row in rows if all(row[key] == value for key, value in wanted) and row[curve.column]]
    return sorted(mine, key=lambda row: float(row[curve.x]))


def _levels(axes: Any, rows: Sequence[Row]) -> None:
    """Draw the success without protection, and by chance."""
    for method, style in (("no codec", "-."), ("codec alone", (0, (1, 3)))):
        best = next(row for row in rows if row["method"] == method and row["attack"] == OTHER_BEST)
        axes.axhline(float(best["rate"]), color=SOFT, lw=1.1, ls=style, label=f"{method}, strongest")
    axes.axhline(float(rows[0]["chance"]), color=SOFT, lw=1.1, ls=":", label="chance")


def _legend(axes: Any) -> None:
    axes.set_ylim(-0.02, 1.03)
    if axes.get_legend_handles_labels()[0]:
        legend(axes, ncols=2, handlelength=3.0, fontsize=7.5)
