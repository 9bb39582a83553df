"""The stage of a WebDataset pipeline: releases and certificates go on, originals never do."""

import io
import tarfile

import numpy as np
import pytest
from budgets import made

import dpveil
from dpveil.datasets import released_samples
from dpveil.errors import BudgetExceeded, InvalidParameter, OutputError, PhotoError
from dpveil.io import encode

PIX = {"method": "dp-pix", "epsilon": 1, "block": 8}


def png(first=0):
    levels = (np.arange(24 * 16 * 3) * 7 + first) % 251
    return encode(levels.astype(np.uint8).reshape(24, 16, 3), "png")


def sample(number, **members):
    return {"__key__": f"ann/{number}", "__url__": "ann.tar", "png": png(number), "cls": b"3", **members}


def test_a_sample_leaves_with_a_release_and_its_certificate(tmp_path):
    given = [sample(0), sample(1)]
    for number, out in enumerate(released_samples(given, **PIX)):
        assert list(out) == ["__key__", "png", "png.certificate.json"]
        assert "ann" not in out["__key__"]
        assert out["png"] != given[number]["png"]
        for member in ("png", "png.certificate.json"):
            (tmp_path / f"{number}.{member}").write_bytes(out[member])
        assert dpveil.verify(tmp_path / f"{number}.png").status == "consistent"
    assert number == 1


def test_members_go_on_only_if_they_are_named():
    out = next(released_samples([sample(0, txt=b"Ann")], **PIX, keep=["cls", "__key__", "json"]))
    assert out["__key__"] == "ann/0"
    assert out["cls"] == b"3"
    assert {"txt", "json", "__url__"}.isdisjoint(out)


@pytest.mark.parametrize("name", ["jpg", "left.PNG", "heic", "mp4", "bin", "png.certificate.json"])
def test_nothing_that_is_an_image_can_be_kept(name):
    with pytest.raises(InvalidParameter, match="keep"):
        released_samples([], **PIX, image="bin", keep=[name])


@pytest.mark.parametrize(
    ("given", "image", "words"),
    [
        ({"__key__": "a", "cls": b"3"}, None, "0 images"),
        (sample(0, jpg=b"x"), None, "2 images"),
        (sample(0), "jpg", "'jpg' is missing"),
        ({"__key__": "a", "png": np.zeros((8, 8, 3), np.uint8)}, None, "decoded already, to ndarray"),
        ({"__key__": "a", "png": "/etc/hostname"}, None, "decoded already, to str"),
        ({"__key__": "a", "png": b"no photo"}, None, "the photo"),
    ],
)
def test_a_sample_without_one_photo_is_refused_or_left_out(given, image, words):
    with pytest.raises(PhotoError, match=words):
        list(released_samples([given], **PIX, image=image))
    told = []
    out = list(
        released_samples(
            [given, sample(1, jpg=png(1))], **PIX, image=image, handler=lambda e: not told.append(e)
        )
    )
    assert words in str(told[0])
    assert len(out) == (image == "jpg")
    with pytest.raises(PhotoError):
        list(released_samples([given], **PIX, image=image, handler=lambda error: False))


def test_a_budget_pays_for_each_photo_once_and_the_rest_is_left_out(tmp_path):
    ledger = made(tmp_path / "budget.db", limit=2)
    paying = {**PIX, "ledger": ledger, "subject": "album", "cache": tmp_path / "cache"}
    told = []
    for _ in range(2):
        given = [sample(0), sample(1), sample(0), sample(2)]
        out = list(released_samples(given, **paying, handler=lambda error: not told.append(error)))
        assert len(out) == 3
        assert out[0]["png"] == out[2]["png"]
    assert [type(error) for error in told] == [BudgetExceeded] * 2
    assert sum(entry.kind == "debit" for entry in ledger.history("album")) == 2


def test_a_full_disk_ends_it_whatever_the_handler_says(tmp_path):
    out = released_samples(
        [sample(0), sample(1)], **PIX, cache=tmp_path / "cache", handler=lambda error: True
    )
    (tmp_path / "cache" / "releases").write_bytes(b"")  # no folder can be made there
    with pytest.raises(OutputError):
        next(out)


def shard(path, samples):
    with tarfile.open(path, "w") as tar:
        for number in samples:
            for member in ("png", "cls"):
                data = sample(number)[member]
                info = tarfile.TarInfo(f"ann{number}.{member}")
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # it closes no shard
def test_webdataset_takes_it_as_a_stage(tmp_path):
    webdataset = pytest.importorskip("webdataset")
    shard(tmp_path / "in.tar", range(3))
    stage = lambda samples: released_samples(samples, **PIX, keep=["cls"])  # noqa: E731
    pipe = webdataset.DataPipeline(
        webdataset.SimpleShardList(str(tmp_path / "in.tar")), webdataset.tarfile_to_samples(), stage
    )
    with webdataset.TarWriter(str(tmp_path / "out.tar")) as writer:
        for out in pipe:
            writer.write(out)
    with tarfile.open(tmp_path / "out.tar") as tar:
        tar.extractall(tmp_path / "out", filter="data")
    images = sorted((tmp_path / "out").glob("*.png"))
    assert len(images) == 3
    assert all(dpveil.verify(image).status == "consistent" for image in images)
