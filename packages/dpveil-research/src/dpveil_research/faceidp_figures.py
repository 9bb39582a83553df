"""Figures of the FaceIDP experiment."""

from __future__ import annotations

from typing import Final

from dpveil_research.faceidp_sound import EQUAL, GAUSSIAN, LAPLACE, OVER, RECOGNISED, TRUNCATED, UNDER
from dpveil_research.plots import Figure, Line, Panel
from dpveil_research.published_faceidp import ALLOCATIONS

SERIES: Final = tuple(Line(name, i, "--") for i, name in enumerate(ALLOCATIONS))
OURS: Final = (Line(LAPLACE, 3), Line(EQUAL, 4), Line(TRUNCATED, 5, ":"), Line(GAUSSIAN, 6))
WITH_DELTA: Final = tuple(Line(f"{name}, with δ", i) for i, name in enumerate(ALLOCATIONS))
FIGURES: Final = (
    Figure(
        "figure-13",
        "Figure 13: FaceIDP's budgets (broken, no promise) and ε of sound mechanisms",
        (
            Panel(OVER, "epsilon", "utility: squared error", (*SERIES, *OURS), logx=True, logy=True),
            Panel(UNDER, "utility", "ε", (*SERIES, *OURS), logx=True, logy=True, bands=False),
        ),
    ),
    Figure(
        "theorem-6-1",
        "FaceIDP's ε′ and its whole ε of theorem VI.1",
        (Panel(OVER, "epsilon", "utility: squared error", (*SERIES, *WITH_DELTA), logx=True, logy=True),),
    ),
    Figure(
        "recognised",
        "What the recogniser takes for A (left: A itself, right: B; means)",
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
    ),
    Figure(
        "figure-9-12",
        "Figures 9 to 12: how far B lies from A, at utility 13 (means)",
        tuple(
            Panel(sweep, "difference", label, (Line("original", 5), *SERIES), bands=False)
            for sweep, label in (
                ("codes", "coordinate of the code"),
                ("embeddings", "coordinate of the embedding"),
            )
        ),
    ),
)
