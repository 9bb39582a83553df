"""Drawn heads: every trait shows where it belongs, all of them go together, and the version holds."""

from __future__ import annotations

import subprocess
import sys
from itertools import islice, product
from pathlib import Path

import numpy as np
import pytest
from people import person, picture, sheet, units

from dpveil.core.region import Box
from dpveil.faces.drawn import hair, traits
from dpveil.faces.drawn.drawing import draw
from dpveil.faces.drawn.gallery import TABLES, VERSION, DrawnGallery
from dpveil.faces.geometry.align import Similarity

DRAWN = {2: "f72d46f596e4b557f58471a37d1d8b5359c1f65d06e05b0804b0db84ca7328db"}
"""The hash of a sheet by version: whoever changes a pixel of it raises `gallery.VERSION`."""
DIGESTS = {2: "5fd26eddf67c9b76273c0ee1faabb14cfe0dbe40010f82da99b62ac2d5948595"}
ALONE = Similarity(1.0, 0.0, 0.0, 0.0)


def test_a_version_draws_what_it_drew() -> None:
    assert sheet() == DRAWN[VERSION]
    assert DrawnGallery().digest == DIGESTS[VERSION]


def test_every_process_draws_the_same() -> None:
    here = Path(__file__).parent
    done = subprocess.run(
        [sys.executable, str(here / "people.py")], capture_output=True, check=True, text=True
    )
    assert done.stdout.strip() == sheet()


def test_the_digest_follows_every_table(monkeypatch: pytest.MonkeyPatch) -> None:
    digests = {DrawnGallery().digest}
    for module, names in TABLES:
        for name in names:
            with monkeypatch.context() as patch:
                patch.setattr(module, name, [getattr(module, name)])
                digests.add(DrawnGallery().digest)
    assert len(digests) == 1 + sum(len(names) for _, names in TABLES)


@pytest.mark.parametrize(
    "change",
    [
        {"gender": "male"},
        {"tone": "5"},
        {"shade": "deep"},
        {"hair": "curly"},
        {"colour": "blond"},
        {"grey": "white"},
        {"pose": "left"},
        {"pose": "right"},
        *({"measures": {name: 1.0}} for name in traits.MEASURES if name not in ("ears", "garment")),
    ],
    ids=str,
)
def test_every_trait_and_measure_changes_the_head(change: dict) -> None:
    one = {"hair": "bob"}
    assert (np.abs(picture(person(**one)) - picture(person(**{**one, **change}))) > 8).sum() > 20


def test_all_values_of_all_traits_go_together() -> None:
    looks = (hair.BEFORE, ("none", "square"), ("none", "full", "goatee"), ("18-29", "75+"), ("left", "right"))
    for number, (style, glasses, beard, age, pose) in enumerate(islice(product(*looks), 0, None, 7)):
        gender, ring = ("male", "drop") if number % 2 else ("female", "none")
        one = person(
            gender=gender,
            hair=style,
            glasses=glasses,
            beard=beard,
            age=age,
            pose=pose,
            earrings=ring,
            mouth="open",
        )
        alpha, image = draw(one, Box(0, 0, 40, 40), units(40))
        assert alpha[10:25, 15:25].min() == 1
        assert image[10:25, 15:25].std() > 5
