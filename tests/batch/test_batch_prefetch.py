"""What runs ahead of a photo's turn: in order, a few at most, and gone when its turn is over."""

import gc
import threading
import weakref
from contextlib import nullcontext

import cv2
import numpy as np
import pytest

from dpveil.batch import Choices, Task, release_all
from dpveil.batch import run as batch
from dpveil.batch import task as sources
from dpveil.batch.prefetch import ahead, prefetch
from dpveil.core.photo import Photo
from dpveil.errors import NoRegion, RegionError
from dpveil.mechanisms.pixel import DPPix
from dpveil.regions import Finder, parse
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


class Result:
    """A result that can be counted while it exists."""

    def __init__(self, item):
        self.item = item


@pytest.mark.parametrize("at_once", [1, 2, 5])
@pytest.mark.parametrize("drawn", [False, True])
def test_in_every_turn_so_many_results_exist(at_once, drawn):
    """As the docstring of `prefetch` says: what is made ahead takes as much memory as so many photos."""
    made, own, count, most = weakref.WeakSet(), weakref.WeakSet(), 12, at_once + 2 + drawn
    ended, seen, exist = threading.Semaphore(0), 0, []

    def make(item, waiting=None):
        result = Result(item if waiting is None else waiting())  # holds the other, as a release its plan
        (made if waiting is None else own).add(result)
        ended.release()
        return result

    with (
        prefetch(make, range(count), at_once=at_once) as prepared,
        ahead(make, prepared) if drawn else nullcontext(prepared) as turns,
    ):
        for item, waiting in turns:
            held = waiting()
            for _ in range(min(count, item + most) + drawn * min(count, item + 2) - seen):
                assert ended.acquire(timeout=60)
                seen += 1
            exist.append((len(made), len(own)))
            del held, waiting
    assert exist == [(min(most, count - turn), drawn * min(2, count - turn)) for turn in range(count)]


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


class Raising(Finder):
    description, notes = "raising", ("a note",)

    def __init__(self, error):
        self.error = error

    def __call__(self, photo):
        raise self.error("not here", hint="look elsewhere")


@pytest.mark.parametrize("error", [NoRegion, RegionError])
def test_a_photo_is_let_go_when_its_turn_is_over(tmp_path, monkeypatch, error):
    """Without the collector, so that a long run of photos without faces holds no more than a short one."""
    photos = []

    def read(path, **more):
        photo = Photo(np.zeros((8, 8), np.uint8))
        photos.append(weakref.ref(photo))
        return photo

    monkeypatch.setattr(sources, "read", read)
    choices = Choices(method=DPPix(epsilon=1), regions=[Raising(error)], force=True)
    tasks = [Task(tmp_path / f"{n}.jpg", tmp_path / f"{n}.png", f"{n}.png") for n in range(12)]
    gc.disable()
    try:
        report = release_all(tasks, choices)
        assert len(report.failed + report.no_region) == 12
        assert [photo() for photo in photos] == [None] * 12
    finally:
        gc.enable()


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


def test_photos_are_released_while_others_are_searched(tmp_path, monkeypatch):
    """The first photo is drawn although the second is never found, until it is."""
    drawn, real = threading.Event(), Plan.release

    class Waiting(Finder):
        description = "waiting"

        def __call__(self, photo):
            if photo.width == 9:
                assert drawn.wait(60)
            return parse("whole")(photo)

    def release(plan, **more):
        drawn.set()
        return real(plan, **more)

    monkeypatch.setattr(Plan, "release", release)
    monkeypatch.setattr(sources, "read", lambda path, **more: Photo(np.zeros((8, int(path.stem)), np.uint8)))
    choices = Choices(method=DPPix(epsilon=1), regions=[Waiting()], force=True)
    tasks = [Task(tmp_path / f"{n}.jpg", tmp_path / f"{n}.png", f"{n}.png") for n in (8, 9, 10)]
    assert len(release_all(tasks, choices).released) == 3
