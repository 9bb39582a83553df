"""Models as files: what is whole loads, and everything else is one clear line."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from dpveil.assets.file_reference import AssetField, Kind, Reference
from dpveil.assets.trained_files import KEY, _hash, card_path, encode_file, save, tensors_of
from dpveil.codecs import CODEC, Codec, Dictionary, Statistics, load
from dpveil.core.registry import CODECS
from dpveil.errors import InvalidParameter, ModelError, OutputError, UnknownName
from dpveil.faces import Latent
from dpveil.faces.attribute_model import ATTRIBUTES
from dpveil.faces.face_gallery import GALLERY
from dpveil.noise.bits import SeededBits


@pytest.fixture
def model(codecs, tmp_path):
    path = tmp_path / "model.safetensors"
    save(codecs[("pca", 3)], path)
    return path


def refused(path, **more):
    with pytest.raises(ModelError) as refusal:
        load(path, **more)
    assert refusal.value.exit_code == 4
    assert refusal.value.hint
    assert "\n" not in str(refusal.value)
    return str(refusal.value)


def rewritten(path, change):
    """Write the file anew with a right hash after `change` of its tensors and what it says about itself."""
    tensors = load_file(path)
    _, text = tensors_of(path)
    about = json.loads(text)["about"]
    change(tensors, about)
    text = json.dumps({"about": about, "sha256": _hash(about, tensors)}, sort_keys=True)
    save_file(tensors, path, metadata={KEY: text})


def test_the_same_codec_is_the_same_bytes(codecs):
    assert len({encode_file(codecs[("pca", 3)]) for _ in range(8)}) == 1


def test_nothing_is_overwritten_unless_asked(codecs, model):
    before = model.read_bytes()
    with pytest.raises(OutputError, match="exists already") as refusal:
        save(codecs[("pca", 1)], model)
    assert refusal.value.exit_code == 4
    assert model.read_bytes() == before
    save(codecs[("pca", 1)], model, replace=True)
    assert load(model).canvas == (20, 16, 1)
    card_path(model).write_text("mine")
    model.unlink()
    with pytest.raises(OutputError, match="exists already"):
        save(codecs[("pca", 1)], model)
    assert not model.exists()


def test_missing_files(tmp_path):
    assert "there is no model" in refused(tmp_path / "none.safetensors")
    assert "there is no model" in refused(tmp_path)
    pipe = tmp_path / "pipe.safetensors"
    os.mkfifo(pipe)
    assert "there is no model" in refused(pipe)


def test_every_truncation_is_noticed(model):
    data = model.read_bytes()
    for size in [*range(0, 400, 7), *range(400, len(data), 997), len(data) - 1]:
        model.write_bytes(data[:size])
        refused(model)
    model.write_bytes(data + b"\0")
    refused(model)


def test_every_flipped_bit_is_noticed_or_means_nothing(codecs, model):
    """In the JSON header a changed byte may mean the same; then everything that is loaded is the same."""
    data = bytearray(model.read_bytes())
    whole = codecs[("pca", 3)]
    places = np.random.default_rng(1).permutation(len(data))[:300].tolist() + list(range(0, 1400, 3))
    noticed = 0
    for place in places:
        data[place] ^= 1 << place % 8
        model.write_bytes(data)
        data[place] ^= 1 << place % 8
        try:
            found = load(model)
        except ModelError:
            noticed += 1
            continue
        assert found.card == whole.card
        assert all(np.array_equal(v, whole.tensors()[k]) for k, v in found.tensors().items())
    assert noticed > 0.95 * len(places)


def test_the_hash_that_the_user_knows_is_checked(codecs, model, tmp_path):
    digest = save(codecs[("pca", 3)], tmp_path / "again.safetensors")
    assert load(model, expected=f" {digest.upper()}\n").length == 8
    assert "different model" in refused(model, expected="0" * 64)

    def forge(tensors, about):
        tensors["mean"] = tensors["mean"] + 1

    rewritten(model, forge)
    assert load(model).length == 8  # with a hash of its own a forgery loads...
    assert "different model" in refused(model, expected=digest)  # ...unless the hash is known


def test_a_tampered_tensor_with_the_old_hash_is_refused(model):
    tensors, text = tensors_of(model)
    tensors["mean"] = tensors["mean"] + 1
    save_file(tensors, model, metadata={KEY: text})
    assert "was altered" in refused(model)


OF_PCA = "not a complete pca model"
ALTERED = {
    "another version": (lambda t, a: a.update(format=1), "format 1"),
    "an unknown codec": (lambda t, a: a.update(codec="diffusion"), "is of the kind 'diffusion'"),
    "another codec": (lambda t, a: a.update(codec="dictionary"), "not a complete dictionary model"),
    "a list of codecs": (lambda t, a: a.update(codec=["pca"]), "is of the kind ['pca']"),
    "another canvas": (lambda t, a: a.update(canvas=[20, 17, 3]), "canvas"),
    "no canvas": (lambda t, a: a.pop("canvas"), OF_PCA),
    "an odd canvas": (lambda t, a: a.update(canvas="abc"), OF_PCA),
    "an endless canvas": (lambda t, a: a.update(canvas=[float("inf"), 17, 3]), OF_PCA),
    "an odd card": (lambda t, a: a["card"].update(owner="me"), OF_PCA),
    "a format that steers": (lambda t, a: a.update(format="\x1b[2J" + "a" * 10_000), "format '\\x1b[2Jaaa"),
    "no tensor": (lambda t, a: t.pop("quantiles"), OF_PCA),
    "not finite": (lambda t, a: t["mean"].__setitem__(3, np.nan), "not finite"),
    "an empty component": (lambda t, a: t["components"].__setitem__(3, 0), "empty"),
    "few components": (lambda t, a: t.update(components=t["components"][:5]), "quantiles"),
    "flat quantiles": (lambda t, a: t["quantiles"].fill(1), "quantiles"),
    "no distances": (lambda t, a: t.pop("apart"), OF_PCA),
    "few distances": (lambda t, a: t.update(apart=t["apart"][:2]), "distances"),
    "falling distances": (lambda t, a: t.update(apart=t["apart"][:, :, ::-1].copy()), "distances"),
    "far distances": (lambda t, a: t["apart"][0].__imul__(9), "distances"),
    "no deviation": (lambda t, a: t["deviations"].__setitem__(2, 0), "deviations"),
}


@pytest.mark.parametrize("name", ALTERED)
def test_files_of_another_kind_are_refused(model, name):
    change, words = ALTERED[name]
    rewritten(model, change)
    assert words in refused(model)
    assert len(refused(model)) < 1000
    assert refused(model).isprintable()


def test_files_that_are_no_models(tmp_path):
    path = tmp_path / "model.safetensors"
    for content in (b"", b"\0" * 8, b"\xff" * 64, b"PK\3\4" + bytes(99), json.dumps({"a": 1}).encode()):
        path.write_bytes(content)
        refused(path)
    save_file({"mean": np.zeros(3)}, path)
    assert "not a model of dpveil" in refused(path)


def test_the_card_is_kept_with_every_field(codecs, tmp_path):
    card = type(codecs[("dictionary", 3)].card)(
        "dictionary", "ü, α", "line\nbreak", 5, {"side": 20, "grey": False}, {"psnr": 20.5, "images": 3}
    )
    codec = codecs[("dictionary", 3)].with_card(card)
    save(codec, tmp_path / "model.safetensors")
    back = load(tmp_path / "model.safetensors")
    assert isinstance(back, Dictionary)
    assert back.card == card
    assert "Terms: line break\n" in card_path(tmp_path / "model.safetensors").read_text(encoding="utf-8")


# How methods name trained files: by name and hash, and certificates open nothing.


HASH = "0123456789abcdef" * 4
WRITTEN = {
    CODEC: f"pca 100 sha256:{HASH}",
    GALLERY: f"gallery sha256:{HASH}",
    ATTRIBUTES: f"attributes sha256:{HASH}",
}
each = pytest.mark.parametrize("kind", WRITTEN, ids=lambda kind: kind.noun)


@pytest.fixture
def sealed_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing can be opened, looked at or loaded."""

    for kind in WRITTEN:
        assert list(kind.kinds)  # plug-ins are looked for once

    def never(*words: object, **more: object) -> None:
        pytest.fail("a file was looked at")

    monkeypatch.setattr("builtins.open", never)
    monkeypatch.setattr(Path, "open", never)
    monkeypatch.setattr(Path, "stat", never)
    monkeypatch.setattr("dpveil.assets.file_reference.default_path", never)
    monkeypatch.setattr("dpveil.assets.file_reference._load", never)


