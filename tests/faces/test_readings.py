"""What a model read in a gallery, kept in a file: used for these two files only, and refused when damaged."""

from __future__ import annotations

import numpy as np
import pytest
from made_nobody import gallery, model

from dpveil.assets import save
from dpveil.errors import ModelError
from dpveil.faces import attributes as looks
from dpveil.faces import readings
from dpveil.faces.attributes import Attributes
from dpveil.faces.face_gallery import FaceGallery
from dpveil.faces.readings import Readings

FACES, MODEL = gallery(), model()


def made(**changes):
    given = {"gallery": FACES.digest, "model": MODEL.digest, "answers": MODEL.read(FACES.faces)}
    return Readings(**given | changes)


@pytest.fixture(autouse=True)
def _nothing_cached():
    cached = readings.kept
    yield
    cached.cache_clear()
    forget()


def forget():
    for cached in (looks._read, looks.faces_for):
        cached.cache_clear()


def table(monkeypatch, known):
    monkeypatch.setattr(readings, "kept", lambda: known)
    forget()
    return Attributes(attributes="gender=2,age=1", gallery=FACES, model=MODEL).table


def test_they_come_back_and_are_refused_when_damaged(tmp_path):
    path = tmp_path / "readings.safetensors"
    path.write_bytes(made().pack()[0])
    back = Readings.load(path)
    assert all(np.array_equal(back.answers[name], read) for name, read in made().answers.items())
    path.write_bytes(made().pack()[0][:-1] + b"x")
    with pytest.raises(ModelError, match="altered"):
        Readings.load(path)
    save(MODEL, path, replace=True)
    with pytest.raises(ModelError, match="holds no readings"):
        Readings.load(path)


def test_only_those_of_the_known_hash_are_used_at_all(tmp_path, monkeypatch):
    path = tmp_path / "readings.safetensors"
    data, digest = made().pack()
    path.write_bytes(data)
    monkeypatch.setattr(readings, "default_path", lambda _: path)
    readings.kept.cache_clear()
    assert readings.kept() is None
    monkeypatch.setattr(readings, "KEPT", digest)
    readings.kept.cache_clear()
    assert readings.kept().gallery == FACES.digest


def test_they_are_used_for_their_own_files_only(monkeypatch):
    anew, told = table(monkeypatch, None), made()
    swapped = {name: read.max() - read for name, read in told.answers.items()}
    same, other = (table(monkeypatch, made(answers=swapped, **more)) for more in ({}, {"model": "0" * 64}))
    assert all(np.array_equal(anew[key], other[key]) for key in anew)
    assert not all(np.array_equal(anew[key], same[key]) for key in anew)
    for wrong in (
        {name: read[:5] for name, read in told.answers.items()},
        {name: read + 9 for name, read in told.answers.items()},
        {},
    ):
        with pytest.raises(ModelError, match="do not fit the gallery"):
            table(monkeypatch, made(answers=wrong))


def test_only_a_gallery_that_they_name_is_not_decoded_when_it_is_loaded(tmp_path, monkeypatch):
    path = tmp_path / "faces.safetensors"
    digest = save(FACES, path)
    for known, decoded in ((None, True), (made(gallery="0" * 64), True), (made(gallery=digest), False)):
        monkeypatch.setattr(readings, "kept", lambda known=known: known)
        assert ("faces" in vars(FaceGallery.load(path))) == decoded
