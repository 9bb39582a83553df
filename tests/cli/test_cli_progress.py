"""Progress: a bar on a terminal, and a line now and then where there is none."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from dpveil.cli import obfuscate, progress

METHOD = ("--method", "dp-pix", "--epsilon", "1", "--block", "8", "--neighbourhood", "16")


def clock(*times: float) -> Callable[[], float]:
    """Return a clock that shows these times, one after another."""
    left = iter(times)
    return lambda: next(left)


def lines(err: str) -> list[str]:
    return [line for line in err.splitlines() if " of " in line and line.startswith("releasing")]


def test_a_log_gets_a_line_every_half_minute(capsys: pytest.CaptureFixture[str]) -> None:
    with progress.bar(8, "releasing", clock=clock(0, 10, 29, 30, 45, 59, 60, 89, 999)) as step:
        for _ in range(8):
            step()
    assert capsys.readouterr().err.splitlines() == [
        "releasing: 3 of 8, about 50 s left",
        "releasing: 6 of 8, about 20 s left",
    ]


def test_a_log_of_many_steps_has_a_hundred_lines_at_most(capsys: pytest.CaptureFixture[str]) -> None:
    with progress.bar(1000, "releasing", clock=clock(*range(0, 100_100, 100))) as step:
        for _ in range(1000):
            step()
    told = capsys.readouterr().err.splitlines()
    assert len(told) == 99
    assert told[0] == "releasing: 10 of 1,000, about 28 h left"


def test_a_new_word_begins_anew(capsys: pytest.CaptureFixture[str]) -> None:
    with progress.bar(3, "planning", clock=clock(0, 40, 80, 90, 100, 125, 130)) as step:
        step()
        step()
        step.then("releasing")
        step()
        step()
        step()
    assert capsys.readouterr().err.splitlines() == [
        "planning: 1 of 3",
        "planning: 2 of 3, about 40 s left",
        "releasing: 2 of 3, about 18 s left",
    ]


@pytest.mark.parametrize(("total", "quiet"), [(1, False), (9, True)])
def test_one_step_and_quiet_runs_say_nothing(
    capsys: pytest.CaptureFixture[str], total: int, quiet: bool
) -> None:
    with progress.bar(total, "releasing", quiet=quiet, clock=clock(*range(0, 9000, 100))) as step:
        for _ in range(total):
            step()
    assert capsys.readouterr().err == ""


def test_a_terminal_has_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = io.StringIO()
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    with progress.bar(4, "planning") as step:
        step()
        step.then("releasing")
        step()
        step()
    shown = terminal.getvalue()
    assert "releasing" in shown
    assert "2/4" in shown


@pytest.fixture
def slow(shell: Callable[..., tuple[int, str, str]], monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder of four photos, each of which takes a minute by the clock of the progress."""
    Path("in").mkdir()
    for number in range(4):
        Image.fromarray(np.full((16, 16 + number, 3), 100, np.uint8)).save(f"in/{number}.png")
    real, times = progress.bar, iter(range(0, 10_000, 60))
    monkeypatch.setattr(
        obfuscate, "bar", lambda *given, **more: real(*given, **more, clock=lambda: float(next(times)))
    )


@pytest.mark.usefixtures("slow")
def test_obfuscate_says_how_far_it_is(shell: Callable[..., tuple[int, str, str]]) -> None:
    code, _, err = shell("obfuscate", "in", "--out", "out", *METHOD)
    assert (code, lines(err)) == (
        0,
        [
            "releasing: 1 of 4",
            "releasing: 2 of 4, about 2 min left",
            "releasing: 3 of 4, about 1 min left",
        ],
    )
    assert lines(shell("obfuscate", "in", "--out", "more", *METHOD, "--quiet")[2]) == []
    shell("ledger", "limit", "album", "--epsilon", 9, "--ledger", "sqlite:///b.db")
    paid = ("--ledger", "sqlite:///b.db", "--subject", "album")
    code, _, err = shell("obfuscate", "in", "--out", "paid", *METHOD, *paid)
    words = [line.partition(":")[0] for line in err.splitlines() if not line.startswith("warning")]
    assert words[:7] == [*["planning"] * 3, "price", *["releasing"] * 3]
