"""What the benchmarks `detector_training` and `classifier_training` count, against cases computed by hand."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    if not BENCHMARKS.is_dir():
        pytest.skip("the benchmarks are not in this copy")
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    spec = importlib.util.spec_from_file_location("detector_training", BENCHMARKS / "detector_training.py")
    made = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "detector_training", made)
    spec.loader.exec_module(made)
    return made


def test_average_precision_by_hand(module: ModuleType) -> None:
    scores = np.array([0.2, 0.9, 0.5, 0.7])
    hits = np.array([True, True, True, False])
    photos = np.array([2, 0, 1, 1])
    # ranked: photo 0 hit (1/1), photo 1 false alarm, photo 1 hit (2/3), photo 2 hit (3/4); photo 3 is missed
    once, twice = module.average_precision(scores, hits, photos, np.array([[1, 1, 1, 1], [0, 2, 1, 1]]))
    assert once == pytest.approx((1 + 2 / 3 + 3 / 4) / 4)
    # photo 1 twice, photo 0 never: two false alarms, two hits (2/4 each), one hit (3/5), one face is missed
    assert twice == pytest.approx((2 * 2 / 4 + 3 / 5) / 4)


def test_missed_faces_and_false_alarms_count(module: ModuleType) -> None:
    nothing = np.zeros(0)
    assert module.average_precision(nothing, nothing > 0, nothing.astype(int), np.ones((1, 3), int)) == 0
    wrong = np.array([False, False])
    assert module.average_precision(np.array([1.0, 2.0]), wrong, np.array([0, 1]), np.ones((1, 2), int)) == 0


def test_a_second_box_on_a_face_is_a_false_alarm(module: ModuleType) -> None:
    face = (10, 10, 40)
    boxes = [(12, 10, 40, 40), (10, 10, 40, 40), (80, 80, 40, 40)]
    assert module.first_matches(boxes, [0.9, 0.3, 2.0], face) == [True, False, False]
    assert module.first_matches([], [], face) == []


def test_overlap_at_the_threshold(module: ModuleType) -> None:
    face = (0, 0, 30)
    assert module.overlap((10, 0, 30, 30), face) == pytest.approx(0.5)
    assert module.first_matches([(10, 0, 30, 30)], [0.0], face) == [True]
    assert module.first_matches([(11, 0, 30, 30)], [0.0], face) == [False]
    assert module.overlap((30, 0, 30, 30), face) == 0


def test_squares_keep_centre_and_area(module: ModuleType) -> None:
    from dpveil import Box

    assert module.square(Box(100, 50, 40, 90)) == (90, 65, 60)


def test_intervals_are_of_differences_on_the_same_people(module: ModuleType) -> None:
    clean = np.array([[0.9, 0.8, 1.0], [0.7, 0.6, 0.8]])
    row = module.TASK.row("fill", clean - 0.1, clean, 0)
    assert row["lost"] == [0.1, 0.1, 0.1]
    assert row["AP"][0] == 0.7
    assert row["sets"] == {"1": 0.8, "2": 0.6}
    assert row["kept"] == 0.875


@pytest.mark.parametrize(
    ("name", "measure"), [("detector_training", "AP"), ("classifier_training", "accuracy")]
)
@pytest.mark.usefixtures("module")
def test_the_kept_tables_hold_numbers(name: str, measure: str) -> None:
    settings = importlib.import_module("trained_on_releases").SETTINGS
    record = json.loads((BENCHMARKS / "results" / f"{name}.json").read_text(encoding="utf-8"))
    assert [row["trained on"] for row in record["rows"]] == list(settings)
    for row in record["rows"]:
        middle, low, high = row[measure]
        assert 0 <= low <= middle <= high <= 1
        assert np.mean(list(row["sets"].values())) == pytest.approx(middle, abs=0.00101)


def test_accuracy_of_a_classifier_is_balanced(module: ModuleType) -> None:
    spec = importlib.util.spec_from_file_location("classifier", BENCHMARKS / "classifier_training.py")
    classifier = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(classifier)
    truth = np.array([0, 0, 0, 1])
    right = np.array([True, True, False, False])
    once, drawn = classifier.balanced(right, truth, np.array([[1, 1, 1, 1], [0, 1, 2, 1]]))
    assert once == pytest.approx((2 / 3 + 0) / 2)
    assert drawn == pytest.approx((1 / 3 + 0) / 2)
