"""The plot of the attributes experiment: re-identification, and the utility of a budget."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any, Final

from dpveil_research.plots import COLOURS, SOFT, canvas_of, label, legend, png

SHOWN: Final = {
    "strongest": "strongest attacker, from the picture",
    "told the attributes": "who is only told the attributes",
}
LINE: Final = 0.6
"""Height of a line of a label, relative to the least distance between settings."""
Rows = Sequence[Mapping[str, str]]


def draw_attributes(rows: Rows, costs: Rows) -> bytes:
    """Return the figure as PNG: re-identification at every setting, and probabilities against ε."""
    canvas, (left, right) = canvas_of(2)
    _attacks(left, rows)
    _prices(right, costs)
    return png(canvas)


def _attacks(axes: Any, rows: Rows) -> None:
    settings = list(dict.fromkeys(one["setting"] for one in rows if one["measure"] == "strongest"))
    places = places_of(settings)
    for number, (measure, who) in enumerate(SHOWN.items()):
        found = {one["setting"]: one for one in rows if one["measure"] == measure}
        mean, low, high = (
            [100 * float(found[s][name]) for s in settings] for name in ("mean", "low", "high")
        )
        at = [place + 0.18 * (2 * number - 1) for place in places]
        around = [
            [m - a for m, a in zip(mean, low, strict=True)],
            [b - m for m, b in zip(mean, high, strict=True)],
        ]
        axes.errorbar(mean, at, xerr=around, fmt="o", ms=4, capsize=2, color=COLOURS[number], label=who)
    chance = 100 * float(next(one["chance"] for one in rows if one["measure"] == "strongest"))
    axes.axvline(chance, color=SOFT, lw=1.2, ls=":", label="chance")
    axes.set_yticks(places, [setting.replace(",", ",\n") for setting in settings], fontsize=7)
    axes.invert_yaxis()
    label(axes, "158 people of LFW", "of releases named rightly, %", "")
    legend(axes)


def places_of(settings: Sequence[str]) -> list[float]:
    """Return the heights of the settings' labels, one line for each attribute, so that none overlap."""
    ends = list(accumulate(max(1.0, LINE * (1 + setting.count(","))) for setting in settings))
    starts = [0.0, *ends[:-1]]
    return [(start + end) / 2 for start, end in zip(starts, ends, strict=True)]


def _prices(axes: Any, costs: Rows) -> None:
    for number, size in enumerate(sorted({int(one["values"]) for one in costs})):
        points = {float(one["epsilon"]): float(one["kept"]) for one in costs if int(one["values"]) == size}
        names = ", ".join(dict.fromkeys(one["attribute"] for one in costs if int(one["values"]) == size))
        drawn = [100 * p for p in points.values()]
        axes.plot(list(points), drawn, "o-", ms=3.2, color=COLOURS[number], label=f"{size} values ({names})")
    label(axes, "What a budget buys", "ε of the attribute", "what was read is drawn, %")
    legend(axes)
