"""Prefetching: the next photos are read and planned while one is drawn, and one is encoded and written.

A face detector does not scale perfectly over cores, so it is faster to search several photos at once, each on
its own core (docs: benchmarks). Writing waits for the disk most of its time. Prefetching writes nothing, so
that an interrupted run has nothing to undo.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from itertools import islice
from typing import TypeVar

import cv2

Item = TypeVar("Item")
Made = TypeVar("Made")
Done = TypeVar("Done")


@contextmanager
def prefetch(
    make: Callable[[Item], Made], items: Sequence[Item], *, at_once: int
) -> Iterator[Iterable[tuple[Item, Callable[[], Made]]]]:
    """Yield the items in order, each with a function that waits for the result of `make(item)`.

    `make` runs in `at_once` other threads. During a turn, the results of at most `at_once` + 2 items exist;
    with `ahead`, of one item more, and its own results for two of them. On leaving the context, running calls
    are waited for and all others are cancelled.

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
def ahead(
    make: Callable[[Item, Callable[[], Made]], Done], items: Iterable[tuple[Item, Callable[[], Made]]]
) -> Iterator[Iterable[tuple[Item, Callable[[], Done]]]]:
    """Yield what `prefetch` yields, in order, with functions that wait for the result of `make`.

    That takes an item and its function, and runs in one other thread, for one item more than was yielded. On
    leaving the context, a running call is waited for and another one is cancelled.

    >>> with prefetch(abs, [-1, 2], at_once=2) as made, ahead(lambda n, size: size() + n, made) as sums:
    ...     [(item, result()) for item, result in sums]
    [(-1, 0), (2, 4)]
    """
    worker = ThreadPoolExecutor(1, thread_name_prefix="ahead")
    try:
        yield _one_ahead(worker, make, items)
    finally:
        worker.shutdown(cancel_futures=True)


def _one_ahead(
    worker: ThreadPoolExecutor,
    make: Callable[[Item, Callable[[], Made]], Done],
    items: Iterable[tuple[Item, Callable[[], Made]]],
) -> Iterator[tuple[Item, Callable[[], Done]]]:
    begun: deque[tuple[Item, Future[Done]]] = deque()
    for item, waiting in items:
        begun.append((item, worker.submit(make, item, waiting)))
        del waiting
        if len(begun) > 1:
            first, now = begun.popleft()
            yield first, now.result
            del now
    for item, last in begun:
        yield item, last.result


@contextmanager
def _spared(cores: int) -> Iterator[None]:
    """Limit OpenCV to fewer cores during the context, as it runs one caller at a time on its threads."""
    before = cv2.getNumThreads()
    cv2.setNumThreads(max(1, before - cores))
    try:
        yield
    finally:
        cv2.setNumThreads(before)
