"""Data sets: layouts of others' folders, on tiny trees, and people who are drawn."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from dpveil.bench.data import Dataset, check_readable, load
from dpveil.bench.dataset_layouts import items_of
from dpveil.bench.measuring import release_all
from dpveil.bench.setting import Setting
from dpveil.bench.synthetic_photos import DRAWN, draw_items
from dpveil.errors import PhotoError, UsageError
from dpveil.mechanisms.pixel import DPPix


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
    monkeypatch.setattr("dpveil.bench.dataset_layouts.MOST_PHOTOS", 3)
    with pytest.raises(UsageError, match="more than 3 photos"):
        items_of(tmp_path)


@pytest.mark.parametrize("kind", DRAWN)
def test_photos_are_drawn_anew_and_the_same_in_every_run(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    data = load(Path(kind), people=3, photos=4)
    assert people(data) == {"0000": 4, "0001": 4, "0002": 4}
    assert data.name == kind
    images = [item.read().image for item in data.items]
    assert len({image.shape for image in images}) == 1
    again = [item.read().image for item in draw_items(DRAWN[kind], 3, 4)]
    assert all((a == b).all() for a, b in zip(images, again, strict=True))
    assert len({image.tobytes() for image in images}) == 12
    assert load(Path(kind), people=3, photos=4).digest == data.digest
    assert load(Path(kind), people=3, photos=3).digest != data.digest
