"""Galleries as files: what is whole loads, and everything else is one clear line."""

from __future__ import annotations

import json

import cv2
import numpy as np
import pytest
from made_faces import faces
from made_gallery import VALUES, made_gallery
from safetensors.numpy import load_file, save_file

from dpveil.assets.trained_files import KEY, _hash, card_path, encode_file, save, tensors_of
from dpveil.codecs import load
from dpveil.errors import ModelError, OutputError
from dpveil.faces.face_gallery import FaceGallery, features_of, small, webp


@pytest.fixture
def path(tmp_path):
    save(made_gallery(), tmp_path / "faces.safetensors")
    return tmp_path / "faces.safetensors"


def refused(path, **more):
    with pytest.raises(ModelError) as refusal:
        FaceGallery.load(path, **more)
    assert refusal.value.exit_code == 4
    assert refusal.value.hint
    assert "\n" not in str(refusal.value)
    return str(refusal.value)


def test_what_is_saved_is_loaded(path):
    whole, back = made_gallery(), FaceGallery.load(path)
    assert len(back) == 24
    assert np.array_equal(back.faces, whole.faces)
    assert back.faces.dtype == np.uint8
    assert back.card == whole.card
    assert back.values == VALUES
    assert all(np.array_equal(back.labels[name], whole.labels[name]) for name in VALUES)
    assert back.digest == whole.digest
    assert FaceGallery.load(path, expected=whole.digest).digest == whole.digest
    assert len({encode_file(made_gallery()) for _ in range(8)}) == 1


def test_faces_survive_compression():
    made = faces(24, seed=5, canvas=(128, 128, 3)).astype(int)
    assert np.abs(made_gallery().faces - made).mean() < 4
    with pytest.raises(ValueError, match="read-only"):
        made_gallery().faces[0] = 0


def test_distances_are_those_of_features():
    gallery = made_gallery()
    crops = faces(5, seed=9, canvas=(128, 128, 3))
    at = features_of(crops, gallery.rows)
    for i, crop in enumerate(crops):
        bands = crop.reshape(8, 16, 128, 3).mean(axis=(1, 2, 3))  # what the made rows say, up to their scale
        assert np.allclose(at[i], bands * 128 * 3 / 256, rtol=1e-4)
        away = [np.linalg.norm(at[i] - of) for of in gallery.features]
        assert np.allclose(gallery.distances(crops)[i], away)
    assert gallery.distances(gallery.faces).argmin(axis=1).tolist() == list(range(24))
    assert gallery.distances(crops[:0]).shape == (0, 24)
    assert small(crops).shape == (5, 3072)


def test_card_lies_beside_and_says_what_counts(path):
    words = card_path(path).read_text(encoding="utf-8")
    for part in ("# faces.safetensors", "24 faces of nobody", "made faces", "Terms: none", "contributors: 8"):
        assert part in words
    assert made_gallery().digest in words
    assert "gender: female 12, male 12" in words
    assert "seed: 5" in words
    assert "distance: 0.7" in words


def test_nothing_is_overwritten_unless_asked(path):
    before = path.read_bytes()
    with pytest.raises(OutputError, match="exists already"):
        save(made_gallery(seed=6), path)
    assert path.read_bytes() == before
    save(made_gallery(seed=6), path, replace=True)
    assert FaceGallery.load(path).digest == made_gallery(seed=6).digest


def test_codecs_and_galleries_are_told_apart(codecs, path, tmp_path):
    other = tmp_path / "codec.safetensors"
    save(codecs[("pca", 3)], other)
    assert "is of the kind 'pca'" in refused(other)
    with pytest.raises(ModelError, match="is of the kind 'gallery'"):
        load(path)


def test_damage_is_noticed(path, tmp_path):
    missing = refused(tmp_path / "none.safetensors")
    assert "there is no model" in missing
    data = path.read_bytes()
    for size in (0, 9, 300, len(data) // 2, len(data) - 1):
        path.write_bytes(data[:size])
        refused(path)
    path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    assert "altered" in refused(path)
    path.write_bytes(data)
    assert "different model" in refused(path, expected="0" * 64)


def rewritten(path, change):
    """Write the file anew with a right hash after `change` of its arrays and what it says about itself."""
    tensors, (_, text) = load_file(path), tensors_of(path)
    about = json.loads(text)["about"]
    change(tensors, about)
    text = json.dumps({"about": about, "sha256": _hash(about, tensors)}, sort_keys=True)
    save_file(tensors, path, metadata={KEY: text})


def other_version(tensors, about):
    about["format"] = 99


def no_labels(tensors, about):
    del tensors["label age"]


def no_values(tensors, about):
    del about["values"]


def odd_values(tensors, about):
    about["values"] = 3


def odd_card(tensors, about):
    about["card"]["owner"] = "me"


def high_label(tensors, about):
    tensors["label gender"][3] = 2


def negative_label(tensors, about):
    tensors["label gender"][3] = -1


def few_labels(tensors, about):
    tensors["label gender"] = tensors["label gender"][:5]


def unordered(tensors, about):
    tensors["ends"][3] = tensors["ends"][2]


def beyond(tensors, about):
    tensors["ends"][-1] += 1


def nothing(tensors, about):
    tensors["ends"] = tensors["ends"][:0]


def rows_not_finite(tensors, about):
    tensors["rows"][1, 5] = np.inf


def rows_of_another_size(tensors, about):
    tensors["rows"] = np.ascontiguousarray(tensors["rows"][:, :100])


def too_many_rows(tensors, about):
    tensors["rows"] = np.zeros((513, tensors["rows"].shape[1]), np.float16)


def too_many_faces(tensors, about):
    tensors["ends"] = np.arange(1, 8194)
    tensors["pictures"] = np.zeros(8193, np.uint8)


def no_picture(tensors, about):
    tensors["pictures"][: tensors["ends"][0]] = 7


def no_ends(tensors, about):
    tensors["ends"] = np.zeros((), np.int64)


def giant_picture(tensors, about):
    done, data = cv2.imencode(".webp", np.zeros((4000, 4000, 3), np.uint8))
    tensors["pictures"] = np.concatenate([data.ravel(), tensors["pictures"]])
    tensors["ends"] = np.concatenate([[data.size], tensors["ends"][1:] + data.size])
    assert done


def other_picture(tensors, about):
    picture = np.frombuffer(webp(np.zeros((127, 128, 3), np.uint8)), np.uint8)
    tensors["pictures"] = np.concatenate([picture, tensors["pictures"]])
    tensors["ends"] = np.concatenate([[picture.size], tensors["ends"][1:] + picture.size])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (other_version, "format 99"),
        (no_labels, "not a complete gallery model"),
        (no_values, "not a complete gallery model"),
        (odd_values, "not a complete gallery model"),
        (odd_card, "not a complete gallery model"),
        (high_label, "labels of gender"),
        (negative_label, "labels of gender"),
        (few_labels, "labels of gender"),
        (unordered, "not contiguous"),
        (beyond, "not contiguous"),
        (nothing, "not a gallery of 2"),
        (rows_not_finite, "finite rows"),
        (rows_of_another_size, "finite rows"),
        (too_many_rows, "not 1 to 512 finite rows"),
        (too_many_faces, "not a gallery of 2 to 8192 faces"),
        (no_picture, "face 0"),
        (giant_picture, "face 0"),
        (no_ends, "not a complete gallery model"),
        (other_picture, "face 0"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_files_that_do_not_fit_are_refused(path, change, words):
    rewritten(path, change)
    assert words in refused(path)
