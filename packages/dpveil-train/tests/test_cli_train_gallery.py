"""`dpveil train gallery`: labelled faces in, faces of nobody out. Landmarks and embeddings are made up."""

from __future__ import annotations

import io
import json
import tarfile
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import made_nobody
import numpy as np
import pytest
from made_faces import faces
from PIL import Image

from dpveil.assets import save
from dpveil.cli import run
from dpveil.faces.attribute_model import READ
from dpveil.faces.face_gallery import FaceGallery
from dpveil_train import galleries

EACH = 26
KINDS = (("male", 25, "white"), ("female", 70, "asian"))


def shape(turn):
    points = np.random.default_rng(0).uniform(40, 90, (68, 2))
    points[2], points[14], points[30] = (20, 70), (108, 70), (64 + 44 * np.tanh(turn / 2), 75)
    points[39], points[42], points[27], points[28] = (50, 2), (78, 2), (64, 2), (64, 8)
    return points


class Landmarks:
    """Landmarks that lie a little elsewhere in every crop; none that are sure in one of eight."""

    def __init__(self, points):
        assert points == 68

    def of_crop(self, crop, frame):
        assert frame.size == 128
        seed = int(crop.astype(np.int64).sum())
        rng = np.random.default_rng(seed)
        spread = 0.5 if seed % 8 == 3 else 0.01
        return SimpleNamespace(all68=shape(0) + rng.uniform(-1, 1, (68, 2)), spread=spread, score=1.0)


class Network:
    """An embedding of its own for every crop, or the same for all."""

    calls = 0
    alike = False
    size = 1.0

    def __call__(self, chips):
        type(self).calls += len(chips)
        if self.alike:
            return np.ones((len(chips), 128))
        return np.stack(
            [
                np.random.default_rng(int(chip.astype(np.int64).sum())).normal(0, self.size, 128)
                for chip in chips
            ]
        )


@pytest.fixture(autouse=True)
def made_up(monkeypatch):
    network = type("Own", (Network,), {})()
    monkeypatch.setattr(galleries, "Predictor", Landmarks)
    monkeypatch.setattr(galleries, "embedder", lambda: network)
    return network


@pytest.fixture(scope="module")
def shard(tmp_path_factory) -> Path:
    """Made faces of two kinds, with a broken one."""
    path = tmp_path_factory.mktemp("shards") / "faces-000.tar"
    rng = np.random.default_rng(1)
    pictures = faces(2 * EACH, seed=1, canvas=(128, 128, 3)).astype(np.int64)
    pictures += rng.integers(-6, 7, pictures.shape)
    kinds = [KINDS[number % 2] for number in range(len(pictures))]
    broken = {"broken.png": b"no picture", "broken.json": b'{"age": 30, "gender": "male", "race": "white"}'}
    written(path, np.clip(pictures, 0, 255).astype(np.uint8), kinds, broken)
    return path


def written(path, pictures, kinds, more=None):
    """Write a shard of labelled pictures, and other members."""
    members = {}
    for number, (picture, (gender, age, race)) in enumerate(zip(pictures, kinds, strict=True)):
        buffer = io.BytesIO()
        Image.fromarray(picture).save(buffer, "PNG")
        members[f"{number:06}.png"] = buffer.getvalue()
        members[f"{number:06}.json"] = json.dumps({"age": age, "gender": gender, "race": race}).encode()
    with tarfile.open(path, "w") as tar:
        for name, content in {**members, **(more or {})}.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))


def train(*words: object) -> int:
    return run(["train", "gallery", *map(str, words)])


def test_shards_become_a_gallery_and_a_card(shard, tmp_path, capsys):
    out = tmp_path / "faces.safetensors"
    words = ("--landmarks-68", "package", "--faces", 4, "--data", "made faces", "--terms", "none")
    assert train(shard, "--out", out, *words) == 1  # one picture is broken
    said, told = capsys.readouterr()
    assert "gallery, 4 faces of nobody, 52 images" in said
    assert told.count("left out:") == 1
    gallery = FaceGallery.load(out)
    assert gallery.digest in said
    assert len(gallery) == 4
    assert gallery.labels["gender"].tolist() == [0, 1] * 2  # each kind in turn
    assert gallery.labels["age"].tolist() == [0, 3] * 2
    assert gallery.labels["perceived-race"].tolist() == [0, 2] * 2
    assert gallery.labels["pose"].tolist() == [1] * 4
    assert set(gallery.values) == {"gender", "age", "perceived-race", "pose"}
    metrics = gallery.card.metrics
    assert 20 < metrics["candidates"] < 52
    assert metrics["most_uses_of_one"] <= 4
    assert metrics["smallest_distance_to_a_contributor"] > 0.6
    words = (tmp_path / "faces.card.md").read_text()
    assert "made faces" in words
    assert str(tmp_path) not in words
    assert {path.name for path in tmp_path.iterdir()} == {"faces.safetensors", "faces.card.md"}


