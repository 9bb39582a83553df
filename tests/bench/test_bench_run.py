"""A benchmark from photos to tables: splits, cells, resuming, and what the bench must notice."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

from dpveil.attacks import attack
from dpveil.attacks.base import PIXELS, View
from dpveil.attacks.restoration import Restored
from dpveil.attacks.vectors import PixelDiscriminant, VectorAttack
from dpveil.bench.cells import PARTS, WHOLE, Cell, depends_on, key_of
from dpveil.bench.data import Dataset, load, split
from dpveil.bench.items import Item
from dpveil.bench.measuring import cells, release_all
from dpveil.bench.run import CELLS, Job, run
from dpveil.bench.setting import Setting, Shown
from dpveil.bench.table import rows, to_csv, utility
from dpveil.bench.utility import usable
from dpveil.cli.compare import lines_of
from dpveil.core.registry import ATTACKS, METHODS
from dpveil.errors import UsageError
from dpveil.mechanisms.pixel import DPPix, Fill, Mosaic
from dpveil.release.plan import Plan
from dpveil.release.saving import Release
from people_made import folder

MOSAIC, NOTHING = Setting(Mosaic(block=8)), Setting(None)
NOISE = Setting(DPPix(epsilon=1, block=8))
"""About any two photos: what it lets attackers do is bounded, and little."""


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    return load(folder(tmp_path_factory.mktemp("data") / "made"))


def one(data: Dataset, setting: Setting, attack: VectorAttack | None = None, seed: int = 0) -> Cell:
    (cell,) = cells(data, setting, [attack or PixelDiscriminant()], seed)
    return cell


def test_every_method_and_attack_of_a_full_run_reaches_another_process() -> None:
    """Jobs are sent to processes: what cannot be pickled ends `--full` and every run of its method."""
    lines, _ = lines_of(tuple(METHODS.rows), ("1",), (16,), every=True, block=8)
    made = [method for line in lines for method in line.methods if method is not None]
    assert {method.name for method in made} >= {"attributes", "gallery", "latent"}
    for one in (*made, *map(attack, ATTACKS)):
        again = pickle.loads(pickle.dumps(one))  # noqa: S301  our own bytes
        assert (type(again), again) == (type(one), one)


def test_a_fifth_of_everybodys_photos_is_attacked_and_the_attacker_has_the_others(data: Dataset) -> None:
    parts = split(data)
    assert {item.person for item in parts.probes} == {item.person for item in parts.known} == set(data.people)
    assert not {item.name for item in parts.probes} & {item.name for item in parts.known}
    assert len(parts.probes) == 6
    assert len(parts.known) == 24
    reordered = replace(data, items=data.items[::-1])
    assert split(reordered) == parts, "no order of files decides"


def test_folders_that_are_no_data_sets_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is not a folder"):
        load(tmp_path / "nowhere")
    root = folder(tmp_path / "made", people=2, photos=1)
    (root / "person 0" / "link.png").symlink_to(root / "person 1" / "0.png")
    (root / "person 1" / "notes.txt").write_text("no photo")
    with pytest.raises(UsageError, match="shows 2 people, of whom nobody has two photos"):
        load(root)


def test_clean_photos_and_mosaics_are_named_and_grey_ones_are_not(data: Dataset) -> None:
    assert np.mean(one(data, NOTHING).right) == 1
    assert np.mean(one(data, MOSAIC).right) == 1
    grey = one(data, Setting(Fill()))
    assert grey.right == pytest.approx([1 / 6] * 6)
    assert grey.bound == pytest.approx(1 / 6)
    assert (grey.bound or 0) >= 1 / 6
    assert {*grey.utility} == set(usable())
    assert one(data, NOTHING).utility["ssim"] == (1.0,) * 6


def test_noise_bounds_its_attackers_and_a_method_that_copies_breaks_its_bound(
    data: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bench's mutant: `release` returns the photo, and goes on to promise ε = 1."""
    cell = one(data, NOISE)
    assert cell.bound is not None
    assert cell.bound < 0.6
    assert (cell.covers, one(data, replace(NOISE, regions="0,0,16,16")).covers) == (WHOLE, PARTS)
    assert rows([replace(cell, bound=0.12341)])[0].values["bound"] == "0.1235"
    assert not any(row.above for row in rows([cell]))

    def copied(plan: Plan, *, bits: object) -> Release:
        assert plan.quote is not None
        return Release(plan.photo.image, plan._certificate(plan.quote, "seeded"))

    monkeypatch.setattr("dpveil.release.plan.Plan.release", copied)
    (row,) = rows([one(data, NOISE)])
    assert row.success == 1
    assert row.above


