"""Figures 5, 7, 10 and 11, with differences where curves are compared. No face is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from dpveil_research.croft_2022_faces.plan import BASIC, MARGIN, MODELS, PRIVATE, REVERSAL, SAME, TOLD
from dpveil_research.plots import COLOURS, INK, SOFT, canvas_of, label, legend, png
from dpveil_research.results import Row, columns

NAMED: Final = "people named, %"
AXES: Final = {PRIVATE: ("differential privacy", "ε of the metric promise"), SAME: ("k-same-m", "k")}
MODEL: Final = {BASIC: "basic model", TOLD: "model that is told the gender"}
APART: Final = 1.03
"""Curves that are compared are moved apart by this factor, so that neither hides the other."""


def figures(found: Sequence[Row], said: Sequence[Row]) -> dict[str, bytes]:
    """Return every figure as PNG by its name. Raises `UsageError` without matplotlib."""
    made = {"figure-5": _risk, "figure-7": _gender, "figure-10": _parrot, "figure-11": _two}
    about = f"{found[0]['people']} people of LFW, one photo each; bars are 95 % intervals over people"
    out = {}
    for name, draw in made.items():
        canvas = draw(found, said)
        canvas.suptitle(f"{name.replace('-', ' ').capitalize()}: {about}", color=INK, fontsize=11)
        out[f"{name}.png"] = png(canvas)
    return out


def _risk(found: Sequence[Row], _: Sequence[Row]) -> Any:
    canvas, every = canvas_of(2, same=True)
    for axes, method in zip(every, AXES, strict=True):
        for colour, model in enumerate(MODELS):
            rows = _of(found, method, model)
            _bars(axes, _x(rows, colour), rows, "named", colour, MODEL[model])
        _levels(axes, found, "named")
        _finish(axes, method, NAMED, found)
    return canvas


def _gender(found: Sequence[Row], _: Sequence[Row]) -> Any:
    canvas, every = canvas_of(2, same=True)
    for axes, method in zip(every, AXES, strict=True):
        for colour, model in enumerate(MODELS):
            rows = _of(found, method, model)
            error = [100 * (1 - float(row["named"])) for row in rows]
            _bars(axes, error, rows, "gender", colour, MODEL[model])
            _beside(axes, error, [100 * float(row["gender"]) for row in rows], [row["x"] for row in rows])
        plain = 100 * float(_of(found, "none", "")[0]["gender"])
        axes.axhline(plain, color=SOFT, lw=1.1, ls="-.", label="photos as they are")
        title, words = AXES[method]
        label(axes, f"{title}, {words[0]} beside points", "people not named, %", "gender read rightly, %")
        legend(axes)
    every[0].sharex(every[1])
    every[0].autoscale(axis="x")
    return canvas


def _parrot(found: Sequence[Row], said: Sequence[Row]) -> Any:
    canvas, (left, right) = canvas_of(2)
    rows = _of(found, PRIVATE, BASIC)
    _bars(left, _x(rows, 0), rows, "named", 0, "learned from photos")
    _bars(left, _x(rows, 1), rows, "parrot", 1, "learned from releases (parrot)")
    _levels(left, found, "named")
    _finish(left, PRIVATE, NAMED, found)
    _gaps(right, [row for row in said if row["claim"] in ("C15", "C16")], PRIVATE, 1, "parrot, more")
    right.axvline(REVERSAL, color=SOFT, lw=1.1, ls="--", label=f"ε = {REVERSAL}: the paper's reversal")
    _finish(right, PRIVATE, "named by the parrot beyond the other, points", None)
    return canvas


def _two(found: Sequence[Row], said: Sequence[Row]) -> Any:
    canvas, every = canvas_of(3)
    every[1].sharey(every[0])
    for axes, method in zip(every, AXES, strict=False):
        rows = _of(found, method, BASIC)
        _bars(axes, _x(rows, 0), rows, "one", 0, "one release")
        _bars(axes, _x(rows, 1), rows, "two", 1, "two releases")
        if method == SAME:
            x = [float(row["x"]) for row in rows]
            axes.plot(x, [100 / k for k in x], color=SOFT, ls="--", lw=1.2, label="1/k")
        _finish(axes, method, NAMED, found)
    for colour, method in enumerate(AXES):
        gaps = [row for row in said if row["claim"] == "gap" and row["setting"].startswith(method)]
        one = {row["x"]: 100 * float(row["one"]) for row in _of(found, method, BASIC)}
        _gaps(every[2], gaps, method, colour + 2, AXES[method][0], one)
    every[2].axhline(100 * MARGIN, color=SOFT, lw=1.1, ls="--", label="marginal")
    label(
        every[2],
        f"Second release; k-same of {gaps[0]['people']} people",
        "named in one release, %",
        "gain by the second, points",
    )
    legend(every[2])
    return canvas


def _of(found: Sequence[Row], method: str, model: str) -> list[Row]:
    return [row for row in found if (row["method"], row["model"]) == (method, model)]


def _x(rows: Sequence[Row], place: int) -> list[float]:
    return [float(row["x"]) * APART ** (2 * place - 1) for row in rows]


def _bars(
    axes: Any, x: Sequence[float], rows: Sequence[Row], measure: str, colour: int, words: str, link: str = "-"
) -> None:
    mean, low, high = ([100 * float(row[name]) for row in rows] for name in columns(measure))
    away = [[m - a for m, a in zip(mean, low, strict=True)], [b - m for m, b in zip(mean, high, strict=True)]]
    style = {"color": COLOURS[colour], "lw": 1.4, "marker": "o", "ms": 3.5, "elinewidth": 0.8}
    axes.errorbar(x, mean, away, ls=link, label=words, **style)


def _gaps(
    axes: Any,
    gaps: Sequence[Row],
    method: str,
    colour: int,
    words: str,
    at: dict[str, float] | None = None,
) -> None:
    """Draw differences over the setting, or over `at` with the setting beside each point."""
    names = [row["setting"].removeprefix(f"{method} ") for row in gaps]
    x = [float(name) if at is None else at[name] for name in names]
    _bars(axes, x, gaps, "difference", colour, words, "-" if at is None else "none")
    axes.axhline(0, color=INK, lw=0.8)
    if at is not None:
        _beside(axes, x, [100 * float(row["difference"]) for row in gaps], names)


def _beside(axes: Any, x: Sequence[float], y: Sequence[float], names: Sequence[str]) -> None:
    """Write the setting beside each point; points within 5 units of each other share one label."""
    near: dict[tuple[float, float], list[str]] = {}
    for place, height, name in zip(x, y, names, strict=True):
        own = next((at for at in near if abs(at[0] - place) + abs(at[1] - height) < 5), (place, height))
        near.setdefault(own, []).append(name)
    for at, those in near.items():
        axes.annotate(", ".join(those), at, fontsize=6.5, xytext=(4, 4), textcoords="offset points")


def _levels(axes: Any, found: Sequence[Row], measure: str) -> None:
    for method, model, style in (("none", "", "-."), ("codec alone", BASIC, "--")):
        level = 100 * float(_of(found, method, model)[0][measure])
        words = "photos as they are" if method == "none" else "decoded without noise"
        axes.axhline(level, color=SOFT, lw=1.1, ls=style, label=words)


def _finish(axes: Any, method: str, y: str, found: Sequence[Row] | None) -> None:
    if found is not None:
        axes.axhline(100 / int(found[0]["people"]), color=SOFT, lw=1.1, ls=":", label="chance")
    axes.set_xscale("log")
    if method == SAME and found is not None:
        ticks = [float(row["x"]) for row in _of(found, SAME, BASIC)]
        axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        axes.minorticks_off()
    label(axes, AXES[method][0], AXES[method][1], y)
    legend(axes)
