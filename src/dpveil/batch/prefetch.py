"""Prefetching: the next photos are read and planned while one is drawn, encoded and written.

A face detector does not scale perfectly over cores, so it is faster to search several photos at once, each on
its own core (docs: benchmarks). Prefetching spends, draws and writes nothing, so that an interrupted run has
nothing to undo.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import islice
from typing import TypeVar

import cv2

Item = TypeVar("Item")
Made = TypeVar("Made")


@contextmanager
def prefetch(
    make: Callable[[Item], Made], items: Sequence[Item], *, at_once: int
) -> Iterator[Iterable[tuple[Item, Callable[[], Made]]]]:
    """Yield the items in order, each with a function that waits for the result of `make(item)`.

    `make` runs in `at_once` other threads; at most `at_once` + 2 results exist at a time. On leaving the
    context, running calls are waited for and all others are cancelled.

    >>> with prefetch(abs, [-1, 2], at_once=2) as made:
    ...     [(item, result()) for item, result in made]
    [(-1, 1), (2, 2)]
    """
    at_once = min(at_once, len(items))
    with _spared(at_once - 1):
        workers = ThreadPoolExecutor(max(1, at_once), thread_name_prefix="prefetch")
        try:
            yield _in_turn(workers, make, items, at_once)
        finally:
            workers.shutdown(cancel_futures=True)


def _in_turn(
    workers: ThreadPoolExecutor, make: Callable[[Item], Made], items: Sequence[Item], at_once: int
) -> Iterator[tuple[Item, Callable[[], Made]]]:
    later = iter(items)
    begun = deque((item, workers.submit(make, item)) for item in islice(later, at_once + 1))
    while begun:
        item, now = begun.popleft()
        begun.extend((following, workers.submit(make, following)) for following in islice(later, 1))
        yield item, now.result


@contextmanager
def _spared(cores: int) -> Iterator[None]:
    """Limit OpenCV to fewer cores during the context, as it runs one caller at a time on its threads."""
    before = cv2.getNumThreads()
    cv2.setNumThreads(max(1, before - cores))
    try:
        yield
    finally:
        cv2.setNumThreads(before)
