"""Where every photo lands: mirrored, never on another, never on an input, never read twice."""

import os
import re
import stat
import tempfile
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpveil.batch.state import State, state_path
from dpveil.batch.tasks import plan_tasks
from dpveil.errors import OutputError, UnknownName, UsageError
from dpveil.io.names import released_suffix


@pytest.fixture
def tree(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def grow(*names: str) -> None:
        for name in names:
            path = Path(name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(b"x")

    return grow


MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None  # noqa: S108  only new folders of our own


def landed(inputs, out="out"):
    tasks = plan_tasks([Path(i) for i in inputs], Path(out))
    return {str(task.source): str(task.output) for task in tasks}


def test_one_photo_goes_to_a_file_or_into_a_folder(tree):
    tree("a.jpg", "b.PNG")
    assert landed(["a.jpg"], "x.webp") == {"a.jpg": "x.webp"}
    assert landed(["a.jpg"], "x") == {"a.jpg": "x/a.jpg"}
    Path("folder.png").mkdir()
    assert landed(["a.jpg"], "folder.png") == {"a.jpg": "folder.png/a.jpg"}
    assert landed(["a.jpg", "b.PNG"], "folder.png").keys() == {"a.jpg", "b.PNG"}


def test_a_tree_is_mirrored_without_what_is_hidden_or_no_image(tree):
    tree("in/a.jpg", "in/b/c.tiff", "in/.hidden.jpg", "in/.git/d.jpg", "in/notes.txt", "in/.dpveil-0.tmp")
    assert landed(["in"]) == {"in/a.jpg": "out/a.jpg", "in/b/c.tiff": "out/b/c.png"}


def test_a_file_that_is_named_is_always_tried(tree):
    tree("notes.txt", ".hidden.jpg")
    assert landed(["notes.txt", ".hidden.jpg", "missing"]) == {
        "notes.txt": "out/notes.png",
        ".hidden.jpg": "out/.hidden.jpg",
        "missing": "out/missing.png",
    }


def test_own_outputs_are_never_read_again(tree):
    tree("in/a.jpg", "in/a.png", "in/a.png.certificate.json", "in/out/a.png", "in/out/b/c.jpg")
    assert landed(["in"], "in/out") == {"in/a.jpg": "in/out/a.jpg"}


def test_an_output_never_overwrites_an_input(tree):
    tree("in/a.png")
    for out in ("in/a.png", "in"):
        with pytest.raises(UsageError, match="is one of the inputs"):
            landed(["in/a.png"], out)
    Path("link.png").symlink_to("in/a.png")
    os.link("in/a.png", "twin.png")
    with pytest.raises(UsageError, match="is one of the inputs"):
        landed(["in/a.png"], "twin.png")
    with pytest.raises(UsageError, match="is one of the inputs"):
        landed(["in/a.png"], "link.png")


@pytest.mark.parametrize("names", ["keep", "number"])
def test_releases_never_lie_among_the_originals_of_a_folder(tree, names):
    """Not even where no name is the same; a photo that is named may get its release beside it."""
    tree("in/a.jpg", "b.jpg")
    Path("link").symlink_to("in")
    for out in ("in", "link", "in/../in"):
        with pytest.raises(UsageError, match=f"{out} is the input folder, .*: name another folder"):
            plan_tasks([Path("b.jpg"), Path("in")], Path(out), names=names)
    assert landed(["in"], "in/out") == {"in/a.jpg": "in/out/a.jpg"}
    with pytest.raises(UsageError, match="is one of the inputs"):
        landed(["in/a.jpg"], "in")
    assert landed(["in/a.jpg"], "in/b.jpg") == {"in/a.jpg": "in/b.jpg"}


STEMS = ["a", "A", "a.jpg", "a.png", "a.jpg.png", "d", "\u00df", "SS"]
STEMS += ["\u00e9", "e\u0301", "\u0390", "\u03aa\u0301"]
NAMES = [stem + suffix for stem in STEMS for suffix in (".jpg", ".png", ".PNG", ".bmp")]
FOLDERS = ["", "s/", "S/", "d.png/"]
PLACES = [folder + name for folder in FOLDERS for name in NAMES if folder + name != "d.png"]


def seen(path: Path | str) -> str:
    """Return what is the same for names that differ in case or form alone (Unicode, definition D145)."""
    return unicodedata.normalize("NFD", unicodedata.normalize("NFD", str(path)).casefold())


@settings(max_examples=80)
@given(
    st.sets(st.sampled_from(PLACES), min_size=1, max_size=9),
    st.sampled_from([None, "png", "jpeg", "webp"]),
    st.randoms(use_true_random=False),
)
def test_no_two_photos_ever_land_on_one_name(names, format_, random):
    with tempfile.TemporaryDirectory(dir=MEMORY) as place:
        folder, out, made = Path(place, "in"), Path(place, "out"), sorted(names)
        random.shuffle(made)
        for name in made:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).touch()
        tasks = plan_tasks([folder], out, format=format_)
    assert sorted(str(task.source.relative_to(folder)) for task in tasks) == sorted(names)
    for task in tasks:
        source = task.source.relative_to(folder)
        assert task.output == out / task.name
        suffix = released_suffix(source, format_)
        assert task.output.relative_to(out) in (source.with_suffix(suffix), Path(f"{source}{suffix}"))
    if len({seen(name) for name in names}) < len(names):
        return
    outputs = {seen(task.output) for task in tasks}
    certificates = {seen(f"{task.output}.certificate.json") for task in tasks}
    folders = {seen(parent) for task in tasks for parent in task.output.parents}
    assert len(outputs) == len(certificates) == len(tasks)
    assert outputs.isdisjoint(certificates)
    assert folders.isdisjoint(outputs | certificates)


def test_formats_stay_or_are_chosen(tree):
    tree("in/a.jpg", "in/b.heic", "in/c.JPEG", "in/d.bmp", "in/e.webp")
    kept = {"in/a.jpg": "out/a.jpg", "in/b.heic": "out/b.png", "in/c.JPEG": "out/c.JPEG"}
    assert landed(["in"]) == kept | {"in/d.bmp": "out/d.bmp", "in/e.webp": "out/e.png"}
    outputs = {task.output.name for task in plan_tasks([Path("in")], Path("out"), format="jpeg")}
    assert outputs == {"a.jpg", "b.jpg", "c.JPEG", "d.jpg", "e.jpg"}
    tree("in/s.tar")
    with pytest.raises(UsageError):
        plan_tasks([Path("in")], Path("out"), format="jpeg")
    with pytest.raises(UnknownName):
        plan_tasks([Path("in")], Path("out"), format="gif")
    with pytest.raises(UsageError):
        plan_tasks([Path("in/a.jpg")], Path("x.jpg"), format="png")
    assert len(plan_tasks([Path("in/a.jpg")], Path("x.jpg"), format="jpeg")) == 1


def test_a_photo_that_several_names_lead_to_is_taken_once(tree):
    tree("in/b.jpg")
    Path("in/a.jpg").symlink_to("b.jpg")
    assert landed(["in", "in/b.jpg", "./in"]) == {"in/b.jpg": "out/b.jpg"}


def test_a_folder_that_cannot_be_read_is_reported_not_left_out(tree, monkeypatch):
    tree("in/a.jpg", "in/locked/b.jpg")
    real = os.scandir

    def scandir(path):
        if str(path).endswith("locked"):
            raise PermissionError(13, "Permission denied", str(path))
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)
    assert "in/locked" in landed(["in"])


