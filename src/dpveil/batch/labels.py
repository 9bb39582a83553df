"""Labels of the photos of a run (COCO, YOLO, Pascal VOC, CVAT), matched before anything is drawn.

Of each format, what is kept for releases is an allow-list. Labels are written for what is released.
"""

from __future__ import annotations

import json
import os
import re
import xml.etree.ElementTree as ET
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath, PurePosixPath
from typing import Any, Final

import numpy as np
from PIL import Image

from dpveil.batch.report import RELEASED, SKIPPED, Report
from dpveil.batch.tasks import Task
from dpveil.core.certificate import Certificate
from dpveil.core.guarantee import count_noun
from dpveil.core.region import Box
from dpveil.core.region_origin import FACE
from dpveil.core.urls import Url
from dpveil.errors import UsageError
from dpveil.io.decoding import ORIENTATION
from dpveil.io.folders import identity, is_folder, real, walk
from dpveil.io.names import escape_text, show_path
from dpveil.io.reading import read
from dpveil.io.unreadable import Refused
from dpveil.io.untrusted_files import read_untrusted
from dpveil.io.writing import make_folder, write_together
from dpveil.release.saving import read_certificate

MOST_BYTES: Final = 1 << 28  # largest file of labels
KNOWN_LABELS: Final = "name a COCO or CVAT file, or a folder of YOLO .txt or Pascal VOC .xml files"
AGAIN: Final = "export it again"
KEYPOINTS: Final = re.compile(rb"^kpt_shape:\s*\[\s*\d+\s*,\s*([23])\s*\]", re.MULTILINE)
"""What the .yaml of a YOLO data set says of its keypoints: whether each has a visibility."""
Size = tuple[float, float] | None


@dataclass(frozen=True)
class Labelled:
    """A photo as labels name it, and its `entry` in them."""

    name: str
    entry: Any


@dataclass(frozen=True)
class Released:
    """A release: its path below the output folder, size, and the boxes in which something was replaced.

    `faces` are new ones whose points were asked for: the box in which each is, and its points by name.
    """

    path: Path
    name: PurePosixPath
    size: tuple[int, int]
    boxes: tuple[Box, ...]
    numbered: bool
    faces: tuple[tuple[Box, Mapping[str, tuple[float, float]]], ...] = ()

    def hides(self, x: float, y: float) -> bool:
        return any(box.x <= x <= box.x + box.w and box.y <= y <= box.y + box.h for box in self.boxes)

    def point(self, name: str, x: float, y: float) -> tuple[float, float] | None:
        """Return the point of that name of the new face where one was replaced; None if there is none."""
        near = (box for box, points in self.faces if name in points and box.x <= x <= box.x + box.w)
        inside = {box for box in near if box.y <= y <= box.y + box.h}
        return next((points[name] for box, points in self.faces if box in inside), None)

    def name_for(self, labelled: str) -> str:
        """Return the name of the release for the one in labels, whose folder stays if names do."""
        given = PurePosixPath(labelled.replace("\\", "/"))
        return str(self.name if self.numbered or given.is_absolute() else given.parent / self.name.name)


Pairs = Sequence[tuple[Labelled, Released]]
UNSEEN: Final = Released(Path("a"), PurePosixPath("a"), (1, 1), (), numbered=False)
"""Labels are checked by writing them for a release in which nothing was replaced."""


def label_error(path: Path, problem: str, hint: str = AGAIN) -> UsageError:
    forms = {"labels": "labels", "out": "out"}
    return UsageError(f"{{labels}} {show_path(path)} {problem}", hint=hint, arguments=forms)


def _read(path: Path) -> bytes:
    try:
        return read_untrusted(path, MOST_BYTES)
    except Refused as reason:
        raise label_error(path, reason.problem, reason.remedy) from reason


def _tree(path: Path, data: bytes) -> ET.Element:
    if b"<!DOCTYPE" in data:  # it is parsed as UTF-8, so there is no other way to declare entities
        raise label_error(path, "has a document type, which is not read", "remove <!DOCTYPE …>")
    try:
        return ET.fromstring(data, ET.XMLParser(encoding="utf-8"))  # noqa: S314  no document type
    except (ET.ParseError, ValueError) as error:
        raise label_error(path, f"is no XML in UTF-8 ({error})") from error


def _as_bytes(root: ET.Element) -> bytes:
    ET.indent(root)
    return bytes(ET.tostring(root, encoding="utf-8", xml_declaration=True)) + b"\n"