def test_an_attacker_that_is_given_the_labels_is_noticed(data: Dataset) -> None:
    """The bench's mutant: it knows who is who, whatever releases show."""
    made = release_all(data, NOISE, 0)
    people = sorted({item.person for item in made.probes})
    pairs = zip(made.shown, made.probes, strict=True)
    labels = {one[0].image.tobytes(): people.index(item.person) for one, item in pairs if one is not None}
    (row,) = rows([one(data, NOISE, Told(labels=labels))])
    assert row.success == 1
    assert row.above


@dataclass(frozen=True)
class Told(VectorAttack):
    name: ClassVar[str] = "told"
    summary: ClassVar[str] = "cheats"
    sees: ClassVar[tuple[str, ...]] = (PIXELS,)

    labels: dict[bytes, int] = field(default_factory=dict)

    def vectors(self, views: tuple[View, ...]) -> np.ndarray:
        if len(views) == 1:
            return np.full((1, 3), self.labels[views[0].image.tobytes()] * 100.0)
        return np.arange(len(views))[:, None] // (len(views) // 6) * 100.0 + np.zeros((1, 3))


def test_the_order_of_releases_tells_no_attacker_who_they_show(data: Dataset) -> None:
    """They lie sorted by person: who counts them would name everybody."""
    (row,) = rows([one(data, NOISE, Counting())])
    assert row.success < 1
    assert not row.above


@dataclass(frozen=True)
class Counting(Told):
    name: ClassVar[str] = "counting"

    turn: Iterator[int] = field(default_factory=count)

    def vectors(self, views: tuple[View, ...]) -> np.ndarray:
        return np.full((1, 3), next(self.turn) * 100.0) if len(views) == 1 else super().vectors(views)


def test_a_release_in_which_nothing_is_found_is_a_failure_that_counts(data: Dataset) -> None:
    """The bench's mutant drops it: the rate would be that of the others."""
    turn = count()

    @dataclass(frozen=True)
    class Blind(PixelDiscriminant):
        name: ClassVar[str] = "blind"

        def vectors(self, views: tuple[View, ...]) -> np.ndarray:
            out = super().vectors(views)
            return out if len(views) > 1 or next(turn) % 2 else np.full_like(out, np.nan)

    cell = one(data, MOSAIC, Blind())
    assert sum(cell.answered) == 3
    (row,) = rows([cell])
    assert (row.success, row.values["failures"], row.values["releases"]) == (0.5, "3", "6")


