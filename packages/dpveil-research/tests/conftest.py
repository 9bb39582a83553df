"""Rendering took most of the time of these tests: only the first plot of each test is rendered."""

from __future__ import annotations

from typing import Any

import pytest
from matplotlib.figure import Figure
from PIL import Image


@pytest.fixture(autouse=True)
def _render_the_first_plot(monkeypatch: pytest.MonkeyPatch) -> None:
    save, rendered = Figure.savefig, []

    def savefig(canvas: Figure, file: Any, **options: Any) -> None:
        if rendered:
            Image.new("L", tuple(map(int, canvas.bbox.size))).save(file, "PNG")
        else:
            rendered.append(canvas)
            save(canvas, file, **options)

    monkeypatch.setattr(Figure, "savefig", savefig)