def _size(texts: Sequence[str | None]) -> Size:
    width, height = (float(text) if text else None for text in texts)
    return None if width is None or height is None else (width, height)


COCO: Final = {
    "licenses": "id name url",
    "images": "id file_name width height license",
    "annotations": "id image_id category_id iscrowd num_keypoints bbox area segmentation keypoints",
    "categories": "id name supercategory keypoints skeleton",
}
"""The fields that are kept."""
REQUIRED: Final = {"images": ("id", "file_name"), "annotations": ("image_id",), "categories": ("id",)}


class Coco:
    """One JSON object of images, annotations and categories."""

    by_stem = False

    def __init__(self, path: Path, data: bytes) -> None:
        self.path = path
        try:
            given = json.loads(data)
        except (ValueError, RecursionError) as error:
            raise label_error(path, f"is no JSON ({type(error).__name__})") from error
        if not {"images", "annotations"} <= given.keys():
            raise label_error(path, "has no images and annotations, as COCO has", KNOWN_LABELS)
        self.rows = {name: [*self._rows(name, given.get(name, []))] for name in COCO}
        self.notes = defaultdict[int, list[dict[str, Any]]](list)
        for row in self.rows["annotations"]:
            self.notes[row["image_id"]].append(row)
        self.names = {row.get("id"): row.get("keypoints", []) for row in self.rows["categories"]}

    def _rows(self, name: str, given: Any) -> Iterator[dict[str, Any]]:
        for number, row in enumerate(given if isinstance(given, list) else [given]):
            told = row if isinstance(row, dict) else {}
            kept = {key: told[key] for key in COCO[name].split() if told.get(key) is not None}
            if not {*REQUIRED.get(name, ())} <= kept.keys():
                raise label_error(self.path, f"is malformed: see {name}[{number}]")
            yield kept

    def photos(self) -> list[Labelled]:
        return [Labelled(image["file_name"], image) for image in self.rows["images"]]

    def size(self, photo: Labelled) -> Size:
        image = photo.entry
        return (image["width"], image["height"]) if image.keys() >= {"width", "height"} else None

    def files(self, pairs: Pairs) -> Iterator[tuple[str, bytes]]:
        """Yield the one file; ids of numbered releases are numbers, too, as others may tell names."""
        images, annotations = list[dict[str, Any]](), list[dict[str, Any]]()
        for number, (photo, release) in enumerate(pairs, 1):
            new = number if release.numbered else photo.entry["id"]
            images.append({**photo.entry, "id": new, "file_name": release.name_for(photo.name)})
            for row in self.notes[photo.entry["id"]]:
                own = {"id": len(annotations) + 1} if release.numbered else {}
                names = self.names.get(row.get("category_id", -1), [])
                shown = _shown_keypoints(row, release, names)
                annotations.append({**row, **shown, **own, "image_id": new})
        made = {**self.rows, "images": images, "annotations": annotations}
        yield "", (json.dumps(made) + "\n").encode()


def _shown_keypoints(row: Mapping[str, Any], release: Released, names: Sequence[str]) -> dict[str, Any]:
    """Return keypoints and their number, if some were replaced: by zeros, or the new face's of that name."""
    given = row.get("keypoints", [])
    points = [given[at : at + 3] for at in range(0, len(given), 3)]
    kept = []
    for (x, y, seen), name in zip(points, [*names, *points], strict=False):
        if not release.hides(x, y):
            kept.append([x, y, seen])
        elif seen > 0 and (new := release.point(str(name), x, y)) is not None:
            kept.append([round(new[0], 1), round(new[1], 1), 2])
        else:
            kept.append([0, 0, 0])
    if kept == points:
        return {}
    flat = [value for point in kept for value in point]
    return {"keypoints": flat, "num_keypoints": sum(point[2] > 0 for point in kept)}


SHAPES: Final = {
    "box": ("xtl", "ytl", "xbr", "ybr", "rotation"),
    **dict.fromkeys(("polygon", "polyline", "points"), ("points",)),
    "mask": ("rle", "left", "top", "width", "height"),
}
"""The shapes of CVAT that are kept, with their coordinates."""


