"""`dpveil obfuscate --review`: a page for a person, private, with the least certain regions first."""

import base64
import io
import re
import stat
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from skimage import data

import dpveil
from dpveil.batch.report import Report
from dpveil.batch.task import Task
from dpveil.cli import review
from dpveil.core.origin import Origin
from dpveil.core.region import Box, Region
from dpveil.regions.finder import Finder

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
    assert page.encode().startswith(review.START)
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


class Unsure(Finder):
    """Finds a large region that it is not sure of, a small one, and another large one."""

    kind = "sign"
    description = "signs"

    def __call__(self, photo):
        boxes = [Box(0, 0, 60, 60), Box(70, 0, 20, 20), Box(100, 0, 60, 60)]
        return [
            Region(box, origin=Origin("sign", number=n, found=True), score=score)
            for n, (box, score) in enumerate(zip(boxes, (0.1, 0.9, 0.95), strict=True), start=1)
        ]


def page_of(finder, *names):
    collected, photo = review.Review(), np.full((120, 200, 3), 99, np.uint8)
    for name in names:
        planned = dpveil.plan(photo, "fill", regions=finder)
        collected.add(Task(Path(name), Path("o.png"), "o.png"), planned, planned.release())
    return collected.page(Report({})).decode()


def test_what_cannot_be_shown_is_listed_and_the_run_goes_on(monkeypatch):
    monkeypatch.setattr(review, "_doubt", lambda region: 1 / 0)
    page = page_of(Unsure(), "a.png")
    assert "Review of 0 releases" in page
    assert "a.png: cannot be shown (ZeroDivisionError): look at it yourself" in page


def test_a_page_that_cannot_be_made_never_costs_the_report(shell, photos, monkeypatch):
    monkeypatch.setattr(review.Review, "page", lambda self, report: [][1])
    code, out, err = shell("obfuscate", "in", "--out", "out", "--review", "r.html", *SETTINGS)
    assert (code, out.count("->")) == (4, 2)
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
    assert page.count("Not found, and left as it is: faces") == 2
    assert "<li>in/c.png: " in page
    again = ("--out", "out", *whole, "--if-none", "copy")
    code, _, err = shell("obfuscate", "in", "--review", "r.html", *again)
    assert code == 4
    assert "r.html: it exists: choose another name, as --force releases every photo anew" in err
    assert Path("r.html").read_text(encoding="utf-8") == page
    err = shell("obfuscate", "in", "--review", "s.html", *again)[2]
    assert "s.html shows 3 of 4 photos, 3 as an earlier run released them\n" in err
    rerun = Path("s.html").read_text(encoding="utf-8")
    assert re.findall(r"<h2>(.*?)</h2>", rerun) == names
    assert rerun.count("Not found, and left as it is: faces") == 2
    assert rerun.count("Released by an earlier run") == 3


def test_a_rerun_shows_the_regions_of_the_certificates(shell, photos):
    """The same pictures as the run that released them, and a tint where a masked region was replaced."""
    mask = np.zeros((120, 200), np.uint8)
    mask[20:70, 30:70] = 255 * (np.indices((50, 40)).sum(axis=0) < 50)
    Image.fromarray(mask).save("mask.png")
    given = ("--regions", "mask.png", "--regions", "120,30,40,50")
    for page in ("r.html", "s.html"):
        code, _, err = shell("obfuscate", "in", "--out", "out", "--review", page, *SETTINGS, *given)
        assert code == 0
    assert "skipped in/a.png and 1 more: released before" in err
    first, again = (pictures(Path(page).read_text(encoding="utf-8")) for page in ("r.html", "s.html"))
    assert len(first) == 12
    for (word, one), (same, other) in zip(first, again, strict=True):
        assert (word, one.shape) == (same, other.shape)
        assert np.abs(one.astype(int) - other).max() < 40


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("r.txt", "--review r.txt is not the name of a page: end it in .html"),
        ("out/r.html", "the review out/r.html would lie among the releases, and shows the originals"),
        ("none/r.html", "none/r.html"),
        ("notes.html", "notes.html: it exists: choose another name, as --force releases every photo anew"),
    ],
)
def test_a_page_that_cannot_be_is_refused_before_anything_is_drawn(shell, photos, name, words):
    Path("notes.html").write_text("mine", encoding="utf-8")
    code, _, err = shell("obfuscate", "in", "--out", "out", "--review", name, *SETTINGS)
    assert code in (2, 4)
    assert words in err
    assert not Path("out").exists()
    assert Path("notes.html").read_text(encoding="utf-8") == "mine"
