"""k-same against differential privacy: the bound for any attacker, and a run on made faces."""

from __future__ import annotations

import io
import tarfile
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kept_tables import kept_rows, read
from made_codes import chips, portrait
from PIL import Image

from dpveil.assets.model_cards import Card
from dpveil.codecs import PCA
from dpveil.core.region import Box
from dpveil.faces.geometry.align import Frame
from dpveil.mechanisms.latent import CroftMetric
from dpveil.noise.bits import SeededBits
from dpveil_research import faces
from dpveil_research.__main__ import ON_DATA, main
from dpveil_research.data import Dataset
from dpveil_research.faces import Set
from dpveil_research.ksame import (
    GROUPS,
    LIKELIHOOD,
    OTHER,
    PLAN,
    PRIVATE,
    SAME,
    SUBTRACTED,
    Plan,
    Scene,
    best_success,
    divided,
    losses,
    make,
    scaled,
    subtract_others,
)
from dpveil_research.ksame_methods import KSamePixel
from dpveil_research.results import where
from dpveil_train import train_pca

CARD = Card("pca", data="made faces", terms="none", seed=1)
SETS = (
    Set("colour", Dataset("colour", "RGB"), Box(8, 8, 48, 48)),
    Set("grey", Dataset("grey", "L"), Box(8, 8, 48, 48)),
)
TINY = Plan(
    sets=SETS[:1],
    shards=1,
    length=6,
    people=10,
    photos=3,
    epsilons=("20", "1000"),
    groups=(2, 3),
    draws=2,
    splits=1,
)


def tree(folder: Path, people: int = 10, photos: int = 3) -> Path:
    """Write data sets of the layouts that the comparison reads, and a shard to train on."""
    for one, person, photo in product(SETS, range(people), range(photos)):
        home = folder / one.dataset.folder / f"p{person}"
        home.mkdir(parents=True, exist_ok=True)
        picture = Image.fromarray(portrait(person, photo, 64)).convert(one.dataset.mode)
        picture.save(home / f"{photo}.png")
    shard = folder / "utkface_128" / "utkface-000.tar"
    shard.parent.mkdir()
    with tarfile.open(shard, "w") as tar:
        for number in range(30):
            data = io.BytesIO()
            Image.fromarray(portrait(100 + number, 0, 64)).save(data, "PNG")
            entry = tarfile.TarInfo(f"{number:06}.png")
            entry.size = len(data.getvalue())
            tar.addfile(entry, io.BytesIO(data.getvalue()))
    return folder


class Places:
    """In the place of dlib's landmarks: where they are on made faces."""

    def near(self, image: np.ndarray, box: Box) -> Any:
        return type("Found", (), {"points": Frame(len(image)).points()})


# The bound


def law(point: tuple[int, ...], scale: float, steps: int) -> np.ndarray:
    """P(outcome) of discrete Laplace noise on every coordinate, snapped to 0..steps, from the formula."""
    r = np.exp(-1 / scale)
    total = np.ones(1)
    for at in point:
        far = np.arange(-60 * steps, 60 * steps + 1)
        whole = (1 - r) / (1 + r) * r ** np.abs(far)
        one = np.zeros(steps + 1)
        np.add.at(one, np.clip(at + far, 0, steps), whole)
        total = np.multiply.outer(total, one)
    return total.ravel()


def exact_success(points: list[tuple[int, ...]], scale: float, steps: int, releases: int) -> float:
    """How often the best attacker of all is right, each point as likely as the others: Σ max P(o|i)/n."""
    laws = np.stack([law(point, scale, steps) for point in points])
    if releases == 2:
        laws = np.einsum("no,np->nop", laws, laws).reshape(len(points), -1)
    return float(laws.max(axis=0).sum() / len(points))


@pytest.mark.parametrize("releases", [1, 2])
@pytest.mark.parametrize("epsilon", [0.5, 2.0, 8.0])
def test_nobody_exceeds_the_bound(epsilon: float, releases: int) -> None:
    """The best attacker, from the exact laws of Croft's mechanism on a grid of 4 × 4 steps."""
    steps, points = 4, [(0, 0), (0, 1), (1, 3), (4, 4), (2, 2)]
    scale = 2 * steps / epsilon
    away = np.abs(np.subtract.outer(np.array(points), np.array(points))[:, [0, 1], :, [0, 1]]).sum(axis=0)
    best = exact_success(points, scale, steps, releases)
    bound = best_success(releases * away / scale)
    assert best <= bound + 1e-12
    assert bound < 1


def test_bound_is_chance_without_losses_and_sure_without_end() -> None:
    assert best_success(np.zeros((7, 7))) == pytest.approx(1 / 7)
    assert best_success(1e3 * (1 - np.eye(7))) == pytest.approx(1)
    twins = np.full((4, 4), 1e3)
    twins[:2, :2] = twins[2:, 2:] = 0
    assert best_success(twins) == pytest.approx(0.5)
    two = np.array([[0, 1.5], [1.5, 0]])
    assert best_success(two) == pytest.approx(1 / (1 + np.exp(-1.5)))


