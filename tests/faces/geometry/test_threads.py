"""Several faces of one photo at a time: in order, on as many threads as OpenCV is set to."""

from __future__ import annotations

import threading

import cv2
import pytest
from geometry_made import released, textured

from dpveil.core.photo import Photo
from dpveil.core.region import Box
from dpveil.faces.geometry.place import place
from dpveil.faces.paint_faces import paint_faces
from dpveil.opencv import map_in_threads

FACES = (Box(20, 20, 40, 50), Box(150, 30, 60, 75), Box(300, 20, 50, 62))


@pytest.mark.parametrize("threads", [2, 3])
def test_so_many_run_at_once_and_the_results_are_in_order(
    threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cv2, "getNumThreads", lambda: threads)
    together = threading.Barrier(threads, timeout=60)

    def made(item: int) -> int:
        together.wait()
        return -item

    assert map_in_threads(made, range(6)) == [0, -1, -2, -3, -4, -5]


def test_a_photo_does_not_depend_on_the_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    photo = Photo(textured(160, 400, seed=1))
    heads = [place(photo, box, landmarks=False) for box in FACES]
    faces = [released(head, 9 + number) for number, head in enumerate(heads)]
    found = []
    for threads in (1, 3):
        monkeypatch.setattr(cv2, "getNumThreads", lambda threads=threads: threads)
        found.append(paint_faces(photo.image, heads, faces))
    assert (found[0] == found[1]).all()
    assert (found[0] != photo.image).any()
