"""k-same in a benchmark: galleries of one photo of everybody, and attacks that intersect or subtract."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from dpveil.assets import Card
from dpveil.assets.reference import Reference
from dpveil.attacks import attack
from dpveil.bench.data import Dataset, load, split
from dpveil.bench.galleries import GallerySetting, Portraits
from dpveil.bench.measuring import cells, release_all
from dpveil.bench.table import rows
from dpveil.codecs import CODEC
from dpveil.errors import UsageError
from dpveil.mechanisms.ksame import KSameM, KSamePixel, KSameSelect
from dpveil_train import train_pca
from people_made import folder, picture

K = 3
ONE, FOUR = (GallerySetting(KSamePixel(k=K), releases) for releases in (1, 4))
SELECT = GallerySetting(KSameSelect(k=K))


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    return load(folder(tmp_path_factory.mktemp("data") / "made", people=12, photos=3))


@pytest.fixture(scope="module")
def model() -> GallerySetting:
    """k-same-m in eigenfaces of made people, in other photos."""
    crops = np.stack([picture(person, 9) for person in range(60)])
    card = Card("pca", data="60 made people", terms="none", seed=1)
    codec = train_pca(lambda: iter([crops]), card=card, seed=1, length=15)
    return GallerySetting(KSameM(k=K, space=Portraits(Reference.of(codec, CODEC))))


def pictures(data: Dataset, setting: GallerySetting, seed: int = 0) -> list[tuple[bytes, ...]]:
    """Return what is shown of each photo under attack, release by release."""
    shown = [one[0] for one in setting.all_shown(split(data).probes, seed) if one is not None]
    return [tuple(view.image.tobytes() for view in (first, *first.more)) for first in shown]


def test_one_release_hides_among_k_and_several_name_everybody(data: Dataset) -> None:
    names = ("intersected", "pixels", "matched(intersected)")
    once, several = (
        {cell.of["attack"]: float(np.mean(cell.right)) for cell in cells(data, setting, made, 0, [])}
        for setting in (ONE, FOUR)
        for made in [[attack(name) for name in names]]
    )
    assert once["intersected"] == pytest.approx(1 / K), "it knows the groups, and k-same keeps its word"
    assert once["pixels"] <= 1 / K
    assert several["intersected"] >= 0.9
    assert several["matched(intersected)"] >= 0.9


def test_groups_of_a_release_hold_k_and_those_of_the_next_are_others(data: Dataset) -> None:
    found = pictures(data, FOUR)
    assert len(found) == 12
    for release in range(4):
        assert min(Counter(one[release] for one in found).values()) >= K
    assert len(set(found)) > len({one[0] for one in found}), "who shares one picture does not share all"
    assert pictures(data, FOUR) == found
    assert pictures(data, FOUR, seed=1) != found
    own = [replace(item, name=f"{item.name} of the attacker") for item in split(data).probes]
    dealt = [one[0].image.tobytes() for one in FOUR.all_shown(own, 0) if one is not None]
    assert dealt != [one[0] for one in found], "the attacker's galleries are dealt by other bits"


def test_who_has_the_very_faces_of_the_others_names_everybody_by_one_release(
    data: Dataset, model: GallerySetting
) -> None:
    for setting in (ONE, model):
        names = ("pixels", "subtracted(pixels)")
        pixels, knowing = (
            float(np.mean(cell.right)) for cell in cells(data, setting, [attack(one) for one in names], 0, [])
        )
        assert pixels <= 1 / K
        assert knowing == 1, setting.name


def test_what_is_left_of_a_mean_is_the_remaining_photo_up_to_rounding(data: Dataset) -> None:
    made = release_all(data, ONE, 0)
    undo = attack("subtracted(pixels)").undo(made.background(learnt=False))  # type: ignore[attr-defined]
    for shown, item in zip(made.shown, made.probes, strict=True):
        view, photo = shown[0] if shown else pytest.fail("no release"), item.read().image
        assert len(view.others) == K - 1 or len(view.others) < 2 * K
        assert not any((other == photo).all() for other in view.others), "never the photo under attack"
        (left,) = undo([view])
        assert np.abs(left.image.astype(int) - photo).max() <= (1 + len(view.others)) / 2
        assert not left.others


def test_groups_are_of_one_gender_and_a_gender_of_too_few_is_not_released(
    data: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of twelve people two, five or seven are read as one gender, by the mean level of their photos."""
    levels = sorted(float(item.read().image.mean()) for item in split(data).probes)
    for few in (2, 5):
        edge = (levels[few - 1] + levels[few]) / 2
        monkeypatch.setattr(
            "dpveil.bench.face_utility.reading", lambda image, edge=edge: {"gender": int(image.mean() > edge)}
        )
        shown = release_all(data, SELECT, 0).shown
        low = [item.read().image.mean() < edge for item in split(data).probes]
        assert [one is None for one in shown] == [few < K and one for one in low]
        groups: dict[bytes, list[bool]] = {}
        for one, own in zip(shown, low, strict=True):
            if one is not None:
                groups.setdefault(one[0].image.tobytes(), []).append(own)
        assert all(len(group) >= K and len(set(group)) == 1 for group in groups.values())
    assert SELECT.parameters == {"k": K, "keeps": "gender"}
    assert "the class of every face" in str(SELECT.method.guarantee(faces=9).scope)


def test_it_promises_nothing_has_no_bound_and_comes_out_the_same(data: Dataset) -> None:
    for setting in (ONE, FOUR):
        (cell,) = cells(data, setting, [attack("pixels")], 0, ["mse"])
        assert (cell.guarantee or {})["kind"] == "heuristic"
        assert cell.bound is None
        assert rows([cell])[0].values["parameters"].startswith('{"k": 3')
        assert [*cells(data, setting, [attack("pixels")], 0, ["mse"])] == [cell]


def test_photos_that_make_no_gallery_are_refused_before_anything_runs(
    data: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    FOUR.check(split(data))
    with pytest.raises(UsageError, match="needs 14 people for k = 7, and there are 12"):
        GallerySetting(KSamePixel(k=7), 2).check(split(data))
    monkeypatch.setattr("dpveil.bench.face_utility.reading", lambda image: {"gender": image[0, 0, 0] % 9})
    with pytest.raises(UsageError, match="needs 6 people who are read as one gender for k = 6"):
        GallerySetting(KSameSelect(k=6)).check(split(data))
    root = folder(tmp_path / "made", people=4, photos=2)
    Image.fromarray(np.zeros((9, 9), np.uint8)).save(root / "person 0" / "0.png")
    with pytest.raises(UsageError, match="photos of one size"):
        ONE.check(split(load(root)))
