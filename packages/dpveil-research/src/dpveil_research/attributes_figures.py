"""The plot of the attributes method: who is recognised, and what a budget buys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from dpveil_research.plots import COLOURS, INK, SOFT, canvas_of, png

SHOWN: Final = ("strongest", "told the attributes")
Rows = Sequence[Mapping[str, str]]


def draw_attributes(rows: Rows, costs: Rows) -> bytes:
    """Return the figure as PNG: re-identification at every setting, and chances against ε."""
    canvas, (left, right) = canvas_of(2)
    _attacks(left, rows)
    _prices(right, costs)
    return png(canvas)


def _attacks(axes: Any, rows: Rows) -> None:
    settings = list(dict.fromkeys(one["setting"] for one in rows if one["measure"] == "strongest"))
    for number, measure in enumerate(SHOWN):
        found = {one["setting"]: one for one in rows if one["measure"] == measure}
        mean, low, high = (
            [100 * float(found[s][name]) for s in settings] for name in ("mean", "low", "high")
        )
        at = [place + 0.18 * (2 * number - 1) for place in range(len(settings))]
        around = [
            [m - a for m, a in zip(mean, low, strict=True)],
            [b - m for m, b in zip(mean, high, strict=True)],
        ]
        label = {"strongest": "strongest attacker, from the picture"}.get(
            measure, "who is only told the attributes"
        )
        axes.errorbar(mean, at, xerr=around, fmt="o", ms=4, capsize=2, color=COLOURS[number], label=label)
    chance = 100 * float(next(one["chance"] for one in rows if one["measure"] == "strongest"))
    axes.axvline(chance, color=SOFT, lw=1.2, ls=":", label="chance")
    axes.set_yticks(range(len(settings)), [setting.replace(",", ",\n") for setting in settings], fontsize=7)
    axes.invert_yaxis()
    axes.set_xlabel("of releases named rightly, %", color=INK)
    axes.set_title("158 people of LFW", color=INK, fontsize=11, loc="left")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.14), frameon=False, fontsize=8.5)


def _prices(axes: Any, costs: Rows) -> None:
    for number, size in enumerate(sorted({int(one["values"]) for one in costs})):
        points = {float(one["epsilon"]): float(one["kept"]) for one in costs if int(one["values"]) == size}
        names = ", ".join(dict.fromkeys(one["attribute"] for one in costs if int(one["values"]) == size))
        label = f"{size} values ({names})"
        axes.plot(
            list(points), [100 * p for p in points.values()], "o-", ms=3.2, color=COLOURS[number], label=label
        )
    axes.set_xlabel("ε of the attribute", color=INK)
    axes.set_ylabel("what was read is drawn, %", color=INK)
    axes.set_title("What a budget buys", color=INK, fontsize=11, loc="left")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.14), frameon=False, fontsize=8.5)
