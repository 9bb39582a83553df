"""What may be a face and stays in the clear: every command that searches for faces says so, in one line."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from dpveil.cli.review import EDGE
from dpveil.regions import faces as faces_file
from dpveil.regions.detectors import Detector

Shell = Callable[..., tuple[int, str, str]]
FILL = ("--method", "fill", "--level", "200", "--regions", "faces", "--margin", "0")


class ByWidth(Detector):
    """Sees one face in every photo, and places that may be faces in those wider than 100 pixels."""

    name = "by-width"
    threshold = Fraction(3, 10)
    doubtful = Fraction(1, 10)

    @classmethod
    def installed(cls) -> bool:
        return True

    def __call__(self, image: np.ndarray, threshold: float) -> np.ndarray:
        rows = np.array([[10, 10, 20, 30, 0.9], [60, 20, 10, 12, 0.17], [40, 60, 6, 6, 0.1271]])
        rows = rows[: 1 if image.shape[1] <= 100 else 2 if image.shape[1] <= 120 else 3]
        return rows[(rows[:, 4] >= threshold) & (image.max() > 10)]


@pytest.fixture(autouse=True)
def photos(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder "in" with photos of 100, 120 and 140 pixels, and a black one without a face."""
    monkeypatch.setattr(faces_file, "choose", lambda name, model: ByWidth())
    (tmp_path / "in").mkdir()
    for width, name in ((100, "a"), (120, "b"), (140, "c")):
        Image.new("RGB", (width, 80), (90, 120, 60)).save(tmp_path / "in" / f"{name}.png")
    Image.new("RGB", (90, 80), (0, 0, 0)).save(tmp_path / "dark.png")


def test_a_run_says_how_many_in_which_photos_and_how_to_replace_them(shell: Shell) -> None:
    code, out, err = shell("obfuscate", "in", "--out", "out", *FILL)
    assert (code, len(out.splitlines())) == (0, 3)
    (line,) = (line for line in err.splitlines() if "may show" in line)
    assert line.startswith(
        "left in the clear: 3 places that may show a face, in in/b.png and 1 more: --review"
    )
    threshold = re.search(r"--threshold ([0-9.]+)", line)
    assert threshold
    _, out, err = shell("obfuscate", "in", "--out", "all", *FILL, "--threshold", threshold[1])
    assert out.count("3 regions") + out.count("3 faces") == 1
    assert "may show" not in err
    err = shell("obfuscate", "in/b.png", "--out", "one.png", *FILL)[2]
    assert "left in the clear: one place that may show a face, in in/b.png" in err
    assert "left in the clear" not in shell("obfuscate", "in/a.png", "--out", "none.png", *FILL)[2]


def test_faces_lists_and_draws_them(shell: Shell) -> None:
    code, out, err = shell("faces", "in/c.png", "--margin", "0", "--preview", "p.png")
    assert (code, out) == (0, "face 1: 20×30 pixels at 10,10, score 0.90\n")
    assert "in/c.png: may be a face, and stays in the clear: 10×12 pixels at 60,20, score 0.17" in err
    drawn = np.asarray(Image.open("p.png"))
    times = drawn.shape[1] // 140
    assert (drawn[20 * times : 32 * times, 60 * times] == EDGE).all(axis=1).mean() > 0.8
    document = json.loads(shell("faces", "in/c.png", "--margin", "0", "--json")[1])
    assert document["doubtful"] == [
        {"box": [60, 20, 10, 12], "score": 0.17},
        {"box": [40, 60, 6, 6], "score": 0.1271},
    ]
