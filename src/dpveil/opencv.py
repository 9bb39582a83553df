"""OpenCV as `cv2`, loaded when something of it is first used, so that `dpveil --help` does without."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

Item = TypeVar("Item")
Made = TypeVar("Made")


class _OpenCV:
    """Stands in for the module."""

    def __getattr__(self, name: str) -> Any:
        import cv2

        return getattr(cv2, name)


if TYPE_CHECKING:
    import cv2 as cv2
else:
    cv2 = _OpenCV()


def map_in_threads(make: Callable[[Item], Made], items: Sequence[Item]) -> list[Made]:
    """Return what `make` makes of every item, in order, on as many threads as OpenCV is set to.

    OpenCV, dlib and onnxruntime let other threads run meanwhile. Raises the first error in that order, once
    all are done.

    >>> map_in_threads(abs, [-1, 2])
    [1, 2]
    """
    from concurrent.futures import ThreadPoolExecutor

    count = min(cv2.getNumThreads(), len(items))
    if count < 2:
        return [make(item) for item in items]
    with ThreadPoolExecutor(count, thread_name_prefix="face") as workers:
        return list(workers.map(make, items))
