"""Records of regions by what they are called: shorter than origins, for tests of everything but origins."""

from __future__ import annotations

from dpveil.core.certificate_text import former_origin
from dpveil.core.region import Box, RegionRecord


def record(
    label: str, box: Box, masked: int | None = None, found: bool = False, finder: str = ""
) -> RegionRecord:
    origin = former_origin(label, found=found)
    return RegionRecord(box, type(origin)(**{**vars(origin), "finder": finder}), masked)
