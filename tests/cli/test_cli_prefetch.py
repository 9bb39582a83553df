"""What runs ahead of a photo's turn: in order, a few at most, and gone when its turn is over."""

import threading

import cv2
import pytest

from dpveil.cli.prefetch import prefetch


@pytest.mark.parametrize("at_once", [1, 2, 5])
@pytest.mark.parametrize("count", [0, 1, 2, 7])
def test_every_item_has_its_turn_in_order(at_once, count):
    with prefetch(str, range(count), at_once=at_once) as made:
        assert [(item, result()) for item, result in made] == [(n, str(n)) for n in range(count)]


@pytest.mark.parametrize("at_once", [1, 2])
def test_never_more_than_a_few_are_made_before_their_turn(at_once):
    begun, enough = [], threading.Event()

    def make(item):
        begun.append(item)
        if len(begun) == at_once + 2:
            enough.set()
        return item

    with prefetch(make, range(20), at_once=at_once) as made:
        turns = iter(made)
        _, result = next(turns)
        assert result() == 0
        assert enough.wait(60)
        assert sorted(begun) == list(range(at_once + 2))  # nothing more is asked for until the next turn
    assert sorted(begun) == list(range(at_once + 2))  # nor on leaving


def test_what_is_raised_waits_for_its_turn():
    with prefetch(lambda item: 1 / item, [1, 0, 2], at_once=2) as made:
        turns = iter(made)
        assert next(turns)[1]() == 1
        _, raising = next(turns)
        with pytest.raises(ZeroDivisionError):
            raising()
        assert next(turns)[1]() == 0.5


def test_leaving_waits_for_what_has_begun_and_makes_nothing_else():
    begun, go, ended = threading.Event(), threading.Event(), []

    def make(item):
        begun.set()
        go.wait(60)
        ended.append(item)

    def interrupted():
        with prefetch(make, range(9), at_once=1) as made:
            next(iter(made))
            begun.wait(60)
            go.set()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert len(ended) <= 2
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("prefetch")]


@pytest.mark.parametrize(("count", "at_once", "fewer"), [(9, 2, 1), (9, 1, 0), (1, 2, 0)])
def test_opencv_leaves_the_others_a_core_each(count, at_once, fewer):
    before = cv2.getNumThreads()
    cv2.setNumThreads(3)
    try:
        with prefetch(str, range(count), at_once=at_once):
            assert cv2.getNumThreads() == 3 - fewer
        assert cv2.getNumThreads() == 3
    finally:
        cv2.setNumThreads(before)