@each
def test_what_certificates_write_is_read_back_and_opens_nothing(kind: Kind, sealed_disk: None) -> None:
    field = AssetField(kind)
    read = field.stated(WRITTEN[kind])
    assert str(read) == WRITTEN[kind]
    assert read.digest == HASH
    assert read == field.check(WRITTEN[kind]) == Reference.of(read, kind)
    assert read.source is None


@each
@pytest.mark.parametrize("text", ["default", "/etc/passwd", "model.safetensors", "", HASH, None, 3, ["a"]])
def test_anything_else_of_a_certificate_is_refused_and_opens_nothing(
    kind: Kind, text: object, sealed_disk: None
) -> None:
    field = AssetField(kind)
    field.__set_name__(object, "own")
    with pytest.raises(InvalidParameter):
        field.stated(text)  # type: ignore[arg-type]


@each
def test_files_of_other_kinds_are_refused_by_their_written_form(kind: Kind) -> None:
    for other, text in WRITTEN.items():
        if other is not kind:
            with pytest.raises((InvalidParameter, UnknownName)):
                Reference.parse(text, kind)


@each
@pytest.mark.parametrize("name", ["none", "folder", "a\0b", 300 * "x"])
def test_paths_without_a_file_are_one_clear_line(kind: Kind, name: str, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(ModelError, match=f"there is no {kind.noun}") as refusal:
        Reference.of(tmp_path / name, kind)
    assert "\n" not in str(refusal.value)
    assert refusal.value.hint == kind.hint


def test_a_file_is_read_once_and_again_when_it_changed(codecs, tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    digest = save(codecs[("pca", 3)], path)
    first = Reference.of(path, CODEC)
    assert (first.name, first.length, first.digest) == ("pca", 8, digest)
    assert Reference.of(str(path), CODEC).source is first.source
    assert Reference.of(codecs[("pca", 3)], CODEC) == first
    save(codecs[("dictionary", 3)], path, replace=True)
    assert Reference.of(path, CODEC).name == "dictionary"


class Halves(Codec):
    """A codec of no table and no file: the mean level of either half of a crop, and back."""

    name, summary, source = "halves", "two means", "tests"
    in_the_clear = ("which camera took it",)
    canvas, length, digest = (16, 16, 3), 2, HASH

    def __init__(self) -> None:
        levels = np.random.default_rng(1).uniform(0, 255, (50, 2))
        self.statistics = Statistics.of(levels, np.full(2, 384.0), seed=1)

    def _encode(self, crops):
        return np.stack([crops[:, :8].mean(axis=(1, 2, 3)), crops[:, 8:].mean(axis=(1, 2, 3))], axis=1)

    def _decode(self, codes):
        rows = np.repeat(np.rint(codes), 8, axis=1)[:, :, None, None]
        return np.broadcast_to(rows, (len(codes), *self.canvas)).astype(np.uint8)


def test_a_codec_of_ones_own_needs_no_trainer_and_no_file() -> None:
    assert "halves" not in CODECS
    method = Latent(epsilon=60, codec=Halves())
    assert method.parameters()["codec"] == f"halves 2 sha256:{HASH}"
    promised = method.guarantee(height=16, width=16, channels=3)
    assert promised.epsilon == 60
    assert "which camera took it" in promised.scope.in_the_clear
    crops = np.random.default_rng(2).integers(0, 256, (3, 16, 16, 3)).astype(np.uint8)
    shown = method.release(crops, bits=SeededBits(1))
    assert shown.shape == crops.shape
    assert (shown[:, :8] == shown[:, :1]).all()
    assert len(np.unique(shown)) > 3
