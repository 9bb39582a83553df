"""The state of a rendering that may be killed at any moment."""

import os
from pathlib import Path

import pytest

from dpveil.errors import OutputError
from dpveil.noise.bits import KeptBits, kind_of
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
