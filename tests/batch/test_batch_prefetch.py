"""What runs ahead of a photo's turn: in order, a few at most, and gone when its turn is over."""

import threading

import numpy as np
import pytest

from dpveil.batch import Choices, Task, release_all
from dpveil.batch import run as batch
from dpveil.batch import task as sources
from dpveil.batch.jobs import prefetch
from dpveil.core.photo import Photo
from dpveil.mechanisms.pixel import DPPix
from dpveil.regions import parse
from dpveil.release.plan import Plan


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


def test_a_photo_is_drawn_while_the_one_before_is_written(tmp_path, monkeypatch):
    """The second photo is drawn although the first is never written, until it is."""
    drawn, draw, save = threading.Event(), Plan.release, batch.Run._save

    def release(plan, **more):
        if plan.photo.width == 9:
            drawn.set()
        return draw(plan, **more)

    def saving(*arguments):
        assert drawn.wait(60)
        save(*arguments)

    monkeypatch.setattr(Plan, "release", release)
    monkeypatch.setattr(batch.Run, "_save", saving)
    monkeypatch.setattr(sources, "read", lambda path, **more: Photo(np.zeros((8, int(path.stem)), np.uint8)))
    choices = Choices(method=DPPix(epsilon=1), regions=[parse("whole")], force=True)
    tasks = [Task(tmp_path / f"{n}.jpg", tmp_path / f"{n}.png", f"{n}.png") for n in (8, 9)]
    assert len(release_all(tasks, choices).released) == 2
