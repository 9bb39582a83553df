"""Records of regions by what they are called: shorter than origins, for tests of everything but origins."""

from __future__ import annotations

import re

from dpveil.core.photo import ESCAPING
from dpveil.core.region import Box, RegionRecord
from dpveil.core.region_origin import FACE, KIND, WHOLE, Origin

LABEL = re.compile(
    r"(?P<head>head of )?(?P<kind>[^,]*?)(?: (?P<number>[1-9]\d*))?(?:, grown to the (?P<codec>\w+) blocks)?"
)


def record(
    label: str, box: Box, masked: int | None = None, found: bool = False, finder: str = ""
) -> RegionRecord:
    if label.startswith("whole photo"):
        fallback = label != "whole photo"
        return RegionRecord(box, Origin(WHOLE, finder, found=found, fallback=fallback), masked)
    parts = LABEL.fullmatch(label)
    if parts is None or not KIND.fullmatch(parts["kind"]):
        return RegionRecord(box, Origin("region", finder, found=found), masked)
    kind, number, codec = parts["kind"], parts["number"], parts["codec"]
    origin = Origin(
        kind if found or kind != FACE else "region",
        finder,
        number=None if number is None else int(number),
        found=found,
        outlined=parts["head"] is not None,
        grown_to=codec,
        escapes=codec in ESCAPING,
    )
    return RegionRecord(box, origin, masked)
