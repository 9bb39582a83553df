"""Checking cells of an attack with a file of the user's: again with the same file, and never with another."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dpveil.attacks import attack, faces
from dpveil.attacks.base import Memo
from dpveil.bench.cells import Cell
from dpveil.bench.check import again, left_out, repeated
from dpveil.bench.data import load
from dpveil.bench.galleries import Setting
from dpveil.bench.measuring import cells
from dpveil.core.region import Box
from dpveil.errors import DataError
from people_made import folder
from tiny_onnx import encoder

NOTHING = Setting(None)


def network(path: Path, seed: int) -> str:
    weights = np.random.default_rng(seed).normal(size=(16, 3, 112, 112))
    path.write_bytes(encoder(weights, np.zeros(16)))
    return f"embedding:{path}"


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, str, list[Cell]]:
    """Return a data set, an attack with a file, and cells of it and of another attack."""
    monkeypatch.setattr(faces, "FOUND", Memo())
    monkeypatch.setattr(faces, "EMBEDDED", Memo())
    monkeypatch.setattr(faces, "_found", lambda image: (Box(0, 0, 32, 32),))
    monkeypatch.setattr(faces, "landmarked", lambda image, *_, **__: np.resize(image, (112, 112, 3)))
    root, label = folder(tmp_path / "made", people=3, photos=2), network(tmp_path / "own.onnx", 1)
    both = [attack(label), attack("pixels")]
    return root, label, list(cells(load(root), NOTHING, both, 0, []))


def test_a_cell_by_a_file_of_a_user_is_left_out(made: tuple[Path, str, list[Cell]]) -> None:
    root, _, (own, other) = made
    assert own.of["attack"] == "embedding:own"
    assert again([own, other], [root]) == (1, []), "the cell of pixels"
    assert left_out([own, other]) == 1
    assert again([own], [root])[0] == 0
    with pytest.raises(DataError, match="is of no method or attack"):
        repeated(own, load(root))
