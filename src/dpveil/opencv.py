"""OpenCV as `cv2`, loaded when something of it is first used: `dpveil --help` does without."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any


class _OpenCV:
    """Stands in for the module."""

    def __getattr__(self, name: str) -> Any:
        import cv2

        return getattr(cv2, name)


if TYPE_CHECKING:
    import cv2 as cv2
else:
    cv2 = _OpenCV()
