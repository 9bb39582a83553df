"""Reilly & Fan 2021, figures 3 to 9 and the defaults of table I, on AT&T faces and on eyes.

Figures 3 and 7 are those of 4 and 8 on CASIA-IrisV2, which a user may give; else they are of eyes that dpveil
draws. Where the text does not
give the values of an axis, they are ours. It does not state whether levels, and so the singular values whose
distance DP-SVD's ε multiplies, go to 255 or to 1: both are run, as the second is the first at ε/255.
"""

from __future__ import annotations

from dataclasses import dataclass
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
M: Final = 1
"""One pixel of change where m is not varied."""
RATE: Final = "0.1"
GREY: Final = 127

OVER_BLOCK, OVER_K, OVER_RANK = "dp-pix over block", "dp-samp over clusters", "dp-svd over rank"
OVER_RANK_OF_ONE: Final = "dp-svd over rank, levels to 1"
SNOW, DEFAULTS = "snow over delta", "table I over epsilon"
OVER_M: Final = "over neighbourhood"
PLAIN, BLURRED = "snow", "snow, then 3×3 median"
SOUND_SAMP: Final = f"dp-samp, private clusters, δ = {RATE}"
NOTHING: Final = "grey only: shows nothing"


@dataclass(frozen=True)
class Of:
    """A data set, the parameters of table I for it, and the numbers of the paper's figures of it."""

    name: str
    dataset: Dataset
    images: int
    block: int
    clusters: int
    rank: int
    varied: int
    """Of the figure of the methods' own parameters."""
    changed: int
    """Of that of the number of changed pixels."""

    @property
    def pix(self) -> str:
        """The series of each method with these parameters."""
        return f"dp-pix, b = {self.block}"

    @property
    def samp(self) -> str:
        """As `pix`."""
        return f"dp-samp, k = {self.clusters}"

    @property
    def svd(self) -> str:
        """As `pix`."""
        return f"dp-svd, i = {self.rank}"

    @property
    def svd_of_one(self) -> str:
        """As `pix`."""
        return f"{self.svd}, levels to 1"

    @property
    def perfect(self) -> str:
        """The series without noise."""
        return f"mosaic, b = {self.block}: no noise"


FACES: Final = Of("AT&T", Dataset("att_faces", "L"), 80, 4, 48, 4, varied=4, changed=8)
EYES: Final = Of("drawn eyes", Dataset("drawn-eyes", "L"), 20, 6, 28, 6, varied=3, changed=7)


def epsilon(value: str) -> str:
    """Return the name of the series at a budget."""
    return f"ε = {value}"


def published(value: str) -> str:
    """Return the name of the series with the published noise."""
    return f"ε = {value}, as published"


def _over_m(name: str) -> tuple[str, ...]:
    return tuple(f"{name}, {epsilon(value)}" for value in EPSILONS)


def _settings(of: Of) -> list[Setting]:
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
            pix = DPPix(epsilon=e, block=of.block, neighbourhood=m)
            samp = DPSamp(epsilon=e, clusters=of.clusters, neighbourhood=m)
            made.append(Setting(OVER_M, f"{of.pix}, {s}", str(m), pix))
            made.append(Setting(OVER_M, f"{of.samp}, {s}", str(m), samp))
    for e in MORE_EPSILONS:
        made += [
            Setting(DEFAULTS, of.pix, e, DPPix(epsilon=e, block=of.block, neighbourhood=M)),
            Setting(DEFAULTS, of.samp, e, DPSamp(epsilon=e, clusters=of.clusters, neighbourhood=M)),
            Setting(DEFAULTS, of.svd, e, DPSVD(epsilon=e, rank=of.rank)),
            Setting(DEFAULTS, of.svd_of_one, e, DPSVD(epsilon=Fraction(e) / TOP, rank=of.rank)),
            Setting(
                DEFAULTS,
                SOUND_SAMP,
                e,
                DPSamp(epsilon=e, clusters=of.clusters, neighbourhood=M, private_clusters=True, rate=RATE),
            ),
        ]
    for d in DELTAS:
        made.append(Setting(SNOW, PLAIN, d, Snow(delta=d)))
        made.append(Setting(SNOW, BLURRED, d, Snow(delta=d), Median(3)))
    every = (OVER_BLOCK, OVER_K, OVER_RANK, OVER_RANK_OF_ONE, SNOW, DEFAULTS, OVER_M)
    made += [Setting(sweep, NOTHING, "", Fill(level=GREY)) for sweep in every]
    return [*made, Setting(DEFAULTS, of.perfect, "", Mosaic(block=of.block))]


