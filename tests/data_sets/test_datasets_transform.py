"""The transform and the data set of PyTorch: a photo is drawn and paid for once, or as often as was said."""

import io
import os
import pickle
import stat
import sys
import tarfile
import threading
import time

import numpy as np
import pytest
from budgets import made, url_of

import dpveil
from dpveil.datasets import (
    Cache,
    DPVeil,
    Releaser,
    release,
    released_samples,
    releaser,
)
from dpveil.errors import (
    AlreadyPaid,
    BudgetExceeded,
    CertificateError,
    DPVeilError,
    InvalidParameter,
    NoRegion,
    OutputError,
    PhotoError,
    TooWeak,
    UsageError,
)
from dpveil.io import encode
from dpveil.regions import Finder

PIX = {"method": "dp-pix", "epsilon": 1, "block": 8}


class Nobody(Finder):
    description = "nobody"

    def __call__(self, photo):
        raise NoRegion("there is nobody in this photo")


def photo(first=0, channels=3):
    levels = (np.arange(40 * 32 * 3) * 7 + first) % 251
    return levels.astype(np.uint8).reshape(40, 32, 3)[:, :, :channels]


def files(cache):
    return sorted(path for path in (cache / "releases").rglob("*.*") if path.is_file())


def spent(ledger, subject="album"):
    return sum(entry.kind == "debit" for entry in ledger.history(subject))


def test_a_cache_draws_and_pays_once_however_many_epochs(tmp_path):
    ledger = made(tmp_path / "budget.db", limit=2)
    photos = [photo(0), photo(1)]
    epochs = []
    for _ in range(3):  # each with a new object, as the workers of a data loader have
        veil = DPVeil(**PIX, cache=tmp_path / "cache", ledger=ledger, subject="album")
        epochs.append([veil(image=levels)["image"] for levels in photos])
    assert spent(ledger) == 2
    for later in epochs[1:]:
        assert all(np.array_equal(a, b) for a, b in zip(epochs[0], later, strict=True))
    assert not any(np.array_equal(a, b) for a, b in zip(epochs[0], photos, strict=True))
    assert len(files(tmp_path / "cache")) == 4
    assert len(list((tmp_path / "cache" / "releases").rglob("*.png"))) == 2
    for image in (tmp_path / "cache" / "releases").rglob("*.png"):
        assert dpveil.verify(image).status == "consistent"
    with pytest.raises(BudgetExceeded):
        veil(image=photo(2))


def test_other_settings_are_another_release(tmp_path):
    drawn = [
        DPVeil("dp-pix", epsilon=epsilon, block=block, cache=tmp_path).releaser.release(photo()).drawn
        for epsilon, block in ((1, 8), (2, 8), (1, 4), (1, 8))
    ]
    assert drawn == [True, True, True, False]


def test_an_image_keeps_its_shape_and_other_targets_stay(tmp_path):
    veil = DPVeil(**PIX, cache=tmp_path)
    grey = photo(channels=1)
    assert veil(image=grey[:, :, 0])["image"].shape == (40, 32)
    assert veil(image=encode(grey, "png"))["image"].shape == (40, 32, 1)
    out = veil(image=photo(), mask="mask", label=3)
    assert out["image"].dtype == np.uint8
    assert out["image"].flags.writeable
    assert (out["mask"], out["label"]) == ("mask", 3)


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ({"regions": [Nobody()]}, NoRegion),
        ({"regions": "30,30,20,20"}, DPVeilError),
        ({"at_least": "strong", "epsilon": 50}, TooWeak),
    ],
)
def test_what_cannot_be_released_is_no_image(settings, error, tmp_path):
    veil = DPVeil(**{**PIX, **settings}, cache=tmp_path / "cache")
    for _ in range(2):
        with pytest.raises(error):
            veil.image(photo())
    assert not (tmp_path / "cache" / "releases").exists() or files(tmp_path / "cache") == []


def test_a_stored_release_is_no_stronger_than_it_was(tmp_path):
    DPVeil("dp-pix", epsilon=50, block=8, cache=tmp_path).image(photo())
    with pytest.raises(TooWeak):
        DPVeil("dp-pix", epsilon=50, block=8, cache=tmp_path, at_least="strong").image(photo())


def damage(path):
    data = bytearray(path.read_bytes())
    data[-20] ^= 1
    path.write_bytes(bytes(data))


@pytest.mark.parametrize(
    "harm",
    [
        lambda image, beside: damage(image),
        lambda image, beside: beside.unlink(),
        lambda image, beside: image.unlink(),
        lambda image, beside: beside.write_text("{}", encoding="utf-8"),
        lambda image, beside: (image.unlink(), image.symlink_to("/dev/zero")),
    ],
    ids=["changed", "no-certificate", "no-image", "no-json", "link"],
)
def test_a_damaged_release_is_neither_used_nor_drawn_anew(harm, tmp_path):
    ledger = made(tmp_path / "budget.db", limit=9)
    veil = DPVeil(**PIX, cache=tmp_path / "cache", ledger=ledger, subject="album")
    veil.image(photo())
    image, beside = files(tmp_path / "cache")
    harm(image, beside)
    with pytest.raises(CertificateError):
        veil.image(photo())
    assert spent(ledger) == 1


