"""Dry runs over clips say what the run will do: refuse, skip, or go on with what was begun and paid."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("av")

from clips_made import make_clip

from dpveil.video import rendering

Shell = Callable[..., tuple[int, str, str]]
METHOD = (
    "--method",
    "dp-pix",
    "--epsilon",
    "2",
    "--block",
    "8",
    "--neighbourhood",
    "4",
    "--regions",
    "0,8,16,16",
)
LEDGER = ("--ledger", "sqlite:///budget.db", "--subject", "album")
OBFUSCATE = ("obfuscate", "clip.mp4", "--out", "out.mp4", *METHOD, *LEDGER)
RENDER = ("video", "render", "plan.json", "--out", "out.mp4", *LEDGER)


@pytest.fixture
def planned(shell: Shell, tmp_path: Path) -> Path:
    """Return a clip with a plan that costs ε = 2, of which an album has 3."""
    clip = make_clip(tmp_path / "clip.mp4")
    assert shell("ledger", "limit", "album", "--epsilon", "3", *LEDGER[:2])[0] == 0
    assert shell("video", "analyze", "clip.mp4", "--out", "plan.json", *METHOD)[0] == 0
    return clip


def test_what_cannot_be_paid_is_refused(shell: Shell, planned: Path) -> None:
    assert shell(*RENDER, "--dry-run")[0] == 0
    assert shell(*RENDER)[0] == 0
    for call in (RENDER, (*RENDER, "--dry-run")):
        code, _, err = shell(*call[:4], "other.mp4", *call[5:])
        assert code == 3
        assert "album has epsilon 1 left" in err


def test_places_are_looked_at_and_what_is_finished_is_skipped(shell: Shell, planned: Path) -> None:
    (planned.parent / "mine.mp4").write_bytes(b"mine")
    for name, wanted in (("mine.mp4", 1), ("no/out.mp4", 4), ("clip.mp4", 4)):
        code, _, err = shell(*RENDER[:4], name, *RENDER[5:], "--dry-run")
        assert (code, shell(*RENDER[:4], name, *RENDER[5:])[0]) == (wanted, wanted)
        assert "left 3" not in err
    assert (planned.parent / "mine.mp4").read_bytes() == b"mine"
    assert shell(*RENDER)[0] == 0
    code, _, err = shell(*RENDER, "--dry-run")
    assert code == 0
    assert "skipped 1" in err
    assert "price:" not in err


@pytest.mark.parametrize("call", [OBFUSCATE, RENDER], ids=["obfuscate", "render"])
def test_a_run_that_was_begun_goes_on_and_costs_nothing(
    shell: Shell, planned: Path, call: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(rendering, "join", killed)
        assert shell(*call)[0] == 130
    assert "left 1" in shell("ledger", "show", "album", *LEDGER[:2])[1]
    code, _, err = shell(*call, "--dry-run")
    assert code == 0
    assert "a rendering was begun and not finished: this goes on with it, and pays nothing twice" in err
    assert "price:" not in err
    assert "nothing would be released" not in err
    assert not (planned.parent / "out.mp4").exists()
    other = tuple("other.mp4" if each == "out.mp4" else each for each in call)
    assert shell(*other, "--dry-run")[0] == 3
    assert shell(*call)[0] == 0
    assert "left 1" in shell("ledger", "show", "album", *LEDGER[:2])[1]
