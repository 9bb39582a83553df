"""The transform and the data set of PyTorch: a photo is drawn and paid for once, or as often as was said."""

import os
import pickle
import stat
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
    training_releases,
)
from dpveil.errors import (
    AlreadyPaid,
    BudgetExceeded,
    CertificateError,
    DPVeilError,
    NoRegion,
    OutputError,
    TooWeak,
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
    planned = training_releases.plan

    def slowly(*given, **settings):
        time.sleep(0.05)  # so that without the lock, all of them plan it
        return planned(*given, **settings)

    monkeypatch.setattr(training_releases, "plan", slowly)
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
