"""DP-SVD: metric privacy for singular values (Reilly & Fan 2021 §3.3; errata E9)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import InitVar, dataclass
from fractions import Fraction
from math import sqrt
from typing import ClassVar, Final

import numpy as np
from jaxtyping import UInt8

from dpveil.core.distance import Distance
from dpveil.core.guarantee import Guarantee, Relation, Scope
from dpveil.core.numbers import Json, root_above
from dpveil.core.parameters import Count, Positive
from dpveil.errors import InvalidParameter
from dpveil.mechanisms.pixel.base import PixelMethod, check_size
from dpveil.mechanisms.pixel.dp_svd.spectrum import (
    STEPS,
    ball_radius,
    leading_triples,
    one_thread,
    rebuild,
    whole_values,
)
from dpveil.noise.bits import BitSource
from dpveil.noise.spherical import spherical_laplace

WHY_NOT_KEEP: Final = (
    "a share of the energy to keep would choose the rank from the private singular values, and reading them"
    " for that costs a budget that nobody has paid: choose a rank instead"
)
METRIC: Final = "L2 on the {rank} largest singular values of every channel, in steps of 1/1024"


@dataclass(frozen=True, kw_only=True)
class DPSVD(PixelMethod):
    """The `rank` largest singular values get noise of density ∝ exp(-ε‖z‖₂); U and V are released as they
    are.

    Singular values are rounded to multiples of 1/1024 of a level; those of all channels together get one draw
    of the continuous law in rank·c dimensions, rounded to the same grid, so that the metric guarantee is
    exact. A `rank` above the shorter side means all of them. `keep`, a share of the energy, is refused, as it
    would read the private spectrum for free. Raises `InvalidParameter`. Source: Reilly & Fan 2021 §3.3, eq.
    5.

    >>> DPSVD(epsilon=1, rank=6).guarantee(height=480, width=640, channels=1).kind
    'metric'
    """

    name: ClassVar[str] = "dp-svd"
    kinds: ClassVar[tuple[str, ...]] = ("metric",)
    summary: ClassVar[str] = "noise on the largest singular values, U and V as they are"
    source: ClassVar[str] = "Reilly & Fan 2021 §3.3, errata E9"
    typical: ClassVar[Mapping[str, Json]] = {"rank": 6}
    help: ClassVar[Mapping[str, str]] = {
        "rank": "Singular values that are kept.",
        "keep": "Refused, with the reason: a share of the energy is private.",
    }

    epsilon: Positive = Positive()
    rank: Count = Count()
    keep: InitVar[object] = None

    def __post_init__(self, keep: object) -> None:
        if keep is not None:
            raise InvalidParameter("keep", keep, "is refused", hint=WHY_NOT_KEEP)

    def guarantee(self, *, height: int, width: int, channels: int) -> Guarantee:
        """Return ε per unit of distance, and the diameter of the public ball of singular values."""
        height, width, channels = check_size(height, width, channels)
        rank, pixels = self._rank(height, width), height * width
        return Guarantee(
            kind="metric",
            epsilon=self.epsilon,
            metric=METRIC.format(rank=rank),
            distance=Distance.of("singular-values", rank=rank, steps=STEPS),
            diameter=2 * ball_radius(pixels) * root_above(Fraction(channels)) / STEPS,
            relation=Relation("singular-values"),
            scope=Scope(
                f"{rank} singular values of {width}×{height} pixels, {channels} channels",
                (
                    f"U and V as computed: the {rank} leading left and right singular vectors of every"
                    " channel, in order; they show what the region looks like, and where singular values"
                    " are zero or equal they are arbitrary and depend on all pixels",
                    "how long the decomposition took, which depends on the pixels",
                ),
            ),
        )

    def noise_scale(self, *, height: int, width: int, channels: int) -> float:
        """Return the root mean squared noise of a pixel before clamping, in grey levels."""
        height, width, channels = check_size(height, width, channels)
        dimension = self._rank(height, width) * channels
        return sqrt(dimension * (dimension + 1) / (height * width * channels)) / float(self.epsilon)

    def _rank(self, height: int, width: int) -> int:
        return min(self.rank, height, width)

    def _draw(self, image: UInt8[np.ndarray, "h w c"], bits: BitSource) -> UInt8[np.ndarray, "h w c"]:
        height, width, channels = image.shape
        rank = self._rank(height, width)
        channel_planes = (np.ascontiguousarray(image[:, :, channel]) for channel in range(channels))
        with one_thread():
            triples = [leading_triples(plane, rank) for plane in channel_planes]
        noise = iter(spherical_laplace(STEPS / self.epsilon, rank * channels, bits))
        planes = []
        for of_channel in triples:
            whole = whole_values(of_channel[1], height * width)
            planes.append(rebuild(of_channel, [Fraction(value + next(noise), STEPS) for value in whole]))
        return np.stack(planes, axis=2)
