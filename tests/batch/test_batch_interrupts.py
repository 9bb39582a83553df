"""Ctrl-C at any moment: each photo has one outcome, and what was paid for is released or told as lost."""

from __future__ import annotations

import json
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from presses_made import METHOD, PAID, SHAPES, check, debits, inputs, originals, releases

from dpveil.batch.interrupts import Interrupts
from dpveil.batch.photo_release import PhotoReleaser
from dpveil.batch.report import Report, Untried
from dpveil.batch.tasks import RunSettings, Task
from dpveil.batch.workers import WorkerPool, ignore_release
from dpveil.cli import run
from dpveil.mechanisms.pixel import DPPix
from dpveil.regions import parse

COUNT = 5
MOMENTS = {"folder": 10, "one": 6, "shard": 5}
LINE = ("obfuscate", "--out", "out", *METHOD, *PAID)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path


@contextmanager
def pressed_at(*moments: float, of: int) -> Iterator[list[int]]:
    """Press Ctrl-C at these parts of `of` steps of the main thread, counted from `release_all` on.

    A step is a call of a Python function. Yields a list with the number of presses for each.
    """
    steps, begun = list[int](), list[bool]()
    at = [int(moment * of) for moment in moments]

    def step(frame: FrameType, event: str, argument: Any) -> None:
        if event != "call" or not (begun or frame.f_code.co_name == "release_all"):
            return
        begun.append(True)
        steps.append(at.count(len(steps)))
        for _ in range(steps[-1]):
            signal.raise_signal(signal.SIGINT)

    sys.setprofile(step)
    try:
        yield steps
    finally:
        sys.setprofile(None)


def released(source: str, *moments: float, of: int = 0) -> tuple[int, int, bool]:
    """Release photos in this process; return the exit code, the number of steps, and if there was a press."""
    with pressed_at(*moments, of=of) as steps:
        code = run([*LINE, source])
    return code, len(steps), any(steps)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # pressed in one
@pytest.mark.parametrize("shape", SHAPES)
def test_each_photo_has_one_outcome_whenever_one_presses(
    here: Path, capsys: pytest.CaptureFixture[str], shape: str
) -> None:
    """Whatever was paid for is released, as one process draws it to its end, also after a second press."""
    source, every = originals(shape, COUNT, 8), inputs(shape, COUNT)
    steps, moments = 0, [None, None, *range(MOMENTS[shape])]
    for moment in moments:  # the first two tell how many steps there are, with and without imports
        at = [] if moment is None else [moment / MOMENTS[shape]] * (1 + moment % 2)
        before = debits()[0]
        code, taken, pressed = released(source, *at, of=steps)
        steps, said = steps if at else taken, capsys.readouterr()
        assert (code, "Traceback" in said.err) == (130 if pressed else 0, False), at
        assert pressed or not at or at[0] > 0.5, at  # a run that waits less takes fewer steps
        check(said.out, every, before, 0, lost=False)
        stopped = not said.out or json.loads(said.out)["untried"]
        assert stopped or not at or at[0] > 0.3, "a press while photos are planned stops nothing"
        shutil.rmtree("out", ignore_errors=True)


def test_what_was_paid_is_never_told_as_not_tried() -> None:
    report = Report(stopped="the run was interrupted")
    for name in ("a", "b"):
        report.fail(Task(Path(name), Path(f"{name}.png"), name), Untried("of that"), tried=False)
    report.discard({1})
    assert [entry.status for entry in report.entries] == ["untried", "failed"]
    assert report.to_json()["failed"][0] == {
        "input": "b",
        "error": "it was paid for, and its release was lost, because the run was interrupted",
        "hint": "releasing it again costs again",
        "paid_and_discarded": True,
    }


def test_presses_are_counted_heard_and_raised_where_nothing_is_lost() -> None:
    notices: list[int] = []
    before = signal.getsignal(signal.SIGINT)
    with Interrupts(lambda: notices.append(1)) as interrupts:
        with pytest.raises(KeyboardInterrupt), interrupts.raising():
            signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
        assert (interrupts.presses, notices) == (2, [])
        heard: list[int] = []
        with interrupts.handled_by(lambda: heard.append(interrupts.presses)):
            assert heard == [2]
            signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
        assert (heard, interrupts.presses) == ([2, 3], 4)
        with pytest.raises(KeyboardInterrupt), interrupts.raising():
            pytest.fail("there was a press before")
    assert signal.getsignal(signal.SIGINT) is before
    with Interrupts(lambda: notices.append(1)) as interrupts, interrupts.handled_by(lambda: None):
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
    assert notices == [1]


