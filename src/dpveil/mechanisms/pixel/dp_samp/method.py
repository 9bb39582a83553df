"""DP-Samp: true pixels of a few intensities, interpolated (Reilly & Fan 2021 §3.2; errata E5)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Final

import numpy as np
from jaxtyping import Int64, UInt8, UInt64

from dpveil.accounting.group import any_of
from dpveil.core.guarantee import Guarantee, Relation, Scope
from dpveil.core.numbers import Json, show
from dpveil.core.parameters import Count, Flag, Neighbourhood, OptionalProbability, Positive
from dpveil.errors import InvalidParameter
from dpveil.mechanisms.pixel.base import PixelMethod, check_size
from dpveil.mechanisms.pixel.dp_samp.intensities import frequent_levels, histogram, intensities, most_shown
from dpveil.mechanisms.pixel.dp_samp.interpolate import interpolate
from dpveil.mechanisms.pixel.dp_samp.sampling import chosen, drawn
from dpveil.noise.bits import BitSource
from dpveil.noise.laplace import discrete_laplace, prepared

SHOWN: Final = "true levels and places of the pixels that are shown"
TIME: Final = "how long counting took, which depends a little on the pixels"
BROKEN_BY: Final = (
    "looking: a shown pixel is the true one, so a neighbour that differs there never gives the same release",
    "counting: how many pixels are shown follows from private counts, which neighbours can tell apart with"
    " certainty (erratum E5)",
)


@dataclass(frozen=True, kw_only=True)
class DPSamp(PixelMethod):
    """Shows some true pixels of the most frequent intensity in each cluster, and interpolates the rest.

    k-means on the intensities (the luma, for RGB) makes `clusters` groups. Of the most frequent intensity i
    in each, which c_i pixels have, the largest x_i with C(c_i, x_i)/C(c_i - m, x_i) ≤ e^ε_i are shown with
    all their channels, where ε_i is the share of ε that c_i has of all c. `neighbourhood` is m, in pixels of
    the region's raster (default: all of them, any-image). As published this promises nothing (errata E5).
    With `private_clusters` the counts of all 256 intensities get discrete Laplace noise that costs `epsilon`;
    intensities, clusters, c_i and x_i follow from the noisy counts, and each pixel of intensity i is shown
    independently with probability min(x_i/c_i, `rate`). That is (ε, 1 - (1 - rate)^m)-DP: a large δ. `rate`
    is then required, and otherwise refused. Raises `InvalidParameter`. Source: Reilly & Fan 2021 §3.2,
    algorithm 2, equations 3 and 4; errata E5.

    >>> str(DPSamp(epsilon=3, clusters=8, neighbourhood=1).guarantee(height=480, width=640, channels=1))
    'no formal guarantee'
    >>> sound = DPSamp(epsilon=3, clusters=8, neighbourhood=2, private_clusters=True, rate="0.01")
    >>> str(sound.guarantee(height=480, width=640, channels=1))
    '(3, 0.0199)-DP, m-pixels (m = 2)'
    """

    name: ClassVar[str] = "dp-samp"
    kinds: ClassVar[tuple[str, ...]] = ("heuristic", "approximate")
    summary: ClassVar[str] = "some true pixels, interpolated; with private clusters (ε, δ) and a large δ"
    source: ClassVar[str] = "Reilly & Fan 2021, errata E5"
    help: ClassVar[Mapping[str, str]] = {
        "clusters": "How many clusters of intensities.",
        "private_clusters": "Pay for clusters and counts with epsilon.",
        "rate": "The most a pixel may be shown, as probability; with private clusters.",
    }
    typical: ClassVar[dict[str, Json]] = {"clusters": 8}

    epsilon: Positive = Positive()
    clusters: Count = Count()
    neighbourhood: Neighbourhood = Neighbourhood(optional=True)
    private_clusters: Flag = Flag(default=False)
    rate: OptionalProbability = OptionalProbability(optional=True)

    def __post_init__(self) -> None:
        if self.private_clusters and self.rate is None:
            raise InvalidParameter(
                "rate",
                None,
                "is missing",
                hint="there is no default: a pixel is shown with at most this probability, and delta is the"
                " chance that one of m pixels is; such as 0.001",
            )
        if self.rate is not None and not self.private_clusters:
            raise InvalidParameter(
                "rate", self.rate, "means nothing without private_clusters", hint="choose both, or none"
            )

    def guarantee(self, *, height: int, width: int, channels: int) -> Guarantee:
        """Return (ε, δ) with private clusters, else a heuristic guarantee.

        *Proof.* Let H be the noisy counts and S the shown pixels of a photo x; the release is a function of
        both. Each of m changed pixels moves from one count to another, so the counts change by at most 2m in
        L1, and Laplace noise of scale 2m/ε makes H ε-DP. Given H = h, each pixel is shown or hidden
        independently, with probabilities p and p' at most `rate` in x and x'. A pixel that is the same in
        both has the same law; one that differs has at least 1 - max(p, p') ≥ 1 - rate in common, which is
        "hidden". Pixels are independent, so a coupling of both S differs with probability at most δ = 1 - (1
        - rate)^m, and P[S ∈ A_h | x] ≤ P[S' ∈ A_h | x'] + δ for every set A. Then P[(H, S) ∈ A] = Σ_h P[H =
        h]·P[S ∈ A_h] is at most Σ_h P[H = h]·P[S' ∈ A_h] + δ ≤ e^ε·P[(H', S') ∈ A] + δ. ∎ If all m pixels are
        shown at the full rate and x' has other levels there, no ε allows a smaller δ.
        """
        height, width, channels = check_size(height, width, channels)
        relation = Relation("any-image" if self.neighbourhood is None else "m-pixels", self.neighbourhood)
        covers = f"{width}×{height} pixels, {channels} channels"
        if self.rate is None:
            scope = Scope(covers, (SHOWN, "which intensities are shown, and how many pixels of each"))
            return Guarantee(kind="heuristic", relation=relation, scope=scope, broken_by=BROKEN_BY)
        counted = f"{SHOWN}: at most {show(self.rate)} of all on average, which is what delta is about"
        return Guarantee(
            kind="approximate",
            epsilon=self.epsilon,
            delta=any_of(self.rate, self._changed(height * width)),
            relation=relation,
            scope=Scope(covers, (counted, TIME)),
        )

    def noise_scale(self, *, height: int, width: int, channels: int) -> None:
        """Return None: levels are shown as they are, or not at all."""
        return

    def count_scale(self, pixels: int) -> Fraction:
        """Return the noise scale on the counts of a region of so many pixels: 2m/ε."""
        return 2 * self._changed(pixels) / self.epsilon

    def _changed(self, pixels: int) -> int:
        return pixels if self.neighbourhood is None else min(self.neighbourhood, pixels)

    def prepare(self, *, height: int, width: int, channels: int) -> None:
        """Raise `NoiseError` if the noise cannot be drawn."""
        if self.rate is not None:
            prepared(self.count_scale(height * width))

    def _draw(self, image: UInt8[np.ndarray, "h w c"], bits: BitSource) -> UInt8[np.ndarray, "h w c"]:
        levels = intensities(image)
        counts = histogram(levels)
        if self.rate is None:
            return interpolate(image, chosen(levels, self.numbers_shown(counts, levels.size), bits))
        noisy = counts + discrete_laplace(self.count_scale(levels.size), len(counts), bits)
        return interpolate(image, drawn(levels, self.thresholds(noisy, levels.size), bits))

    def numbers_shown(self, counts: Int64[np.ndarray, " levels"], pixels: int) -> dict[int, tuple[int, int]]:
        """Return x_i and c_i for every selected intensity i: algorithm 2, lines 1 to 9.

        Counts, which may be noisy, are clipped to the possible range.
        """
        counts = np.clip(counts, 0, pixels)
        chosen = frequent_levels(counts, self.clusters)
        total = sum(int(counts[level]) for level in chosen)
        changed, numbers = self._changed(pixels), {}
        for level in chosen:
            count = int(counts[level])
            epsilon = self.epsilon * count / total  # eq. 3
            numbers[level] = (most_shown(count, changed, float(epsilon)), count)
        return numbers

    def thresholds(self, noisy: Int64[np.ndarray, " levels"], pixels: int) -> UInt64[np.ndarray, " levels"]:
        """Return for each intensity the probability that a pixel of it is shown, in units of 2^-64.

        It follows from noisy counts and public numbers, and is at most `rate`.
        """
        found, most = np.zeros(len(noisy), np.uint64), self.rate or Fraction(0)
        for level, (x, count) in self.numbers_shown(noisy, pixels).items():
            found[level] = int(min(Fraction(x, count), most) * 2**64)
        return found
