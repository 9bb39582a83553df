"""Several faces of one photo at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from dpveil.opencv import cv2

Item = TypeVar("Item")
Made = TypeVar("Made")


def map_in_threads(make: Callable[[Item], Made], items: Sequence[Item]) -> list[Made]:
    """Return what `make` makes of every item, in order, on as many threads as OpenCV is set to.

    OpenCV, dlib and onnxruntime let other threads run meanwhile. Raises the first error in that order, once
    all are done.

    >>> map_in_threads(abs, [-1, 2])
    [1, 2]
    """
    count = min(cv2.getNumThreads(), len(items))
    if count < 2:
        return [make(item) for item in items]
    with ThreadPoolExecutor(count, thread_name_prefix="face") as workers:
        return list(workers.map(make, items))
