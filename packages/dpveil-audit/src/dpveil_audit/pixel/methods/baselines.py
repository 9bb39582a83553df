"""Blur and mosaic promise nothing, so there is nothing to check."""

from __future__ import annotations

from typing import Final

from dpveil.mechanisms.pixel import Blur, Mosaic, PixelMethod
from dpveil_audit.pixel.case import Level
from dpveil_audit.pixel.entry import MethodAudit
from dpveil_audit.pixel.version import Version, one_by_one

LOOK: Final = "nothing to keep: a function of the photo, without noise and without a promise"


def nothing(method: type[PixelMethod], note: str) -> MethodAudit:
    """Return the entry of a method that promises nothing, with the reason."""
    intact = Version(name=method.name, releases=one_by_one)
    return MethodAudit(method=method, intact=intact, levels={"quick": Level(), "deep": Level()}, note=note)


AUDITS: Final = (nothing(Blur, LOOK), nothing(Mosaic, LOOK))
