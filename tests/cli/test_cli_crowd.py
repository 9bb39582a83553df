"""Faces that are too close to bound what is replaced around them: runs name them, and no certificate does."""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

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