class Cvat:
    """One XML file, "CVAT for images 1.1"."""

    by_stem = False

    def __init__(self, path: Path, root: ET.Element) -> None:
        self.path, self.root = path, root

    def photos(self) -> list[Labelled]:
        return [Labelled(image.get("name", ""), image) for image in self.root.iterfind("image")]

    def size(self, photo: Labelled) -> Size:
        return _size((photo.entry.get("width"), photo.entry.get("height")))

    def files(self, pairs: Pairs) -> Iterator[tuple[str, bytes]]:
        """Yield the one file; ids of numbered releases are numbers, too."""
        root = ET.Element("annotations")
        ET.SubElement(root, "version").text = "1.1"
        labels = ET.SubElement(ET.SubElement(ET.SubElement(root, "meta"), "task"), "labels")
        for name in self.root.iterfind("meta//label/name"):
            ET.SubElement(ET.SubElement(labels, "label"), "name").text = name.text
        for number, (photo, release) in enumerate(pairs):
            image = self._image(photo, release)
            root.append(image)
            if release.numbered:
                image.set("id", str(number))
        yield "", _as_bytes(root)

    def _image(self, photo: Labelled, release: Released) -> ET.Element:
        # Without points that were replaced, and without lines through such points.
        image = ET.Element("image", _kept(photo.entry, ("id", "width", "height")))
        image.set("name", release.name_for(photo.name))
        for shape in photo.entry:
            if shape.tag not in SHAPES:
                continue
            kept = _kept(shape, ("occluded", "z_order", *SHAPES[shape.tag]))
            if shape.tag in ("points", "polyline"):
                points = [text for text in kept.get("points", "").split(";") if text.strip()]
                shown = [text for text in points if not release.hides(*map(float, text.split(",")))]
                if not shown or (shape.tag == "polyline" and len(shown) < len(points)):
                    continue
                kept["points"] = ";".join(shown)
            ET.SubElement(image, shape.tag, {"label": shape.get("label", ""), **kept})
        return image


def _kept(given: ET.Element, names: Sequence[str]) -> dict[str, str]:
    return {name: given.attrib[name] for name in names if name in given.attrib}


class Voc:
    """A folder of Pascal VOC: an XML file of objects and boxes for each photo."""

    by_stem = True

    def __init__(self, path: Path, found: Sequence[Path]) -> None:
        self.path, self.found = path, found

    def photos(self) -> list[Labelled]:
        names = (each.relative_to(self.path).with_suffix("").as_posix() for each in self.found)
        return [Labelled(name, each) for name, each in zip(names, self.found, strict=True)]

    def size(self, photo: Labelled) -> Size:
        root = _tree(photo.entry, _read(photo.entry))
        return _size((root.findtext("size/width"), root.findtext("size/height")))

    def files(self, pairs: Pairs) -> Iterator[tuple[str, bytes]]:
        """Yield the file for each release, with its stem."""
        for photo, release in pairs:
            name = PurePosixPath(release.name_for(photo.name))
            yield f"{name.with_suffix('')}{photo.entry.suffix}", self.contents_for(photo.entry, release)

    def contents_for(self, path: Path, release: Released) -> bytes:
        given, root = _tree(path, _read(path)), ET.Element("annotation")
        if given.tag != "annotation":
            raise label_error(path, f"is no Pascal VOC: its root is {escape_text(given.tag)}", KNOWN_LABELS)
        ET.SubElement(root, "folder").text = release.path.parent.name
        ET.SubElement(root, "filename").text = release.path.name
        _copy(given, root, "size", ("width", "height", "depth"))
        for each in given.iterfind("object"):
            one = ET.SubElement(root, "object")
            ET.SubElement(one, "name").text = each.findtext("name", "")
            for flag in ("truncated", "difficult", "occluded"):
                if (text := each.findtext(flag, "").strip()) in ("0", "1"):
                    ET.SubElement(one, flag).text = text
            _copy(each, one, "bndbox", ("xmin", "ymin", "xmax", "ymax"))
        return _as_bytes(root)


def _copy(given: ET.Element, to: ET.Element, name: str, parts: Sequence[str]) -> None:
    if given.find(name) is not None:
        one = ET.SubElement(to, name)
        for part in parts:
            if (text := given.findtext(f"{name}/{part}")) is not None:
                ET.SubElement(one, part).text = text.strip()


