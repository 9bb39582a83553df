"""The model of attributes: what it learns, its file, labelled shards, and the command that trains it."""

from __future__ import annotations

import io
import json
import tarfile
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from PIL import Image

from dpveil.assets.model_cards import Card
from dpveil.assets.trained_files import card_path, encode_file, save
from dpveil.cli import run
from dpveil.errors import InvalidParameter, ModelError
from dpveil.faces.attribute_model import LENGTH, VALUES, AttributeModel, features
from dpveil_train.attributes import LEAST, UNKNOWN, accuracy_metrics, fit_attributes, looks, shares
from dpveil_train.labelled import HandLabels, Labelled, key_of, labelled_photos

CARD = Card("attributes", data="made faces", terms="none", seed=3)
TOLD = {"gender": VALUES["gender"], "age": VALUES["age"][:4]}
COUNT = 160


def face(gender, band, seed):
    """Ovals of two shapes, and of a lightness for each age band."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[0:128, 0:128] / 127 - 0.5
    wide, high = (0.42, 0.25) if gender else (0.25, 0.42)
    oval = ((x / wide) ** 2 + (y / high) ** 2 < 1)[..., None]
    picture = np.where(oval, 40 + 65 * band, 20) + rng.normal(0, 2, (128, 128, 3))
    return np.clip(picture, 0, 255).astype(np.uint8)


@cache
def made(count, seed):
    labels = {"gender": np.arange(count) % 2, "age": np.arange(count) // 2 % 4}
    crops = [face(g, a, seed + i) for i, (g, a) in enumerate(zip(*labels.values(), strict=True))]
    return np.stack(crops), labels


@cache
def features_of_made():
    return features(made(COUNT, 0)[0])


@pytest.fixture(scope="module")
def model():
    labels = made(COUNT, 0)[1]
    return fit_attributes(features_of_made(), labels, TOLD, card=CARD, seed=1, units=16, epochs=40)


def test_it_learns_shapes_and_tones_that_it_has_not_seen(model):
    crops, labels = made(40, 1000)
    read = model.read(crops)
    assert set(read) == set(TOLD)
    for name, wanted in labels.items():
        assert np.mean(read[name] == wanted) >= 0.9
        assert read[name].dtype == np.int64
    shuffled = {name: wanted[::-1] for name, wanted in labels.items()}
    assert any(np.mean(read[name] == wanted) < 0.9 for name, wanted in shuffled.items())


def test_labels_that_are_not_known_teach_nothing():
    """One half's genders are not known, and would be wrong; ages are known of both."""
    labels = made(COUNT, 0)[1]
    half = np.arange(COUNT) % 4 < 2
    hidden = {**labels, "gender": np.where(half, labels["gender"], UNKNOWN)}
    wrong = {**labels, "gender": np.where(half, labels["gender"], 1 - labels["gender"])}
    seen, truth = made(40, 1000)
    right = []
    for told in (hidden, wrong):
        own = fit_attributes(features_of_made(), told, TOLD, card=CARD, seed=1, units=16, epochs=20)
        right.append(np.mean(own.read(seen)["gender"] == truth["gender"]))
    assert right[0] == 1
    assert right[1] < 0.9


def test_same_seed_same_model_and_another_seed_another_one(model):
    labels = made(COUNT, 0)[1]
    again = fit_attributes(features_of_made(), labels, TOLD, card=CARD, seed=1, units=16, epochs=40)
    assert encode_file(again) == encode_file(model)
    other = fit_attributes(features_of_made(), labels, TOLD, card=CARD, seed=2, units=16, epochs=1)
    assert encode_file(other)[1] != model.digest
    with pytest.raises(InvalidParameter, match=str(LEAST)):
        fit_attributes(features_of_made()[:9], labels, TOLD, card=CARD, seed=1)


def test_what_is_read_from_a_file_is_what_was_written(model, tmp_path):
    path = tmp_path / "attributes.safetensors"
    digest = save(model, path)
    loaded = AttributeModel.load(path, expected=digest)
    crops, _ = made(8, 5)
    assert np.array_equal(loaded.scores(crops), model.scores(crops))
    assert loaded.digest == digest == model.digest
    assert list(loaded.values) == list(model.values)
    words = card_path(path).read_text(encoding="utf-8")
    assert digest in words
    assert "not what a person is" in words


