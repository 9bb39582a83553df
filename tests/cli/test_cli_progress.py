"""Progress: a bar on a terminal, and a line now and then where there is none."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable

import pytest

from dpveil.cli import progress


def clock(*times: float) -> Callable[[], float]:
    """Return a clock that shows these times, one after another."""
    left = iter(times)
    return lambda: next(left)


def test_a_log_gets_a_line_every_half_minute(capsys: pytest.CaptureFixture[str]) -> None:
    with progress.bar(8, "releasing", clock=clock(0, 10, 29, 30, 45, 59, 60, 89, 999)) as step:
        for _ in range(8):
            step()
    assert capsys.readouterr().err.splitlines() == [
        "releasing: 3 of 8, about 50 s left",
        "releasing: 6 of 8, about 20 s left",
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
