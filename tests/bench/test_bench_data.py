"""Data sets: layouts of others' folders, on tiny trees, and people who are drawn."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from PIL import Image

from dpveil.attacks import Background, Fitted, Scores, View, attack
from dpveil.attacks.vectors import PixelDiscriminant
from dpveil.bench.cells import APART
from dpveil.bench.data import PEOPLE, Dataset, check_readable, load, split
from dpveil.bench.layouts import items_of
from dpveil.bench.measuring import cells, release_all
from dpveil.bench.setting import Setting
from dpveil.bench.synthetic_photos import DRAWN, IRIS, DrawnEye, draw_items, texture
from dpveil.errors import PhotoError, UsageError
from dpveil.mechanisms.pixel import DPPix, Fill, Mosaic
from people_made import folder


def write(path: Path, level: int = 100) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.full((6, 5), level, np.uint8)).save(path)


def people(data: Dataset) -> dict[str, int]:
    return {name: sum(item.person == name for item in data.items) for name in data.people}


TREES = {
    "AT&T": (["s1/1.pgm", "s1/2.pgm", "s2/1.pgm", "s2/2.pgm"], {"s1": 2, "s2": 2}),
    "FaceScrub": (
        ["actors/a.txt", "Ann/face/1.png", "Ann/face/2.png", "Bob/face/1.png", "Bob/face/2.png"],
        {"Ann": 2, "Bob": 2},
    ),
    "RaFD": (
        [
            f"Rafd090_0{who}_Caucasian_female_{look}_frontal.jpg"
            for who in (1, 2)
            for look in ("angry", "happy")
        ],
        {"01": 2, "02": 2},
    ),
    "KDEF": (
        ["AF01/AF01ANS.JPG", "BF01/BF01ANS.JPG", "AM02/AM02ANS.JPG", "BM02/BM02HAS.JPG"],
        {"F01": 2, "M02": 2},
    ),
    "UTKFace": (
        ["26_1_0_20170116184024662.jpg.chip.jpg", "7_0_2_20170116184024663.jpg"],
        {"26_1_0_20170116184024662.jpg.chip.jpg": 1, "7_0_2_20170116184024663.jpg": 1},
    ),
    "FFHQ": (["31000/31007.png", "31000/31008.png"], {"31000/31007.png": 1, "31000/31008.png": 1}),
    "FFHQ, flat": (["00007.png", "31008.png"], {"00007.png": 1, "31008.png": 1}),
    "a person's numbers": (
        ["s/00001.png", "s/00002.png", "t/00001.png", "t/00002.png", "u/00001.png"],
        {"s": 2, "t": 2},
    ),
    "CASIA-Iris": (
        [f"{who}/{side}/{shot}.png" for who in ("001", "002") for side in "LR" for shot in (1, 2)],
        {"001-L": 2, "001-R": 2, "002-L": 2, "002-R": 2},
    ),
}


@pytest.mark.parametrize("name", list(TREES))
def test_photos_of_a_layout_are_those_of_their_people(name: str, tmp_path: Path) -> None:
    files, wanted = TREES[name]
    for number, file in enumerate(files):
        write(tmp_path / "set" / file, 40 + number) if not file.endswith(".txt") else None
    found = load(tmp_path / "set")
    assert people(found) == wanted
    check_readable([found])


def shard(path: Path, members: dict[str, bytes]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w") as made:
        for name, data in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            made.addfile(entry, io.BytesIO(data))
    return path


def png(level: int) -> bytes:
    file = io.BytesIO()
    Image.fromarray(np.full((6, 5), level, np.uint8)).save(file, "PNG")
    return file.getvalue()


def test_photos_of_shards_are_read_where_they_lie(tmp_path: Path) -> None:
    """By the `person` of their .json, before or after the photo; without any, each is one person's."""
    facts = [json.dumps({"person": who}).encode() for who in (7, "b")]
    first = {"0.png": png(10), "0.json": facts[0], "1.json": facts[1], "1.png": png(20)}
    shard(tmp_path / "set" / "a.tar", first)
    shard(
        tmp_path / "set" / "b.tar",
        {"2.png": png(30), "2.json": facts[0], "1.png": png(40), "1.json": facts[1]},
    )
    found = load(tmp_path / "set")
    assert people(found) == {"7": 2, "b": 2}
    assert not found.has_single_photos
    levels = {item.name: int(item.read().image[0, 0, 0]) for item in found.items}
    assert levels == {"a.tar/0.png": 10, "a.tar/1.png": 20, "b.tar/2.png": 30, "b.tar/1.png": 40}
    assert len({item.digest for item in found.items}) == 4
    dots = {"0.json": facts[0], "1.json": facts[1]}
    dots |= {f"{photo}.{part}.png": png(1) for photo in (0, 1) for part in ("face", "eye")}
    assert people(load(shard(tmp_path / "dots" / "a.tar", dots).parent)) == {"7": 2, "b": 2}
    shard(tmp_path / "alone" / "a.tar", {"0.png": png(1), "0.json": b'{"age": 5}', "1.png": png(2)})
    assert people(load(tmp_path / "alone")) == {"a.tar/0.png": 1, "a.tar/1.png": 1}


