"""Photos ahead: the next few are read and searched while this one is drawn, encoded and written.

A face detector on all cores leaves a tenth of them idle, and waits whenever anything else needs one: two
photos, each on its own core, fill both (docs: benchmarks). What runs ahead spends nothing, draws nothing and
writes nothing, so an interrupted run has nothing to take back.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from itertools import islice
from typing import TypeVar

import cv2

from dpveil.core.photo import Photo
from dpveil.core.region import Region
from dpveil.regions import Finder

Item = TypeVar("Item")
Made = TypeVar("Made")


class Searched(Finder):
    """A finder that has looked at one photo already: it answers, or raises, as `finder` did.

    Raises whatever `finder` raises when it is asked, never when it is made.

    >>> from dpveil.regions import parse
    >>> import numpy as np
    >>> photo = Photo(np.zeros((4, 4), np.uint8))
    >>> Searched(parse("0,0,2,2"), photo)(photo)[0].box.w
    2
    """

    def __init__(self, finder: Finder, photo: Photo) -> None:
        self._finder = finder
        self._answer: Future[list[Region]] = Future()
        try:
            self._answer.set_result(finder(photo))
        except Exception as error:  # noqa: BLE001  raised again when the photo's turn has come
            self._answer.set_exception(error.with_traceback(None))  # which would hold the photo

    @property
    def description(self) -> str:
        """What `finder` says."""
        return self._finder.description

    @property
    def data_dependent(self) -> bool:
        """What `finder` says."""
        return self._finder.data_dependent

    @property
    def notes(self) -> tuple[str, ...]:
        """What `finder` says."""
        return self._finder.notes

    def __call__(self, photo: Photo) -> list[Region]:
        """Return the regions that were found when this was made."""
        return self._answer.result()


@contextmanager
def ahead(
    make: Callable[[Item], Made], items: Sequence[Item], *, at_once: int
) -> Iterator[Iterable[tuple[Item, Callable[[], Made]]]]:
    """Yield the items in order, each with a call that waits for `make(item)` and returns or raises as it did.

    `at_once` other threads make one each, and one that is done finds another waiting: `at_once` + 2 results
    exist at most. On leaving, what has begun is waited for, and nothing else is made.

    >>> with ahead(abs, [-1, 2], at_once=2) as made:
    ...     [(item, result()) for item, result in made]
    [(-1, 1), (2, 2)]
    """
    at_once = min(at_once, len(items))
    with _spared(at_once - 1):
        workers = ThreadPoolExecutor(max(1, at_once), thread_name_prefix="ahead")
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
    """Keep OpenCV off some cores: it lends its threads to one caller at a time, and others go on alone."""
    before = cv2.getNumThreads()
    cv2.setNumThreads(max(1, before - cores))
    try:
        yield
    finally:
        cv2.setNumThreads(before)
