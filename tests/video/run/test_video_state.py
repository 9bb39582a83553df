"""The state of a rendering that may be killed at any moment."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from dpveil.errors import OutputError
from dpveil.io import place_together
from dpveil.noise.bits import KeptBits, kind_of
from dpveil.video.begun import WORDS, differing, digests_of
from dpveil.video.state import KEY, STATE, drop, folder_of, state

SETTINGS = {"plan": "a", "clip": "b"}


def test_a_state_goes_on_with_its_key_and_its_nonce(tmp_path: Path) -> None:
    out = tmp_path / "private.mp4"
    with state(out, SETTINGS) as first:
        key, nonce = first.key, first.nonce
        first.keep("draws", b"drawn")
    assert not first.resumed
    with state(out, SETTINGS) as second:
        assert (second.resumed, second.key, second.nonce, second.read("draws")) == (
            True,
            key,
            nonce,
            b"drawn",
        )
        second.forget_key()
        with pytest.raises(OutputError, match="damaged"):
            _ = second.key
        second.remove()
    assert list(tmp_path.iterdir()) == []
    with state(out, SETTINGS) as third:
        assert (third.resumed, third.read("draws")) == (False, None)
        assert (third.key == key, third.nonce == nonce) == (False, False)


def test_only_its_owner_can_read_it(tmp_path: Path) -> None:
    out = tmp_path / "private.mp4"
    with state(out, SETTINGS) as made:
        made.keep("draws", b"drawn")
        assert made.folder.stat().st_mode & 0o777 == 0o700
        assert {path.stat().st_mode & 0o777 for path in made.folder.iterdir()} == {0o600}


@pytest.mark.parametrize("mode", [0o755, 0o770, 0o707])
def test_a_folder_that_others_can_use_is_refused(tmp_path: Path, mode: int) -> None:
    out = tmp_path / "private.mp4"
    folder_of(out).mkdir()
    folder_of(out).chmod(mode)
    with pytest.raises(OutputError, match="not a private folder of yours"), state(out, SETTINGS):
        pytest.fail("it was used")


def test_a_link_in_its_place_is_refused(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    folder_of(tmp_path / "private.mp4").symlink_to(elsewhere)
    with pytest.raises(OutputError, match="not a private folder"), state(tmp_path / "private.mp4", SETTINGS):
        pytest.fail("it was used")
    assert not drop(tmp_path / "private.mp4", b"")
    assert elsewhere.exists()


def test_other_settings_are_refused_and_begin_anew_only_when_asked(tmp_path: Path) -> None:
    out = tmp_path / "private.mp4"
    with state(out, SETTINGS) as first:
        nonce = first.nonce
    other = {**SETTINGS, "plan": "c"}
    with pytest.raises(OutputError, match="with another plan or other options: give"), state(out, other):
        pytest.fail("it was used")
    with state(out, SETTINGS) as again:
        assert again.nonce == nonce
    with state(out, other, anew=True) as anew:
        assert anew.nonce != nonce
    with state(out, other, anew=True) as resumed:
        assert (resumed.resumed, resumed.nonce) == (True, anew.nonce)


def test_settings_that_differ_are_named() -> None:
    settings = {
        "clip": 1,
        "plan": 2,
        "out": "a",
        "seed": None,
        "payer": ["main", "album"],
        "tool": "dpveil 1",
    }
    for name, words in WORDS.items():
        assert differing(digests_of(settings), digests_of({**settings, name: "?"})) == words
    other = {**settings, "clip": 3, "plan": 4, "seed": 0}
    assert differing(digests_of(settings), digests_of(other)) == "another clip and another seed"
    assert differing({**digests_of(settings), "more": 1}, digests_of(settings)) == "other settings"


@pytest.mark.parametrize("more", [{"settings": {}}, {"settings": {"plan": ["a"], "clip": 7}}])
def test_a_state_of_other_settings_is_never_gone_on_with(tmp_path: Path, more: dict[str, Any]) -> None:
    out = tmp_path / "private.mp4"
    with state(out, SETTINGS) as first:
        there = json.loads((first.folder / STATE).read_text())
        (first.folder / STATE).write_text(json.dumps(there | more))
    with pytest.raises(OutputError, match="not finished, with another clip: give"), state(out, SETTINGS):
        pytest.fail("it was used")


@pytest.mark.parametrize("more", [{"settings": "a"}, {"nonce": 7}, {"format": "dpveil.video-state/0"}])
def test_a_state_with_a_field_of_another_kind_is_damaged(tmp_path: Path, more: dict[str, Any]) -> None:
    out = tmp_path / "private.mp4"
    with state(out, SETTINGS) as first:
        there = json.loads((first.folder / STATE).read_text())
        (first.folder / STATE).write_text(json.dumps(there | more))
    with pytest.raises(OutputError, match="and is damaged"), state(out, SETTINGS):
        pytest.fail("it was used")


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"format": 1}', "[" * 100_000, "\ud800"])
def test_a_damaged_state_is_refused_in_one_line(tmp_path: Path, text: str) -> None:
    out = tmp_path / "private.mp4"
    with state(out, SETTINGS) as first:
        (first.folder / STATE).write_bytes(text.encode("utf-8", "surrogatepass"))
    with pytest.raises(OutputError, match="is damaged") as caught, state(out, SETTINGS):
        pytest.fail("it was used")
    assert "\n" not in str(caught.value)
    with state(out, SETTINGS, anew=True) as anew:
        assert not anew.resumed


def test_a_key_that_was_written_alone_is_never_used(tmp_path: Path) -> None:
    """A process was killed before its state had a name: whoever reads the key then draws nothing with it."""
    out = tmp_path / "private.mp4"
    folder_of(out).mkdir(mode=0o700)
    (folder_of(out) / KEY).write_bytes(bytes(32))
    with state(out, SETTINGS) as made:
        assert made.key != bytes(32)


def test_two_processes_do_not_share_it(tmp_path: Path) -> None:
    out = tmp_path / "private.mp4"
    with (
        state(out, SETTINGS),
        pytest.raises(OutputError, match="another process is rendering"),
        state(out, SETTINGS),
    ):
        pytest.fail("both have it")


def test_what_is_left_of_a_finished_rendering_is_dropped(tmp_path: Path) -> None:
    out = tmp_path / "private.mp4"
    with state(out, SETTINGS) as made:
        made.keep("draws", b"drawn")
        (made.folder / "000000").mkdir()
    assert drop(out, b"certificate")
    with state(out, SETTINGS) as found:
        assert found.read("draws") == b"drawn"
        found.note_release(b"certificate")
    assert drop(out, b"that of another")
    assert not drop(out, b"certificate")
    assert not drop(out, b"certificate")
    assert list(tmp_path.iterdir()) == []


def test_kept_bits_are_a_function_of_key_and_stream() -> None:
    key, other = os.urandom(32), os.urandom(32)
    words = [KeptBits(*args).words(4).tolist() for args in [(key, "a"), (key, "a"), (key, "b"), (other, "a")]]
    assert words[0] == words[1]
    assert len({tuple(each) for each in words}) == 3
    assert kind_of(KeptBits(key, "a")) == "secure"


@pytest.mark.parametrize("fails", [0, 1, 2])
@pytest.mark.parametrize("replace", [False, True])
def test_files_are_placed_together_or_keep_their_names(tmp_path: Path, replace: bool, fails: int) -> None:
    new, old = [tmp_path / "a", tmp_path / "b"], [tmp_path / "A", tmp_path / "B"]
    for path in new:
        path.write_text(path.name)
    if replace:
        for path in old:
            path.write_text("old")
    before = {path.name: path.read_text() for path in tmp_path.iterdir()}

    def fail() -> None:
        if fails == 0:
            raise OutputError("the ledger is gone")
        if fails == 1:
            new[1].unlink()

    if fails < 2:
        with pytest.raises(OutputError):
            place_together(list(zip(new, old, strict=True)), replace=replace, before=fail)
        if fails == 1:
            del before["b"]
        assert {path.name: path.read_text() for path in tmp_path.iterdir()} == before
        return
    place_together(list(zip(new, old, strict=True)), replace=replace, before=fail)
    assert [path.read_text() for path in old] == ["a", "b"]