def test_there_is_no_bound_where_regions_were_found(data: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    """A region that takes all of a photo may have been found there: its place is not paid for."""
    assert one(data, NOISE).bound is not None
    shown = Setting.adversary_view

    def found(setting: Setting, item: Item, seed: int) -> Shown:
        view, promise = shown(setting, item, seed) or pytest.fail("no release")
        if view.certificate is None:
            return view, promise
        regions = [
            {**region, "origin": {**region["origin"], "found": True}}
            for region in view.certificate["regions"]
        ]
        return replace(view, certificate={**view.certificate, "regions": regions}), promise

    monkeypatch.setattr(Setting, "adversary_view", found)
    assert one(data, NOISE).bound is None


def test_a_guess_is_right_as_often_as_the_largest_share_of_photos(tmp_path: Path) -> None:
    root = folder(tmp_path / "made", people=3, photos=10)
    for person in (1, 2):
        for photo in range(2, 10):
            (root / f"person {person}" / f"{photo}.png").unlink()
    cell = one(load(root), Setting(Fill()))
    assert cell.chance == 0.5
    assert (cell.accepted_2, cell.accepted_3) == (None, None), "one in a thousand of eight impostors"
    assert rows([cell])[0].values["tar_far_1e-2"] == ""


def test_photos_without_a_region_are_failures_too(data: Dataset) -> None:
    nowhere = Setting(Mosaic(block=8), "900,900,8,8")
    cell = one(data, nowhere)
    assert cell.answered == (False,) * 6
    assert cell.right == (0,) * 6
    assert set(cell.utility.values()) == {(None,) * 6}
    assert rows([cell])[0].values["failures"] == "6"
    assert utility([cell]) == []


def test_several_releases_of_a_photo_cost_more_and_tell_more(data: Dataset) -> None:
    """Their noise differs, and averages out: the bug to fear is one draw that is shown several times."""
    few, many = (Setting(DPPix(epsilon=30, block=8), releases=count) for count in (1, 9))
    (alone, once), (first, nine) = (one.adversary_view(data.items[0], 0) or ({}, {}) for one in (few, many))
    assert (alone.image == first.image).all()
    assert len({view.image.tobytes() for view in (first, *first.more)}) == 9
    assert (once.epsilon, nine.epsilon, nine.relation.name) == (30, 270, "any-image")
    named = [one(data, setting, attack("averaged(pixels)")) for setting in (few, many)]
    assert [cell.of["parameters"].get("releases") for cell in named] == [None, 9]
    assert np.mean(named[0].right) < 0.6 < 0.8 < np.mean(named[1].right)
    assert one(data, NOISE).bound < one(data, replace(NOISE, releases=2)).bound < 1


def test_a_cell_is_named_by_all_that_it_depends_on(data: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bench's mutant is a cache that ignores a parameter."""
    attack = PixelDiscriminant()
    keys = [
        key_of(depends_on(data, setting, attack, seed, ["mse"]))
        for setting, seed in (
            (NOISE, 0),
            (NOISE, 1),
            (replace(NOISE, regions="whole"), 0),
            (Setting(DPPix(epsilon=2, block=8)), 0),
            (Setting(DPPix(epsilon=1, block=4)), 0),
            (Setting(DPPix(epsilon=1, block=8, neighbourhood=16)), 0),
        )
    ]
    keys.append(key_of(depends_on(data, NOISE, Restored(), 0, ["mse"])))
    keys.append(key_of(depends_on(replace(data, items=data.items[1:]), NOISE, attack, 0, ["mse"])))
    keys.append(key_of(depends_on(data, NOISE, attack, 0, ["mse", "ssim"])))
    monkeypatch.setattr("dpveil.bench.cells.code_digest", lambda: "other code")
    keys.append(key_of(depends_on(data, NOISE, attack, 0, ["mse"])))
    assert len(set(keys)) == len(keys)


def test_a_stopped_run_goes_on_and_damaged_cells_are_made_again(data: Dataset, tmp_path: Path) -> None:
    jobs = [Job(data, setting, (PixelDiscriminant(), Restored()), 0) for setting in (NOTHING, MOSAIC)]
    whole = run(jobs, tmp_path / "whole", processes=1)
    part = tmp_path / "part"
    run(jobs[:1], part, processes=1)
    kept = sorted((part / CELLS).iterdir())
    before = [path.stat().st_mtime_ns for path in kept]
    kept[0].write_text("{")
    resumed = run(jobs, part, processes=2)
    assert [cell.text() for cell in resumed] == [cell.text() for cell in whole]
    assert kept[1].stat().st_mtime_ns == before[1], "it was not computed again"
    assert len(list((part / CELLS).iterdir())) == 4


SCRIPT = """
import sys
from pathlib import Path
sys.path[:0] = [{tests!r}]
from dpveil.attacks.vectors import PixelDiscriminant
from dpveil.attacks.restoration import Restored
from dpveil.bench.data import load
from dpveil.bench.run import Job, run
from dpveil.bench.data import Item
from dpveil.bench.setting import Setting, Shown
from dpveil.mechanisms.pixel import Mosaic
data = load(Path({data!r}))
settings = [Setting(None), *(Setting(Mosaic(block=block)) for block in (2, 4, 8, 16))]
jobs = [Job(data, one, (PixelDiscriminant(), Restored()), 0) for one in settings]
print("ready", flush=True)
run(jobs, Path({out!r}), processes=1)
print("done", flush=True)
"""


@pytest.mark.slow
@pytest.mark.parametrize("times", [20])
def test_a_run_that_is_killed_gives_the_same_tables(data: Dataset, tmp_path: Path, times: int) -> None:
    """Killed when it has written one more cell than before, at whatever it does then."""
    root, out = data.items[0].path.parent.parent, tmp_path / "killed"
    text = SCRIPT.format(tests=str(Path(__file__).parent.parent), data=str(root), out=str(out))
    for number in range(times):
        command = [sys.executable, "-c", text]
        with subprocess.Popen(command, stdout=subprocess.PIPE, env={**os.environ}) as process:
            assert process.stdout is not None
            process.stdout.readline()
            while process.poll() is None and len(list((out / CELLS).glob("*.json"))) <= number % 9:
                time.sleep(0.001)
            process.send_signal(signal.SIGKILL)
    settings = [Setting(None), *(Setting(Mosaic(block=block)) for block in (2, 4, 8, 16))]
    jobs = [Job(data, setting, (PixelDiscriminant(), Restored()), 0) for setting in settings]
    assert len(list((out / CELLS).glob("*.json"))) > 0
    made = []
    for place in (out, tmp_path / "whole"):
        table = rows(run(jobs, place, processes=1))
        made.append(to_csv(list(table[0].values), [row.values for row in table]))
    assert made[0] == made[1]
