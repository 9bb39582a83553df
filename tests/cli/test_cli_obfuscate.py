"""obfuscate and verify as people meet them: options of one method, names, manifests, reruns, strength."""

import base64
import csv
import io
import json
import os
import re
import shutil
import stat
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from skimage import data

import dpveil
from dpveil.cli import review
from dpveil.core.photo import Photo
from dpveil.core.region import Box, Region
from dpveil.core.region_origin import Origin
from dpveil.release.plan import Plan

GOOD = ["--method", "dp-pix", "--epsilon", "2", "--block", "8", "--neighbourhood", "16"]


@pytest.fixture
def cli(shell):
    Path("in").mkdir()
    for number, name in enumerate(("anna", "bob")):
        levels = (np.arange(20 * 24 * 3) % (251 - number)).astype(np.uint8).reshape(20, 24, 3)
        Image.fromarray(levels).save(f"in/{name}.png")

    return shell


@pytest.fixture
def release(cli):
    def call(*more, out="out"):
        code, answer, err = cli("obfuscate", "in", "--out", out, *GOOD, *more, "--json")
        return code, json.loads(answer), err

    return call


def inputs(entries):
    return [entry["input"] for entry in entries]


def table(name):
    with Path(name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_the_owner_s_word_about_a_palette_is_another_release(cli):
    Image.open("in/anna.png").quantize(8).save("a.gif")
    words = ("obfuscate", "a.gif", "--out", "a.png", "--method", "fill", "--regions", "2,2,8,8")
    trust = ("--trust-source", "lossless")
    assert cli(*words)[0] == 0
    assert cli("verify", "a.png", "--at-least", "weak")[0] == 1
    assert cli(*words, "--at-least", "weak")[0] == 3, "also where it is there already"
    assert cli(*words, *trust)[0] == 1, "the release that is there says another thing"
    assert cli(*words, *trust, "--force")[0] == 0
    assert cli("verify", "a.png", "--at-least", "weak")[0] == 0
    assert cli(*words, *trust)[0] == 0, "it is skipped"
    assert cli(*words, "--trust-source", "always")[0] == 2


# Help and options


def test_flags_of_methods_and_words_after_the_end_of_options(cli):
    more = ("--method", "dct-gaussian", "--rho", "0.5", "--raw")
    assert cli("obfuscate", "in/bob.png", "--out", "out", *more)[0] == 0
    assert dpveil.verify("out/bob.png").certificate.parameters["raw"] is True
    shutil.copy("in/bob.png", "--method=blur")
    assert cli("obfuscate", "--out", "end", *GOOD, "--", "--method=blur")[0] == 0


# Strength


def test_too_weak_is_exit_code_3_and_draws_nothing(release, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(Plan, "release", pytest.fail)
        code, document, _ = release("--at-least", "strong")
    assert (code, len(document["failed"]), Path("out").exists()) == (3, 2, False)
    assert "2-DP, m-pixels (m = 16), which is moderate, and at least strong" in document["failed"][0]["error"]
    assert release("--at-least", "moderate")[0] == 0
    code, document, _ = release("--at-least", "strong")  # what an earlier run released is not enough either
    assert (code, len(document["failed"])) == (3, 2)
    assert release("--at-least", "weak")[0] == 0


# Names


def test_numbers_keep_names_out_of_everything_that_is_released(release):
    code, document, _ = release("--names", "number")
    assert code == 0
    assert len({entry["output"] for entry in document["released"]}) == 2
    for path in Path("out").iterdir():
        assert "anna" not in path.name
        assert b"anna" not in path.read_bytes()
    Image.fromarray(np.zeros((9, 9), np.uint8)).save("in/aaron.png")
    code, document, _ = release("--names", "number")
    assert inputs(document["released"]) == ["in/aaron.png"]
    assert inputs(document["skipped"]) == ["in/anna.png", "in/bob.png"]


def test_photos_with_one_output_are_refused(cli):
    shutil.copytree("in", "more")
    code, _, err = cli("obfuscate", "in", "more", "--out", "out", "--method", "fill")
    assert (code, Path("out").exists()) == (2, False)
    assert "in/anna.png and more/anna.png would both be written to out/anna.png" in err


# Replaced inputs and copies


@pytest.mark.parametrize("names", ["keep", "number"])
@pytest.mark.parametrize("what", ["size", "time"])
def test_a_rerun_notices_that_an_input_was_replaced(release, monkeypatch, names, what):
    release("--names", names)
    before = {path.name: path.read_bytes() for path in Path("out").iterdir()}
    status = Path("in/bob.png").stat()
    if what == "size":
        Image.fromarray(np.zeros((30, 30, 3), np.uint8)).save("in/bob.png")
        os.utime("in/bob.png", ns=(0, status.st_mtime_ns))
    else:
        os.utime("in/bob.png", ns=(0, status.st_mtime_ns + 1))
    with monkeypatch.context() as patch:
        patch.setattr(Plan, "release", pytest.fail)
        code, document, _ = release("--names", names)
    assert (code, inputs(document["skipped"]), inputs(document["failed"])) == (
        1,
        ["in/anna.png"],
        ["in/bob.png"],
    )
    assert "is a release of another photo, or of" in document["failed"][0]["error"]
    assert {path.name: path.read_bytes() for path in Path("out").iterdir()} == before
    assert len(release("--names", names, "--force")[1]["released"]) == 2
    assert len(release("--names", names)[1]["skipped"]) == 2


def test_outputs_that_may_name_a_person_are_warned_of(cli):
    shutil.copy("in/anna.png", "in/Anna Smith 2.png")
    assert "Anna Smith 2.png may name a person" in cli("obfuscate", "in", *GOOD, "--out", "out")[2]
    assert "may name" not in cli("obfuscate", "in", *GOOD, "--out", "new", "--names", "number")[2]
    assert "may name" not in cli("obfuscate", "in/Anna Smith 2.png", *GOOD, "--out", "out/1.png")[2]


def test_a_file_is_written_into_a_folder_that_exists_and_a_folder_is_made(cli):
    for names in (("no/such/x.png",), ("out", "--manifest", "no/such/m.csv")):
        code, _, err = cli("obfuscate", "in/bob.png", *GOOD, "--out", *names)
        assert (code, err) == (
            4,
            f"dpveil: cannot write {names[-1]}: there is no such folder: make the folder first\n",
        )
    assert not Path("no").exists()
    assert cli("obfuscate", "in/bob.png", *GOOD, "--out", "no/such")[0] == 0
    assert Path("no/such/bob.png").exists()


# Manifests


def test_a_manifest_has_a_row_for_every_input(cli):
    Path("in/=1+1.png").write_bytes(b"")
    shutil.copy("in/bob.png", "in/@sum.png")
    code, _, _ = cli("obfuscate", "in", "--out", "out", *GOOD, "--manifest", "m.csv")
    rows = table("m.csv")
    assert code == 1
    assert [row["status"] for row in rows] == ["failed", "released", "released", "released"]
    assert rows[1]["input"] == "in/@sum.png"
    assert (rows[2]["regions"], rows[2]["guarantee"]) == ("1", "2-DP, m-pixels (m = 16)")
    assert rows[2]["strength"] == "moderate"
    assert "empty" in rows[0]["error"]
    cli("obfuscate", "in", "--out", "out", *GOOD, "--manifest", "m.jsonl")
    lines = [json.loads(line) for line in Path("m.jsonl").read_text(encoding="ascii").splitlines()]
    assert [line["status"] for line in lines] == ["failed", "skipped", "skipped", "skipped"]
    assert lines[1]["guarantee"]["epsilon"] == 2


@pytest.mark.parametrize("name", ["m.csv", "m.jsonl"])
def test_a_manifest_is_of_one_run_and_replaces_no_other_file(cli, name):
    for photo in ("anna", "bob"):
        assert cli("obfuscate", f"in/{photo}.png", "--out", "out", *GOOD, "--manifest", name)[0] == 0
        assert Path(name).read_text(encoding="ascii").count(".png.certificate") == 1
    Path(name).write_text("mine", encoding="ascii")
    assert cli("obfuscate", "in/anna.png", "--out", "new", *GOOD, "--manifest", name)[0] == 4
    assert (Path(name).read_text(encoding="ascii"), Path("new").exists()) == ("mine", False)


@pytest.mark.parametrize(
    ("name", "code"), [("m.txt", 2), ("gone/m.csv", 4), ("out/anna.png", 2), ("f.csv", 4)]
)
def test_a_manifest_that_cannot_be_written_is_refused_before_anything_is_drawn(cli, monkeypatch, name, code):
    Path("f.csv").mkdir()
    Path("in/bob.csv").hardlink_to("in/bob.png")
    monkeypatch.setattr(Plan, "release", pytest.fail)
    got, out, err = cli("obfuscate", "in", "--out", "out", *GOOD, "--manifest", name, "--force", "--json")
    assert (got, err.count("\n"), json.loads(out)["released"]) == (code, 1, [])


# `dpveil obfuscate --review`: a page for a person, private, with the least certain regions first.


SETTINGS = ("--method", "fill", "--level", "255")


@pytest.fixture
def photos(tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    for name, level in (("a.png", 40), ("b <i>.png", 90)):
        Image.fromarray(np.full((120, 200, 3), level, np.uint8)).save(folder / name)
    return folder


def pictures(page):
    found = re.findall(r"<img alt=(\w+) src=data:image/webp;base64,([\w+/=]+)>", page)
    return [(word, np.asarray(Image.open(io.BytesIO(base64.b64decode(data))))) for word, data in found]


def test_the_page_shows_every_region_before_and_after(shell, photos):
    given = ("--regions", "20,30,40,50")
    code, _, _ = shell("obfuscate", "in", "--out", "out", "--review", "r.html", *SETTINGS, *given)
    page = Path("r.html").read_text(encoding="utf-8")
    assert code == 0
    assert stat.S_IMODE(Path("r.html").stat().st_mode) == 0o600
    assert "<script" not in page
    assert "default-src 'none'" in page
    assert "<i>" not in page
    assert "b &lt;i&gt;.png" in page
    assert "<code>--other-regions</code>" in page
    assert page.count("box: 40×50 pixels") == 2
    shown = pictures(page)
    assert [word for word, _ in shown] == ["original", "release", "before", "after"] * 2
    assert {max(picture.shape) for word, picture in shown if word == "original"} == {review.LONG_SIDE}
    levels = {
        word: [int(picture.mean()) for w, picture in shown if w == word] for word in ("before", "after")
    }
    assert np.allclose(sorted(levels["before"]), [40, 90], atol=2)
    assert min(levels["after"]) > 120


def test_frames_have_the_numbers_of_regions_and_else_their_order():
    photo, boxes = Photo(np.zeros((90, 200, 3), np.uint8)), [Box(10, 10, 60, 60), Box(110, 10, 60, 60)]
    plain, first, other = (
        review._draw_frames(
            photo, [Region(box, origin=Origin(number=n)) for box, n in zip(boxes, numbers, strict=True)]
        )
        for numbers in ((None, None), (1, 2), (5, 2))
    )
    assert np.array_equal(plain, first)
    assert not np.array_equal(first, other)


def test_pages_of_a_document_are_shown_as_photos_are(shell, tmp_path):
    first, second = (Image.fromarray(np.full((120, 200, 3), level, np.uint8)) for level in (40, 90))
    first.save(tmp_path / "scan.tif", save_all=True, append_images=[second])
    given = ("scan.tif", "--out", "out.pdf", "--review", "r.html", "--regions", "20,30,40,50")
    code, _, _ = shell("obfuscate", *given, *SETTINGS)
    shown = pictures(Path("r.html").read_text(encoding="utf-8"))
    assert code == 0
    assert [word for word, _ in shown] == ["original", "release", "before", "after"] * 2


def test_a_page_that_cannot_be_made_never_costs_the_report(shell, photos, monkeypatch):
    monkeypatch.setattr(review, "count_noun", lambda *_: [][1])
    code, out, err = shell(
        "obfuscate", "in", "--out", "out", "--review", "r.html", *SETTINGS, "--regions", "whole"
    )
    assert (code, out.startswith("2 photos replaced")) == (4, True)
    assert "unexpected IndexError" in err


def test_copies_come_first_and_what_was_not_released_is_listed(shell, photos):
    (photos / "c.png").write_bytes(b"no picture")
    whole = ("--method", "blur", "--sigma", "9", "--regions", "faces")
    Image.fromarray(data.astronaut()).save(photos / "d.png")
    code, _, err = shell("obfuscate", "in", "--out", "out", "--review", "r.html", *whole, "--if-none", "copy")
    page = Path("r.html").read_text(encoding="utf-8")
    assert (code, "earlier run" in err) == (1, False)
    names = re.findall(r"<h2>(.*?)</h2>", page)
    own = [f"<bdi>in/{name}.png</bdi>" for name in ("a", "b &lt;i&gt;", "d")]
    assert names == ["Not shown below", *own]
    assert page.count("no face was found") == 2
    assert "<li>in/c.png " in page
    again = ("--out", "out", *whole, "--if-none", "copy")
    code, _, err = shell("obfuscate", "in", "--review", "r.html", *again)
    assert (code, "earlier run" in err) == (1, False)
    assert Path("r.html").read_text(encoding="utf-8") == page, "what an earlier run released stays on it"
    for _ in range(2):
        err = shell("obfuscate", "in", "--review", "s.html", *again)[2]
        assert "s.html shows 1 of 4 photos: 3 were released by an earlier run\n" in err
    Image.fromarray(data.astronaut()).save(photos / "e.png")
    shell("obfuscate", "in", "--review", "r.html", *again)
    later = Path("r.html").read_text(encoding="utf-8")
    assert re.findall(r"<h2>(.*?)</h2>", later) == ["Not shown below", "<bdi>in/e.png</bdi>", *own]
    err = shell("obfuscate", "in/e.png", "--review", "r.html", *again)[2]
    assert "r.html shows" not in err, "more are on the page than this run has"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("r.txt", "--review r.txt is not the name of a page: end it in .html"),
        ("out/r.html", "the review out/r.html would lie among the releases, and shows the originals"),
        ("none/r.html", "none/r.html"),
        (
            "notes.html",
            "notes.html: it exists already: choose another name, as --force releases every photo anew",
        ),
    ],
)
def test_a_page_that_cannot_be_is_refused_before_anything_is_drawn(shell, photos, name, words):
    Path("notes.html").write_text("mine", encoding="utf-8")
    code, _, err = shell("obfuscate", "in", "--out", "out", "--review", name, *SETTINGS)
    assert code in (2, 4)
    assert words in err
    assert not Path("out").exists()
    assert Path("notes.html").read_text(encoding="utf-8") == "mine"