def test_a_lost_release_is_not_paid_for_again(tmp_path):
    ledger = made(tmp_path / "budget.db", limit=9)
    settings = {**PIX, "ledger": ledger, "subject": "album"}
    DPVeil(**settings, cache=tmp_path / "one").image(photo())
    with pytest.raises(AlreadyPaid):
        DPVeil(**settings, cache=tmp_path / "two").image(photo())
    assert spent(ledger) == 1


def test_names_tell_nothing_without_the_key_and_no_key_draws_nothing(tmp_path):
    names = []
    for folder in ("one", "two"):
        DPVeil(**PIX, cache=tmp_path / folder).image(photo())
        names.append(files(tmp_path / folder)[0].name)
    assert names[0] != names[1]
    key = tmp_path / "one" / "key"
    if os.name == "posix":
        assert stat.S_IMODE(key.stat().st_mode) == 0o600
    for harm in (lambda: key.write_bytes(b"short"), key.unlink):
        harm()
        with pytest.raises(DPVeilError, match="the key of"):
            Cache(tmp_path / "one")
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(OutputError):
        Cache(tmp_path / "file")


def test_threads_draw_a_photo_once(tmp_path, monkeypatch):
    ledger = made(tmp_path / "budget.db", limit=99)
    planned = releaser.plan

    def slowly(*given, **settings):
        time.sleep(0.05)  # so that without the lock, all of them plan it
        return planned(*given, **settings)

    monkeypatch.setattr(releaser, "plan", slowly)
    one = Releaser.of(**PIX, cache=tmp_path / "cache", ledger=ledger, subject="album")
    drawn, errors = [], []

    def draw():
        try:
            drawn.append(one.release(photo()).drawn)
        except DPVeilError as error:
            errors.append(error)

    threads = [threading.Thread(target=draw) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert sorted(drawn) == [False, False, False, True]
    assert spent(ledger) == 1


def test_it_goes_to_other_processes_with_the_url_of_a_ledger_and_shows_none(tmp_path):
    made(tmp_path / "budget.db", limit=1)
    url = url_of(tmp_path / "budget.db")
    one = Releaser.of(**PIX, cache=tmp_path / "cache", ledger=url, subject="album")
    assert url not in repr(one)
    there = pickle.loads(pickle.dumps(one))  # noqa: S301
    assert there.release(photo()).drawn
    assert not one.release(photo()).drawn


def test_albumentations_takes_it_as_a_step(tmp_path, monkeypatch):
    monkeypatch.setenv("NO_ALBUMENTATIONS_UPDATE", "1")  # it asks a server for news, else
    steps = pytest.importorskip("albumentations")
    veil = DPVeil(**PIX, cache=tmp_path)
    released = veil.image(photo())
    for first in (veil, steps.Lambda(image=veil.image, p=1.0)):
        out = steps.Compose([first, steps.HorizontalFlip(p=1.0)])(image=photo())
        assert np.array_equal(out["image"], released[:, ::-1])


def test_workers_of_a_data_loader_share_a_cache(tmp_path):
    data = pytest.importorskip("torch.utils.data")
    made(tmp_path / "budget.db", limit=4)
    url = url_of(tmp_path / "budget.db")
    veil = DPVeil(**PIX, cache=tmp_path / "cache", ledger=url, subject="album")
    photos = [photo(first) for first in range(4)]

    def released(given):
        return np.stack([veil.image(one) for one in given])

    epochs = [[*data.DataLoader(photos, 2, num_workers=2, collate_fn=released)] for _ in range(2)]
    assert all(np.array_equal(a, b) for a, b in zip(*epochs, strict=True))
    assert spent(dpveil.Ledger(url)) == 4


def test_a_cached_release_is_for_whoever_paid_for_it(tmp_path):
    ledger, cache = made(tmp_path / "budget.db", limit=2), tmp_path / "cache"

    class Purse:
        """A budget that does not say which files it paid for."""

        debit = ledger.debit

    Releaser.of(**PIX, cache=cache).release(photo())
    with pytest.raises(DPVeilError, match="album did not pay for that from this ledger"):
        Releaser.of(**PIX, cache=cache, ledger=ledger, subject="album").release(photo())
    assert not Releaser.of(**PIX, cache=cache, ledger=Purse(), subject="album").release(photo()).drawn
    assert spent(ledger) == 0
    paying = Releaser.of(**PIX, cache=cache, ledger=ledger, subject="album")
    assert [paying.release(photo(1)).drawn for _ in range(2)] == [True, False]
    assert not Releaser.of(**PIX, cache=cache).release(photo(1)).drawn
    assert spent(ledger) == 1


# The stage of a WebDataset pipeline: releases and certificates go on, originals never do.


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


# Columns of images of Hugging Face: each row is released, no region or failed, and reruns do the rest.


class Dark(Finder):
    """The whole photo, unless it is black."""

    description = "dark"

    def __call__(self, photo):
        if not photo.image.any():
            raise NoRegion("there is nobody in this photo")
        return [dpveil.Region.whole(photo)]


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
