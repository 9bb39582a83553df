"""Stages side by side: order, errors in their turn, a bound on what waits, and threads that end."""

import threading
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
