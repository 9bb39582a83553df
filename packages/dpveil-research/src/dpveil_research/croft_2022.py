"""Croft 2022, figures 12, 14, 16 and 17: Laplace and exponential mechanism in pixel space, on LFW faces.

The paper uses FaceScrub, also at 128×128 pixels. The Laplace mechanism is `DPPix` for all pixels; the
exponential one is `SSIMExponential`, and `PublishedSSIM` as printed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Final

from dpveil.mechanisms.pixel import DPPix, Fill, Mosaic, PixelMethod, SSIMExponential
from dpveil.postprocessing import GaussianBlur
from dpveil_research.data import Dataset
from dpveil_research.grid import Contrast, Grid, Setting
from dpveil_research.plots import OF_PHOTOS, Figure, Line, Panel
from dpveil_research.published import PublishedSSIM

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
ZOOM: Final = 1000
"""The largest ε of the paper's close-up of block 16."""


def series(mechanism: str, block: int, blurred: bool) -> str:
    """Return the name of a series."""
    return f"{mechanism}, b = {block}" + (", blurred" if blurred else "")


def _settings() -> list[Setting]:
    made = [Setting(SWEEP, NOTHING, "", Fill(level=GREY))]
    for b, blurred in product(BLOCKS, (False, True)):
        after = BLUR if blurred else None
        made.append(Setting(SWEEP, series("mosaic", b, blurred), "", Mosaic(block=b), after))
        for (name, mechanism), e in product(MECHANISMS.items(), EPSILONS):
            made.append(Setting(SWEEP, series(name, b, blurred), e, mechanism(epsilon=e, block=b), after))
    return made


def _variants(mechanism: str, measure: str) -> Panel:
    """Return the six variants of a mechanism: a colour per block, dashed if blurred (figures 12, 16)."""
    lines = [
        Line(series(mechanism, b, blurred), i, "--" if blurred else "-")
        for blurred in (False, True)
        for i, b in enumerate(BLOCKS)
    ]
    return Panel(SWEEP, measure, "ε", (*lines, Line(NOTHING, 0, ":")), mechanism, logx=True)


def _both(blocks: tuple[int, ...], measure: str, title: str, *, most: float) -> Panel:
    """Return both mechanisms, blurred, at some blocks up to some ε (figures 14, 17)."""
    lines = [
        Line(series(mechanism, b, True), BLOCKS.index(b), style)
        for mechanism, style in (("exponential", "--"), ("Laplace", "-"))
        for b in blocks
    ]
    shown = (*lines, Line(NOTHING, 0, ":"))
    return Panel(SWEEP, measure, "ε", shown, title, logx=most > ZOOM, high=most)


def _figures() -> tuple[Figure, ...]:
    made = []
    for measure, variants, both in (("ssim", 12, 14), ("mse", 16, 17)):
        panels = (_variants("exponential", measure), _variants("Laplace", measure))
        close = (
            _both(BLOCKS, measure, "blurred", most=float("inf")),
            _both(BLOCKS[-1:], measure, "blurred, b = 16, close up", most=ZOOM),
        )
        made.append(
            Figure(f"figure-{variants}", "LFW, with and without blur", panels, same=True, counted=OF_PHOTOS)
        )
        made.append(
            Figure(
                f"figure-{both}",
                "LFW, exponential (broken lines) and Laplace mechanism",
                close,
                counted=OF_PHOTOS,
            )
        )
    names = ("exponential", "published exponential")
    lines = tuple(
        Line(series(n, b, True), i, s) for n, s in zip(names, "-:", strict=True) for i, b in enumerate(BLOCKS)
    )
    clip = tuple(Panel(SWEEP, measure, "ε", lines, logx=True) for measure in ("ssim", "mse"))
    return (
        *made,
        Figure(
            "clip",
            "LFW, the exponential mechanism with the clip and as published, blurred",
            clip,
            counted=OF_PHOTOS,
        ),
    )


def _contrasts() -> tuple[Contrast, ...]:
    made = []
    for b in BLOCKS:
        for blurred in (False, True):
            ours = series("exponential", b, blurred)
            made.append(Contrast(SWEEP, ours, series("Laplace", b, blurred)))
            clipped = series("published, clipped", b, blurred)
            made.append(Contrast(SWEEP, clipped, series("Laplace", b, blurred)))
            made.append(Contrast(SWEEP, series("published exponential", b, blurred), clipped))
            made.append(Contrast(SWEEP, ours, clipped))
        for mechanism in ("exponential", "Laplace"):
            made.append(Contrast(SWEEP, series(mechanism, b, True), series(mechanism, b, False)))
    return tuple(made)


GRID: Final = Grid(
    name="croft-2022",
    about="LFW",
    dataset=Dataset("lfw10_128", "RGB", (128, 128)),
    images=79,
    settings=tuple(_settings()),
    contrasts=_contrasts(),
    figures=_figures(),
)