def _pair(name: str, title: str, sweep: str, xlabel: str, series: tuple[str, ...], *, logx: bool) -> Figure:
    """Return a figure of both measures, with the level of an image that shows nothing."""
    lines = (*(Line(one, i) for i, one in enumerate(series)), Line(NOTHING, 0, ":"))
    mse = Panel(sweep, "mse", xlabel, lines, logx=logx, logy=True)
    return Figure(name, title, (mse, Panel(sweep, "ssim", xlabel, lines, logx=logx)), counted=OF_PHOTOS)


def _figures(of: Of) -> tuple[Figure, ...]:
    budgets = tuple(map(epsilon, EPSILONS))
    timed = ((OVER_BLOCK, "block b"), (OVER_K, "clusters k"), (OVER_RANK, "rank i"))
    times = [
        Panel(sweep, "cpu_ms", x, tuple(Line(s, i) for i, s in enumerate(budgets)), sweep, logy=True)
        for sweep, x in timed
    ]
    snow = Panel(SNOW, "cpu_ms", "δ", (Line(PLAIN, 0),), SNOW, logy=True)
    data, own, m = of.name, f"figure-{of.varied}", f"figure-{of.changed}"
    methods = (of.pix, of.samp, of.svd, of.svd_of_one, SOUND_SAMP)
    return (
        _pair(f"{own}ab", f"{data}, DP-Pix (m = 1)", OVER_BLOCK, "block b", budgets, logx=False),
        _pair(f"{own}cd", f"{data}, DP-Samp (m = 1)", OVER_K, "clusters k", budgets, logx=False),
        _pair(f"{own}ef", f"{data}, DP-SVD, levels to 255", OVER_RANK, "rank i", budgets, logx=False),
        _pair(
            f"{own}ef-of-one", f"{data}, DP-SVD, levels to 1", OVER_RANK_OF_ONE, "rank i", budgets, logx=False
        ),
        _pair("figure-5-6", f"{data}, Snow", SNOW, "δ", (PLAIN, BLURRED), logx=False),
        _pair(f"{m}-dp-pix", f"{data}, {of.pix}", OVER_M, "neighbourhood m", _over_m(of.pix), logx=True),
        _pair(f"{m}-dp-samp", f"{data}, {of.samp}", OVER_M, "neighbourhood m", _over_m(of.samp), logx=True),
        Figure(
            "figure-9", f"{data}, processor time of a release", (*times, snow), same=True, counted=OF_PHOTOS
        ),
        _pair("table-1", f"{data}, parameters of table I", DEFAULTS, "ε", methods, logx=True),
    )


def _contrasts(of: Of) -> tuple[Contrast, ...]:
    pairs = (
        (of.svd, of.pix),
        (of.svd_of_one, of.pix),
        (of.svd_of_one, of.samp),
        (of.samp, of.pix),
        (of.svd, of.samp),
        (SOUND_SAMP, of.samp),
        (SOUND_SAMP, of.pix),
    )
    pixels = [Contrast(OVER_BLOCK, published(e), epsilon(e)) for e in EPSILONS]
    moved = [Contrast(OVER_M, *both) for both in zip(_over_m(of.pix), _over_m(of.samp), strict=True)]
    return (*pixels, *moved, *(Contrast(DEFAULTS, *pair) for pair in pairs), Contrast(SNOW, BLURRED, PLAIN))


def grid(name: str, of: Of) -> Grid:
    """Return the experiment on a data set."""
    return Grid(
        name=name,
        about=of.name,
        dataset=of.dataset,
        images=of.images,
        settings=tuple(_settings(of)),
        contrasts=_contrasts(of),
        figures=_figures(of),
    )


GRID: Final = grid("reilly-fan-2021", FACES)
IRIS: Final = grid("reilly-fan-2021-iris", EYES)
