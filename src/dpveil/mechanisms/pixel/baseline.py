"""Baselines: common methods that add no noise and promise nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dpveil.core.guarantee import Guarantee, Relation, Scope
from dpveil.mechanisms.pixel.base import PixelMethod, check_size


@dataclass(frozen=True, kw_only=True)
class Baseline(PixelMethod):
    """A deterministic function of the region, of the heuristic kind; `broken_by` lists known attacks."""

    kinds: ClassVar[tuple[str, ...]] = ("heuristic",)
    broken_by: ClassVar[tuple[str, ...]]

    def guarantee(self, *, height: int, width: int, channels: int) -> Guarantee:
        """Return the heuristic guarantee, with the known attacks."""
        height, width, channels = check_size(height, width, channels)
        return Guarantee(
            kind="heuristic",
            relation=Relation("any-image"),
            scope=Scope(f"{width}×{height} pixels, {channels} channels"),
            broken_by=self.broken_by,
        )

    def noise_scale(self, *, height: int, width: int, channels: int) -> None:
        """Return None: there is no noise."""
        return