def test_damaged_and_other_files_are_refused(model, tmp_path):
    path = tmp_path / "attributes.safetensors"
    save(model, path)
    data = bytearray(path.read_bytes())
    data[-5] ^= 1
    for content in (bytes(data), bytes(data[:-50]), b"nothing"):
        path.write_bytes(content)
        with pytest.raises(ModelError):
            AttributeModel.load(path)
    save(model, path, replace=True)
    with pytest.raises(ModelError, match="different model"):
        AttributeModel.load(path, expected=64 * "0")
    with pytest.raises(ModelError, match=r"there is no model .*: make one: dpveil train attributes"):
        AttributeModel.load(tmp_path / "nowhere.safetensors")
    wrong = {
        "do not fit": replace(model, out=model.out[:-1]),
        "not finite": replace(model, out_bias=model.out_bias * np.nan),
        "2 to 256": replace(model, values={"gender": ("male",)}),
    }
    for problem, broken in wrong.items():
        save(broken, path, replace=True)
        with pytest.raises(ModelError, match=problem):
            AttributeModel.load(path)


def test_crops_of_another_shape_are_refused():
    assert features(np.zeros((0, 128, 128, 3), np.uint8)).shape == (0, LENGTH)
    for wrong in (np.zeros((1, 64, 64, 3), np.uint8), np.zeros((1, 128, 128, 3))):
        with pytest.raises(InvalidParameter, match="crops"):
            features(wrong)


# Labels


def points(**moved):
    """68 landmarks of a head that looks ahead with its mouth closed; some of them moved."""
    at = np.zeros((68, 2))
    at[36:42], at[42:48] = (40, 40), (80, 40)
    at[30], at[48], at[54], at[62], at[66] = (60, 60), (44, 85), (76, 85), (60, 85), (60, 85)
    for name, move in moved.items():
        at[int(name[1:])] += move
    return at


def test_looks_of_landmarks():
    assert looks(points()) == {"pose": 1, "smile": 0}
    assert looks(points(p30=(-8, 0)))["pose"] == 0
    assert looks(points(p30=(8, 0)))["pose"] == 2
    assert looks(points(p54=(9, 0), p66=(0, 4)))["smile"] == 1
    assert looks(points(p54=(9, 0)))["smile"] == 0
    assert looks(points(p66=(0, 4)))["smile"] == 0
    turned = points(p30=(8, 0)) @ np.array([[0.0, 1.0], [-1.0, 0.0]])
    assert looks(turned)["pose"] == 2  # the picture is turned, not the head


def shard(path, count=COUNT, *, extra=()):
    crops, labels = made(count, 0)
    ages, races = (22, 35, 50, 70), ("white", "black")
    with tarfile.open(path, "w") as tar:
        entries = list(extra)
        for number, crop in enumerate(crops):
            buffer = io.BytesIO()
            Image.fromarray(crop).save(buffer, "PNG")
            told = {"age": ages[labels["age"][number]], "race": races[number % 3 % 2]}
            told["gender"] = ("male", "female")[labels["gender"][number]]
            pair = [(f"{number:06}.png", buffer.getvalue()), (f"{number:06}.json", json.dumps(told).encode())]
            entries += pair[:: 1 if number % 2 else -1]
        for name, content in entries:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return path


def test_pictures_find_their_labels_in_either_order(tmp_path):
    path = shard(
        tmp_path / "a.tar",
        6,
        extra=[("lost.json", b"{}"), ("b.png", b"x"), ("b.json", b"{}"), ("c.txt", b"")],
    )
    found = list(labelled_photos([path, tmp_path / "b.png"]))
    good = [one for one in found if isinstance(one, Labelled)]
    assert [one.labels["age"] for one in good] == [0, 0, 1, 1, 2, 2]
    assert [one.labels["gender"] for one in good] == [0, 1] * 3
    problems = " ".join(str(one) for one in found if not isinstance(one, Labelled))
    assert problems.count("lacks its picture or its labels") == 1
    assert "no labels of an adult" in problems
    assert "b.png has no labels" in problems
    path.write_bytes(path.read_bytes()[:80_000])
    assert any("not an intact .tar" in str(one) for one in labelled_photos([path]))


