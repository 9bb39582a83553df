"""What runs ahead of a photo's turn: in order, a few at most, and gone when its turn is over."""

import threading

import numpy as np

from dpveil.batch import run as batch
from dpveil.batch import task as sources
from dpveil.batch.releasing import release_all
from dpveil.batch.task import Choices, Task
from dpveil.core.photo import Photo
from dpveil.mechanisms.pixel import DPPix
from dpveil.regions import parse
from dpveil.release.plan import Plan


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
