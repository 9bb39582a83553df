"""Detectors that users bring: layouts of outputs, names of classes, and files that are hostile."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest

import dpveil
from dpveil import Photo
from dpveil.errors import InvalidParameter, NoRegion, RegionError, UnknownName
from dpveil.regions import Detected, parse
from dpveil.regions.user_detectors import read
from tiny_onnx import field, model, node, tensor, value

pytest.importorskip("onnxruntime")
SIDE = 64
GRID = 84
"""Cells of the grids of an image of 64 × 64: 8 × 8, 4 × 4 and 2 × 2."""
NAMES = "{0: 'person', 1: 'car', 2: 'dog'}"
PHOTO = Photo(np.full((128, 256, 3), 90, np.uint8))
"""Seen at a quarter of its size."""


def free(*things: tuple[float, ...], classes: int = 3) -> np.ndarray:
    """Return outputs of YOLOv8 with things of left, top, right, bottom, score and class."""
    rows = np.zeros((GRID, 4 + classes), np.float32)
    rows[:, 2:4] = 1
    for n, (left, top, right, bottom, score, kind) in enumerate(things):
        rows[n, :4] = (left + right) / 2, (top + bottom) / 2, right - left, bottom - top
        rows[n, 4 + int(kind)] = score
    return rows.T[None]


def network(*outputs: np.ndarray, names: str | None = NAMES, more: bytes = b"", side: int = SIDE) -> bytes:
    """Return the file of a network that gives these outputs, whatever it is shown."""
    tensors = b"".join(field(5, tensor(f"c{n}", one)) for n, one in enumerate(outputs))
    nodes = b"".join(field(1, node("Identity", (f"c{n}",), f"o{n}")) for n in range(len(outputs)))
    shown = b"".join(field(12, value(f"o{n}", one.shape)) for n, one in enumerate(outputs))
    made = model(nodes, tensors + more, (value("images", (1, 3, side, side)),), shown)
    return made if names is None else made + field(14, field(1, "names") + field(2, names))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "net.onnx"
    path.write_bytes(network(free((8, 4, 24, 28, 0.9, 0), (30, 10, 60, 20, 0.6, 1), (0, 0, 4, 4, 0.1, 2))))
    return path


# Layouts


def rows(outputs: list[np.ndarray], classes: int | None = 3) -> list[list[float]]:
    found = read(outputs, SIDE, SIDE, classes)
    return np.round(found[found[:, 4] > 0.25], 4).tolist()


THING = [8.0, 4.0, 24.0, 28.0, 0.9, 1.0]
CENTRE = [16.0, 16.0, 16.0, 24.0]
LOGITS = [-9.0, float(np.log(9)), -9.0]


def filled(shape: tuple[int, ...], row: list[float]) -> np.ndarray:
    """Return a table whose first row is this, and whose other rows score nothing."""
    made = np.zeros(shape)
    made[0, :, 2:4] = 0.5
    made[0, 0] = row
    return made


def test_every_layout_gives_the_same_thing() -> None:
    share = [*(np.array(CENTRE) / SIDE)]
    anchored = filled((1, 3 * GRID, 8), [*CENTRE, 0.95, 0.1, 0.9 / 0.95, 0.2])
    logits, boxes = np.full((1, 300, 3), -9.0), np.full((1, 300, 4), 0.5)
    logits[0, 0], boxes[0, 0] = LOGITS, share
    labels, scores, corners = np.zeros((1, 300)), np.zeros((1, 300)), np.ones((1, 300, 4))
    labels[0, 0], scores[0, 0], corners[0, 0] = 1, 0.9, THING[:4]
    assert rows([anchored]) == [THING]
    assert rows([free(tuple(THING)).astype(float)]) == [THING]
    assert rows([filled((1, 300, 6), THING)]) == [THING]
    assert rows([filled((1, 300, 7), [*share, 0.1, 0.9, 0.2])]) == [THING]
    assert rows([logits, boxes]) == [THING]
    assert rows([labels, corners, scores]) == [THING]
    for outputs in (
        [anchored],
        [free(tuple(THING)).astype(float)],
        [filled((1, 300, 6), THING)],
        [logits, boxes],
    ):
        assert rows(outputs, None) == [THING]


def test_two_classes_are_told_from_corners_by_their_coordinates() -> None:
    share = [*(np.array(CENTRE) / SIDE)]
    assert rows([filled((1, 300, 6), [*share, 0.1, 0.9])], 2) == [THING]
    assert rows([filled((1, 300, 6), THING)], 2) == [THING]


@pytest.mark.parametrize("score", [-0.01, 1.01])
def test_scores_that_are_no_shares_of_certainty_are_refused(score: float) -> None:
    with pytest.raises(RegionError):
        rows([filled((1, 300, 6), [*THING[:4], score, 1.0])])


@pytest.mark.parametrize(
    "thing",
    [
        (np.nan, 4, 24, 28, 0.9, 0),
        (8, 4, np.inf, 28, 0.9, 0),
        (8, 4, 1e9, 28, 0.9, 0),
        (-1e9, 4, 24, 28, 0.9, 0),
        (24, 4, 8, 28, 0.9, 0),
        (8, 4, 8, 28, 0.9, 0),
        (8, 4, 24, 28, 1.5, 0),
        (8, 4, 24, 28, 0.9, 0.5),
        (8, 4, 24, 28, 0.9, -1),
        (8, 4, 24, 28, 0.9, 1e12),
    ],
)
def test_numbers_that_are_no_boxes_release_nothing(thing: tuple[float, ...], tmp_path: Path) -> None:
    ended = np.zeros((1, 300, 6), np.float32)
    ended[0, 0] = thing
    (tmp_path / "net.onnx").write_bytes(network(ended))
    with pytest.raises((RegionError, InvalidParameter)) as caught:
        Detected(model=tmp_path / "net.onnx")(PHOTO)
    assert "\n" not in str(caught.value)


# Finding


def test_things_are_found_where_they_are_and_named(file: Path) -> None:
    found = Detected(model=file, margin=0)(PHOTO)
    assert [region.origin.in_words() for region in found] == ["person 1", "car 1"]
    assert [str(region.box) for region in found] == ["32,16,64,96", "120,40,120,40"]
    (car,) = Detected(model=file, margin=0, classes=" car ,dog")(PHOTO)
    assert car.origin.kind == "car"
    with pytest.raises(NoRegion):
        Detected(model=file, classes="dog")(PHOTO)
    with pytest.raises(UnknownName, match="cat"):
        parse(Detected(model=file, classes="cat"))


def test_the_hash_is_in_the_certificate_and_verify_opens_no_model(file: Path, tmp_path: Path) -> None:
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    release = dpveil.obfuscate(PHOTO, regions=Detected(model=file, classes="person"))
    assert release.certificate.method == "fill"
    assert release.certificate.request == (f"detected model=sha256:{digest} classes=person",)
    clear = release.certificate.composition.scope.in_the_clear
    assert clear[-1] == "everything outside the region, with every person that was not found"
    release.save(tmp_path / "out.png")
    file.unlink()
    assert dpveil.verify(tmp_path / "out.png").status == "consistent"


# Hostile files


def elsewhere(location: str) -> bytes:
    """Return a network that gives an array whose numbers are in another file."""
    where = field(1, "location") + field(2, location)
    array = field(5, field(1, 4) + field(2, 1) + field(8, "w") + field(13, where) + field(14, 1))
    nodes = field(1, node("Identity", ("w",), "o"))
    return model(nodes, array, (value("images", (1, 3, SIDE, SIDE)),), field(12, value("o", (4,))))


def hostile(tmp_path: Path) -> dict[str, bytes]:
    ordinary = network(free())
    loop = field(1, field(1, "c0") + field(2, "z") + field(4, "If") + field(5, field(1, "b") + field(6, b"")))
    foreign = field(1, node("Identity", ("c0",), "z") + field(7, "com.example"))
    return {
        "nodes": field(7, field(1, b"") * 20_001),
        "empty": b"",
        "text": b"no network",
        "cut": ordinary[:-9],
        "no graph": field(1, 8),
        "two graphs": ordinary + ordinary,
        "another file": elsewhere("w.bin"),
        "another file by its whole name": elsewhere(str(tmp_path / "w.bin")),
        "a graph within": network(free(), more=loop),
        "another's operator": network(free(), more=foreign),
        "large image": network(free(), side=1 << 20),
        "small image": network(free(), side=8),
        "names": network(free(), names="{0: __import__('os')}"),
        "deep names": network(free(), names="{0: " + "[" * 100_000 + "}"),
        "gaps in names": network(free(), names="{0: 'a', 2: 'b'}"),
        "layout": network(np.zeros((1, 7, 9), np.float32)),
        "nan": network(np.full((1, 7, GRID), np.nan, np.float32)),
        "missing input": model(field(1, node("Identity", ("images",), "o")), b"", (), b""),
    }


@pytest.mark.parametrize("name", sorted(hostile(Path())))
def test_hostile_files_are_refused_in_one_line(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "w.bin").write_bytes(bytes(16))
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "net.onnx"
    path.write_bytes(hostile(tmp_path)[name])
    with pytest.raises(InvalidParameter) as caught:
        parse(Detected(model=path))
    told = str(caught.value)
    assert "\n" not in told
    assert "detector model" in told
