"""The league table: who is compared with whom, and which method a reader is told to take."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from skimage import data

from dpveil.attacks.base import has_extra
from dpveil.bench.bounds import up
from dpveil.bench.cells import PARTS, WHOLE
from dpveil.bench.league import FEW, cautions, leagues
from dpveil.bench.table import COLUMNS, STRONGEST, Row, exceeds
from dpveil.bench.utility import largest_face, measure_all


def row(
    method: str,
    kind: str,
    relation: str,
    success: float,
    *,
    attack: str = "pixels",
    spread: float = 0.05,
    epsilon: int = 1,
    bound: float | None = None,
    covers: str = WHOLE,
    people: int = 40,
) -> Row:
    values = dict.fromkeys(COLUMNS, "") | {
        "dataset": "made",
        "method": method,
        "parameters": json.dumps({"epsilon": epsilon}),
        "kind": kind,
        "relation": relation,
        "covers": covers,
        "attack": attack,
        "success": f"{success:.4f}",
        "chance": "0.1000",
        "people": str(people),
    }
    cell = None if attack == STRONGEST else object()
    return Row(values, success, success - spread, success + spread, bound, cell)  # type: ignore[arg-type]


def ssim(method: str, mean: float, epsilon: int = 1) -> dict[str, str]:
    told = {"dataset": "made", "method": method, "parameters": json.dumps({"epsilon": epsilon})}
    return {**told, "measure": "ssim", "mean": str(mean)}


def test_promises_about_other_neighbours_are_never_mixed() -> None:
    table = [
        row("a", "pure", "any-image", 0.1),
        row("b", "pure", "m-pixels 16", 0.1),
        row("c", "pure", "m-pixels 1", 0.1),
        row("d", "approximate", "any-image", 0.1),
        row("e", "heuristic", "any-image", 0.1),
        row("f", "heuristic", "m-pixels 1", 0.1),
        row("nothing", "none", "", 0.9),
    ]
    found = leagues(table, [ssim(name, 0.5) for name in "abcdef"])
    members = [[place.method for place in league.places] for league in found]
    assert sorted(members) == [["a"], ["b"], ["c"], ["d"], ["e", "f"], ["nothing hidden"]]
    assert [league.title for league in found][-2:] == ["no promise", "photos as they are"]
    assert "at most 16 pixels" in next(one for one in found if one.places[0].method == "b").promise
    assert "one pixel" in next(one for one in found if one.places[0].method == "c").promise


def test_a_promise_about_regions_is_not_ranked_with_one_about_whole_photos_and_says_so() -> None:
    table = [
        row("heads", "pure", "any-image", 0.1, covers=PARTS),
        row("fill", "pure", "any-image", 0.1),
        row("blur", "heuristic", "any-image", 0.5, covers=PARTS),
        row("mosaic", "heuristic", "any-image", 0.5),
    ]
    whole, parts, nothing = leagues(table, [])
    assert [place.method for place in (*whole.places, *parts.places)] == ["fill", "heads"]
    assert whole.title + ", regions only" == parts.title
    assert "lies around them" in parts.promise
    assert "lies around them" not in whole.promise
    assert len(nothing.places) == 2


def test_bounds_are_rounded_up_and_never_down() -> None:
    assert [up(share, 4) for share in (0.12341, 0.1234, 0.025, 1 / 3, 0, 1)] == [
        "0.1235",
        "0.1234",
        "0.0250",
        "0.3334",
        "0.0000",
        "1.0000",
    ]
    assert (up(0.101, 2), up(0.999999999, 2)) == ("0.11", "1.00")


def test_the_risk_is_that_of_the_strongest_attack_and_the_lowest_comes_first() -> None:
    table = [
        row("a", "pure", "any-image", 0.5),
        row("a", "pure", "any-image", 0.7, attack="restored", bound=0.9),
        row("a", "pure", "any-image", 0.6, attack=STRONGEST),
        row("b", "pure", "any-image", 0.2),
    ]
    (league,) = leagues(table, [ssim("a", 0.9), ssim("b", 0.1)])
    assert [(place.method, place.risk, place.by) for place in league.places] == [
        ("b", 0.2, "pixels"),
        ("a", 0.6, "restored"),
    ]
    assert league.places[1].bound == 0.9


def test_tinted_is_what_keeps_most_of_those_that_are_no_riskier_than_the_first() -> None:
    table = [
        row("a", "pure", "any-image", 0.10),
        row("b", "pure", "any-image", 0.15),
        row("c", "pure", "any-image", 0.50),
    ]
    kept = [ssim("a", 0.2), ssim("b", 0.4), ssim("c", 0.9)]
    kept += [{**ssim(name, mean), "measure": "gender"} for name, mean in (("a", 0.7), ("b", 0.6), ("c", 0.9))]
    (league,) = leagues(table, kept)
    assert [place.best for place in league.places] == [{"gender"}, {"ssim"}, set()]
    few = [replace(one, low=low, high=low + 0.3) for one, low in zip(table, (0, 0, 0.35), strict=True)]
    assert [place.best for place in leagues(few, kept)[0].places] == [{"gender"}, {"ssim"}, set()]
    even = [ssim("a", 0.0), ssim("b", 0.0)]
    assert not any(place.best for place in leagues(table[:2], even)[0].places)
    (alone,) = leagues(table[:1], kept[:1])
    assert not alone.places[0].best
    fewer = [row(name, "pure", "any-image", 0.1, people=FEW - 1) for name in "ab"]
    (untold,) = leagues(fewer, kept)
    assert cautions(fewer)
    assert not any(place.best for place in untold.places), "nobody is told to take one"
    tied = [row("b", "pure", "any-image", 0.3, spread=0.2), row("a", "pure", "any-image", 0.2, spread=0.2)]
    (equal,) = leagues(tied, kept)
    assert [place.method for place in equal.places] == ["b", "a"], "in the order of the run"
    assert (bool(equal.unranked), bool(untold.unranked), bool(league.unranked)) == (True, True, False)


@pytest.mark.parametrize(
    ("people", "clean", "spread", "blur", "said"),
    [
        (FEW - 1, 1.0, 0.0, 0.9, "9 people are too few"),
        (FEW, 1.0, 0.0, 0.9, ""),
        (40, 0.9, 0.05, 0.9, ""),
        (40, 0.2, 0.1, 0.1, "attackers name 0.20 in photos as they are, no more than a guess"),
        (40, 0.16, 0.05, 0.1, ""),
        (40, 0.6, 0.05, 0.61, "fewer than by blur (0.61)"),
    ],
)
def test_a_run_whose_rows_cannot_be_told_apart_says_so_in_one_line(
    people: int, clean: float, spread: float, blur: float, said: str
) -> None:
    table = [
        row("nothing", "none", "", clean, spread=spread, people=people),
        row("blur", "heuristic", "any-image", blur, people=people),
    ]
    lines = cautions(table)
    assert len(lines) == bool(said)
    assert all(said in line and line.startswith("made: ") for line in lines)


def test_a_method_that_breaks_its_promise_is_reported_and_rounding_is_not() -> None:
    assert exceeds(1.0, 0.5, 80, 80)
    assert exceeds(0.3, 0.025, 80, 80)
    assert exceeds(0.1, 0.0, 1, 1)
    assert not exceeds(0.05 + 1e-16, 0.05, 10**9, 1)
    assert not exceeds(0.4, 0.5, 10**9, 1)
    assert not exceeds(1.0, 1.0, 10**9, 1)


# What is left of photos: measures of faces that are there, lost, moved or another's, and what they
# took.


needs_faces = pytest.mark.skipif(
    not (has_extra("faces") and has_extra("models")), reason="needs dpveil install faces"
)
ABOUT_FACES = ("face-found", "landmarks", "gender", "age", "smile")
PIXELS = ("psnr", "ssim", "ms-ssim")


@cache
def portrait() -> np.ndarray:
    """A public-domain photo of a face."""
    return np.ascontiguousarray(data.astronaut()[:256, 100:356])


def alone(name: str, photo: np.ndarray, release: np.ndarray) -> float | None:
    (value,) = measure_all([name], [photo], [release])[name]
    return value


@needs_faces
def test_a_face_that_is_lost_counts_as_lost_and_is_nowhere() -> None:
    """The bug to fear drops it, so that the rest looks well."""
    grey = np.full_like(portrait(), 128)
    kept = measure_all(ABOUT_FACES, [portrait()], [grey])
    assert [kept[name] for name in ("face-found", "gender", "age", "smile")] == [(0.0,)] * 4
    assert kept["landmarks"] == (None,)
    none = measure_all(ABOUT_FACES, [grey], [portrait()])
    assert set(none.values()) == {(None,)}, "a photo without a face has none to keep"
    assert set(measure_all(PIXELS, [portrait()], [None]).values()) == {(None,)}


@needs_faces
def test_a_face_that_is_moved_is_as_far_away_and_one_elsewhere_is_not_it() -> None:
    first = largest_face(portrait())
    assert first is not None
    moved = np.roll(portrait(), 12, axis=1)
    assert alone("landmarks", portrait(), moved) == pytest.approx(12 / first.eyes, rel=0.2)
    for axis in (0, 1):
        assert alone("face-found", portrait(), np.roll(portrait(), 120, axis=axis)) == 0
