"""Stages side by side: order, errors in their turn, a bound on what waits, and threads that end."""

import threading
from collections.abc import Iterator
from contextlib import closing

import pytest

from dpveil.video.reading import ahead


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
    return [one.name for one in threading.enumerate() if one.name.startswith("ahead")]


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
