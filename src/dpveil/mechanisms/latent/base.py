"""The interface of a latent mechanism: it maps a code to a private code in the same public box."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, Final, Protocol

import numpy as np

from dpveil.core.array_types import Float64, Int64
from dpveil.core.guarantee import Distance, Guarantee, Relation, Scope
from dpveil.core.parameters import Between
from dpveil.core.rationals import Json, Number, to_json
from dpveil.errors import InvalidParameter
from dpveil.noise.bits import BitSource, check_bits

if TYPE_CHECKING:
    from dpveil.mechanisms.latent.posterior import Law

STEPS: Final = 1 << 16
"""Steps of the grid on every side of the box; codes and noise are whole numbers of steps."""
SNAPPED, LIKELY = "snapped", "likely"
"""Private codes as they are drawn, within the box, and draws from what they say of the original."""
TIME: Final = "how long the draw took, which depends a little on the code"
Codes = Float64[np.ndarray, "n m"]
Points = Int64[np.ndarray, "n m"]


class Box(Protocol):
    """The public bounds of codes, one interval per coordinate."""

    @property
    def low(self) -> Float64[np.ndarray, " m"]:
        """The lower ends."""

    @property
    def high(self) -> Float64[np.ndarray, " m"]:
        """The upper ends."""


class CodeSpace(Protocol):
    """The public facts about codes that a mechanism needs: a codec's statistics."""

    @property
    def length(self) -> int:
        """The number of coordinates of a code."""

    @property
    def column_energy(self) -> Float64[np.ndarray, " m"]:
        """W_i: squared grey levels in the picture per squared unit of each coordinate."""

    @property
    def deviations(self) -> Float64[np.ndarray, " m"] | None:
        """Standard deviations of public codes, if coordinates are principal components, else None."""

    def bounds(self, clip: Number = 0) -> Box:
        """Return the public box that leaves out `clip` per cent of public codes at each end of each side."""

    def radius(self, clip: Number = 0) -> float:
        """Return the median distance of public codes from the centre of the box, in half sides."""


@dataclass(frozen=True, kw_only=True)
class LatentMechanism(ABC):
    """A code is clipped to a public box, rounded to a grid of 2^16 steps per side, and replaced by a draw.

    `clip` is the percentage of public training codes that the box leaves out at either end of each side, 0 to
    40 (Li & Clifton 2021 §3.2). Concrete mechanisms are frozen dataclasses of their parameters, state their
    guarantee before they draw, and are never subclassed.
    """

    name: ClassVar[str]
    kind: ClassVar[str]
    summary: ClassVar[str]
    source: ClassVar[str]
    metric: ClassVar[str | None] = None
    """The name of the distance of a metric guarantee."""
    diameter: ClassVar[int | None] = None
    """The largest distance between two codes, for a metric guarantee."""
    codes: ClassVar[tuple[str, ...]] = (SNAPPED,)
    """Which codes a decoder network may be given, the best first; likely ones need `laws`."""

    clip: Between = Between(0, 40, hint="per cent of each side, such as 10", default=0)

    @abstractmethod
    def _draw(self, points: Points, space: CodeSpace, bits: BitSource) -> Points:
        """Return private points of the grid; the only place where noise meets codes."""

    def guarantee(self, space: CodeSpace) -> Guarantee:
        """Return the guarantee of one release of a code: for any two inputs, or times their distance."""
        return Guarantee(
            kind=self.kind,
            epsilon=getattr(self, "epsilon", None),
            rho=getattr(self, "rho", None),
            metric=self.distance or None,
            diameter=self.diameter,
            relation=Relation("latent-cell"),
            scope=self.scope(space),
        )

    @property
    def distance(self) -> str:
        """The definition of the distance of a metric guarantee in words; empty for other guarantees."""
        return ""

    def prepare(self, space: CodeSpace) -> None:
        """Raise any error that would prevent a draw for codes of this space, before any budget is spent."""
        self.guarantee(space)

    def release(self, codes: Codes, space: CodeSpace, *, bits: BitSource) -> Codes:
        """Return one private code per code, within the box; each costs what `guarantee` states.

        `codes` is n × m, finite. Raises `InvalidParameter` for others.
        """
        if codes.ndim != 2 or codes.shape[1] != space.length or not np.isfinite(codes).all():
            raise InvalidParameter(
                "codes", str(codes.shape), f"are not finite, n × {space.length}", hint="codes of this codec"
            )
        check_bits(bits)
        box = space.bounds(self.clip)
        drawn = np.clip(self._draw(self.points(codes, space), space, bits), 0, STEPS)
        return np.asarray(box.low + (box.high - box.low) * drawn / STEPS)

    def points(self, codes: Codes, space: CodeSpace) -> Points:
        """Return the points of the grid that stand for finite codes, n × m: draws depend on them alone."""
        box = space.bounds(self.clip)
        inside = (np.clip(codes, box.low, box.high) - box.low) / (box.high - box.low)
        return np.asarray(np.clip(np.rint(inside * STEPS), 0, STEPS).astype(np.int64))

    def laws(self, space: CodeSpace) -> tuple[Law, ...] | None:
        """Return the law of the noise of every coordinate, or None if it is none of `posterior`."""
        return None

    @property
    def grid(self) -> str:
        """How codes are prepared before distances are taken, in words: another clip is another distance."""
        return f"clipped by {to_json(Fraction(self.clip))} % a side and rounded to 2^-16"

    def distance_data(self, codec: str) -> Distance | None:
        """Return the distance between codes of the codec with this hash, as data; None without a metric."""
        if self.metric is None:
            return None
        return Distance.of(self.metric, codec=codec, clip=to_json(Fraction(self.clip)), steps=STEPS)

    def scope(self, space: CodeSpace) -> Scope:
        """Return the scope of the guarantee; what a codec reveals besides the code is added by its user."""
        return Scope(f"the code of {space.length} coordinates")

    def parameters(self) -> dict[str, Json]:
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: to_json(v) if isinstance(v, Fraction) else v for name, v in values.items()}
