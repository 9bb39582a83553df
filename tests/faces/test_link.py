"""Linked faces: one person of a run is one new face, and nothing else follows from who is shown."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

import dpveil
from dpveil.cli import run
from dpveil.core.region_origin import LINKED
from dpveil.errors import InvalidParameter
from dpveil.faces import likeness
from dpveil.faces.attributes_method import Attributes
from dpveil.faces.likeness import LINKED as NEAR
from dpveil.faces.likeness import Links
from dpveil.video.quote import check_method

BOXES = ["40,40,60,70", "150,40,60,70"]


def rows(people: Sequence[int | None], seed: int = 0) -> list[np.ndarray | None]:
    """Embeddings of these people, each a little different at every time; none for None."""
    bits, where = np.random.default_rng(seed), np.eye(128)
    moved = [0.3 * NEAR * (noise := bits.normal(size=128)) / np.linalg.norm(noise) for _ in people]
    return [None if who is None else (where[who] + by)[None] for who, by in zip(people, moved, strict=True)]


@given(st.lists(st.none() | st.integers(0, 9), max_size=30), st.integers(0, 99))
def test_faces_near_a_person_are_that_person_and_others_are_new(people, seed):
    links = Links()
    found = [links.person(row) for row in rows(people, seed)]
    known = dict(zip(people, found, strict=True))
    assert [n for who, n in zip(people, found, strict=True) if who is not None] == [
        known[who] for who in people if who is not None
    ]
    assert len({*found}) == len({*people} - {None}) + people.count(None)


def photos(count: int) -> list[np.ndarray]:
    return [np.random.default_rng(n).integers(0, 255, (160, 250, 3)).astype(np.uint8) for n in range(count)]


def released(
    monkeypatch: pytest.MonkeyPatch, people: Sequence[Sequence[int | None]], seed: int = 0
) -> tuple[list[np.ndarray], Attributes]:
    """Release photos with two people each, whose embeddings are made up."""
    monkeypatch.setattr(likeness, "embedding", lambda _, box: given.pop(0))
    given = rows([who for both in people for who in both], seed)
    method = Attributes(link=True, gallery="heads", outside="none", placing="box")
    bits = dpveil.SeededBits(3)
    images = photos(len(people))
    return [dpveil.obfuscate(one, method, regions=BOXES, bits=bits).image for one in images], method


def test_a_release_follows_from_the_partition_and_the_draw_alone(monkeypatch):
    people = [(0, 1), (None, 0)]
    one, first = released(monkeypatch, people)
    for others, seed in ((people, 7), ([tuple(None if w is None else 5 - w for w in p) for p in people], 1)):
        same, again = released(monkeypatch, others, seed)
        assert all(np.array_equal(a, b) for a, b in zip(one, same, strict=True))
        assert first._links.shown == again._links.shown
    assert len({*first._links.shown.values()}) == 3  # for two people, and the unknown one
    other, _ = released(monkeypatch, [(0, 1), (None, 1)])
    assert not np.array_equal(one[1], other[1])


def test_a_certificate_names_the_linkage_and_verifies(monkeypatch, tmp_path):
    monkeypatch.setattr(likeness, "embedding", lambda _, box: None)
    method = Attributes(link=True, gallery="heads", outside="none", placing="box")
    image, _ = dpveil.obfuscate(photos(1)[0], method, regions=BOXES).save(tmp_path / "a.png")
    found = dpveil.verify(image)
    assert (found.status, found.certificate.parameters["link"]) == ("consistent", True)
    assert LINKED in found.in_the_clear
    plain, _ = dpveil.obfuscate(photos(1)[0], "attributes", regions=BOXES, outside="none").save(
        tmp_path / "b.png"
    )
    assert LINKED not in dpveil.verify(plain).in_the_clear


def test_faces_are_linked_in_one_process_and_not_in_clips(tmp_path: Path):
    Image.fromarray(photos(1)[0]).save(tmp_path / "a.png")
    Image.fromarray(photos(2)[1]).save(tmp_path / "b.png")
    command = ["obfuscate", str(tmp_path), "--out", str(tmp_path / "out"), "--link", "--jobs", "2"]
    assert run([*command, *(word for box in BOXES for word in ("--regions", box))]) == 2
    assert not [*tmp_path.glob("out/*")]
    with pytest.raises(InvalidParameter):
        check_method(Attributes(link=True, gallery="heads", outside="none"))
