"""Whether a file is laid out as `join` writes it: parts of known kinds and sizes, with no room for others.

Only the container is looked at (ISO 14496-12, RFC 9559), not what is coded in pictures and sound.
"""

from __future__ import annotations

from dpveil.video.layout_boxes import in_boxes
from dpveil.video.layout_elements import in_elements
from dpveil.video.source import Source


def coded_frames(source: Source, matroska: bool) -> int:
    """Return the number of coded frames in a file that has nothing but these and sound.

    Takes time by the number of parts, at most `layout_elements.MOST_ELEMENTS`, and some hundred MB of memory
    at most. Raises `Strange` for any other layout than that of `join`, also where not every frame is shown
    at a time of its own, and `ClipError` for boxes that do not fit.
    """
    return in_elements(source) if matroska else in_boxes(source)
