"""Columns of images of Hugging Face: each row is released, no region or failed, and reruns do the rest."""

import io
import sys

import numpy as np
import pytest
from budgets import made, url_of

import dpveil
from dpveil.datasets import release
from dpveil.errors import InvalidParameter, NoRegion, UsageError
from dpveil.io import encode
from dpveil.regions import Finder

PIX = {"method": "dp-pix", "epsilon": 1, "block": 8}


class Dark(Finder):
    """The whole photo, unless it is black."""

    description = "dark"

    def __call__(self, photo):
        if not photo.image.any():
            raise NoRegion("there is nobody in this photo")
        return [dpveil.Region.whole(photo)]


def png(first=0):
    levels = (np.arange(24 * 16 * 3) * 7 + first) % 251
    return encode(levels.astype(np.uint8).reshape(24, 16, 3), "png")


def test_it_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(UsageError, match=r"dpveil\[data\]"):
        release(None, **PIX, cache=tmp_path)


@pytest.fixture
def library(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    found = pytest.importorskip("datasets")
    found.disable_progress_bars()
    return found


def rows(library, contents, **more):
    images = [None if data is None else {"bytes": data, "path": "ann.png"} for data in contents]
    features = {"image": library.Image(), "label": library.Value("int64"), "raw": library.Value("binary")}
    count = len(images)
    columns = {"image": images, "label": list(range(count)), "raw": [b"x"] * count}
    features |= {name: library.Value("string") for name in more}
    return library.Dataset.from_dict(columns | more, features=library.Features(features))


def told(out, library):
    return out.cast_column("image", library.Image(decode=False))


def test_every_row_is_released_or_empty_and_a_rerun_draws_what_is_missing(library, tmp_path):
    ledger = made(tmp_path / "budget.db", limit=9)
    black = encode(np.zeros((24, 16, 3), np.uint8), "png")
    data = rows(library, [png(0), black, b"no photo", png(1), None, png(0)])
    paying = {"cache": tmp_path / "cache", "ledger": url_of(tmp_path / "budget.db"), "subject": "album"}
    first, again = (
        told(release(data, **PIX, regions=[Dark()], keep=["label"], **paying), library) for _ in range(2)
    )
    assert first.column_names == ["image", "label", "certificate", "status", "problem"]
    assert first["status"][:] == ["released", "no region", "failed", "released", "failed", "released"]
    assert first["label"][:] == list(range(6))
    assert first[:] == again[:]
    for number, row in enumerate(first):
        if row["status"] != "released":
            assert (row["image"], row["certificate"]) == (None, None)
            assert row["problem"]
            continue
        assert row["image"]["path"] is None
        assert row["image"]["bytes"] != png(number)
        assert row["problem"] == ""
    assert sum(entry.kind == "debit" for entry in ledger.history("album")) == 2


def test_processes_share_the_cache(library, tmp_path):
    ledger = made(tmp_path / "budget.db", limit=9)
    data = rows(library, [png(number % 3) for number in range(6)])
    paying = {"cache": tmp_path / "cache", "ledger": url_of(tmp_path / "budget.db"), "subject": "album"}
    out = told(release(data, **PIX, **paying, num_proc=2), library)
    assert out["status"][:] == ["released"] * 6
    assert out[0]["image"] == out[3]["image"]
    image = tmp_path / "0.png"
    image.write_bytes(out[0]["image"]["bytes"])
    (tmp_path / "0.png.certificate.json").write_text(out[0]["certificate"], encoding="utf-8")
    assert dpveil.verify(image).status == "consistent"
    assert sum(entry.kind == "debit" for entry in ledger.history("album")) == 3


def test_a_file_is_opened_only_if_files_are_allowed(library, tmp_path):
    (tmp_path / "ann.png").write_bytes(png())
    features = library.Features({"image": library.Image()})
    cell = {"bytes": None, "path": str(tmp_path / "ann.png")}
    data = library.Dataset.from_dict({"image": [cell]}, features=features)
    refused = release(data, **PIX, cache=tmp_path / "cache")
    assert refused["status"][:] == ["failed"]
    assert "not opened" in refused["problem"][0]
    assert release(data, **PIX, cache=tmp_path / "cache", files=True)["status"][:] == ["released"]


def test_no_column_that_could_hold_an_original_is_kept(library, tmp_path):
    data = rows(library, [png()], status=["x"])
    for keep in (["raw"], ["image"], ["status"], ["nothing"], "label"):
        with pytest.raises(InvalidParameter, match="keep"):
            release(data, **PIX, cache=tmp_path, keep=keep)
    for column in ("label", "nothing"):
        with pytest.raises(InvalidParameter, match="column"):
            release(data, **PIX, cache=tmp_path, column=column)
    with pytest.raises(InvalidParameter, match="is no data set"):
        release(io.BytesIO(), **PIX, cache=tmp_path)
