"""Where every photo lands: mirrored, never on another, never on an input, never read twice."""

import os
import tempfile
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpveil.batch.tasks import plan_tasks
from dpveil.errors import UnknownName, UsageError


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
    assert landed(["a.jpg"], "x") == {"a.jpg": "x/a.png"}
    Path("folder.png").mkdir()
    assert landed(["a.jpg"], "folder.png") == {"a.jpg": "folder.png/a.png"}
    assert landed(["a.jpg", "b.PNG"], "folder.png").keys() == {"a.jpg", "b.PNG"}


def test_a_suffix_that_cannot_be_written_is_no_folder(tree):
    tree("a.jpg")
    with pytest.raises(
        UsageError, match=r"priv\.pgn: \.pgn is no format that dpveil writes: .* as priv\.png"
    ):
        landed(["a.jpg"], "priv.pgn")
    assert landed(["a.jpg"], "release.v2") == {"a.jpg": "release.v2/a.png"}
    with pytest.raises(UnknownName, match=r"'\.gif': choose from \.bmp, .*\.png, .*\.webp"):
        landed(["a.jpg"], "x.gif")  # which is no slip for .tif


def test_a_tree_is_mirrored_without_what_is_hidden_or_no_image(tree):
    tree("in/a.jpg", "in/b/c.tiff", "in/.hidden.jpg", "in/.git/d.jpg", "in/notes.txt", "in/.dpveil-0.tmp")
    assert landed(["in"]) == {"in/a.jpg": "out/a.png", "in/b/c.tiff": "out/b/c.png"}


def test_a_file_that_is_named_is_always_tried(tree):
    tree("notes.txt", ".hidden.jpg")
    assert landed(["notes.txt", ".hidden.jpg", "missing"]) == {
        "notes.txt": "out/notes.png",
        ".hidden.jpg": "out/.hidden.png",
        "missing": "out/missing.png",
    }


def test_own_outputs_are_never_read_again(tree):
    tree("in/a.jpg", "in/a.png", "in/a.png.certificate.json", "in/out/a.png", "in/out/b/c.jpg")
    assert landed(["in"], "in/out") == {"in/a.jpg": "in/out/a.png"}


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
    assert landed(["in"], "in/out") == {"in/a.jpg": "in/out/a.png"}
    assert landed(["in/a.jpg"], "in") == {"in/a.jpg": "in/a.png"}
    assert landed(["in/a.jpg"], "in/b.jpg") == {"in/a.jpg": "in/b.jpg"}


STEMS = ["a", "A", "a.jpg", "a.png", "a.jpg.png", "d", "\u00df", "SS"]
STEMS += ["\u00e9", "e\u0301", "\u0390", "\u03aa\u0301"]
NAMES = [stem + suffix for stem in STEMS for suffix in (".jpg", ".png", ".PNG", ".bmp")]
FOLDERS = ["", "s/", "S/", "d.png/"]
PLACES = [folder + name for folder in FOLDERS for name in NAMES if folder + name != "d.png"]


def seen(path: Path | str) -> str:
    """Return what is the same for names that differ in case or form alone (Unicode, definition D145)."""
    return unicodedata.normalize("NFD", unicodedata.normalize("NFD", str(path)).casefold())


@settings(max_examples=200)
@given(st.sets(st.sampled_from(PLACES), min_size=1, max_size=9), st.randoms(use_true_random=False))
def test_no_two_photos_ever_land_on_one_name(names, random):
    with tempfile.TemporaryDirectory(dir=MEMORY) as place:
        folder, out, made = Path(place, "in"), Path(place, "out"), sorted(names)
        random.shuffle(made)
        for name in made:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).touch()
        tasks = plan_tasks([folder], out)
    assert sorted(str(task.source.relative_to(folder)) for task in tasks) == sorted(names)
    for task in tasks:
        source = task.source.relative_to(folder)
        assert task.output == out / task.name
        assert task.output.relative_to(out) in (source.with_suffix(".png"), Path(f"{source}.png"))
    rivals = [task for task in tasks if task.rival is not None]
    assert not rivals or len({seen(name) for name in names}) < len(names)
    tasks = [task for task in tasks if task.rival is None]
    outputs = {seen(task.output) for task in tasks}
    certificates = {seen(f"{task.output}.certificate.json") for task in tasks}
    folders = {seen(parent) for task in tasks for parent in task.output.parents}
    assert len(outputs) == len(certificates) == len(tasks)
    assert outputs.isdisjoint(certificates)
    assert folders.isdisjoint(outputs | certificates)
    assert outputs.isdisjoint(seen(task.former) for task in tasks if task.former)


def test_names_that_would_collide_keep_their_suffix(tree):
    tree("in/a.jpg", "in/a.png", "in/b.jpg", "in/sub/a.jpg")
    assert landed(["in"]) == {
        "in/a.jpg": "out/a.jpg.png",
        "in/a.png": "out/a.png.png",
        "in/b.jpg": "out/b.png",
        "in/sub/a.jpg": "out/sub/a.png",
    }


def test_a_photo_that_several_names_lead_to_is_taken_once(tree):
    tree("in/b.jpg")
    Path("in/a.jpg").symlink_to("b.jpg")
    assert landed(["in", "in/b.jpg", "./in"]) == {"in/b.jpg": "out/b.png"}


def test_loops_of_links_end(tree):
    tree("in/a.jpg")
    Path("in/loop").symlink_to("..", target_is_directory=True)
    Path("in/self.jpg").symlink_to("self.jpg")
    assert landed(["in"]) == {"in/a.jpg": "out/a.png", "in/self.jpg": "out/self.png"}


def test_a_folder_that_cannot_be_read_is_reported_not_left_out(tree, monkeypatch):
    tree("in/a.jpg", "in/locked/b.jpg")
    real = os.scandir

    def scandir(path):
        if str(path).endswith("locked"):
            raise PermissionError(13, "Permission denied", str(path))
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)
    assert "in/locked" in landed(["in"])
