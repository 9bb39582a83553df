"""Training from Python: what the command line does, without it."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from made_faces import faces
from PIL import Image

from dpveil.assets import card_path
from dpveil.cli import run
from dpveil.codecs import TABLE, load
from dpveil.errors import InvalidParameter, OutputError
from dpveil_train import (
    PASSES,
    TRAINERS,
    AttributeOrder,
    CodecOrder,
    train_attributes,
    train_codec,
)
from dpveil_train.command import NETWORKS

TRAIN = {CodecOrder: train_codec, AttributeOrder: train_attributes}


@pytest.fixture
def album(tmp_path: Path) -> tuple[Path, ...]:
    folder = tmp_path / "album"
    folder.mkdir()
    for number, face in enumerate(faces(45, seed=1, canvas=(16, 16, 3))):
        Image.fromarray(face).save(folder / f"{number:02}.png")
    return tuple(sorted(folder.iterdir()))


def order(kind, paths, out, **more):
    own = {"codec": "pca", "canvas": (16, 16, 3), "length": 5} if kind is CodecOrder else {}
    return kind(paths=paths, out=out, **own, **more)


def test_every_codec_has_a_trainer():
    assert set(TRAINERS) == set(PASSES)
    assert set(TABLE) == set(TRAINERS) | (set(NETWORKS) - {"denoiser"})


def test_the_same_as_the_command_line_and_told_how_far_it_is(album, tmp_path):
    parts = {}

    @contextmanager
    def progress(total, word):
        parts[word] = [total, 0]

        def step():
            parts[word][1] += 1

        yield step

    made = train_codec(order(CodecOrder, album, tmp_path / "a.safetensors"), progress)
    assert parts == {"reading": [45, 45], "learning": [PASSES["pca"], PASSES["pca"]]}
    assert (made.images, made.failed, made.model.length) == (45, [], 5)
    assert np.array_equal(load(tmp_path / "a.safetensors", expected=made.digest).mean, made.model.mean)
    assert card_path(tmp_path / "a.safetensors").exists()
    words = ["train", "pca", *map(str, album), "--out", str(tmp_path / "b.safetensors"), "--side", "16"]
    assert run([*words, "--length", "5"]) == 0
    assert (tmp_path / "b.safetensors").read_bytes() == (tmp_path / "a.safetensors").read_bytes()


@pytest.mark.parametrize("kind", TRAIN, ids=lambda kind: kind.__name__)
def test_what_can_be_refused_is_refused_before_anything_is_read(kind, tmp_path):
    nothing = (tmp_path / "no such picture.png",)
    (tmp_path / "mine.safetensors").write_text("mine")
    for name, error in (("model.bin", InvalidParameter), ("none/model.safetensors", OutputError)):
        with pytest.raises(error):
            TRAIN[kind](order(kind, nothing, tmp_path / name))
    with pytest.raises(OutputError, match="exists already"):
        TRAIN[kind](order(kind, nothing, tmp_path / "mine.safetensors"))
    assert (tmp_path / "mine.safetensors").read_text() == "mine"
