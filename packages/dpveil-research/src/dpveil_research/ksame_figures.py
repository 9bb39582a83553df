"""Plots of k-same beside differential privacy: one for each question and data set. No face is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from dpveil_research.ksame_data import GROUPS, LIKELIHOOD, OTHER_BEST, PAPER, VERY, VERY_BEST
from dpveil_research.plots import Drawing, Figure, Line, Panel, draw
from dpveil_research.results import Row

SAME: Final = "k-same-m"
EPSILON: Final = "ε of the metric promise"
NEAR: Final = ("embedding", "eigenfaces", "embedding, parrot", "eigenfaces, parrot")
NOBODY: Final = "what nobody exceeds"


def figures(found: Sequence[Row]) -> dict[str, bytes]:
    """Return every plot by its file's name. Raises `UsageError` without matplotlib."""
    made = {}
    for name in dict.fromkeys(row["dataset"] for row in found):
        rows, drawing = [row for row in found if row["dataset"] == name], Drawing()
        people = f"{name}, {max(int(row['people']) for row in rows)} people"
        every = {
            "one-release": ("One release: who is named rightly", _one(drawing, rows)),
            "two-releases": ("Two releases of one photo: who is named rightly", _two(drawing, rows)),
            "background": ("Background knowledge: who is named rightly", _background(drawing, rows)),
            "trade-off": ("What is kept and who is named", _trade_off(drawing, rows)),
        }
        for question, (words, panels) in every.items():
            title = f"{words}\n{people}; 95 % intervals over people"
            file = f"{question}-{name.lower().replace('&', '')}"
            made[f"{file}.png"] = draw(Figure(file, title, panels), drawing.table)
    return made


def _one(drawing: Drawing, rows: Sequence[Row]) -> tuple[Panel, ...]:
    where = {"question": "one release", "releases": "1"}
    for method, last, bound in ((PAPER, LIKELIHOOD, NOBODY), (SAME, GROUPS, "1/k")):
        for colour, attack in enumerate((*NEAR, last)):
            drawing.add(method, Line(attack, colour), rows, "rate", method=method, attack=attack, **where)
        line = Line(bound, 5, "--")
        drawing.add(method, line, rows, "rate", y="limit", method=method, attack=last, **where)
        _levels(drawing, method, rows)
    return (
        drawing.panel(PAPER, "rate", EPSILON, PAPER, logx=True),
        drawing.panel(SAME, "rate", "k", SAME, logx=True),
    )


def _two(drawing: Drawing, rows: Sequence[Row]) -> tuple[Panel, ...]:
    two = "two releases"
    for style, releases in (("-", "1"), ("--", "2")):
        here = {"method": PAPER, "releases": releases}
        for colour, attack in enumerate((LIKELIHOOD, "embedding")):
            question = two if attack == "embedding" or releases == "2" else "one release"
            line = Line(f"{attack}, {releases}", colour, style)
            drawing.add("two", line, rows, "rate", attack=attack, question=question, **here)
            if attack == LIKELIHOOD:
                line = Line(f"{NOBODY}, {releases}", 5, style)
                drawing.add("two", line, rows, "rate", y="limit", attack=attack, question=question, **here)
        for colour, attack in enumerate((GROUPS, f"{GROUPS}, embedding", "embedding", f"nearest k, {VERY}")):
            line, here = Line(f"{attack}, {releases}", colour, style), {"method": SAME, "releases": releases}
            drawing.add("two k", line, rows, "rate", attack=attack, question=two, **here)
    here = {"method": SAME, "releases": "1", "attack": GROUPS, "question": two}
    drawing.add("two k", Line("1/k", 5, ":"), rows, "rate", y="limit", **here)
    return (
        drawing.panel("two", "rate", EPSILON, PAPER, logx=True),
        drawing.panel("two k", "rate", "k", SAME, logx=True),
    )


def _background(drawing: Drawing, rows: Sequence[Row]) -> tuple[Panel, ...]:
    asked = [row for row in rows if row["question"] == "background"]
    for colour, method in enumerate(("k-same-pixel", SAME)):
        for style, view in (("-", "embedding"), ("--", "eigenfaces")):
            here = {"method": method, "attack": f"{view}, subtracting"}
            drawing.add("less", Line(f"{method}, {view}", colour, style), asked, "rate", **here)
    here = {"method": "k-same-pixel", "attack": "embedding, subtracting"}
    drawing.add("less", Line("1/k", 5, ":"), asked, "rate", y="limit", **here)
    _levels(drawing, "less", rows)
    drawing.add("off", Line(SAME, 5), asked, "rate", x="known", method=SAME, attack="striking off")
    struck = [row for row in asked if row["method"] == PAPER]
    for colour, epsilon in enumerate(dict.fromkeys(row["x"] for row in struck)):
        line, own = Line(f"{PAPER}, ε = {epsilon}", colour), [row for row in struck if row["x"] == epsilon]
        drawing.add("off", line, own, "rate", x="known", attack=f"striking off, {LIKELIHOOD}")
    panels = [drawing.panel("less", "rate", "k", "the other faces of the group are known", logx=True)]
    if "off" in drawing.lines:
        words = "struck off, of 5 like people"
        panels.append(drawing.panel("off", "rate", words, "some are known to be elsewhere"))
    return tuple(panels)


def _trade_off(drawing: Drawing, rows: Sequence[Row]) -> tuple[Panel, ...]:
    for attack in (OTHER_BEST, VERY_BEST):
        here = [row for row in rows if row["attack"] == attack and row["x"]]
        for colour, method in enumerate(dict.fromkeys(row["method"] for row in here)):
            drawing.add(attack, Line(method, colour), here, "ssim", x="rate", method=method)
    words = "share that is named rightly"
    return tuple(
        drawing.panel(attack, "ssim", words, f"{attack}; ε or k beside", beside=True)
        for attack in (OTHER_BEST, VERY_BEST)
    )


def _levels(drawing: Drawing, sweep: str, rows: Sequence[Row]) -> None:
    """Draw the success without protection, and by chance."""
    for method, style in (("no codec", "-."), ("codec alone", "--")):
        best = {"method": method, "attack": OTHER_BEST}
        drawing.add(sweep, Line(f"{method}, strongest", 0, style), rows, "rate", x="", **best)
    drawing.level(sweep, Line("chance", 0, ":"), "rate", float(rows[0]["chance"]))
