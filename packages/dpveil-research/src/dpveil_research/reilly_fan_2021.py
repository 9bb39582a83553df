"""Reilly & Fan 2021, figures 3 to 9 and the defaults of table I, on AT&T faces and on eyes.

Figures 3 and 7 are those of 4 and 8 on CASIA-IrisV2, which a user may give; else they are of eyes that dpveil
draws. Where the text does not give the values of an axis, they are ours. It does not state whether levels,
and so the singular values whose distance DP-SVD's ε multiplies, go to 255 or to 1: both are run, as the
second is the first at ε/255.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import product
from typing import Final

from dpveil.mechanisms.pixel import DPSVD, DPPix, DPSamp, Fill, Mosaic, Snow
from dpveil.postprocessing.steps import Median
from dpveil_research.data import Dataset
from dpveil_research.grid import TOP, Contrast, Grid, Setting
from dpveil_research.plots import Panel, figure
from dpveil_research.published import PublishedDPPix
from dpveil_research.results import Row

EPSILONS: Final = ("0.1", "0.5", "1", "5", "10")
MORE_EPSILONS: Final = ("0.01", "0.05", *EPSILONS)  # those of tables II and IV
BLOCKS: Final = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24)
CLUSTERS: Final = (2, 4, 6, 8, 10, 16, 24, 32, 48, 64)
RANKS: Final = (1, 2, 4, 6, 8, 12, 16, 24, 32)
DELTAS: Final = ("0.1", "0.2", "0.33", "0.4", "0.5", "0.6", "0.7", "0.8", "0.85")
NEIGHBOURHOODS: Final = (1, 2, 4, 8, 16, 64, 256, 1024, 10304)
M: Final = 1  # one pixel of change where m is not varied
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
        return f"dp-pix, b = {self.block}"

    @property
    def samp(self) -> str:
        return f"dp-samp, k = {self.clusters}"

    @property
    def svd(self) -> str:
        return f"dp-svd, i = {self.rank}"

    @property
    def svd_of_one(self) -> str:
        return f"{self.svd}, levels to 1"

    @property
    def perfect(self) -> str:
        return f"mosaic, b = {self.block}: no noise"


FACES: Final = Of("AT&T", Dataset("att_faces", "L"), 80, 4, 48, 4, varied=4, changed=8)
EYES: Final = Of("drawn eyes", Dataset("drawn-eyes", "L"), 20, 6, 28, 6, varied=3, changed=7)


def _over_m(name: str) -> list[str]:
    return [f"{name}, ε = {value}" for value in EPSILONS]


def _settings(of: Of) -> list[Setting]:
    made = []
    for e in EPSILONS:
        s, published = f"ε = {e}", f"ε = {e}, as published"
        for b in BLOCKS:
            made.append(Setting(OVER_BLOCK, s, str(b), DPPix(epsilon=e, block=b, neighbourhood=M)))
        for b in BLOCKS:
            printed = PublishedDPPix(epsilon=e, block=b, neighbourhood=M)
            made.append(Setting(OVER_BLOCK, published, str(b), printed))
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
        of_table = partial(DPSamp, epsilon=e, clusters=of.clusters, neighbourhood=M)
        made += [
            Setting(DEFAULTS, of.pix, e, DPPix(epsilon=e, block=of.block, neighbourhood=M)),
            Setting(DEFAULTS, of.samp, e, of_table()),
            Setting(DEFAULTS, of.svd, e, DPSVD(epsilon=e, rank=of.rank)),
            Setting(DEFAULTS, of.svd_of_one, e, DPSVD(epsilon=Fraction(e) / TOP, rank=of.rank)),
            Setting(DEFAULTS, SOUND_SAMP, e, of_table(private_clusters=True, rate=RATE)),
        ]
    for d in DELTAS:
        made.append(Setting(SNOW, PLAIN, d, Snow(delta=d)))
        made.append(Setting(SNOW, BLURRED, d, Snow(delta=d), Median(3)))
    every = (OVER_BLOCK, OVER_K, OVER_RANK, OVER_RANK_OF_ONE, SNOW, DEFAULTS, OVER_M)
    made += [Setting(sweep, NOTHING, "", Fill(level=GREY)) for sweep in every]
    return [*made, Setting(DEFAULTS, of.perfect, "", Mosaic(block=of.block))]


def _figures(of: Of, rows: Sequence[Row], about: str) -> dict[str, bytes]:
    budgets, name, m = [f"ε = {value}" for value in EPSILONS], f"figure-{of.varied}", f"figure-{of.changed}"
    methods = (of.pix, of.samp, of.svd, of.svd_of_one, SOUND_SAMP)
    both: tuple[tuple[str, str, str, str, Sequence[str]], ...] = (
        (f"{name}ab", "DP-Pix (m = 1)", OVER_BLOCK, "block b", budgets),
        (f"{name}cd", "DP-Samp (m = 1)", OVER_K, "clusters k", budgets),
        (f"{name}ef", "DP-SVD, levels to 255", OVER_RANK, "rank i", budgets),
        (f"{name}ef-of-one", "DP-SVD, levels to 1", OVER_RANK_OF_ONE, "rank i", budgets),
        ("figure-5-6", "Snow", SNOW, "δ", (PLAIN, BLURRED)),
        (f"{m}-dp-pix", of.pix, OVER_M, "neighbourhood m", _over_m(of.pix)),
        (f"{m}-dp-samp", of.samp, OVER_M, "neighbourhood m", _over_m(of.samp)),
        ("table-1", "Parameters of table I", DEFAULTS, "ε", methods),
    )
    made = {}
    for file, title, sweep, x, series in both:
        logx = sweep in (OVER_M, DEFAULTS)
        panels = [Panel("mse", x, logx=logx, logy=True), Panel("ssim", x, logx=logx)]
        for panel, (colour, one) in product(panels, enumerate((*series, NOTHING))):
            style, place = (":", 0) if one == NOTHING else ("-", colour)
            panel.curve(one, rows, place, style, sweep=sweep, series=one)
        made[f"{file}.png"] = figure(f"{title}\n{about}", *panels)
    times = []
    for sweep, x in ((OVER_BLOCK, "block b"), (OVER_K, "clusters k"), (OVER_RANK, "rank i"), (SNOW, "δ")):
        times.append(Panel("cpu_ms", x, sweep, logy=True))
        for one in (PLAIN,) if sweep == SNOW else budgets:
            times[-1].curve(one, rows, sweep=sweep, series=one)
    made["figure-9.png"] = figure(f"Processor time of a release\n{about}", *times, same=True)
    return made


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
    pixels = [(OVER_BLOCK, f"ε = {e}, as published", f"ε = {e}") for e in EPSILONS]
    moved = [(OVER_M, *both) for both in zip(_over_m(of.pix), _over_m(of.samp), strict=True)]
    return (*pixels, *moved, *((DEFAULTS, *pair) for pair in pairs), (SNOW, BLURRED, PLAIN))


def grid(name: str, of: Of) -> Grid:
    return Grid(
        name=name,
        about=of.name,
        dataset=of.dataset,
        images=of.images,
        settings=tuple(_settings(of)),
        contrasts=_contrasts(of),
        figures=partial(_figures, of),
    )


GRID: Final = grid("reilly-fan-2021", FACES)
IRIS: Final = grid("reilly-fan-2021-iris", EYES)
