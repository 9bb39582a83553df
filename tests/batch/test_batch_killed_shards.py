"""Runs over a shard that end at any step: no release is lost, and no file is half written."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from shards_made import held, picture, released, shard


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


class Dead(BaseException):
    """The process has ended."""


def dying(patch: pytest.MonkeyPatch, after: int) -> list[int]:
    """Let files be renamed and removed so many times; then nothing is, as when a process is killed."""
    left = [after]
    for name in ("replace", "unlink", "rmdir"):

        def step(path: Path, *given: object, of: object = getattr(Path, name), **more: object) -> object:
            left[0] -= 1
            if left[0] < 0:
                raise Dead
            return of(path, *given, **more)  # type: ignore[operator]

        patch.setattr(Path, name, step)
    return left


def test_a_run_that_is_killed_at_any_step_loses_no_release(monkeypatch: pytest.MonkeyPatch) -> None:
    """One photo is new in the shard; the other's release is never drawn again, and the file never half."""
    for after in range(100):
        source, out = f"{after}.tar", f"out{after}"
        shard(source, [("0.png", picture())])
        released(source, out)
        first = held(f"{out}/{source}")
        shard(source, [("0.png", picture()), ("1.png", picture(9))])
        with monkeypatch.context() as patch:
            left = dying(patch, after)
            with suppress(Dead):
                released(source, out)
        between = held(f"{out}/{source}")
        assert between == first or (len(between) == 4 and first.items() <= between.items())
        again = released(source, out)
        made = held(f"{out}/{source}")
        assert not again.failed
        assert [path.name for path in Path(out).iterdir()] == [source]
        assert first.items() <= made.items()
        assert between.items() <= made.items()
        assert len(made) == 4
        if left[0] >= 0:
            break
    assert 12 < after < 99