def codec(count: int = 40) -> PCA:
    every = np.stack([portrait(100 + number, 0, 16) for number in range(count)])
    return train_pca(lambda: iter([every]), card=CARD, seed=1, length=5)


def test_losses_are_those_of_the_mechanism() -> None:
    made, mechanism = codec(), CroftMetric(epsilon=8, clip=0)
    space, codes = made.statistics, made.encode(np.stack([portrait(person, 0, 16) for person in range(6)]))
    found = losses(scaled(codes, mechanism, space))
    box = space.bounds(mechanism.clip)
    parts = np.clip((codes - box.low) / (box.high - box.low), 0, 1)
    expected = 8 * np.abs(parts[:, None] - parts[None]).mean(axis=2)
    assert np.allclose(found, expected, atol=8 / 2**16)
    assert found.max() <= 8
    assert np.allclose(found, found.T)


def test_likelihood_stays_below_the_bound() -> None:
    """240 tries a time: by Hoeffding's inequality above by 0.21 with a probability below 1e-9."""
    space = codec()
    crops = np.stack([np.stack([portrait(person, 0, 16)]) for person in range(8)])
    plan = Plan(draws=30)
    names = tuple(f"p{person}" for person in range(8))
    scene = Scene(faces.People("made", crops, names), space, chips, plan)
    rates = {}
    for epsilon, releases in product(("1", "20", "2000"), (1, 2)):
        found, bound = scene.by_likelihood(epsilon, releases)
        rates[epsilon, releases] = found.rate
        assert found.rate <= bound + 0.21
        assert len(found.people) == 240
    assert rates["2000", 1] > 0.9 > rates["1", 1]
    assert rates["20", 2] > rates["20", 1]


# The parts of the attacks


def test_galleries_share_two_fifths() -> None:
    one, other, both = divided(100, SeededBits(1))
    assert (len(one), len(other), len(both)) == (70, 70, 40)
    assert np.array_equal(np.intersect1d(one, other), both)


def test_subtracting_finds_the_face() -> None:
    """Background knowledge: k times the mean without the known faces is the other, but for rounding."""
    every = np.stack([portrait(person, 0, 16) for person in range(10)])
    hidden = KSamePixel(3).release(every)
    left = subtract_others(hidden, every).astype(int)
    sizes = np.bincount(hidden.group_of)[hidden.group_of]
    assert (np.abs(left - every).max(axis=(1, 2, 3)) <= sizes / 2).all()


# The run


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpveil_research.faces.predictor", Places)
    monkeypatch.setattr(faces, "embedder", lambda: chips)
    monkeypatch.setattr(faces, "FRAME", Frame(64))
    monkeypatch.setattr(faces, "SIDE", (64, 64, 3))
    monkeypatch.setitem(ON_DATA, "croft-2022-ksame", partial(make, plan=TINY))


@pytest.mark.usefixtures("made")
def test_the_comparison_runs_on_a_tiny_tree(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["croft-2022-ksame", "--data", str(tree(tmp_path)), "--out", str(tmp_path / "out")]) == 0
    out = tmp_path / "out" / "croft-2022-ksame"
    assert {path.name for path in out.iterdir()} == {"colour.png", "results.csv"}
    with Image.open(out / "colour.png") as opened:
        assert opened.format == "PNG"  # small where another test has rendered one (conftest)
    made = read((out / "results.csv").read_bytes())
    assert {row["dataset"] for row in made} == {"colour"}
    for row in made:
        assert 0 <= float(row["rate_low"]) <= float(row["rate"]) <= float(row["rate_high"]) <= 1
    places = [tuple(row[n] for n in ("dataset", "method", "x", "releases", "attack")) for row in made]
    assert len(places) == len(set(places))
    one = [row for row in made if row["method"].startswith("k-same") and row["attack"] != SUBTRACTED]
    assert {row["method"] for row in one} == {"k-same-pixel", "k-same-m"}
    assert all(float(r["rate"]) <= float(r["limit"]) for r in one if r["releases"] == "1")
    (clean,) = where(made, method="no codec", attack=OTHER)
    assert float(clean["rate"]) > 0.5
    assert "k = 3" in capsys.readouterr().err


# The page

NAMES = ("LFW", "AT&T")
ROWS = kept_rows("croft-2022-ksame")


def rate(
    method: str, x: str, attack: str, column: str = "rate", releases: int = 1, dataset: str = "LFW"
) -> float:
    wanted = {"method": method, "x": x, "attack": attack, "releases": str(releases), "dataset": dataset}
    (found,) = where(ROWS, **wanted)
    return float(found[column])


