"""Reilly & Fan 2021, figures 4 to 6, 8 and 9 and the defaults of table I, on AT&T faces.

Figures 3 and 7 are those of 4 and 8 on iris images, which are not available here. Where the text does not
give the values of an axis, they are ours. It does not state whether levels, and so the singular values whose
distance DP-SVD's ε multiplies, go to 255 or to 1: both are run, as the second is the first at ε/255.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Final

from dpveil.mechanisms.pixel import DPSVD, DPPix, DPSamp, Fill, Mosaic, Snow
from dpveil.postprocessing import Median
from dpveil_research.data import Dataset
from dpveil_research.grid import TOP, Contrast, Grid, Setting
from dpveil_research.plots import OF_PHOTOS, Figure, Line, Panel
from dpveil_research.published import PublishedDPPix

EPSILONS: Final = ("0.1", "0.5", "1", "5", "10")
MORE_EPSILONS: Final = ("0.01", "0.05", *EPSILONS)
"""Those of tables II and IV."""
BLOCKS: Final = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24)
CLUSTERS: Final = (2, 4, 6, 8, 10, 16, 24, 32, 48, 64)
RANKS: Final = (1, 2, 4, 6, 8, 12, 16, 24, 32)
DELTAS: Final = ("0.1", "0.2", "0.33", "0.4", "0.5", "0.6", "0.7", "0.8", "0.85")
NEIGHBOURHOODS: Final = (1, 2, 4, 8, 16, 64, 256, 1024, 10304)
BLOCK, K, RANK, M = 4, 48, 4, 1
"""Table I for AT&T, and one pixel of change where m is not varied."""
RATE: Final = "0.1"
GREY: Final = 127

OVER_BLOCK, OVER_K, OVER_RANK = "dp-pix over block", "dp-samp over clusters", "dp-svd over rank"
OVER_RANK_OF_ONE: Final = "dp-svd over rank, levels to 1"
SNOW, DEFAULTS = "snow over delta", "table I over epsilon"
OVER_M: Final = "over neighbourhood"
PLAIN, BLURRED = "snow", "snow, then 3×3 median"
PIX, SAMP, SVD = f"dp-pix, b = {BLOCK}", f"dp-samp, k = {K}", f"dp-svd, i = {RANK}"
SVD_OF_ONE: Final = f"{SVD}, levels to 1"
SOUND_SAMP: Final = f"dp-samp, private clusters, δ = {RATE}"
NOTHING, PERFECT = "grey only: shows nothing", f"mosaic, b = {BLOCK}: no noise"


def epsilon(value: str) -> str:
    """Return the name of the series at a budget."""
    return f"ε = {value}"


def published(value: str) -> str:
    """Return the name of the series with the published noise."""
    return f"ε = {value}, as published"


def _over_m(name: str) -> tuple[str, ...]:
    return tuple(f"{name}, {epsilon(value)}" for value in EPSILONS)


def _settings() -> list[Setting]:
    made = []
    for e in EPSILONS:
        s = epsilon(e)
        made += [Setting(OVER_BLOCK, s, str(b), DPPix(epsilon=e, block=b, neighbourhood=M)) for b in BLOCKS]
        made += [
            Setting(OVER_BLOCK, published(e), str(b), PublishedDPPix(epsilon=e, block=b, neighbourhood=M))
            for b in BLOCKS
        ]
        made += [Setting(OVER_K, s, str(k), DPSamp(epsilon=e, clusters=k, neighbourhood=M)) for k in CLUSTERS]
        for i in RANKS:
            made.append(Setting(OVER_RANK, s, str(i), DPSVD(epsilon=e, rank=i)))
            made.append(Setting(OVER_RANK_OF_ONE, s, str(i), DPSVD(epsilon=Fraction(e) / TOP, rank=i)))
        for m in NEIGHBOURHOODS:
            pix = DPPix(epsilon=e, block=BLOCK, neighbourhood=m)
            samp = DPSamp(epsilon=e, clusters=K, neighbourhood=m)
            made.append(Setting(OVER_M, f"{PIX}, {s}", str(m), pix))
            made.append(Setting(OVER_M, f"{SAMP}, {s}", str(m), samp))
    for e in MORE_EPSILONS:
        made += [
            Setting(DEFAULTS, PIX, e, DPPix(epsilon=e, block=BLOCK, neighbourhood=M)),
            Setting(DEFAULTS, SAMP, e, DPSamp(epsilon=e, clusters=K, neighbourhood=M)),
            Setting(DEFAULTS, SVD, e, DPSVD(epsilon=e, rank=RANK)),
            Setting(DEFAULTS, SVD_OF_ONE, e, DPSVD(epsilon=Fraction(e) / TOP, rank=RANK)),
            Setting(
                DEFAULTS,
                SOUND_SAMP,
                e,
                DPSamp(epsilon=e, clusters=K, neighbourhood=M, private_clusters=True, rate=RATE),
            ),
        ]
    for d in DELTAS:
        made.append(Setting(SNOW, PLAIN, d, Snow(delta=d)))
        made.append(Setting(SNOW, BLURRED, d, Snow(delta=d), Median(3)))
    every = (OVER_BLOCK, OVER_K, OVER_RANK, OVER_RANK_OF_ONE, SNOW, DEFAULTS, OVER_M)
    made += [Setting(sweep, NOTHING, "", Fill(level=GREY)) for sweep in every]
    return [*made, Setting(DEFAULTS, PERFECT, "", Mosaic(block=BLOCK))]


def _pair(name: str, title: str, sweep: str, xlabel: str, series: tuple[str, ...], *, logx: bool) -> Figure:
    """Return a figure of both measures, with the level of an image that shows nothing."""
    lines = (*(Line(one, i) for i, one in enumerate(series)), Line(NOTHING, 0, ":"))
    mse = Panel(sweep, "mse", xlabel, lines, logx=logx, logy=True)
    return Figure(name, title, (mse, Panel(sweep, "ssim", xlabel, lines, logx=logx)), counted=OF_PHOTOS)


def _figures() -> tuple[Figure, ...]:
    budgets = tuple(map(epsilon, EPSILONS))
    timed = ((OVER_BLOCK, "block b"), (OVER_K, "clusters k"), (OVER_RANK, "rank i"))
    times = [
        Panel(sweep, "cpu_ms", x, tuple(Line(s, i) for i, s in enumerate(budgets)), sweep, logy=True)
        for sweep, x in timed
    ]
    snow = Panel(SNOW, "cpu_ms", "δ", (Line(PLAIN, 0),), SNOW, logy=True)
    methods = (PIX, SAMP, SVD, SVD_OF_ONE, SOUND_SAMP)
    return (
        _pair("figure-4ab", "AT&T, DP-Pix (m = 1)", OVER_BLOCK, "block b", budgets, logx=False),
        _pair("figure-4cd", "AT&T, DP-Samp (m = 1)", OVER_K, "clusters k", budgets, logx=False),
        _pair("figure-4ef", "AT&T, DP-SVD, levels to 255", OVER_RANK, "rank i", budgets, logx=False),
        _pair(
            "figure-4ef-of-one", "AT&T, DP-SVD, levels to 1", OVER_RANK_OF_ONE, "rank i", budgets, logx=False
        ),
        _pair("figure-5-6", "AT&T, Snow", SNOW, "δ", (PLAIN, BLURRED), logx=False),
        _pair("figure-8-dp-pix", f"AT&T, {PIX}", OVER_M, "neighbourhood m", _over_m(PIX), logx=True),
        _pair("figure-8-dp-samp", f"AT&T, {SAMP}", OVER_M, "neighbourhood m", _over_m(SAMP), logx=True),
        Figure("figure-9", "AT&T, processor time of a release", (*times, snow), same=True, counted=OF_PHOTOS),
        _pair("table-1", "AT&T, parameters of table I", DEFAULTS, "ε", methods, logx=True),
    )


def _contrasts() -> tuple[Contrast, ...]:
    pairs = (
        (SVD, PIX),
        (SVD_OF_ONE, PIX),
        (SVD_OF_ONE, SAMP),
        (SAMP, PIX),
        (SVD, SAMP),
        (SOUND_SAMP, SAMP),
        (SOUND_SAMP, PIX),
    )
    pixels = [Contrast(OVER_BLOCK, published(e), epsilon(e)) for e in EPSILONS]
    moved = [Contrast(OVER_M, *both) for both in zip(_over_m(PIX), _over_m(SAMP), strict=True)]
    return (*pixels, *moved, *(Contrast(DEFAULTS, *pair) for pair in pairs), Contrast(SNOW, BLURRED, PLAIN))


GRID: Final = Grid(
    name="reilly-fan-2021",
    dataset=Dataset("att_faces", ".pgm", "L"),
    images=80,
    settings=tuple(_settings()),
    contrasts=_contrasts(),
    figures=_figures(),
)
