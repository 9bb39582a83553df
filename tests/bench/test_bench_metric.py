"""Bounds of methods whose promise is metric, from photos to rows."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from facespace_made import SIDE, codec

from dpveil.attacks.matched import Matched
from dpveil.attacks.vectors import PixelDiscriminant
from dpveil.bench import measuring
from dpveil.bench.bounds import ANY, THESE, bound, bound_by_distances, bound_of_photos
from dpveil.bench.cells import Cell, parse
from dpveil.bench.data import Dataset, load, split
from dpveil.bench.galleries import Setting
from dpveil.bench.table import rows
from dpveil.core.guarantee import Guarantee
from dpveil.faces import Latent
from dpveil.mechanisms.latent import TABLE
from dpveil.mechanisms.latent.base import STEPS
from dpveil.mechanisms.pixel import DPSVD, DPPix
from dpveil.release.plan import Plan
from dpveil.release.saving import Release
from people_made import folder

METRICS = {"croft-metric": "box-mean", "directional": "chord", "pca-basis": "leading-mean"}
SIZE = {"height": SIDE, "width": SIDE, "channels": 1}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    return load(folder(tmp_path_factory.mktemp("data") / "made", photos=6))


def latent(name: str = "croft-metric", epsilon: float = 10) -> Latent:
    return Latent(
        epsilon=epsilon,
        mechanism=name,
        metric=METRICS[name],
        codec=codec(),
        placing="box",
    )


def one(data: Dataset, setting: Setting, attack: object = None) -> Cell:
    (cell,) = measuring.cells(data, setting, [attack or PixelDiscriminant()], 0, [])  # type: ignore[list-item]
    return cell


def by_hand(name: str, points: np.ndarray, kept: int) -> np.ndarray:
    """Return distances by their definitions, each pair alone."""
    out = np.zeros((len(points), len(points)))
    for i, a in enumerate(points.tolist()):
        for j, b in enumerate(points.tolist()):
            if name == "directional":
                ends = [np.array(one, np.longdouble) - STEPS // 2 for one in (a, b)]
                units = [end / np.sqrt((end**2).sum()) if end.any() else np.eye(1, len(a))[0] for end in ends]
                out[i, j] = np.sqrt(((units[0] - units[1]) ** 2).sum())
            else:
                steps = sum(abs(x - y) for x, y in zip(a[:kept], b[:kept], strict=True))
                out[i, j] = float(Fraction(steps, kept * STEPS))
    return out


@pytest.mark.parametrize("name", METRICS)
def test_distances_are_those_of_the_promise_rounded_up(name: str) -> None:
    rng = np.random.default_rng(0)
    points = rng.integers(0, STEPS + 1, (12, 8))
    points[1], points[2] = points[0], points[0] + (points[0] < STEPS)
    points[3] = STEPS // 2  # the middle, which has the direction of the first coordinate
    points[4], points[5] = 0, STEPS
    method = latent(name)
    kept = method._own.kept(codec().statistics) if name == "pca-basis" else 8
    told, exact = method.apart(points), by_hand(name, points, kept)
    assert (told >= exact).all()
    assert told == pytest.approx(exact, abs=1e-7)
    assert told.max() <= float(method.guarantee(**SIZE).diameter or 0) + 1e-12
    if name == "pca-basis":
        assert 0 < kept < 8, "else the leading components are all"


@pytest.mark.parametrize("name", METRICS)
def test_a_release_is_drawn_from_the_points_that_are_compared(
    name: str, data: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[np.ndarray] = []

    def drawn(own: object, points: np.ndarray, space: object, bits: object) -> np.ndarray:
        seen.append(points)
        return points

    monkeypatch.setattr(TABLE[name], "_draw", drawn)
    setting = Setting(latent(name), "whole")
    for item in data.items[:4]:
        assert setting.shown(item, 0) is not None
    assert (np.concatenate(seen) == setting.points(data.items[:4])).all()
    assert len(np.unique(np.concatenate(seen), axis=0)) == 4


@pytest.mark.parametrize("name", METRICS)
def test_the_bound_is_of_these_photos_and_lower_than_at_the_diameter(name: str, data: Dataset) -> None:
    setting = Setting(latent(name), "whole")
    cell, probes = one(data, setting), split(data).probes
    points = setting.points(probes)
    assert points is not None
    kept = latent(name)._own.kept(codec().statistics) if name == "pca-basis" else 8
    people = [item.person for item in probes]
    least = bound_of_photos(Fraction(10), by_hand(name, points, kept), people)
    assert cell.bound == pytest.approx(least, abs=1e-6)
    far = bound([setting.method.guarantee(**SIZE)] * len(people), people, pixels=1, whole=True)  # type: ignore[union-attr]
    assert cell.bound < far
    assert cell.bound_about == THESE
    (row,) = rows([cell])
    assert (row.values["bound_about"], row.above) == (THESE, False)
    assert parse(cell.text().encode(), "cell") == cell


def test_several_releases_are_bounded_by_the_sum_of_their_epsilons(data: Dataset) -> None:
    two, twice = Setting(latent(), "whole", releases=2), Setting(latent(epsilon=20), "whole")
    assert one(data, two).bound == one(data, twice).bound
    assert one(data, two).bound_about == THESE


def test_a_method_that_copies_breaks_the_bound_of_these_photos(
    data: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the diameter nothing would be noticed."""

    def copied(plan: Plan, *, bits: object) -> Release:
        assert plan.quote is not None
        return Release(plan.photo.image, plan._certificate(plan.quote, "seeded"))

    monkeypatch.setattr("dpveil.release.plan.Plan.release", copied)
    setting = Setting(latent(), "whole")
    (row,) = rows([one(data, setting)])
    assert row.success == 1
    assert row.above
    monkeypatch.setattr(measuring, "bound_by_distances", lambda *_: None)
    (row,) = rows([one(data, setting)])
    assert row.values["bound_about"] == ANY
    assert not row.above


def test_where_no_distance_is_known_there_is_no_such_bound(data: Dataset) -> None:
    assert one(data, Setting(DPPix(epsilon=1, block=8))).bound_about == ANY
    nowhere = [
        one(data, Setting(None)),
        one(data, Setting(DPSVD(epsilon=1, rank=2))),
        one(data, Setting(latent(), "4,4,20,20")),
        one(data, Setting(latent(), "whole"), Matched(PixelDiscriminant())),
    ]
    assert [(cell.bound, cell.bound_about) for cell in nowhere] == [(None, None)] * 4
    pure = Latent(epsilon=10, codec=codec())
    assert one(data, Setting(pure, "whole")).bound_about == ANY
    assert pure.points(np.zeros((1, SIDE, SIDE, 3), np.uint8)) is None


def test_every_mechanism_with_a_metric_has_its_distance() -> None:
    """And no other one has."""
    assert {name for name, kind in TABLE.items() if kind.metric is not None} == set(METRICS)
    points = np.zeros((2, 8), np.int64)
    for name, kind in TABLE.items():
        budget = {"rho": 1} if kind.kind == "zcdp" else {"epsilon": 10}
        assert (kind(**budget).apart(points, codec().statistics) is None) == (name not in METRICS)


def test_promises_that_differ_have_no_bound_in_common(data: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    setting, probes = Setting(latent(), "whole"), split(data).probes
    same: list[Guarantee | None] = [latent().guarantee(**SIZE)] * len(probes)
    assert bound_by_distances(setting, probes, same) is not None
    for other in (None, latent(epsilon=11).guarantee(**SIZE), latent("directional").guarantee(**SIZE)):
        assert bound_by_distances(setting, probes, [*same[1:], other]) is None