@pytest.mark.parametrize(
    "facts",
    [
        b"{",
        b"[" * 40_000,
        *(b'{"person": %s}' % who for who in (b"[1]", b"true", rb'"\ud800"', rb'"a\u0000"')),
    ],
)
def test_facts_that_are_none_are_refused(facts: bytes, tmp_path: Path) -> None:
    shard(tmp_path / "set" / "a.tar", {"0.png": png(1), "0.json": facts})
    with pytest.raises(UsageError, match=r"a\.tar, '0\.json'"):
        load(tmp_path / "set")


def test_members_that_are_no_files_are_left_out_and_two_of_a_name_refused(tmp_path: Path) -> None:
    files = {".": b"", "0.png": png(1), "1.png": png(2)}
    assert len(load(shard(tmp_path / "set" / "a.tar", files).parent).items) == 2
    with tarfile.open(tmp_path / "set" / "a.tar", "a") as made:
        made.addfile(made.getmember("1.png"), io.BytesIO(png(2)))
    with pytest.raises(UsageError, match="twice"):
        load(tmp_path / "set")


def test_of_somebody_with_one_photo_the_attacker_has_it_and_another_release(tmp_path: Path) -> None:
    """The bug to fear: both releases with the same bits, by which every method breaks its bound."""
    for number in range(3):
        write(tmp_path / "set" / f"0000{number}.png", 40 * number)
    data = load(tmp_path / "set")
    assert data.has_single_photos
    found = release_all(data, Setting(DPPix(epsilon=1, block=2)), 0)
    assert [item.digest for item in found.known] == [item.digest for item in found.probes]
    assert [item.person for item in found.known] == [item.person for item in found.probes]
    assert all(
        (a[0].image != b[0].image).any() for a, b in zip(found.own, found.shown, strict=True) if a and b
    )


def celeba(root: Path, lines: str) -> Path:
    for number in (1, 2, 3, 4, 5):
        write(root / "img_align_celeba" / f"00000{number}.jpg", 40 * number)
    (root / "identity_CelebA.txt").write_text(lines, encoding="utf-8")
    return root


def test_celeba_is_read_by_its_list(tmp_path: Path) -> None:
    """A photo that is not there is left out, and so is one that is in no line."""
    lines = "000001.jpg 7\n000002.jpg 8\n000003.jpg 7\n000004.jpg 8\n000009.jpg 8\n"
    assert people(load(celeba(tmp_path, lines))) == {"7": 2, "8": 2}


@pytest.mark.parametrize(
    "line", ["../../secret.jpg 7", "/etc/hosts.jpg 7", "000001.jpg", "000001.jpg x", ".a.jpg 3"]
)
def test_a_list_that_leads_elsewhere_is_refused(line: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="line 2, is not a photo and a number"):
        load(celeba(tmp_path, f"000001.jpg 7\n{line}\n"))


def test_links_hidden_files_and_other_files_are_left_out(tmp_path: Path) -> None:
    for who in ("a", "b"):
        for shot in (1, 2):
            write(tmp_path / "set" / who / f"{shot}.png", 50 * shot)
    write(tmp_path / "elsewhere" / "c" / "1.png")
    (tmp_path / "set" / "c").symlink_to(tmp_path / "elsewhere" / "c")
    (tmp_path / "set" / "a" / "3.png").symlink_to(tmp_path / "elsewhere" / "c" / "1.png")
    write(tmp_path / "set" / ".cache" / "1.png")
    write(tmp_path / "set" / "a" / ".4.png")
    (tmp_path / "set" / "a" / "notes.txt").write_text("nothing")
    assert people(load(tmp_path / "set")) == {"a": 2, "b": 2}


def test_a_photo_that_cannot_be_read_ends_a_run_before_it_begins(tmp_path: Path) -> None:
    for who in ("a", "b"):
        for shot in (1, 2):
            write(tmp_path / "set" / who / f"{shot}.png", 50 * shot)
    (tmp_path / "set" / "b" / "2.png").write_bytes(b"no photo")
    with pytest.raises(PhotoError, match=r"2\.png"):
        check_readable([load(tmp_path / "set")])


def test_too_many_photos_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for shot in range(4):
        write(tmp_path / "a" / f"{shot}.png")
    monkeypatch.setattr("dpveil.bench.layouts.MOST", 3)
    with pytest.raises(UsageError, match="more than 3 photos"):
        items_of(tmp_path)


