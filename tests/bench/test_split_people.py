"""The split by people: whoever is learnt from is never attacked, and some who are attacked are strangers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

from dpveil.attacks import Background, Fitted, Scores, View, attack
from dpveil.attacks.vectors import PixelDiscriminant
from dpveil.bench.cells import APART, parse
from dpveil.bench.data import PEOPLE, Dataset, load, split
from dpveil.bench.galleries import Setting
from dpveil.bench.measuring import cells
from dpveil.errors import DataError, UsageError
from dpveil.mechanisms.pixel import Fill, Mosaic
from people_made import folder

NOTHING, MOSAIC, BLANK = Setting(None), Setting(Mosaic(block=8)), Setting(Fill())


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    made = load(folder(tmp_path_factory.mktemp("data") / "made", people=20, photos=5))
    return replace(made, split=PEOPLE)


def test_nobody_who_is_learnt_from_is_attacked(data: Dataset) -> None:
    """The bench's mutant: a split that shares people."""
    parts = split(data)
    gallery = {item.person for item in parts.known} - parts.learnt
    attacked, strangers = ({item.person for item in own} for own in (parts.probes, parts.strangers))
    assert len(parts.learnt) == 10
    assert gallery == attacked
    assert len(attacked) == 8
    assert len(strangers) == 2
    assert not attacked & strangers
    assert not parts.learnt & (attacked | strangers)
    assert not {item.name for item in parts.known} & {item.name for item in parts.probes}
    assert split(replace(data, items=data.items[::-1])).learnt == parts.learnt, "no order decides"


def test_both_eyes_of_one_go_together(data: Dataset) -> None:
    items = [
        replace(i, person=f"{int(i.person.split()[-1]) // 2}-{'LR'[k % 2]}")
        for i in data.items
        for k in [0, 1]
    ]
    eyes = split(replace(data, items=tuple(items), subject="eyes"))
    one = {item.person[:-2] for item in items if item.person in eyes.learnt}
    assert not one & {item.person[:-2] for item in (*eyes.probes, *eyes.strangers)}


def test_too_few_people_are_refused_in_one_line(tmp_path: Path) -> None:
    few = load(folder(tmp_path / "few", people=4, photos=3))
    with pytest.raises(UsageError, match="too few to learn from some"):
        split(replace(few, split=PEOPLE))


def test_the_attacker_is_fitted_to_others_and_enrols_who_is_attacked(data: Dataset) -> None:
    parts = split(data)

    @dataclass(frozen=True)
    class Watched(PixelDiscriminant):
        name: ClassVar[str] = "watched"

        def fit(self, background: Background) -> Fitted:
            assert set(background.people) == parts.learnt
            inner = super().fit(background)

            class Watching(Fitted):
                def score(self, releases: Sequence[View]) -> Scores:
                    pytest.fail("who enrolled nobody has nobody to name")

                def enrol(self, gallery: Background) -> Fitted:
                    assert set(gallery.people) == {item.person for item in parts.probes}
                    return inner.enrol(gallery)

            return Watching()

    (cell,) = cells(data, NOTHING, [Watched()], 0, [])
    assert len(cell.people) == 8
    assert cell.chance == 1 / 8


def test_clean_photos_are_recognised_and_blank_ones_are_not(data: Dataset) -> None:
    (clean,) = cells(data, NOTHING, [attack("pixels")], 0, [])
    assert np.mean(clean.right) >= 0.8
    assert set(clean.apart) == set(APART)
    assert clean.apart["original_equal_error"] == clean.apart["private_equal_error"] <= 0.1
    assert clean.apart["open_set"] > 0.2
    assert clean.apart["original_tar_far_1e-3"] is None, "8 × 7 impostors are too few"
    for name in ("pixels", "eigenfaces", "denoised:median:3(pixels)"):
        (blank,) = cells(data, BLANK, [attack(name)], 0, [])
        assert np.mean(blank.right) == pytest.approx(1 / 8)
        assert blank.apart["private_equal_error"] == 0.5
        assert blank.apart["open_set"] <= 1 / 8


def test_who_learns_from_releases_compares_releases_better_than_with_photos(data: Dataset) -> None:
    turned = Setting(Mosaic(block=16))
    (cell,) = cells(data, turned, [attack("pixels")], 0, [])
    assert cell.equal_error == cell.apart["private_equal_error"]
    (naive,) = cells(data, turned, [attack("eigenfaces")], 0, [])
    assert naive.equal_error == naive.apart["original_equal_error"]


@pytest.mark.parametrize("broken", [{"open_set": 2}, {"open_set": None, "more": 1}, [], "no"])
def test_cells_with_other_measures_of_a_split_are_refused(data: Dataset, broken: object) -> None:
    (cell,) = cells(data, MOSAIC, [attack("pixels")], 0, [])
    told = json.loads(cell.text())
    more = {**told["apart"], **broken} if isinstance(broken, dict) else broken
    with pytest.raises(DataError, match="is not a cell of this version"):
        parse(json.dumps({**told, "apart": more}).encode(), "a cell")
    of = {**told["of"], "split": "other"}
    with pytest.raises(DataError, match="how people were split"):
        parse(json.dumps({**told, "of": of}).encode(), "a cell")