def bearded(number):
    """Whom the model takes for bearded, for shaven, for a wearer of glasses, and for neither surely."""
    return {0: {"beard": 225}, 1: {}, 2: {"glasses": 225}, 3: {"beard": 119}}.get(number // 14, {})


def test_a_model_groups_bearded_people_and_leaves_out_glasses(tmp_path):
    reads = made_nobody.model()
    reads = replace(reads, out=reads.out * 40, out_bias=reads.out_bias * 40)
    save(reads, tmp_path / "model.safetensors")
    pictures = faces(70, seed=1, canvas=(128, 128, 3))
    for number, picture in enumerate(pictures):
        for row, name in enumerate(READ):
            picture[8 * row : 8 * row + 8, :8] = bearded(number).get(name, 30)
    out, path = tmp_path / "faces.safetensors", tmp_path / "faces.tar"
    written(path, pictures, [KINDS[number // 56] for number in range(70)])
    words = ("--landmarks-68", "package", "--faces", 3, "--model", tmp_path / "model.safetensors")
    assert train(path, "--out", out, *words) == 0
    gallery = FaceGallery.load(out)
    assert gallery.values["beard"] == ("no", "yes")
    assert gallery.labels["beard"].tolist() == [0, 0, 1]
    assert gallery.labels["gender"].tolist() == [0, 1, 0]
    assert gallery.card.settings["model"] == reads.digest
    assert gallery.card.metrics["candidates"] <= 42  # nobody who is not surely of a kind


@pytest.mark.slow
def test_the_same_seed_is_the_same_file_also_after_a_break(shard, tmp_path, monkeypatch, made_up):
    outs = [tmp_path / f"{name}.safetensors" for name in "abc"]
    for out, seed in zip(outs[:2], (3, 4), strict=True):
        assert train(shard, "--out", out, "--landmarks-68", "package", "--faces", 4, "--seed", seed) == 1
    monkeypatch.setattr(galleries, "KEEP", 10)
    whole, usual = type(made_up).calls // 2, type(made_up).__call__

    def broken(self, chips):
        if type(made_up).calls >= 2 * whole + 25:
            raise KeyboardInterrupt
        return usual(self, chips)

    with monkeypatch.context() as patch:
        patch.setattr(type(made_up), "__call__", broken)
        assert train(shard, "--out", outs[2], "--landmarks-68", "package", "--faces", 4, "--seed", 3) == 130
    before = type(made_up).calls
    assert train(shard, "--out", outs[2], "--landmarks-68", "package", "--faces", 4, "--seed", 3) == 1
    assert type(made_up).calls - before <= whole - 15  # what was kept is not done again
    assert outs[0].read_bytes() == outs[2].read_bytes()
    assert outs[0].read_bytes() != outs[1].read_bytes()


def test_faces_that_look_like_a_contributor_are_not_kept(shard, tmp_path, capsys, made_up):
    """Where everybody looks alike, nobody is nobody."""
    type(made_up).alike = True
    assert train(shard, "--out", tmp_path / "f.safetensors", "--landmarks-68", "package", "--faces", 4) == 2
    assert "fewer than two faces" in capsys.readouterr().err
    assert not (tmp_path / "f.safetensors").exists()


def test_fewer_faces_than_asked_for_are_said(shard, tmp_path, capsys):
    assert train(shard, "--out", tmp_path / "f.safetensors", "--landmarks-68", "package", "--json") == 1
    said, told = capsys.readouterr()
    document = json.loads(said)["trained"][0]
    assert document["codec"] == "gallery"
    assert document["images"] == 52
    assert f"only {document['faces']} of 1024 faces" in told
    assert (
        FaceGallery.load(tmp_path / "f.safetensors", expected=document["sha256"]).card.settings[
            "contributors"
        ]
        == 10
    )