# What is remembered of a folder's inputs: private, elsewhere, appended to; damaged lines are passed
# over.


SHA = "a" * 64
STAMP = (10, 20)


@pytest.fixture
def folder(tmp_path):
    State.read(tmp_path).note_release(SHA, STAMP)
    return tmp_path


def test_what_was_noted_is_read_again_and_nobody_else_may_read_it(folder):
    state = State.read(folder)
    assert (state.stamps, state.problem) == ({SHA: {STAMP}}, "")
    assert stat.S_IMODE(state_path(folder).stat().st_mode) == 0o600


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
        plan_tasks([Path("a.jpg")], tmp_path, names="number")


def test_an_input_is_replaced_where_its_release_is_known_and_its_stamp_is_not(folder):
    state = State.read(folder)
    assert not state.is_replaced(SHA, STAMP)
    assert state.is_replaced(SHA, (10, 21))
    assert state.is_replaced(SHA, (11, 20))
    assert state.is_replaced(SHA, None)
    assert not state.is_replaced("b" * 64, (10, 21))


@pytest.mark.parametrize(
    "line",
    [
        b"[]",
        b"\xff",
        b"[" * 100_000,
        b'{"release": "%s", "size": 1}' % (b"b" * 64),
    ],
    ids=range(4),
)
def test_a_damaged_line_is_passed_over_and_what_follows_is_kept(folder, line):
    before = State.read(folder)
    with state_path(folder).open("ab") as file:
        file.write(line)  # torn: no end of the line
    state = State.read(folder)
    assert state.stamps == before.stamps
    assert state.problem.endswith("is damaged")
    state.note_release("c" * 64, STAMP)
    assert State.read(folder).stamps == {**before.stamps, "c" * 64: {STAMP}}


def test_numbers_stay_a_photos_own_and_tell_no_name(tree, monkeypatch):
    tree("in/b.jpg", "in/d.jpg", "in/d.heic")

    def numbered():
        tasks = plan_tasks([Path("in")], Path("out"), names="number")
        return {task.source.name: task.name for task in tasks}

    first = numbered()
    assert len({*first.values()}) == 3
    assert all(re.fullmatch(r"photo-[0-9]{15}\.(jpg|png)", name) for name in first.values())
    tree("in/a.jpg", f"out/{first['d.heic']}.certificate.json")
    assert numbered().items() > first.items()
    monkeypatch.setenv("XDG_STATE_HOME", str(Path("other").absolute()))
    assert not {*numbered().values()} & {*first.values()}, "another user"
