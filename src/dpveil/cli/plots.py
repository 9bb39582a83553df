"""What the plots of `explain` and `mechanism compare` share: size, colours, and the file."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dpveil.errors import UnknownName, UsageError
from dpveil.io import write_together

INK = "#1c1e22"


def write_plot(
    path: Path, size: tuple[float, float], draw: Callable[[Any], None], *, replace: bool = False
) -> None:
    """Write what `draw` draws on a figure of `size` inches as PNG.

    Raises `UsageError` without matplotlib, `UnknownName` for another suffix, and `OutputError`, also if the
    file exists and `replace` is false.
    """
    if path.suffix.lower() != ".png":
        raise UnknownName("plot format", path.suffix or str(path), [".png"])
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise UsageError("plots need matplotlib", hint="pip install 'dpveil[plots]'") from error
    figure = Figure(figsize=size, dpi=150, layout="constrained")
    draw(figure)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", metadata={"Software": None})
    write_together([(path, buffer.getvalue())], replace=replace)


def label(axes: Any, title: str, x: str, y: str, *, fontsize: int) -> None:
    """Set the titles of a plot and its axes, with a faint grid and no frame above and to the right."""
    axes.set_xlabel(x, color=INK)
    axes.set_ylabel(y, color=INK)
    axes.set_title(title, color=INK, fontsize=fontsize, loc="left")
    axes.grid(color="#e4e2dc", lw=0.8)
    axes.spines[["top", "right"]].set_visible(False)