@pytest.mark.parametrize("kind", DRAWN)
def test_photos_are_drawn_anew_and_the_same_in_every_run(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    data = load(Path(kind), people=3, photos=4)
    assert people(data) == {"0000": 4, "0001": 4, "0002": 4}
    assert (data.name, data.subject) == (kind, DRAWN[kind].subject)
    images = [item.read().image for item in data.items]
    assert len({image.shape for image in images}) == 1
    again = [item.read().image for item in draw_items(kind, 3, 4)]
    assert all((a == b).all() for a, b in zip(images, again, strict=True))
    assert len({image.tobytes() for image in images}) == 12
    assert load(Path(kind), people=3, photos=4).digest == data.digest
    assert load(Path(kind), people=3, photos=3).digest != data.digest


def test_eyes_know_the_truth() -> None:
    eyes = [DrawnEye.of(3, photo) for photo in range(5)]
    assert len({one.shape.pupil for one in eyes}) == 5
    assert len({one.shape.iris for one in eyes}) == 1
    assert IRIS[0] <= eyes[0].shape.iris <= IRIS[1]
    inside = [one.read().image[round(one.shape.y) + 12, round(one.shape.x), 0] for one in eyes]
    assert max(inside) < 60, "the pupil is dark"
    assert abs(np.corrcoef(texture(1).ravel(), texture(2).ravel())[0, 1]) < 0.2


# The split by people: whoever is learnt from is never attacked, and some who are attacked are
# strangers.


NOTHING, MOSAIC, BLANK = Setting(None), Setting(Mosaic(block=8)), Setting(Fill())


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    made = load(folder(tmp_path_factory.mktemp("data") / "made", people=20, photos=5))
    return replace(made, split=PEOPLE)


def test_nobody_who_is_learnt_from_is_attacked(data: Dataset) -> None:
    """The bench's mutant: a split that shares people."""
    parts = split(data)
    gallery = {item.person for item in parts.known} - parts.learnt
    attacked, strangers = ({item.person for item in own} for own in (parts.probes, parts.strangers))
    assert len(parts.learnt) == 10
    assert gallery == attacked
    assert len(attacked) == 8
    assert len(strangers) == 2
    assert not attacked & strangers
    assert not parts.learnt & (attacked | strangers)
    assert not {item.name for item in parts.known} & {item.name for item in parts.probes}
    assert split(replace(data, items=data.items[::-1])).learnt == parts.learnt, "no order decides"


def test_both_eyes_of_one_go_together(data: Dataset) -> None:
    items = [
        replace(i, person=f"{int(i.person.split()[-1]) // 2}-{'LR'[k % 2]}")
        for i in data.items
        for k in [0, 1]
    ]
    eyes = split(replace(data, items=tuple(items), subject="eyes"))
    one = {item.person[:-2] for item in items if item.person in eyes.learnt}
    assert not one & {item.person[:-2] for item in (*eyes.probes, *eyes.strangers)}


def test_too_few_people_are_refused_in_one_line(tmp_path: Path) -> None:
    few = load(folder(tmp_path / "few", people=4, photos=3))
    with pytest.raises(UsageError, match="too few to learn from some"):
        split(replace(few, split=PEOPLE))


def test_the_attacker_is_fitted_to_others_and_enrols_who_is_attacked(data: Dataset) -> None:
    parts = split(data)

    @dataclass(frozen=True)
    class Watched(PixelDiscriminant):
        name: ClassVar[str] = "watched"

        def fit(self, background: Background) -> Fitted:
            assert set(background.people) == parts.learnt
            inner = super().fit(background)

            class Watching(Fitted):
                def score(self, releases: Sequence[View]) -> Scores:
                    pytest.fail("who enrolled nobody has nobody to name")

                def enrol(self, gallery: Background) -> Fitted:
                    assert set(gallery.people) == {item.person for item in parts.probes}
                    return inner.enrol(gallery)

            return Watching()

    (cell,) = cells(data, NOTHING, [Watched()], 0, [])
    assert len(cell.people) == 8
    assert cell.chance == 1 / 8


def test_clean_photos_are_recognised_and_blank_ones_are_not(data: Dataset) -> None:
    (clean,) = cells(data, NOTHING, [attack("pixels")], 0, [])
    assert np.mean(clean.right) >= 0.8
    assert set(clean.apart) == set(APART)
    assert clean.apart["original_equal_error"] == clean.apart["private_equal_error"] <= 0.1
    assert clean.apart["open_set"] > 0.2
    assert clean.apart["original_tar_far_1e-3"] is None, "8 × 7 impostors are too few"
    for name in ("pixels", "eigenfaces", "denoised:median:3(pixels)"):
        (blank,) = cells(data, BLANK, [attack(name)], 0, [])
        assert np.mean(blank.right) == pytest.approx(1 / 8)
        assert blank.apart["private_equal_error"] == 0.5
        assert blank.apart["open_set"] <= 1 / 8