class Yolo(Voc):
    """A folder of YOLO: a text file for each photo, in which a line is a class and its numbers.

    These are a box or a polygon, or a box and keypoints, in parts of the photo's width and height.
    """

    def __init__(self, path: Path, found: Sequence[Path]) -> None:
        super().__init__(path, found)
        near = [each for folder in (path, path.absolute().parent) for each in sorted(folder.glob("*.y*ml"))]
        shape = next((match for each in near if (match := KEYPOINTS.search(_read(each)))), None)
        self.each = None if shape is None else int(shape[1])

    def size(self, photo: Labelled) -> Size:
        return None

    def contents_for(self, path: Path, release: Released) -> bytes:
        lines = [line.split() for line in _read(path).decode("utf-8", "replace").splitlines()]
        for number, values in enumerate(lines, 1):
            if values and len([*map(float, values)]) < 5:
                problem = f"is no YOLO: line {number} is no class with its numbers"
                raise label_error(path, problem, KNOWN_LABELS)
        return "".join(f"{' '.join(self._shown_numbers(values, release))}\n" for values in lines).encode()

    def _shown_numbers(self, values: list[str], release: Released) -> list[str]:
        width, height = release.size
        # Where no .yaml tells, keypoints are told from a polygon by their visibilities, 0, 1 or 2 each
        seen = len(values) % 3 == 2 and all(float(flag) in (0, 1, 2) for flag in values[7::3])
        each = self.each or (3 if seen else max(1, len(values)))
        shown = values[:5]
        for at in range(5, len(values), each):
            point = values[at : at + each]
            there = each < len(values) and len(point) == each
            hidden = there and release.hides(float(point[0]) * width, float(point[1]) * height)
            shown += ["0"] * each if hidden else point
        return shown


def read_labels(path: Path, out: Path) -> Coco | Cvat | Voc:
    """Return labels, recognised by their contents, without those in the folder `out`; raises `UsageError`."""
    if is_folder(path):
        files = [each for each, problem in walk(path, real(out)) if not problem]
        texts, trees = ([each for each in files if each.suffix.lower() == kind] for kind in (".txt", ".xml"))
        if bool(texts) == bool(trees):
            raise label_error(path, f"holds {'both' if texts else 'no'} .txt and .xml files", KNOWN_LABELS)
        return Voc(path, trees) if trees else Yolo(path, texts)
    data = _read(path).removeprefix(b"\xef\xbb\xbf").lstrip()
    if data.startswith(b"{"):
        return Coco(path, data)
    if data.startswith(b"<") and (root := _tree(path, data)).tag == "annotations":
        return Cvat(path, root)
    raise label_error(path, "holds no labels that dpveil knows", KNOWN_LABELS)


POINTS: Final = ("right_eye", "left_eye", "nose", "right_mouth", "left_mouth")
"""COCO's names of the points of a face, which are those of the person's right and left."""
Faces = tuple[tuple[Box, dict[str, tuple[float, float]]], ...]
FOLDERS: Final = "{labels} is about files of photos that are released into a folder of this machine"
WRITTEN: Final = "labels of {} to {}; they tell where things are, also where faces were"
OTHERWISE: Final = "labels of {} are left out: they may be of another size, or of a photo that was turned"


