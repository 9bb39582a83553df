"""The plot of the gallery experiment: re-identification and agreement against ε."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from dpveil_research.plots import COLOURS, SOFT, canvas_of, label, png

ATTACKS: Final = {
    "strongest": "strongest attacker",
    "embedding": "embedding, knows photos",
}
AGREE: Final = ("gender", "perceived-race", "age")
Rows = Sequence[Mapping[str, str]]


def draw_gallery(rows: Rows) -> bytes:
    """Return the figure as PNG: re-identification and agreement of the default law against ε."""
    canvas, (left, right) = canvas_of(2)
    for number, (measure, who) in enumerate(ATTACKS.items()):
        _line(left, rows, measure, number, who)
    told = next(one for one in rows if one["measure"] == "told")
    left.axhline(100 * float(told["mean"]), color=SOFT, lw=1.2, ls="--", label="who is told four attributes")
    left.axhline(100 * float(told["chance"]), color=SOFT, lw=1.2, ls=":", label="chance")
    label(left, "158 people of LFW", "ε of a face", "of releases named rightly, %")
    for number, name in enumerate(AGREE):
        _line(right, rows, f"{name} agrees", number, name)
    label(right, "What a budget keeps", "ε of a face", "read in the released face as in the person, %")
    for axes in (left, right):
        axes.set_ylim(bottom=0)
        axes.legend(frameon=False, fontsize=8.5)
    return png(canvas)


def _line(axes: Any, rows: Rows, measure: str, number: int, name: str) -> None:
    """Draw means with their intervals, of the settings that differ in ε only."""
    own = [one for one in rows if one["measure"] == measure and one["setting"].startswith("epsilon=")]
    own = [one for one in own if "," not in one["setting"]]
    at = [float(one["setting"].removeprefix("epsilon=")) for one in own]
    mean, low, high = ([100 * float(one[name]) for one in own] for name in ("mean", "low", "high"))
    axes.plot(at, mean, "o-", ms=3.5, color=COLOURS[number], label=name)
    axes.fill_between(at, low, high, color=COLOURS[number], alpha=0.15, lw=0)
