"""`dpveil train`: images in, a model and its card out."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

import numpy as np
import pytest
from network_made import png, tar, train
from PIL import Image

from dpveil.codecs import Codec, load
from dpveil.core.photo import Photo
from dpveil.core.registry import CODECS
from dpveil.errors import PhotoError
from dpveil.faces.portrait_placement import centred
from dpveil_train import PASSES, TRAINERS, codecs
from dpveil_train.codecs import reconstruction_metrics
from dpveil_train.command import NETWORKS
from dpveil_train.crops import CropFile, photos

COUNT = 45


def face(number: int, size: tuple[int, int] = (24, 24)) -> Image.Image:
    """Return a made picture, no two alike."""
    rng = np.random.default_rng(number)
    small = rng.integers(0, 256, (4, 4, 3)).astype(np.uint8)
    return Image.fromarray(small).resize(size, Image.Resampling.BILINEAR)


@pytest.fixture
def album(tmp_path: Path) -> Path:
    """A folder of images with a hidden one, a text, and a folder inside."""
    folder = tmp_path / "album"
    (folder / "inner").mkdir(parents=True)
    for number in range(COUNT):
        where = folder if number % 3 else folder / "inner"
        face(number).save(where / f"{number:03}.png")
    (folder / ".hidden.png").write_bytes(b"no image")
    (folder / "notes.txt").write_text("no image")
    return folder


@pytest.fixture
def shard(tmp_path: Path) -> Path:
    """A WebDataset shard: images with labels beside them."""
    members = ((f"{number:06}.{end}", number) for number in range(COUNT) for end in ("png", "json"))
    pairs = ((name, png(face(number)) if name.endswith("png") else b"{}") for name, number in members)
    return tar(tmp_path / "faces-000.tar", pairs)


SMALL = ("--side", "12", "--length", "5")


def test_every_codec_has_a_trainer():
    assert set(TRAINERS) == set(PASSES)
    assert set(CODECS) == set(TRAINERS) | (set(NETWORKS) - {"denoiser"})


def test_a_folder_becomes_a_model_and_a_card(album, tmp_path, capsys):
    out = tmp_path / "model.safetensors"
    words = ("--data", "noise", "--terms", "free")
    assert train("pca", album, "--out", out, *SMALL, *words) == 0
    said, told = capsys.readouterr()
    assert "pca, 5 coordinates of 12×12 colour crops, 45 images" in said
    assert "held out: 2 images, PSNR" in said
    assert told == ""
    assert train("pca", album, "--out", out, *SMALL, *words, "--grey", "--force", "--json") == 0
    document = json.loads(capsys.readouterr().out)
    (done,) = document["trained"]
    assert (done["output"], done["card"]) == (str(out), str(tmp_path / "model.card.md"))
    assert (done["canvas"], done["images"], document["failed"]) == ([12, 12, 1], COUNT, [])
    codec = load(out, expected=done["sha256"])
    assert codec.canvas == (12, 12, 1)
    assert codec.length == 5
    assert (codec.card.data, codec.card.terms, codec.card.seed) == ("noise", "free", 0)
    assert codec.card.settings["images"] == COUNT - 2
    assert codec.card.metrics["images"] == 2
    assert str(tmp_path) not in (tmp_path / "model.card.md").read_text()
    assert str(tmp_path).encode() not in out.read_bytes()
    kept = {path.name for path in tmp_path.iterdir()}
    assert kept == {"album", "model.safetensors", "model.card.md"}


def test_the_same_seed_is_the_same_file_and_another_is_another(album, tmp_path):
    outs = [tmp_path / f"{name}.safetensors" for name in "abc"]
    for out, seed in zip(outs, (7, 7, 8), strict=True):
        assert train("dictionary", album, "--out", out, *SMALL, "--seed", seed) == 0
    first, second, third = (out.read_bytes() for out in outs)
    assert first == second
    assert first != third


def test_shards_folders_and_files_are_read_alike(album, shard, tmp_path):
    """The same images in the same order, from a shard and from files."""
    ordered = sorted(album.rglob("[0-9]*.png"), key=lambda path: path.name)
    a, b = tmp_path / "a.safetensors", tmp_path / "b.safetensors"
    assert train("pca", shard, "--out", a, *SMALL) == 0
    assert train("pca", *ordered, "--out", b, *SMALL) == 0
    assert a.read_bytes() == b.read_bytes()


def test_what_cannot_be_read_is_reported_and_left_out(album, shard, tmp_path, capsys):
    (album / "broken.jpg").write_bytes(b"\xff\xd8\xff\xe0 no more")
    (album / "cut.tar").write_bytes(shard.read_bytes()[:1700])
    out = tmp_path / "model.safetensors"
    assert train("pca", album, album / "none.png", "--out", out, *SMALL, "--json") == 1
    said, told = capsys.readouterr()
    document = json.loads(said)
    assert [str(album / "none.png") in f["error"] for f in document["failed"]].count(True) == 1
    assert len(document["failed"]) == 3
    assert told.count("left out:") == 3
    assert load(out).card.settings["images"] == COUNT + 1 - 2  # one came before the cut


def test_of_members_only_plain_pictures_are_read(tmp_path):
    plain = {"../up.png": png(face(1)), "text.png": b"hello", ".hidden.png": b"", "empty.jpg": b""}
    path = tar(tmp_path / "odd.tar", plain.items())
    with tarfile.open(path, "a") as more:
        for name, kind in (("link.png", tarfile.SYMTYPE), ("dir.png", tarfile.DIRTYPE)):
            info = tarfile.TarInfo(name)
            info.type, info.linkname = kind, "/etc/passwd"
            more.addfile(info)
    found = list(photos([path]))
    assert sum(isinstance(one, Photo) for one in found) == 1
    assert sum(isinstance(one, PhotoError) for one in found) == 4
    assert not (tmp_path.parent / "up.png").exists()


OUT = ("--out", "OUT/m.safetensors")
WRONG = {
    ("pca", "ALBUM"): (2, "--out is missing"),
    ("pca", "ALBUM", "--out", "OUT/model.bin"): (2, "does not end in .safetensors"),
    ("eigenface", "ALBUM", *OUT): (2, "choose from aam, attributes, denoiser"),
    ("stylegan", "ALBUM", *OUT, "--landmarks-68", "package"): (2, "--landmarks-68 is not for stylegan"),
    ("gan", "ALBUM", *OUT, "--generator", "g.pt"): (2, "--generator is not for gan"),
    ("attributes", "ALBUM", *OUT, "--grey"): (2, "--grey is not for attributes"),
    ("aam", "ALBUM", *OUT): (2, "needs 68 landmarks of every crop"),
    ("aam", "ALBUM", *OUT, "--landmarks-68", "none.dat"): (2, "none.dat"),
    ("pca", "ALBUM", *OUT, "--landmarks-68", "package"): (2, "--landmarks-68 is not for pca"),
    ("pca", "ALBUM", "--out", "OUT/none/m.safetensors"): (4, "no such folder"),
    ("pca", "ALBUM/notes.txt", *OUT): (4, "not an image"),
    ("pca", "OUT/empty", *OUT): (4, "there are no images"),
    ("pca", "OUT/none", *OUT): (4, "does not exist"),
    ("pca", "ALBUM", *OUT, "--length", "43"): (2, "images, 43"),
}


def test_wrong_calls_are_one_line_and_leave_nothing(album, tmp_path, capsys):
    (tmp_path / "empty").mkdir()
    for words, (code, said) in WRONG.items():
        given = [word.replace("ALBUM", str(album)).replace("OUT", str(tmp_path)) for word in words]
        assert train(*given) == code, words
        out, err = capsys.readouterr()
        assert (out, err.count("\n")) == ("", 1)
        assert said in err
        assert {path.name for path in tmp_path.iterdir()} == {"album", "empty"}


@pytest.mark.parametrize("existing", ["model.safetensors", "model.card.md"])
def test_nothing_is_overwritten_without_force(album, tmp_path, capsys, existing, monkeypatch):
    (tmp_path / existing).write_text("mine")
    out = tmp_path / "model.safetensors"
    with monkeypatch.context() as patch:
        patch.setattr(codecs, "photos", None)  # refused before minutes are spent
        assert train("pca", album, "--out", out, *SMALL) == 4
    assert "it exists already" in capsys.readouterr().err
    assert (tmp_path / existing).read_text() == "mine"
    assert train("pca", album, "--out", out, *SMALL, "--force") == 0
    assert load(out).length == 5


def test_measures_are_those_of_the_images_held_out(tmp_path):
    class Half(Codec):
        """Decodes to a fixed grey."""

        name, canvas, length = "half", (8, 8, 1), 1
        digest = _encode = _decode = None

        def encode(self, crops):
            return np.zeros((len(crops), 1))

        def decode(self, codes):
            return np.full((len(codes), 8, 8, 1), 100, np.uint8)

    levels = [100] * 19 + [110] + [100] * 19 + [110] + [100] * 19 + [110]
    found = (Photo(np.full((8, 8), level, np.uint8)) for level in levels)
    with CropFile.of(found, (8, 8, 1), tmp_path) as crops:
        assert crops.held_out.tolist() == [19, 39, 59]
        seen = np.concatenate(list(crops.source(1)()))
        assert len(seen) == 57
        assert np.all(seen == 100)  # what is held out is never learned from
        figures = reconstruction_metrics(Half(), crops)
    assert figures["images"] == 3
    assert figures["psnr"] == 28.13  # 20·log10(255/10)
    assert list(tmp_path.iterdir()) == []


def test_order_of_crops_is_the_seeds_and_the_same_each_time(tmp_path):
    found = (Photo(np.full((4, 4), level, np.uint8)) for level in range(60))
    with CropFile.of(found, (4, 4, 1), tmp_path) as crops:
        orders = [np.concatenate(list(crops.source(seed)()))[:, 0, 0, 0].tolist() for seed in (1, 1, 2)]
        again = crops.source(1)
        assert np.array_equal(np.concatenate(list(again())), np.concatenate(list(again())))
    assert orders[0] == orders[1] != orders[2]
    assert sorted(orders[0]) == [level for level in range(60) if level % 20 != 19]


def test_a_crop_keeps_the_middle_and_leaves_the_sides_out():
    image = np.zeros((16, 48, 3), np.uint8)
    image[:, 16:32] = (200, 100, 50)
    crop = centred(Photo(image), (16, 16, 3))
    assert np.array_equal(crop, image[:, 16:32])
    grey = centred(Photo(image), (16, 16, 1))
    assert np.all(np.abs(grey.astype(float) - (0.299 * 200 + 0.587 * 100 + 0.114 * 50)) <= 1)
    halved = centred(Photo(image), (8, 8, 3))
    assert np.all(halved == (200, 100, 50))


def test_a_shard_that_was_cut_anywhere_is_never_taken_for_whole(shard, tmp_path):
    data = shard.read_bytes()
    end = len(data.rstrip(b"\0"))
    cut = tmp_path / "cut.tar"
    for size in [*range(0, end, 1009), *range(0, end, 5120), end - 1]:
        cut.write_bytes(data[:size])
        assert any(isinstance(one, PhotoError) for one in photos([cut])), size
    assert not any(isinstance(one, PhotoError) for one in photos([shard]))
