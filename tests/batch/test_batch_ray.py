"""Workers of a Ray cluster on this machine: files, report and payments of a run are those of one process."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from PIL import Image
from workers_made import Deadly, Everything, Onlooker

import dpveil
from dpveil.batch import ray_workers
from dpveil.batch.run import release_all
from dpveil.batch.tasks import RunSettings, plan_tasks
from dpveil.cli import run as run_command
from dpveil.errors import OutputError, UsageError
from dpveil.ledger import Ledger
from dpveil.mechanisms.pixel import DPPix
from dpveil.release.keys import SigningKey

pytestmark = pytest.mark.filterwarnings("ignore")
TIMES = Path("times")


@pytest.fixture(scope="module")
def ray() -> Iterator[Any]:
    """Ray, with a cluster of two cores, whose workers have the finders of tests, too."""
    found = pytest.importorskip("ray")
    paths = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("PYTHONPATH", paths)
        found.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False)
    yield found
    found.shutdown()


@pytest.fixture
def photos(elsewhere: Path) -> Path:
    """Five photos, 8 to 12 pixels wide."""
    Path("in").mkdir()
    for number in range(5):
        Image.fromarray(np.full((8, 8 + number, 3), 100, np.uint8)).save(f"in/{number}.png")
    return elsewhere.resolve()


def settings(photos: Path, **more: Any) -> RunSettings:
    method = DPPix(epsilon=1, block=4, neighbourhood=4)
    return RunSettings(method=method, **{"regions": [Everything(photos / TIMES, empty=9)], **more})


def test_the_files_and_the_report_are_those_of_one_process(ray: Any, photos: Path) -> None:
    """A rerun skips what is there, and finds that an input was replaced: the run knows that, no worker."""
    key, told = SigningKey.generate(), []
    (photos / "in" / "3.png").write_bytes(b"no photo")
    given = settings(photos, seed=5, sign=key)
    tasks = plan_tasks([photos / "in"], photos / "out")
    with ray_workers.cluster(photos / "out") as (cores, start):
        assert cores == 2
        for place in (None, start):
            seen: list[Any] = []
            watched = {"summarise": Onlooker(photos / TIMES), "collect": seen.append}
            report = release_all(tasks, given, jobs=2 if place else 1, start=place, **watched)
            assert [name for name, _ in seen] == ["0.png", "2.png", "4.png"]
            assert (os.getpid() in {process for _, process in seen}) == (place is None)
            files = {path.name: path.read_bytes() for path in (photos / "out").glob("[!.]*")}
            told.append((report.to_json(), report.errors, files))
            for path in (photos / "out").glob("[!.]*") if place is None else ():
                path.unlink()
        assert told[0] == told[1]
        assert {
            dpveil.verify(path, trust=[key.public]).status for path in (photos / "out").glob("*.png")
        } == {"consistent"}
        Image.fromarray(np.full((8, 8, 3), 9, np.uint8)).save(photos / "in" / "0.png")
        again = release_all(tasks, given, start=start)
        states = [entry.status for entry in again.entries]
        assert states == ["failed", "no_region", "skipped", "failed", "skipped"]
    assert not list((photos / "out").glob(".*"))


def test_who_dies_costs_its_photo_alone(ray: Any, photos: Path, ledger: Ledger) -> None:
    """One worker dies of a photo that it has drawn, one of a photo that it looks at: which a ledger tells."""
    TIMES.write_bytes(b"xx")
    more = {"ledger": ledger, "subject": "album", "post_processing": [Deadly(photos / TIMES, deadly=10)]}
    given = settings(photos, regions=[Everything(photos / TIMES, deadly=12)], **more)
    with ray_workers.cluster(photos / "out") as (_, start):
        report = release_all(plan_tasks([photos / "in"], photos / "out"), given, jobs=2, start=start)
    assert [entry.source.stem for entry in report.released] == ["0", "1", "3"]
    assert [entry.source.stem for entry in report.discarded] == ["2"]
    assert ledger.check().debits == len(report.released) + 1


def test_a_machine_that_does_not_see_the_folder_draws_nothing(ray: Any, photos: Path) -> None:
    given = settings(photos)

    def start() -> ray_workers.RayChild:
        return ray_workers.RayChild(ray, photos / "elsewhere" / "file")

    report = release_all(plan_tasks([photos / "in"], photos / "out"), given, start=start)
    assert {entry.status for entry in report.entries} == {"untried"}
    assert str(photos / "elsewhere") in report.notes[0]
    assert not (photos / "out").exists()


def test_the_command_line(ray: Any, photos: Path, capsys: pytest.CaptureFixture[str]) -> None:
    call = ["obfuscate", "in", "--out", "out", "--method", "fill", "--regions", "whole", "--json"]
    assert run_command([*call, "--engine", "ray"]) == 0
    assert len(json.loads(capsys.readouterr().out)["released"]) == 5
    assert run_command(call) == 0
    assert len(json.loads(capsys.readouterr().out)["skipped"]) == 5
    assert run_command([*call, "--engine", "rya"]) == 2
    assert run_command([*call[:3], "memory://bucket/out", *call[4:], "--engine", "ray"]) == 2


def test_it_says_what_to_install(photos: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(UsageError) as error, ray_workers.cluster(photos):
        pass
    assert error.value.hint == ray_workers.INSTALL


@pytest.mark.parametrize(("given", "address"), [(None, "local"), ("", "local"), ("head:6379", "head:6379")])
def test_only_the_cluster_that_is_named_is_joined(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, given: str | None, address: str
) -> None:
    told: list[str] = []
    ray = SimpleNamespace(is_initialized=lambda: False, init=lambda where, **_: told.append(where))
    ray.cluster_resources = dict
    monkeypatch.setitem(sys.modules, "ray", ray)
    monkeypatch.delenv("RAY_ADDRESS", False)
    if given is not None:
        monkeypatch.setenv("RAY_ADDRESS", given)
    with ray_workers.cluster(None):
        assert told == [address]
    (tmp_path / "file").touch()
    with pytest.raises(OutputError), ray_workers.cluster(tmp_path / "file"):
        pass