def rates(method: str, xs: str, attack: str, column: str = "rate", **more: Any) -> list[float]:
    return [round(rate(method, x, attack, column, **more) + 1e-9, 2) for x in xs.split()]


def test_the_table_is_that_of_the_plan() -> None:
    for dataset, people in zip(NAMES, (100, 40), strict=True):
        assert {row["people"] for row in where(ROWS, dataset=dataset, attack=OTHER)} == {str(people)}
        xs = {row["x"] for row in where(ROWS, dataset=dataset, method=SAME)}
        assert xs == {str(k) for k in PLAN.groups if k <= people}
        assert {row["x"] for row in where(ROWS, dataset=dataset, method=PRIVATE)} == set(PLAN.epsilons)
    assert all(float(r["rate_low"]) <= float(r["rate"]) <= float(r["rate_high"]) for r in ROWS)


def test_k1_the_risk_falls_with_privacy() -> None:
    assert rates(PRIVATE, "10000 1000 30", OTHER) == [0.27, 0.04, 0.02]
    assert rates(SAME, "2 5 10", OTHER) == [0.18, 0.06, 0.02]
    for dataset in NAMES:
        very = rates(PRIVATE, "50 100 200 300 500 1000", LIKELIHOOD, dataset=dataset)
        assert very == sorted(very)


def test_k2_budgets_that_stop_recognisers_do_not_stop_who_has_the_photos() -> None:
    assert rates(PRIVATE, "300 1000", OTHER) == [0.04, 0.04]
    assert rates(PRIVATE, "300 1000", OTHER, dataset="AT&T") == [0.05, 0.18]
    assert rates(PRIVATE, "100 300 1000", LIKELIHOOD) == [0.08, 0.56, 1.0]
    for dataset in NAMES:
        assert rate(PRIVATE, "100", LIKELIHOOD, "limit", dataset=dataset) > 0.99
        assert rate(PRIVATE, "30", LIKELIHOOD, "limit", dataset=dataset) < 0.3
    assert max(rate(PRIVATE, x, OTHER, "ssim") for x in ("10", "30", "50", "100")) < 0.12


def test_k3_one_release_of_k_same_keeps_one_in_k() -> None:
    found = [r for r in ROWS if r["method"].startswith("k-same") and r["releases"] == "1"]
    for row in (row for row in found if row["attack"] != SUBTRACTED):
        assert float(row["rate"]) <= 1 / int(row["x"])
        assert float(row["limit"]) == pytest.approx(1 / int(row["x"]), abs=1e-5)


def test_k4_two_releases_of_k_same_exceed_one_in_k() -> None:
    assert rates(SAME, "2 5 10", GROUPS, releases=2) == [0.88, 0.74, 0.49]
    for dataset, k in product(NAMES, ("2", "3", "4", "5", "10")):
        assert rate(SAME, k, GROUPS, "rate_low", 2, dataset) > 1 / int(k)
        assert rate(SAME, k, GROUPS, dataset=dataset) <= 1 / int(k)


def test_k5_two_releases_keep_the_promise() -> None:
    private = where(ROWS, method=PRIVATE, attack=LIKELIHOOD)
    assert len(private) == 2 * len(NAMES) * len(PLAN.epsilons)
    assert all(float(row["rate"]) <= float(row["limit"]) for row in private)
    assert rates(PRIVATE, "100 200 300", LIKELIHOOD) == [0.08, 0.29, 0.56]
    assert rates(PRIVATE, "100 200 300", LIKELIHOOD, releases=2) == [0.15, 0.53, 0.85]
    for dataset in NAMES:
        once, twice = (rate(PRIVATE, "50", LIKELIHOOD, "rate", n, dataset) for n in (1, 2))
        assert twice - once < 0.02


def test_k8_subtracting_the_known_faces_undoes_k_same() -> None:
    found = where(ROWS, method="k-same-pixel", attack=SUBTRACTED)
    assert min(float(row["rate"]) for row in found) == 0.99
    assert {float(row["rate"]) for row in found if row["x"] != "50"} == {1.0}


def test_k10_k_same_keeps_more_in_one_release() -> None:
    assert rates(PRIVATE, "300", OTHER, "ssim") == [0.17]
    assert rates(SAME, "10 50", OTHER, "ssim") == [0.48, 0.46]
    for dataset, x in product(NAMES, ("300", "1000", "3000")):
        risk, kept = (rate(PRIVATE, x, OTHER, column, dataset=dataset) for column in ("rate", "ssim"))
        pixels = where(ROWS, dataset=dataset, method="k-same-pixel", attack=OTHER)
        assert max(float(row["ssim"]) for row in pixels if float(row["rate"]) <= risk) > kept


def test_what_the_codec_alone_hides() -> None:
    assert [rate(method, "", OTHER) for method in ("no codec", "codec alone")] == [1, 0.3]
