"""Figures of the FaceIDP experiment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from dpveil_research.faceidp_sound import EQUAL, GAUSSIAN, LAPLACE, OVER, RECOGNISED, TRUNCATED, UNDER
from dpveil_research.plots import Figure, Line, Panel
from dpveil_research.published_faceidp import ALLOCATIONS
from dpveil_research.results import Row, estimate

SERIES: Final = tuple(Line(name, i, "--") for i, name in enumerate(ALLOCATIONS))
OURS: Final = (Line(LAPLACE, 3), Line(EQUAL, 4), Line(TRUNCATED, 5, ":"), Line(GAUSSIAN, 6))
APART: Final = tuple(Line(name, i) for i, name in enumerate(ALLOCATIONS))
WITH_DELTA: Final = tuple(Line(f"{name}, with δ", i) for i, name in enumerate(ALLOCATIONS))
FIGURES: Final = (
    Figure(
        "figure-13",
        "Figure 13, LFW: FaceIDP's budgets (broken, no promise) and ε of sound mechanisms",
        (
            Panel(OVER, "epsilon", "utility: squared error", (*SERIES, *OURS), logx=True, logy=True),
            Panel(UNDER, "utility", "ε", (*SERIES, *OURS), logx=True, logy=True, bands=False),
        ),
        counted={"n": "pairs (FaceIDP) or faces (sound mechanisms)"},
    ),
    Figure(
        "theorem-6-1",
        "LFW: FaceIDP's ε′ and its whole ε (theorem VI.1)",
        (Panel(OVER, "epsilon", "utility: squared error", (*SERIES, *WITH_DELTA), logx=True, logy=True),),
        counted={"n": "pairs"},
    ),
    Figure(
        "recognised",
        "LFW: what the recogniser takes for A (left: A itself, right: B; means)",
        tuple(
            Panel(
                "taken for A",
                "taken",
                "utility: squared error",
                (
                    *(Line(f"{name}, {face}", i, "--") for i, name in enumerate(ALLOCATIONS)),
                    *(Line(f"{name}, {face}", 3 + 3 * i) for i, name in enumerate(RECOGNISED)),
                ),
                logx=True,
                bands=False,
            )
            for face in "AB"
        ),
        same=True,
        counted={"n": "pairs"},
    ),
    Figure(
        "figure-9-12",
        "Figures 9 to 12, LFW: how far B lies from A, and what noise adds at utility 13 (means)",
        tuple(
            Panel(sweep, measure, words, lines, bands=False)
            for sweep, words in (
                ("codes", "coordinate of the code"),
                ("embeddings", "coordinate of the embedding"),
            )
            for measure, lines in (("difference", (Line("original", 5),)), ("farther", APART))
        ),
        counted={"n": "pairs"},
    ),
)


def farther(differences: Sequence[Row]) -> list[Row]:
    """Return the rows with what noise adds to the differences of the original faces."""
    plain = {
        (row["sweep"], row["x"]): float(row["difference"])
        for row in differences
        if row["series"] == "original"
    }
    found = []
    for row in differences:
        more = float(row["difference"]) - plain[row["sweep"], row["x"]]
        found.append({**row, **estimate("farther", (more,) * 3)})
    return found
