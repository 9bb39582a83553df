"""Labels that go along with the photos of a run: of each format, an allow-list, for what was released."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from dpveil import cli
from dpveil.batch.labels import Labels
from dpveil.batch.report import Report
from dpveil.batch.run import release_all
from dpveil.batch.tasks import RunSettings, plan_tasks
from dpveil.errors import UsageError
from dpveil.mechanisms.pixel import DPPix
from dpveil.regions import parse

PHOTOS = {"a.png": (40, 32), "sub/b.webp": (48, 32), "bad.png": (40, 32)}
PERSON = "Alice"
BOX = "3.5", "4", "20.25", "17"
HIDDEN, SHOWN = (8, 8), (30, 28)
"""A point in what is replaced, and one that is not, in pixels."""


def coco() -> Path:
    names = enumerate(PHOTOS.items(), 7)
    x, y, right, below = map(float, BOX)
    own = {"photographer": PERSON, "attributes": {"name": PERSON}}
    data = {
        "info": {"contributor": PERSON},
        "licenses": [{"id": 1, "name": "CC0", "url": "u", **own}],
        "categories": [
            {"id": 1, "name": "person", "keypoints": ["eye", "foot"], "skeleton": [[1, 2]], **own}
        ],
        "images": [
            {"id": number, "file_name": name, "width": size[0], "height": size[1], "license": 1, **own}
            for number, (name, size) in names
        ],
        "annotations": [
            {
                **{"id": 50 + number, "image_id": number, "category_id": 1, "iscrowd": 0, "area": 9.5},
                **{"bbox": [x, y, right - x, below - y], "segmentation": {"counts": "0o1", "size": [32, 40]}},
                **{"keypoints": [*HIDDEN, 2, *SHOWN, 1], "num_keypoints": 2, **own},
            }
            for number in range(7, 10)
        ],
    }
    Path("labels.json").write_text(json.dumps(data))
    return Path("labels.json")


def cvat() -> Path:
    left, top, right, below = BOX
    box = f'xtl="{left}" ytl="{top}" xbr="{right}" ybr="{below}"'
    points = ";".join(f"{x},{y}" for x, y in (HIDDEN, SHOWN))
    images = "".join(
        f'<image id="{number}" name="{name}" width="{width}" height="{height}" task="{PERSON}">'
        f'<box label="person" source="{PERSON}" {box}><attribute name="who">{PERSON}</attribute></box>'
        f'<points label="person" points="{points}"/><polyline label="person" points="{points}"/>'
        f'<polygon label="person" points="{points}"/><tag label="{PERSON}"/></image>'
        for number, (name, (width, height)) in enumerate(PHOTOS.items())
    )
    label = "<task><labels><label><name>person</name></label></labels></task>"
    meta = f"<meta><owner>{PERSON}</owner>{label}</meta>"
    Path("labels.xml").write_text(f"<annotations>{meta}{images}</annotations>")
    return Path("labels.xml")


def voc() -> Path:
    ends = "".join(
        f"<{end}>{at}</{end}>" for end, at in zip(("xmin", "ymin", "xmax", "ymax"), BOX, strict=True)
    )
    for name, (width, height) in PHOTOS.items():
        path = Path("labels", name).with_suffix(".xml")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(
            f"<annotation><folder>{PERSON}</folder><filename>{PERSON}</filename><owner>{PERSON}</owner>"
            f"<size><width>{width}</width><height>{height}</height></size><object><name>person</name>"
            f"<pose>{PERSON}</pose><occluded>0</occluded><difficult>{PERSON}</difficult>"
            f"<bndbox>{ends}</bndbox><part><name>{PERSON}</name></part></object></annotation>"
        )
    return Path("labels")


def yolo() -> Path:
    for name, (width, height) in PHOTOS.items():
        path = Path("labels", name).with_suffix(".txt")
        path.parent.mkdir(parents=True, exist_ok=True)
        (u, v), (p, q) = ((x / width, y / height) for x, y in (HIDDEN, SHOWN))
        path.write_text(f"0 {' '.join(BOX)} {u} {v} 2 {p} {q} 1\n0 {' '.join(BOX)}\n")
    Path("labels", "classes.txt").write_text(PERSON)
    return Path("labels")


FORMATS = [coco, cvat, voc, yolo]
Given = Callable[[], Path]


@pytest.fixture(autouse=True)
def photos(elsewhere: Path) -> None:
    Path("in/sub").mkdir(parents=True)
    for name, (width, height) in PHOTOS.items():
        levels = np.random.default_rng(1).integers(0, 255, (height, width, 3), np.uint8)
        Image.fromarray(levels).save(Path("in", name), lossless=True)
    Path("in/bad.png").write_bytes(b"none")


def run(path: Path, names: str = "keep", out: str = "out", **changes: object) -> tuple[Path, Report]:
    """Release the photos, and return where their labels are."""
    inputs, to = [Path("in")], Path(out)
    tasks = plan_tasks(inputs, to, names=names)
    labels = Labels(path, inputs, tasks, to)
    settings = {"method": DPPix(epsilon=1, block=4, neighbourhood=4), "regions": [parse("4,4,16,16")]}
    every = {"if_none": None, "seed": 1, "max_pixels": 10_000, "force": False, **settings, **changes}
    report = release_all(tasks, RunSettings(**every))  # type: ignore[arg-type]
    labels.write(report, labels.place)
    return labels.place, report


def contents(place: Path) -> dict[str, str]:
    """Return every file of labels, by its name."""
    files = [place] if place.is_file() else [each for each in sorted(place.rglob("*")) if each.is_file()]
    return {
        each.name if each == place else each.relative_to(place).as_posix(): each.read_text() for each in files
    }


def tree(text: str) -> ET.Element:
    return ET.fromstring(text)  # noqa: S314  our own


@pytest.mark.parametrize("names", ["keep", "number"])
@pytest.mark.parametrize("given", FORMATS)
def test_labels_follow_what_was_released_and_nothing_else_is_kept(given: Given, names: str) -> None:
    place, report = run(given(), names)
    files = contents(place)
    text = "".join(files.values())
    released = {entry.output.relative_to("out").as_posix() for entry in report.released if entry.output}
    assert (len(report.released), len(report.failed), report.notes) == (2, 1, [])
    assert report.wrote == [
        f"labels of 2 photos to {place}; they tell where things are, also where faces were"
    ]
    assert (PERSON in text, "bad" in text) == (False, False)
    if given is coco:
        assert {image["file_name"] for image in json.loads(text)["images"]} == released
    elif given is cvat:
        assert {image.get("name") for image in tree(text).iterfind("image")} == released
    else:
        assert {Path(name).stem for name in files} == {Path(name).stem for name in released}


def test_points_of_a_new_face_stand_for_those_that_were_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    given = json.loads(coco().read_text())
    given["categories"] = [{"id": 7, "keypoints": ["left_eye", "nose", "wrist", "right_eye"]}]
    for row in given["annotations"]:
        x, y = HIDDEN
        row |= {"category_id": 7, "keypoints": [x, y, 2, x, y, 0, x, y, 2, *SHOWN, 2]}
    Path("labels.json").write_text(json.dumps(given))
    new = {"left_eye": (9.04, 8.0), "nose": (1.0, 2.0), "right_eye": (3.0, 4.0)}
    monkeypatch.setattr(Labels, "_new_faces", lambda _, __, told: tuple((r.box, new) for r in told.regions))
    made = json.loads("".join(contents(run(Path("labels.json"))[0]).values()))
    for row in made["annotations"]:
        assert row["keypoints"] == [9.0, 8.0, 2, 0, 0, 0, 0, 0, 0, *SHOWN, 2]
    with pytest.raises(UsageError):
        Labels(yolo(), [Path("in")], plan_tasks([Path("in")], Path("o")), Path("o"), new_points=True)


def test_boxes_stay_and_keypoints_in_what_was_replaced_do_not() -> None:
    x, y, right, below = map(float, BOX)
    made = json.loads("".join(contents(run(coco())[0]).values()))
    for row in made["annotations"]:
        assert row["bbox"] == [x, y, right - x, below - y]
        assert (row["keypoints"], row["num_keypoints"]) == ([0, 0, 0, *SHOWN, 1], 1)
    root = tree("".join(contents(run(cvat())[0]).values()))
    for image in root.iterfind("image"):
        assert [shape.tag for shape in image] == ["box", "points", "polygon"]
        assert tuple(image[0].get(name) for name in ("xtl", "ytl", "xbr", "ybr")) == BOX
        assert image[1].get("points") == "30,28"
        assert image[2].get("points") == "8,8;30,28"  # an outline goes along
    for text in contents(run(voc())[0]).values():
        assert tuple(end.text for end in tree(text).iterfind("object/bndbox/")) == BOX


def test_keypoints_of_yolo_that_were_replaced_are_zeros() -> None:
    for name, text in contents(run(yolo())[0]).items():
        first, second = (line.split() for line in text.splitlines())
        width, height = PHOTOS["a.png" if name == "a.txt" else "sub/b.webp"]
        assert (first[:5], second) == (["0", *BOX], ["0", *BOX])
        assert [*map(float, first[5:])] == [0, 0, 0, SHOWN[0] / width, SHOWN[1] / height, 1]


@pytest.mark.parametrize(("shape", "kept"), [("[2, 2]", "0 0 0.75 0.875"), (None, "0.2 0.25 0.75 0.875")])
def test_a_yaml_tells_keypoints_without_visibility_from_a_polygon(shape: str | None, kept: str) -> None:
    path = yolo()
    Path("labels/a.txt").write_text(f"\n0 {' '.join(BOX)} 0.2 0.25 0.75 0.875\n")
    if shape:
        Path("data.yaml").write_text(f"path: .\nkpt_shape: {shape}\n")
    assert contents(run(path)[0])["a.txt"] == f"\n0 {' '.join(BOX)} {kept}\n"


@pytest.mark.parametrize("given", FORMATS)
def test_a_run_that_is_resumed_writes_the_same_labels(given: Given) -> None:
    path = given()
    place, _ = run(path)
    before = contents(place)
    Path("out/a.png").unlink()
    Path("out/a.png.certificate.json").unlink()
    again, report = run(path)
    assert (len(report.released), len(report.skipped), contents(again)) == (1, 1, before)


@pytest.mark.parametrize("given", FORMATS)
@pytest.mark.parametrize(
    ("turn", "stated", "fits"), [(6, (48, 32), False), (6, (32, 48), True), (3, (48, 32), False)]
)
def test_labels_of_a_turned_photo_are_left_out_unless_their_size_shows_that_they_fit(
    given: Given, turn: int, stated: tuple[int, int], fits: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    tag = Image.Exif()
    tag[0x0112] = turn
    Image.fromarray(np.zeros((32, 48, 3), np.uint8)).save("in/sub/b.webp", exif=tag, lossless=True)
    monkeypatch.setitem(PHOTOS, "sub/b.webp", stated)
    place, report = run(given())
    kept = fits and given is not yolo  # whose labels state no size
    assert ("b.png" in str(contents(place)) or "sub/b" in str([*contents(place)])) == kept
    assert len(report.notes) == 1 - kept
    assert kept or "labels of in/sub/b.webp are left out" in report.notes[0]


HOSTILE = {
    "none.json": (b"", "holds no labels"),
    "text.json": (b"hello", "holds no labels"),
    "cut.json": (b'{"images": [', "is no JSON"),
    "deep.json": (b'{"images": ' + b"[" * 100_000, "is no JSON"),
    "other.json": (b"{}", "has no images and annotations"),
    "row.json": (b'{"images": [1], "annotations": []}', "see images[0]"),
    "path.json": (b'{"images": [{"id": 1, "file_name": "/etc/passwd"}], "annotations": []}', "other photos"),
    "up.json": (b'{"images": [{"id": 1, "file_name": "../a.png"}], "annotations": []}', "other photos"),
    "box.json": (
        b'{"images": [{"id": 1, "file_name": "a.png"}], "annotations": [{"image_id": 1, "keypoints": 1}]}',
        "see a.png",
    ),
    "two.json": (
        b'{"images": [{"id": 1, "file_name": "a.png"}, {"id": 2, "file_name": "a.png"}], "annotations": []}',
        "ambiguous",
    ),
    "laughs.xml": (b'<!DOCTYPE a [<!ENTITY b "b">]><annotations>&b;</annotations>', "document type"),
    "wide.xml": ("<annotations/>".encode("utf-16"), "holds no labels"),
    "cut.xml": (b"<annotations>", "is no XML"),
    "point.xml": (
        b'<annotations><image name="a.png"><points points="1;2"/></image></annotations>',
        "see a.png",
    ),
    "voc/a.xml": (b"<html/>", "its root is html"),
    "voc/b/a.xml": (b"<annotation/>", "other photos, such as b/a"),
    "yolo/a.txt": (b"0 1 1 1 1\n0 1 1 Alice 1\n", "see a"),
    "yolo/sub/b.txt": (b"0 1\n", "line 1"),
    "empty/a.md": (b"", "no .txt and .xml files"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_malformed_labels_are_refused_in_one_line_before_anything_is_drawn(name: str) -> None:
    data, said = HOSTILE[name]
    path = Path("given", name)
    path.parent.mkdir(parents=True)
    path.write_bytes(data)
    whole = path if path.parent.name == "given" else Path("given", Path(name).parts[0])
    with pytest.raises(UsageError) as raised:
        run(whole)
    text = str(raised.value)
    assert said in text
    assert text.isprintable()
    assert raised.value.hint
    assert not Path("out").exists()


def test_links_and_large_files_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("link.json").symlink_to(coco())
    with pytest.raises(UsageError, match="link"):
        run(Path("link.json"))
    monkeypatch.setattr("dpveil.batch.labels.MOST_BYTES", 10)
    with pytest.raises(UsageError, match="at most 10 are read"):
        run(coco())


def test_the_command_writes_labels_and_a_dry_run_does_not(capsys: pytest.CaptureFixture[str]) -> None:
    def shell(*arguments: str) -> tuple[int, str, str]:
        code = cli.run(list(arguments))
        return code, *capsys.readouterr()

    given = ("obfuscate", "in", "--out", "out", "--method", "fill", "--regions", "4,4,16,16", "--labels")
    code, out, err = shell(*given, "none.json")
    assert (code, out, Path("out").exists()) == (2, "", False)
    assert err.startswith("dpveil: --labels none.json cannot be read")
    assert shell(*given, str(coco()), "--dry-run")[0] == 1  # of three photos, one cannot be read
    assert not Path("out").exists()
    code, _, err = shell(*given, "labels.json")
    assert (code, "wrote labels of 2 photos to out/labels.json; they tell" in err) == (1, True)


def test_labels_beside_photos_are_written_beside_releases() -> None:
    Path("in/a.txt").write_text("0 1 1 1 1\n")
    assert run(Path("in"))[0] == Path("out")
    assert Path("out/a.txt").read_text() == "0 1 1 1 1\n"