class Labels:
    """The labels of the photos of a run, each checked before anything is drawn.

    `photos` has the labelled photos by their sources; their files are written below `place`.
    """

    def __init__(
        self,
        path: Path,
        inputs: Sequence[Path],
        tasks: Sequence[Task],
        out: Path,
        *,
        new_points: bool = False,
    ) -> None:
        """Read labels; raises `UsageError` if they are malformed, about none of the photos, or in the way.

        With `new_points`, COCO's points of replaced faces become those that are found on the new ones.
        """
        self.tasks = {
            task.source: task
            for task in tasks
            if task.inside is None and task.remote is None and not isinstance(task.source, Url)
        }
        if isinstance(out, Url) or not self.tasks or any(task.output == out for task in tasks):
            forms = {"labels": "labels", "out": "out"}
            raise UsageError(FOLDERS, hint="name a folder as {out}, or leave it out", arguments=forms)
        beside = any(identity(path) == identity(start) for start in inputs)  # as the labels of photos/a.jpg
        self.out, self.place = out, out if beside else out / path.absolute().name
        if identity(self.place) == identity(path):
            raise label_error(path, "would be overwritten", "name another {out}")
        self.labels = read_labels(path, out)
        self.new_points = new_points
        if new_points and not isinstance(self.labels, Coco):
            raise label_error(path, "does not name its keypoints, as COCO does", "leave out new points")
        self.photos = self._photos_by_source()
        if not self.photos:
            others = self.labels.photos()
            what = (
                f"is about other photos, such as {show_path(others[0].name)}" if others else "has no photos"
            )
            raise label_error(path, what, "name the folder of the photos as it is called in the labels")

    def _photos_by_source(self) -> dict[Path, Labelled]:
        """Return the labelled photos by their sources, whose paths end with the names in the labels."""
        ends, stem = defaultdict[str, list[tuple[tuple[str, ...], Path]]](list), self.labels.by_stem
        for source in self.tasks:
            path = source.absolute()
            parts = (path.with_suffix("") if stem else path).parts
            ends[parts[-1]].append((parts, source))
        found: dict[Path, Labelled] = {}
        for photo in self.labels.photos():
            named = PurePosixPath(photo.name.replace("\\", "/")).parts or ("",)
            fits = [source for parts, source in ends[named[-1]] if parts[-len(named) :] == named]
            taken = [found[source].name for source in fits if source in found]
            if len(fits) > 1 or taken:
                which = f"{show_path(fits[0])} is also {show_path((taken or fits[1:])[0])}"
                problem = f"is ambiguous about {show_path(photo.name)}: {which}"
                hint = "release the folders one by one, or rename files"
                raise label_error(self.labels.path, problem, hint)
            if fits:
                try:
                    self.labels.size(photo)
                    list(self.labels.files([(photo, UNSEEN)]))
                except (ValueError, TypeError, AttributeError) as error:
                    problem = f"is malformed: see {show_path(photo.name)}"
                    raise label_error(self.labels.path, problem) from error
                found[fits[0]] = photo
        return found

    def write(self, report: Report, place: Path) -> None:
        """Write the labels of what was released, now or earlier, to `place`, and report it.

        The report has a note on each photo whose labels are left out. If none is left, nothing is written:
        files there may be of earlier releases, and stay. Raises `OutputError`.
        """
        pairs: list[tuple[Labelled, Released]] = []
        for entry in report.entries:
            photo = self.photos.get(entry.source)
            if photo is None or entry.output is None or entry.status not in (RELEASED, SKIPPED):
                continue
            release = self._release(self.tasks[entry.source], entry.output)
            stated, turn = self.labels.size(photo), _orientation(entry.source)
            fits = stated == release.size
            # Releases are upright. Labels of a photo that is stored lying on its side fit if they state the
            # size of the upright one.
            if (turn == 1 and (fits or stated is None)) or (
                turn > 4 and fits and len({*(stated or ())}) == 2
            ):
                pairs.append((photo, release))
            else:
                report.notes.append(OTHERWISE.format(show_path(entry.source)))
        if not pairs:
            return
        pairs.sort(key=lambda pair: pair[1].name)
        for name, contents in self.labels.files(pairs):
            target = place / name
            if not target.exists() or target.read_bytes() != contents:
                make_folder(target.parent)
                write_together([(target, contents)], replace=True)
        report.wrote.append(WRITTEN.format(count_noun(len(pairs), "photo"), show_path(place)))

    def _release(self, task: Task, output: Path) -> Released:
        certificate = read_certificate(output, Certificate)
        made, boxes = certificate.output, tuple(record.box for record in certificate.regions)
        size = (0, 0) if made is None else (made.width, made.height)
        name = PurePosixPath(PurePath(os.path.relpath(output, self.out)).as_posix())
        return Released(output, name, size, boxes, task.numbered, self._new_faces(output, certificate))

    def _new_faces(self, output: Path, certificate: Certificate) -> Faces:
        if not self.new_points:
            return ()
        from dpveil.faces.geometry.landmarks import BY_NETWORK, NetworkLandmarks
        from dpveil.regions import Faces as Finder

        photo, look, found = read(output), NetworkLandmarks(), []
        image = np.repeat(photo.image, 3 // photo.channels, axis=2)
        boxes = [record.box for record in certificate.regions if record.origin.kind == FACE]
        for face in Finder(margin=0).detect(photo):
            points, score = look.five(image, face.box)
            named = {name: (float(x), float(y)) for name, (x, y) in zip(POINTS, points, strict=True)}
            x, y = face.box.x + face.box.w / 2, face.box.y + face.box.h / 2
            if score >= BY_NETWORK.score:
                inside = (b for b in boxes if 0 <= x - b.x <= b.w and 0 <= y - b.y <= b.h)
                found += [(box, named) for box in inside]
        return tuple(found)


def _orientation(source: Path) -> int:
    """Return the EXIF orientation of a photo; 1, upright, for formats that Pillow does not open."""
    try:
        with Image.open(source) as image:
            value = image.getexif().get(ORIENTATION, 1)
    except Exception:  # noqa: BLE001  it was read and released, so only this look at its header failed
        return 1
    return value if value in range(2, 9) else 1
