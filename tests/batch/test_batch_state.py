"""What a folder remembers of its inputs: private, appended to, and whose damaged lines are passed over."""

import json
import os
import stat
from pathlib import Path

import pytest

from dpveil.batch.copies import copies
from dpveil.batch.numbering import numbered
from dpveil.batch.state import MOST_BYTES, NAME, State, key_of, stamp_of
from dpveil.errors import OutputError, UsageError

SHA = "a" * 64
STAMP = (10, 20)


@pytest.fixture
def folder(tmp_path):
    State.read(tmp_path).note_release(SHA, STAMP, "anna.jpg")
    return tmp_path


def test_what_was_noted_is_read_again_and_nobody_else_may_read_it(folder):
    State.read(folder).note_numbers([(key_of("anna.jpg"), 1)])
    state = State.read(folder)
    assert (state.stamps, state.numbers, state.problem) == ({SHA: {STAMP}}, {key_of("anna.jpg"): 1}, "")
    assert stat.S_IMODE((folder / NAME).stat().st_mode) == 0o600
    assert b"anna" not in (folder / NAME).read_bytes()


def test_an_input_is_replaced_where_its_release_is_known_and_its_stamp_is_not(folder):
    state = State.read(folder)
    assert not state.replaced(SHA, STAMP)
    assert state.replaced(SHA, (10, 21))
    assert state.replaced(SHA, (11, 20))
    assert state.replaced(SHA, None)
    assert not state.replaced("b" * 64, (10, 21))
    assert (state.another(SHA, "anna.jpg"), state.another(SHA, "anna.png")) == (False, True)


@pytest.mark.parametrize(
    "line",
    [
        b"null",
        b"[]",
        b"{",
        b'"release"',
        b"\xff",
        b"[" * 100_000,
        b'{"release": 1, "size": 1, "time": 1}',
        b'{"release": "' + b"A" * 64 + b'", "size": 1, "time": 1}',
        b'{"release": "' + b"b" * 64 + b'", "size": true, "time": 1}',
        b'{"release": "' + b"b" * 64 + b'", "size": 1.5, "time": 1}',
        b'{"release": "' + b"b" * 64 + b'", "size": ' + b"9" * 5000 + b', "time": 1}',
        b'{"release": "' + b"b" * 64 + b'", "size": ' + b"9" * 30 + b', "time": 1}',
        b'{"release": "' + b"b" * 64 + b'", "size": 1, "time": 1, "of": "../x"}',
        b'{"number": 0, "of": "' + b"a" * 32 + b'"}',
        b'{"number": 4000000000000, "of": "' + b"a" * 32 + b'"}',
        b'{"number": 1, "of": ["x"]}',
        b'{"number": 1, "of": "../../etc"}',
        b'{"number": 1, "of": "' + b"a" * 32 + b'", "more": 1}',
    ],
    ids=range(18),
)
def test_a_damaged_line_is_passed_over_and_what_follows_is_kept(folder, line):
    before = State.read(folder)
    with (folder / NAME).open("ab") as file:
        file.write(line)  # torn: no end of the line
    state = State.read(folder)
    assert (state.stamps, state.numbers) == (before.stamps, before.numbers)
    assert state.problem.endswith("is damaged")
    state.note_release("c" * 64, STAMP, "anna.jpg")
    assert State.read(folder).stamps == {**before.stamps, "c" * 64: {STAMP}}


def test_a_file_that_is_too_large_or_no_file_is_not_read(tmp_path):
    with (tmp_path / NAME).open("wb") as file:
        file.truncate(MOST_BYTES + 1)
    assert "bytes" in State.read(tmp_path).problem
    (tmp_path / NAME).unlink()
    secret = tmp_path / "secret"
    secret.write_text(json.dumps({"release": SHA, "size": 1, "time": 1}), encoding="ascii")
    (tmp_path / NAME).symlink_to(secret)
    state = State.read(tmp_path)
    assert ("link" in state.problem, state.stamps) == (True, {})
    state.note_release(SHA, STAMP, "anna.jpg")
    assert json.loads(secret.read_text(encoding="ascii"))["size"] == 1
    assert not (tmp_path / NAME).is_symlink()


def test_nothing_is_appended_to_what_a_link_leads_to(folder):
    state = State.read(folder)
    other = folder / "other"
    (folder / NAME).rename(other)
    (folder / NAME).symlink_to(other)
    before = other.read_bytes()
    with pytest.raises(OSError, match=r"."):
        state.note_release("b" * 64, STAMP, "anna.jpg")
    assert other.read_bytes() == before


def test_a_stamp_is_size_and_time(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"abc")
    os.utime(path, ns=(5, 7))
    assert stamp_of(path) == (3, 7)
    assert stamp_of(tmp_path / "none") is None
    assert stamp_of(Path("a\0b")) is None


def test_numbers_stay_a_photos_own(tmp_path):
    assert numbered(["b.jpg", "d.jpg"], tmp_path) == ["photo-000001.png", "photo-000002.png"]
    assert numbered(["a.jpg", "b.jpg", "c.jpg", "d.jpg"], tmp_path) == [
        f"photo-00000{n}.png" for n in (3, 1, 4, 2)
    ]
    assert numbered(["d.jpg"], tmp_path) == ["photo-000002.png"]


@pytest.mark.parametrize("damage", ["gone", "damaged"])
@pytest.mark.parametrize("left", ["photo-000002.png", "photo-000002.png.certificate.json"])
def test_numbered_releases_that_nobody_knows_are_not_numbered_again(tmp_path, damage, left):
    numbered(["a.jpg", "b.jpg"], tmp_path)
    (tmp_path / left).write_bytes(b"x")
    assert len(numbered(["a.jpg", "b.jpg"], tmp_path)) == 2
    (tmp_path / NAME).unlink()
    if damage == "damaged":
        (tmp_path / NAME).write_bytes(b"x")
    with pytest.raises(UsageError, match="release of an unknown photo"):
        numbered(["a.jpg", "b.jpg"], tmp_path)


def test_numbers_that_cannot_be_kept_are_not_given(tmp_path):
    (tmp_path / NAME).mkdir()
    with pytest.raises(OutputError):
        numbered(["a.jpg"], tmp_path)


def test_copies_are_files_of_the_same_bytes(tmp_path):
    for name, contents in {"a": b"one", "b": b"two", "c": b"one", "d": b"one", "e": b"longer"}.items():
        (tmp_path / name).write_bytes(contents)
    sources = [tmp_path / name for name in ("a", "b", "c", "d", "e", "gone")]
    found = copies(sources, most=100)
    assert {key.name: value.name for key, value in found.items()} == {"c": "a", "d": "a"}
    assert copies(sources, most=2) == {}


def test_what_is_no_file_is_nobodys_copy(tmp_path):
    for name in ("a", "b"):
        os.mkfifo(tmp_path / name)
        (tmp_path / f"empty-{name}").write_bytes(b"")
    assert copies(tmp_path.iterdir(), most=100) == {}
