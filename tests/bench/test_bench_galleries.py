"""k-same in a benchmark: galleries of one photo of everybody, and the attack that intersects its groups."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from dpveil.attacks import attack
from dpveil.bench.check import repeated
from dpveil.bench.data import Dataset, load
from dpveil.bench.galleries import GallerySetting
from dpveil.bench.measuring import cells, released
from dpveil.bench.split import split
from dpveil.bench.table import rows
from dpveil.errors import InvalidParameter, UsageError
from dpveil.mechanisms.ksame import KSamePixel
from people_made import folder

K = 3
ONE, FOUR = (GallerySetting(KSamePixel(k=K), releases) for releases in (1, 4))


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    return load(folder(tmp_path_factory.mktemp("data") / "made", people=12, photos=3))


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


def test_it_promises_nothing_has_no_bound_and_comes_out_the_same(data: Dataset) -> None:
    for setting in (ONE, FOUR):
        (cell,) = cells(data, setting, [attack("pixels")], 0, ["mse"])
        assert (cell.guarantee or {})["kind"] == "heuristic"
        assert cell.bound is None
        assert rows([cell])[0].values["parameters"].startswith('{"k": 3')
        assert repeated(cell, data) == cell


def test_a_photo_without_a_gallery_is_not_released(data: Dataset, tmp_path: Path) -> None:
    """The third photo of two people makes no gallery of three."""
    root = folder(tmp_path / "made", people=4, photos=12)
    for person in (2, 3):
        for photo in range(2, 12):
            (root / f"person {person}" / f"{photo}.png").unlink()
    made = released(load(root), ONE, 0)
    assert [one is not None for one in made.shown] == [True, False, False, True, False, False, True, True]


@pytest.mark.parametrize(
    "given", [{}, {"k": "3"}, {"k": 1}, {"k": 3, "releases": 10**6}, {"k": 3, "space": "x"}]
)
def test_settings_from_anybody_are_refused(given: dict[str, object]) -> None:
    assert GallerySetting.stated("k-same-pixel", {"k": 3, "releases": 4}) == FOUR
    with pytest.raises(InvalidParameter):
        GallerySetting.stated("k-same-pixel", given)


def test_photos_that_make_no_gallery_are_refused_before_anything_runs(data: Dataset, tmp_path: Path) -> None:
    FOUR.check(split(data))
    with pytest.raises(UsageError, match="needs 14 people for k = 7, and there are 12"):
        GallerySetting(KSamePixel(k=7), 2).check(split(data))
    root = folder(tmp_path / "made", people=4, photos=2)
    Image.fromarray(np.zeros((9, 9), np.uint8)).save(root / "person 0" / "0.png")
    with pytest.raises(UsageError, match="photos of one size"):
        ONE.check(split(load(root)))
