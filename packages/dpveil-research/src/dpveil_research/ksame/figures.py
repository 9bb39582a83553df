"""Plots of the table: one file for each question and data set. No face is drawn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from dpveil_research.ksame.one import LIKELIHOOD
from dpveil_research.ksame.plan import PAPER
from dpveil_research.ksame.rows import GROUPS, OTHER_BEST, VERY, VERY_BEST
from dpveil_research.plots import COLOURS, INK, SOFT, canvas_of, label, legend, png
from dpveil_research.results import Row

SAME: Final = "k-same-m"
RATE: Final = "named rightly"
EPSILON: Final = "ε of the metric promise"
GROUP: Final = "k"
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
    canvas.suptitle(f"One release, {name}: who is named rightly", color=INK, fontsize=12)
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
    canvas.suptitle(f"Two releases of one photo, {name}: who is named rightly", color=INK, fontsize=12)
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
    canvas.suptitle(f"Background knowledge, {name}: who is named rightly", color=INK, fontsize=12)
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
    canvas.suptitle(f"What is kept and who is named, {name}", color=INK, fontsize=12)
    for axes, attack in zip(every, (OTHER_BEST, VERY_BEST), strict=True):
        here = [row for row in rows if row["attack"] == attack and row["x"]]
        for colour, method in enumerate(dict.fromkeys(row["method"] for row in here)):
            of_it = [row for row in here if row["method"] == method]
            rate, ssim = ([float(row[key]) for row in of_it] for key in ("rate", "ssim"))
            axes.plot(rate, ssim, "o", color=COLOURS[colour], ms=4, label=method)
            for x, y, one in zip(rate, ssim, of_it, strict=True):
                near = {"xytext": (3, 3), "textcoords": "offset points"}
                axes.annotate(one["x"], (x, y), fontsize=6.5, color=SOFT, **near)
        label(axes, f"{attack}; ε or k beside each point", RATE, "SSIM (higher is better)")
        _legend(axes)
    return canvas


def _draw(axes: Any, curves: Sequence[Curve], rows: Sequence[Row], title: str, xlabel: str) -> None:
    """Draw every curve that has points; budgets and group sizes on a logarithmic axis."""
    places: set[float] = set()
    if xlabel in (EPSILON, GROUP):
        axes.set_xscale("log")
    for curve in curves:
        wanted = curve.where.items()
        mine = [row for row in rows if all(row[key] == value for key, value in wanted) and row[curve.column]]
        if not mine:
            continue
        mine.sort(key=lambda row: float(row[curve.x]))
        x, y = ([float(row[key]) for row in mine] for key in (curve.x, curve.column))
        places |= set(x)
        colour = COLOURS[curve.colour]
        if curve.column == "rate":
            low, high = ([float(row[f"rate_{end}"]) for row in mine] for end in ("low", "high"))
            axes.fill_between(x, low, high, color=colour, alpha=0.13, lw=0)
        axes.plot(x, y, color=colour, lw=1.6, ls=curve.style, marker="o", ms=2.8, label=curve.label)
    if xlabel != EPSILON:
        axes.set_xticks(sorted(places), [f"{place:g}" for place in sorted(places)])
        axes.minorticks_off()
    label(axes, title, xlabel, RATE)


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
