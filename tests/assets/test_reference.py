"""How methods name trained files: by name and hash, and certificates open nothing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dpveil.assets import AssetField, Kind, Reference, save
from dpveil.codecs import CODEC, TABLE, Codec, Statistics
from dpveil.errors import InvalidParameter, ModelError, UnknownName
from dpveil.faces import Latent
from dpveil.faces.attribute_model import ATTRIBUTES
from dpveil.faces.face_gallery import GALLERY
from dpveil.noise.bits import SeededBits

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
    monkeypatch.setattr("dpveil.assets.reference.default_path", never)
    monkeypatch.setattr("dpveil.assets.reference._loaded", never)


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
                Reference.written(text, kind)


def test_an_unknown_codec_is_named() -> None:
    with pytest.raises(UnknownName, match="diffusion"):
        Reference.written(f"diffusion 512 sha256:{HASH}", CODEC)


@each
@pytest.mark.parametrize("name", ["none", "folder", "a\0b", 300 * "x"])
def test_paths_without_a_file_are_one_clear_line(kind: Kind, name: str, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(ModelError, match=f"there is no {kind.noun}") as refusal:
        Reference.of(tmp_path / name, kind)
    assert "\n" not in str(refusal.value)
    assert refusal.value.hint == kind.hint


@each
def test_a_word_that_is_no_file_is_wrong_usage(kind: Kind, tmp_path: Path) -> None:
    """As for regions: a word was meant, while a name such as model.safetensors is that of a missing file."""
    with pytest.raises(InvalidParameter, match=f"{kind.option} = 'typo' is neither a file nor a known word"):
        Reference.of("typo", kind)
    for name in ("typo.safetensors", str(tmp_path / "typo"), tmp_path / "typo"):
        with pytest.raises(ModelError, match=f"there is no {kind.noun}"):
            Reference.of(name, kind)


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
    assert "halves" not in TABLE
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