def by_hand(path, text):
    path.write_text(text, encoding="utf-8")
    return path


def keys(path):
    """The keys of a shard's pictures, in their order."""
    with tarfile.open(path) as tar:
        return [key_of(tar.extractfile(one).read()) for one in tar if one.name.endswith(".png")]


def test_labels_by_hand_are_added_by_the_pictures_own_bytes(tmp_path):
    path = shard(tmp_path / "a.tar", 4)
    first, second, *_ = keys(path)
    labels = HandLabels.read(
        by_hand(tmp_path / "l.csv", f"picture,beard,glasses\n{second},no,yes\n\n{first},yes,\n")
    )
    assert labels.names == ("glasses", "beard")
    found = [dict(one.labels) for one in labelled_photos([path], more=labels)]
    assert [(one.get("glasses"), one.get("beard")) for one in found] == [(None, 1), (1, 0)] + 2 * [
        (None, None)
    ]
    assert found[1]["gender"] == 1


def train(*words):
    return run(["train", "attributes", *map(str, words)])


def test_the_command_trains_measures_and_tells(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("dpveil_train.attributes.EPOCHS", 40)
    path, out = shard(tmp_path / "faces.tar"), tmp_path / "attributes.safetensors"
    assert train(path, "--out", out, "--data", "made faces", "--terms", "CC0", "--json") == 0
    told = json.loads(capsys.readouterr().out)["trained"][0]
    model = AttributeModel.load(out, expected=told["sha256"])
    assert set(model.values) == {"gender", "age", "perceived-race"}
    assert told["images"] == COUNT
    assert model.card.settings["images"] == COUNT - COUNT // 5
    assert told["metrics"]["images"] == COUNT // 5
    assert told["metrics"]["gender"].startswith(("1.000", "0.9"))
    assert "made faces" in card_path(out).read_text(encoding="utf-8")
    assert train(path, "--out", out) == 4  # it is there already
    assert train(path, "--out", out, "--force", "--landmarks-68", "7") == 2
    assert train(path, "--out", out, "--force", "--side", "64") == 2
    assert "--side" in capsys.readouterr().err


def test_the_command_learns_labels_by_hand_and_measures_where_they_are(tmp_path, capsys, monkeypatch):
    """Whoever is female is said to wear glasses, in half of the pictures; the others are not measured."""
    monkeypatch.setattr("dpveil_train.attributes.EPOCHS", 20)
    path, out = shard(tmp_path / "faces.tar", 80), tmp_path / "attributes.safetensors"
    lines = [f"{key},{('no', 'yes')[n % 2]}" for n, key in enumerate(keys(path)) if n % 4 < 2]
    labels = by_hand(tmp_path / "glasses.csv", "\n".join(["picture,glasses", *lines]))
    assert train(path, "--out", out, "--labels", labels, "--json") == 0
    metrics = json.loads(capsys.readouterr().out)["trained"][0]["metrics"]
    model = AttributeModel.load(out)
    assert set(model.values) == {"gender", "age", "perceived-race", "glasses"}
    assert model.card.settings["labels"] == HandLabels.read(labels).digest
    assert metrics["glasses, images with a label"] == 80 // 5 // 2
    assert metrics["glasses"].startswith("1.000")
    crops, truth = made(40, 1000)
    assert np.mean(model.read(crops)["glasses"] == truth["gender"]) > 0.9
    assert run(["train", "pca", str(path), "--out", str(out), "--labels", str(labels)]) == 2
    assert "--labels" in capsys.readouterr().err


def test_shares_and_groups(model):
    assert shares(np.array([True] * 95 + [False] * 5)) == "0.950 (0.888 to 0.978)"
    crops, labels = made(8, 3)
    rows = [
        {"gender": int(g), "age": int(a), "perceived-race": 0} for g, a in zip(*labels.values(), strict=True)
    ]
    found = accuracy_metrics(model, features(crops), rows)
    assert found["gender"] == shares(model.read(crops)["gender"] == labels["gender"])
    assert "male" in found["age by gender"]
    assert "asian" not in found["age by perceived-race"]
    assert accuracy_metrics(model, features(crops)[:0], []) == {}
