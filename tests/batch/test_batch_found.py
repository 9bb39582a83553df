"""A run that is priced beforehand searches each photo once; one whose pixels changed is searched again."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from workers_made import Looked

from dpveil.batch import releasing
from dpveil.batch.releasing import release_all
from dpveil.batch.report import Report
from dpveil.batch.task import Choices
from dpveil.batch.tasks import plan_tasks
from dpveil.ledger import Ledger, Limit
from dpveil.mechanisms.pixel import DPPix
from dpveil.regions import Faces
from dpveil.regions import faces as faces_file
from dpveil.regions.detectors import Detector

COUNT = 6
SEARCHES = Path("searches")


class Counted(Detector):
    """Finds a face in photos that are not black, where the brightness says, and counts its searches."""

    name = "counted"
    threshold = Fraction(3, 10)

    def __init__(self) -> None:
        self.levels: list[int] = []  # of every photo that was searched, by any thread

    def another(self) -> Counted:
        return self

    @property
    def searches(self) -> int:
        return len(self.levels)

    @classmethod
    def installed(cls) -> bool:
        return True

    def __call__(self, image: Any, threshold: float) -> Any:
        self.levels.append(int(image.max()))
        at = float(image.max()) / 50
        return np.array([[at, at, 8, 8, 0.9]] if at else np.empty((0, 5)))


@pytest.fixture
def detector(monkeypatch: pytest.MonkeyPatch) -> Counted:
    found = Counted()
    monkeypatch.setattr(faces_file, "choose", lambda *_: found)
    return found


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ledger]:
    """With photos of another brightness each, the last one black."""
    monkeypatch.chdir(tmp_path)
    Path("in").mkdir()
    for number in range(COUNT):
        write(number, 50 * (COUNT - 1 - number))
    with Ledger("sqlite:///budget.db", create=True) as opened:
        opened.set_limit("album", Limit("pure", epsilon=99))
        yield opened


def write(number: int, level: int) -> None:
    Image.fromarray(np.full((24, 24), level, np.uint8)).save(f"in/{number}.png")


def released(ledger: Ledger | None, *regions: Any, jobs: int = 1) -> Report:
    method = DPPix(epsilon=1, block=4, neighbourhood=4)
    paying = {} if ledger is None else {"ledger": ledger, "subject": "album"}
    given = Choices(method=method, regions=regions or (Faces(margin=0),), max_pixels=10_000, **paying)  # type: ignore[arg-type]
    return release_all(plan_tasks([Path("in")], Path("out")), given, jobs=jobs)


def boxes(report: Report) -> list[Any]:
    certificates = [Path(f"{entry.output}.certificate.json").read_text() for entry in report.released]
    return [text[text.index('"box"') :][:40] for text in certificates]


def test_each_photo_is_searched_once_and_gets_the_same_regions(ledger: Ledger, detector: Counted) -> None:
    report = released(ledger)
    assert (len(report.released), len(report.no_region)) == (COUNT - 1, 1)
    assert sorted(detector.levels) == [0, 50, 100, 150, 200, 250], "also the one in which nothing is found"
    assert ledger.check().debits == COUNT - 1
    paid = boxes(report)
    for path in Path("out").iterdir():
        path.unlink()
    assert boxes(released(None)) == paid
    assert detector.searches == 2 * COUNT


def test_a_photo_that_was_replaced_since_is_searched_again(
    ledger: Ledger, detector: Counted, monkeypatch: pytest.MonkeyPatch
) -> None:
    def check(*_: Any) -> None:
        write(1, 150)  # which was at 200

    monkeypatch.setattr(releasing, "check_price", check)
    report = released(ledger)
    assert detector.searches == COUNT + 1
    told = boxes(report)
    assert told[1] == told[2], "it is what was at 150 from the beginning"
    assert len(set(told)) == COUNT - 2


@pytest.mark.parametrize("jobs", [1, 2])
def test_workers_search_each_photo_once(ledger: Ledger, jobs: int) -> None:
    report = released(ledger, Looked(SEARCHES), jobs=jobs)
    assert len(report.released) == COUNT
    assert len(SEARCHES.read_bytes()) == COUNT
    assert ledger.check().debits == COUNT
