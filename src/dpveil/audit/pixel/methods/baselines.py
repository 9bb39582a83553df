"""Blur and mosaic promise nothing, so there is nothing to check."""

from __future__ import annotations

from typing import Final

from dpveil.audit.pixel.case import Level
from dpveil.audit.pixel.entry import MethodAudit
from dpveil.audit.pixel.version import Version, one_by_one
from dpveil.mechanisms.pixel import Blur, Mosaic, PixelMethod

LOOK: Final = "nothing to keep: a function of the photo, without noise and without a promise"


def nothing(method: type[PixelMethod], note: str) -> MethodAudit:
    """Return the entry of a method that promises nothing, with the reason."""
    intact = Version(name=method.name, releases=one_by_one)
    return MethodAudit(method=method, intact=intact, levels={"quick": Level(), "deep": Level()}, note=note)


AUDITS: Final = (nothing(Blur, LOOK), nothing(Mosaic, LOOK))