def wait_until(running: subprocess.Popen[str], seen: Callable[[], bool]) -> None:
    while running.poll() is None and not seen():
        time.sleep(0.001)


def pressed(source: str, jobs: int, presses: int, chance: random.Random) -> tuple[int, str]:
    """Run a process, press Ctrl-C at random moments, and return its exit code and what it answered.

    The first press comes while it starts, after the price was said, or once some photos were written.
    """
    written = chance.choice([None, None, 0, 0, 1, 2, 3])
    command = (sys.executable, "-m", "dpveil", *LINE, source, "--jobs", str(jobs))
    with Path("err.txt").open("w") as err:
        running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=err, text=True)
    if presses and written is not None:
        wait_until(running, lambda: "price:" in Path("err.txt").read_text())
        wait_until(running, lambda: len([*Path("out").rglob("*.png")]) >= written)
    for again in range(presses):
        first_wait = 4.0 if written is None else 0.2
        time.sleep(chance.uniform(0, 0.3 if again else first_wait))
        if running.poll() is None:
            running.send_signal(signal.SIGINT)
    out, _ = running.communicate(timeout=300)
    said = Path("err.txt").read_text()
    unborn = presses > 0 and not out and said.endswith("KeyboardInterrupt\n")  # Python was not up yet
    told = presses > 0 and running.returncode == -signal.SIGINT  # or all was told
    assert unborn or "Traceback" not in said
    assert unborn or told or running.returncode in ((0, 130) if presses else (0,)), said
    return running.returncode, out


def campaign(times: int, seed: int, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Interrupt runs of every kind, and run them again until all is released."""
    chance, codes, lost = random.Random(seed), dict[int, int](), 0  # noqa: S311
    for number in range(times):
        (place / str(number)).mkdir()
        monkeypatch.chdir(place / str(number))
        shape, jobs, presses = SHAPES[number % 3], 1 + number // 3 % 2, (1, 2, 1, 2, 0)[number % 5]
        source, every = originals(shape, 8, 500), inputs(shape, 8)
        code, out = pressed(source, jobs, presses, chance)
        check(out, every, 0, 0, lost=jobs == presses == 2)
        codes[code] = codes.get(code, 0) + 1
        paid, held = debits()[0], releases()
        lost += paid - held
        assert paid - held <= 4
        check(pressed(source, jobs, 0, chance)[1], every, paid, held, lost=False)
        assert releases() == len(every)
    print(f"{times} runs: exit codes {codes}, {lost} releases paid and told as discarded")


@pytest.mark.slow
def test_ctrl_c_at_random_moments_of_processes(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    campaign(100, 5, here, monkeypatch)


def choices(**changes: Any) -> RunSettings:
    return RunSettings(
        method=DPPix(epsilon=1, block=4, neighbourhood=16),
        regions=[parse("whole")],
        max_pixels=10**6,
        **changes,
    )


def test_a_second_press_kills_the_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first one lets them go on, and gives out no other photo, also where it comes before they start."""
    given: list[Task] = []

    def release(jobs: WorkerPool, task: Task) -> None:
        given.append(task)
        while not jobs.reasons or not killed:
            for _ in range(2):
                signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
            time.sleep(0.01)

    killed: list[int] = []

    class Killed:
        def kill(self) -> None:
            killed.append(1)

        def stop(self) -> None:
            pass

    monkeypatch.setattr(WorkerPool, "_release", release)
    task = Task(Path("a"), Path("a.png"), "a")
    jobs = WorkerPool(
        PhotoReleaser(choices(), Report(), ignore_release), [task], ignore_release, ignore_release
    )
    jobs.children.append(Killed())  # type: ignore[arg-type]
    with Interrupts() as interrupts:
        signal.raise_signal(signal.SIGINT)
        jobs.release(1, ignore_release, interrupts)
    assert (jobs.reasons[0], bool(killed)) == ("the run was interrupted", True)
    assert [entry.status for entry in jobs.run.report.entries] == ["untried"]
