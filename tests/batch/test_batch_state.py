"""What is remembered of a folder's inputs: private, elsewhere, appended to; damaged lines are passed over."""

import stat
from pathlib import Path

import pytest

from dpveil.batch.run import copies
from dpveil.batch.state import State, key_of, state_path
from dpveil.batch.tasks import keep_numbers, numbered
from dpveil.errors import OutputError, UsageError
from dpveil.io import is_present

SHA = "a" * 64
STAMP = (10, 20)


@pytest.fixture
def folder(tmp_path):
    State.read(tmp_path).note_release(SHA, STAMP)
    return tmp_path


def test_what_was_noted_is_read_again_and_nobody_else_may_read_it(folder):
    State.read(folder).note_numbers([(key_of("anna.jpg"), 1)])
    state = State.read(folder)
    assert (state.stamps, state.numbers, state.problem) == ({SHA: {STAMP}}, {key_of("anna.jpg"): 1}, "")
    assert stat.S_IMODE(state_path(folder).stat().st_mode) == 0o600
    assert b"anna" not in state_path(folder).read_bytes()


def test_nothing_of_it_lies_where_releases_are_published(folder, monkeypatch):
    assert list(folder.iterdir()) == []
    path = state_path(folder)
    assert not path.is_relative_to(folder)
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert folder.name not in str(path)
    (folder / "same").symlink_to(".")
    assert state_path(folder / "same") == path != state_path(folder / "other")
    monkeypatch.setenv("XDG_STATE_HOME", str(folder / "mine"))
    assert state_path(folder).parent == folder / "mine" / "dpveil"
    monkeypatch.setenv("XDG_STATE_HOME", "relative")  # to be passed over, says the specification
    assert state_path(folder).is_absolute()


def test_without_a_home_nothing_is_remembered_and_that_is_said(tmp_path, monkeypatch):
    monkeypatch.setattr(Path, "home", lambda: (_ for _ in ()).throw(RuntimeError))
    monkeypatch.delenv("XDG_STATE_HOME")
    state = State.read(tmp_path)
    assert "nothing is remembered" in state.problem
    with pytest.raises(OSError, match="no home"):
        state.note_release(SHA, STAMP)
    with pytest.raises(OutputError):
        keep_numbers({"a.jpg": "photo-000001.png"}, tmp_path)


def test_an_input_is_replaced_where_its_release_is_known_and_its_stamp_is_not(folder):
    state = State.read(folder)
    assert not state.replaced(SHA, STAMP)
    assert state.replaced(SHA, (10, 21))
    assert state.replaced(SHA, (11, 20))
    assert state.replaced(SHA, None)
    assert not state.replaced("b" * 64, (10, 21))


@pytest.mark.parametrize(
    "line",
    [
        b"[]",
        b"\xff",
        b"[" * 100_000,
        b'{"release": "%s", "size": 1, "time": 9.5}' % (b"b" * 64),
        b'{"release": "%s", "size": 1, "time": 1, "of": "x"}' % (b"b" * 64),
        b'{"number": 0, "of": "%s"}' % (b"a" * 32),
        b'{"number": 4000000000000, "of": "%s"}' % (b"a" * 32),
        b'{"number": 1, "of": "../../etc"}',
    ],
    ids=range(8),
)
def test_a_damaged_line_is_passed_over_and_what_follows_is_kept(folder, line):
    before = State.read(folder)
    with state_path(folder).open("ab") as file:
        file.write(line)  # torn: no end of the line
    state = State.read(folder)
    assert (state.stamps, state.numbers) == (before.stamps, before.numbers)
    assert state.problem.endswith("is damaged")
    state.note_release("c" * 64, STAMP)
    assert State.read(folder).stamps == {**before.stamps, "c" * 64: {STAMP}}


def number(folder, *names):
    """Number photos as a run does: all is checked, then the numbers are kept."""
    outputs = numbered(names, folder)
    keep_numbers(dict(zip(names, outputs, strict=True)), folder)
    return [int(output.removeprefix("photo-").removesuffix(".png")) for output in outputs]


def test_numbers_stay_a_photos_own(tmp_path):
    assert numbered(["b.jpg", "d.jpg"], tmp_path) == ["photo-000001.png", "photo-000002.png"]
    assert not is_present(state_path(tmp_path))
    assert number(tmp_path, "b.jpg", "d.jpg") == [1, 2]
    assert number(tmp_path, "a.jpg", "b.jpg", "c.jpg", "d.jpg") == [3, 1, 4, 2]
    assert number(tmp_path, "d.jpg") == [2]


@pytest.mark.parametrize("wanted", [{"b.jpg": "photo-000001.png"}, {"a.jpg": "photo-000002.png"}])
def test_a_number_that_another_run_took_meanwhile_is_not_given_again(tmp_path, wanted):
    number(tmp_path, "a.jpg")
    before = state_path(tmp_path).read_bytes()
    with pytest.raises(UsageError, match="meanwhile"):
        keep_numbers(wanted, tmp_path)
    assert state_path(tmp_path).read_bytes() == before


@pytest.mark.parametrize("damage", ["gone", "damaged"])
@pytest.mark.parametrize("left", ["photo-000002.png", "photo-000002.png.certificate.json"])
def test_numbered_releases_that_nobody_knows_are_not_numbered_again(tmp_path, damage, left):
    number(tmp_path, "a.jpg", "b.jpg")
    (tmp_path / left).write_bytes(b"x")
    assert number(tmp_path, "a.jpg", "b.jpg") == [1, 2]
    state_path(tmp_path).unlink()
    if damage == "damaged":
        state_path(tmp_path).write_bytes(b"x")
    for again in (lambda: numbered(["a.jpg"], tmp_path), lambda: keep_numbers({}, tmp_path)):
        with pytest.raises(UsageError, match="numbered release of an unknown photo"):
            again()


def test_copies_are_files_of_the_same_bytes(tmp_path):
    for name, contents in {"a": b"one", "b": b"two", "c": b"one", "d": b"one", "e": b"longer"}.items():
        (tmp_path / name).write_bytes(contents)
    sources = [tmp_path / name for name in ("a", "b", "c", "d", "e", "gone")]
    found = copies(sources, most=100)
    assert {key.name: value.name for key, value in found.items()} == {"c": "a", "d": "a"}
    assert copies(sources, most=2) == {}
