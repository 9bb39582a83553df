"""Stages side by side: order, errors in their turn, a bound on what waits, and threads that end."""

import threading
import time
from collections.abc import Iterator
from contextlib import closing

import pytest

from dpveil.video.reading import ahead
from dpveil.video.rendering import Beside


def _counted(made: list[int], stop: int, *, broken: bool = False) -> Iterator[int]:
    try:
        for number in range(stop):
            made.append(number)
            yield number
        if broken:
            raise ValueError("broken")
    finally:
        made.append(-1)


def _threads() -> list[str]:
    return [one.name for one in threading.enumerate() if one.name.startswith(("ahead", "beside"))]


@pytest.mark.parametrize("most", [1, 3, 20])
def test_all_items_come_in_order(most: int) -> None:
    made: list[int] = []
    with closing(ahead(_counted(made, 10), most)) as items:
        assert list(items) == list(range(10))
    assert made == [*range(10), -1]
    assert not _threads()


def test_no_more_than_the_bound_is_made_in_advance() -> None:
    made: list[int] = []
    source = _counted(made, 100)
    with closing(ahead(source, 4)) as items:
        assert next(items) == 0
        until = time.monotonic() + 60
        while len(made) < 5 and time.monotonic() < until:
            time.sleep(0.01)
        time.sleep(0.1)  # for one more, if there were one
        assert made == [0, 1, 2, 3, 4]
    assert made[-1] == -1, "what makes the items is closed, though it is still referred to"
    assert not _threads()


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_an_error_of_the_consumer_ends_all_stages(error: type[BaseException]) -> None:
    made: list[int] = []

    def consume() -> None:
        read = ahead(_counted(made, 100), 2)
        with closing(read), closing(ahead(map(str, read), 2)) as items:
            raise error(next(items))

    with pytest.raises(error, match="0"):
        consume()
    assert made[-1] == -1
    assert not _threads()


def test_calls_are_made_in_order_before_the_context_ends() -> None:
    done: list[int] = []
    with Beside(2) as beside:
        for number in range(50):
            beside.call(done.append, number)
    assert done == list(range(50))
    assert not _threads()


def test_no_more_calls_wait_than_the_bound() -> None:
    gate, done = threading.Semaphore(0), list[int]()

    def slow(number: int) -> None:
        assert gate.acquire(timeout=60)
        done.append(number)

    with Beside(3) as beside:
        for number in range(20):
            if number >= 3:
                gate.release()
            beside.call(slow, number)
            assert len(done) >= number + 1 - 3
        for _ in range(3):
            gate.release()
    assert done == list(range(20))


def test_an_error_drops_the_calls_that_wait() -> None:
    done: list[int] = []
    begun, gate = threading.Event(), threading.Event()

    def first() -> None:
        begun.set()
        assert gate.wait(60)

    def interrupted() -> None:
        with Beside(4) as beside:
            beside.call(first)
            beside.call(done.append, 1)
            assert begun.wait(60)
            threading.Timer(0.2, gate.set).start()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert not done
    assert not _threads()
