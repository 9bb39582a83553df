"""Croft 2022, figures 12, 14, 16 and 17: Laplace and exponential mechanism in pixel space, on LFW faces.

The paper uses FaceScrub, also at 128×128 pixels. The Laplace mechanism is `DPPix` for all pixels; the
exponential one is `SSIMExponential`, and `PublishedSSIM` as printed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from typing import Final

from dpveil.mechanisms.pixel import DPPix, Fill, Mosaic, PixelMethod, SSIMExponential
from dpveil.postprocessing.steps import GaussianBlur
from dpveil_research.data import Dataset
from dpveil_research.grid import Contrast, Grid, Setting
from dpveil_research.plots import Panel, figure
from dpveil_research.published import PublishedSSIM
from dpveil_research.results import Row

EPSILONS: Final = (
    *("10", "32", "100", "200", "316", "400", "600", "800", "1000"),
    *("3162", "10000", "31623", "100000", "316228", "1000000"),
)
BLOCKS: Final = (4, 8, 16)
MECHANISMS: Final[dict[str, Callable[..., PixelMethod]]] = {
    "exponential": SSIMExponential,
    "Laplace": DPPix,
    "published exponential": PublishedSSIM,
    "published, clipped": partial(PublishedSSIM, clip=True),
}
SWEEP: Final = "over epsilon"
BLUR: Final = GaussianBlur(1)
NOTHING: Final = "grey only: shows nothing"
GREY: Final = 127
ZOOM: Final = 1000  # the largest ε of the paper's close-up of block 16


def series(mechanism: str, block: int, blurred: bool = True) -> str:
    return f"{mechanism}, b = {block}" + (", blurred" if blurred else "")


def _settings() -> list[Setting]:
    made = [Setting(SWEEP, NOTHING, "", Fill(level=GREY))]
    for b, blurred in product(BLOCKS, (False, True)):
        after = BLUR if blurred else None
        made.append(Setting(SWEEP, series("mosaic", b, blurred), "", Mosaic(block=b), after))
        for (name, mechanism), e in product(MECHANISMS.items(), EPSILONS):
            made.append(Setting(SWEEP, series(name, b, blurred), e, mechanism(epsilon=e, block=b), after))
    return made


def _figures(rows: Sequence[Row], about: str) -> dict[str, bytes]:
    """Return figures 12 and 16, six variants of each mechanism, 14 and 17, both blurred, and the clip's."""
    made = {}
    near = [row for row in rows if float(row["x"] or 0) <= ZOOM]
    clip = []
    for measure, variants, both in (("ssim", 12, 14), ("mse", 16, 17)):
        panels = [Panel(measure, "ε", mechanism, logx=True) for mechanism in ("exponential", "Laplace")]
        for panel, blurred, (i, b) in product(panels, (False, True), enumerate(BLOCKS)):
            panel.curve(series(panel.title, b, blurred), rows, i, "--" if blurred else "-")
        beside = Panel(measure, "ε", "blurred", logx=True)
        close = Panel(measure, "ε", "blurred, b = 16, close up")
        clip.append(Panel(measure, "ε", logx=True))
        for name, style in (("exponential", "--"), ("Laplace", "-")):
            close.curve(series(name, BLOCKS[-1]), near, len(BLOCKS) - 1, style)
            for i, b in enumerate(BLOCKS):
                beside.curve(series(name, b), rows, i, style)
        for (name, style), (i, b) in product(
            (("exponential", "-"), ("published exponential", ":")), enumerate(BLOCKS)
        ):
            clip[-1].curve(series(name, b), rows, i, style)
        for panel in (*panels, beside, close):
            panel.curve(NOTHING, rows, 0, ":")
        made[f"figure-{variants}.png"] = figure(f"With and without blur\n{about}", *panels, same=True)
        title = f"Exponential (broken lines) and Laplace mechanism\n{about}"
        made[f"figure-{both}.png"] = figure(title, beside, close)
    title = f"The exponential mechanism with the clip and as published, blurred\n{about}"
    return made | {"clip.png": figure(title, *clip)}


def _contrasts() -> tuple[Contrast, ...]:
    made = []
    for b in BLOCKS:
        for blurred in (False, True):
            ours, laplace, clipped, published = (
                series(name, b, blurred)
                for name in ("exponential", "Laplace", "published, clipped", "published exponential")
            )
            pairs = ((ours, laplace), (clipped, laplace), (published, clipped), (ours, clipped))
            made += [(SWEEP, *pair) for pair in pairs]
        for mechanism in ("exponential", "Laplace"):
            made.append((SWEEP, series(mechanism, b), series(mechanism, b, False)))
    return tuple(made)


GRID: Final = Grid(
    name="croft-2022",
    about="LFW",
    dataset=Dataset("lfw10_128", "RGB", (128, 128)),
    images=79,
    settings=tuple(_settings()),
    contrasts=_contrasts(),
    figures=_figures,
)
