"""Faces that are too close to bound what is replaced around them: runs name them, and no certificate does."""

from __future__ import annotations

import base64
import io
import json
import re
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import dpveil
from dpveil.regions import Faces
from dpveil.regions import faces as faces_file
from dpveil.regions.detectors import Detector

Shell = Callable[..., tuple[int, str, str]]
FILL = ("--method", "fill", "--level", "200", "--regions", "faces")


class Row(Detector):
    """Sees a row of three faces, 20 pixels apart."""

    name = "row"
    threshold = Fraction(3, 10)

    @classmethod
    def installed(cls) -> bool:
        return True

    def __call__(self, image: np.ndarray, threshold: float) -> np.ndarray:
        return np.array([[20 + 50 * n, 60, 30, 36, 0.9] for n in range(3)], float)


@pytest.fixture(autouse=True)
def photos(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(faces_file, "choose", lambda name, model: Row())
    for name in ("a", "b"):
        Image.new("RGB", (200, 160), (90, 120, 60)).save(tmp_path / f"{name}.png")


@pytest.mark.parametrize(
    ("asked", "overlapping", "excepted", "line"),
    [
        (("--margin", "0"), [], [], ""),
        (("--margin", "0", "--except", "2"), [], [], ""),
        (("--margin", "1"), [1, 2, 3], [], "regions of faces 1, 2 and 3 overlap others"),
        (("--margin", "1", "--only", "2,3"), [2, 3], [], "regions of faces 2 and 3 overlap others"),
        (("--margin", "1", "--except", "1,3"), [], [1, 3], "hair or neck of faces 1 and 3, which stay, may"),
        (("--margin", "1", "--except", "1"), [2, 3], [1], "overlap others; hair or neck of face 1, which"),
    ],
)
def test_a_run_names_the_faces_in_its_document_and_in_one_line(
    shell: Shell, asked, overlapping, excepted, line
) -> None:
    code, out, err = shell("obfuscate", "a.png", "--out", "out.png", *FILL, *asked, "--json")
    assert code == 0
    (one,) = json.loads(out)["released"]
    assert one["crowded"] == {"overlapping": overlapping, "excepted": excepted}
    told = [text for text in err.splitlines() if text.startswith("crowded: ")]
    assert len(told) == bool(line)
    assert all(line in text and "a.png" in text for text in told)
    assert "crowd" not in Path("out.png.certificate.json").read_text(encoding="utf-8")


@pytest.mark.parametrize("method", [(), ("--method", "dp-pix"), ("--method", "fill")])
def test_faces_are_chosen_as_for_a_release(shell: Shell, method: tuple[str, ...]) -> None:
    for asked, stays in ((("--except", "2"), [2]), (("--only", "1"), [2, 3])):
        code, out, err = (
            shell("faces", "a.png", *method, "--margin", "0", *asked)
            if method
            else shell("faces", "a.png", *asked)
        )
        assert code == 0, err
        lines = [line for line in out.splitlines() if line.endswith(", stays as it is")]
        assert [int(line.split()[1].rstrip(":")) for line in lines] == stays
        assert [line[:6] for line in out.splitlines()] == ["face 1", "face 2", "face 3"]
        code, out, _ = shell("faces", "a.png", *method, *asked, "--json")
        document = json.loads(out)
        assert [face["number"] for face in document["kept"]] == stays
        assert sorted(face["number"] for face in (*document["kept"], *document["faces"])) == [1, 2, 3]
    plan = dpveil.plan("a.png", "fill", level=200, regions=Faces(exclude="2"))
    box = plan.regions[0].kept[0].box
    code, out, _ = shell("faces", "a.png", "--method", "fill", "--except", "2", "--json")
    assert json.loads(out)["kept"][0]["box"] == [box.x, box.y, box.w, box.h], "what stays, without a margin"
    code, _, err = shell("faces", "a.png", "--only", "7")
    assert (code, "face 7 was chosen, and the photo has 3 faces" in err) == (1, True)


def test_the_review_frames_faces_that_stay_and_names_the_crowd(shell: Shell) -> None:
    from dpveil.cli.preview import KEPT

    given = ("--out", "x.png", *FILL, "--margin", "1", "--except", "1", "--review", "r.html")
    assert shell("obfuscate", "a.png", *given)[0] == 0
    page = Path("r.html").read_text(encoding="utf-8")
    assert "<p class=crowd>Crowded: regions of faces 2 and 3 overlap others; hair or neck of face 1" in page
    assert "blue frame" in page
    found = re.findall(r"<img alt=original src=data:image/webp;base64,([\w+/=]+)>", page)
    shown = np.asarray(Image.open(io.BytesIO(base64.b64decode(found[0])))).astype(int)
    assert shown.shape[1] == 640
    near = (np.abs(shown - KEPT).max(axis=2) < 60).nonzero()
    left, right = near[1].min() / 3.2, near[1].max() / 3.2
    assert (left, right) == pytest.approx((20, 50), abs=6), "around face 1, 20 to 50 of 200 pixels"
    plain = ("--out", "y.png", *FILL, "--margin", "0", "--review", "s.html")
    assert shell("obfuscate", "b.png", *plain)[0] == 0
    assert "class=crowd>" not in Path("s.html").read_text(encoding="utf-8")
