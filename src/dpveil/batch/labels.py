"""Labels of the photos of a run: matched before anything is drawn, and written for what is released."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path, PurePath, PurePosixPath
from typing import Final

import numpy as np
from PIL import Image

from dpveil.batch.label_formats import UNSEEN, Coco, Labelled, Released, Size, read_labels, refusal
from dpveil.batch.report import RELEASED, SKIPPED, Report
from dpveil.batch.task import Task
from dpveil.core.certificate import Certificate
from dpveil.core.guarantee import count_noun
from dpveil.core.origin import FACE
from dpveil.core.region import Box
from dpveil.core.urls import Url
from dpveil.errors import UsageError
from dpveil.io import make_folder, read, write_together
from dpveil.io.decoding import ORIENTATION
from dpveil.io.folders import identity
from dpveil.io.names import show_path
from dpveil.release.saving import read_certificate

POINTS: Final = ("right_eye", "left_eye", "nose", "right_mouth", "left_mouth")
"""COCO's names of the points of a face, which are those of the person's right and left."""
Faces = tuple[tuple[Box, dict[str, tuple[float, float]]], ...]
FOLDERS: Final = "{labels} is about files of photos that are released into a folder of this machine"
WRITTEN: Final = "labels of {} to {}; they tell where things are, also where faces were"
TURNED: Final = "labels of {} are left out: it is stored turned, and they may be of either way up"
RESIZED: Final = "labels of {} are left out: they state another width or height than it has"


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
            raise refusal(path, "would be overwritten", "name another {out}")
        self.labels = read_labels(path, out)
        self.new_points = new_points
        if new_points and not isinstance(self.labels, Coco):
            raise refusal(path, "does not name its keypoints, as COCO does", "leave out new points")
        self.photos = self._matched()
        if not self.photos:
            others = self.labels.photos()
            what = (
                f"is about other photos, such as {show_path(others[0].name)}" if others else "has no photos"
            )
            raise refusal(path, what, "name the folder of the photos as it is called in the labels")

    def _matched(self) -> dict[Path, Labelled]:
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
                raise refusal(self.labels.path, problem, "release the folders one by one, or rename files")
            if fits:
                list(self.labels.files([(photo, UNSEEN)]))  # refuses malformed ones
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
            problem = _problem(entry.source, self.labels.size(photo), release.size)
            if problem:
                report.notes.append(problem.format(show_path(entry.source)))
            else:
                pairs.append((photo, release))
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
        certificate = read_certificate(output)
        made, boxes = certificate.output, tuple(record.box for record in certificate.regions)
        size = (0, 0) if made is None else (made.width, made.height)
        name = PurePosixPath(PurePath(os.path.relpath(output, self.out)).as_posix())
        return Released(output, name, size, boxes, task.numbered, self._faces(output, certificate))

    def _faces(self, output: Path, certificate: Certificate) -> Faces:
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


def _problem(source: Path, stated: Size, size: Size) -> str:
    """Return why labels may not fit a release, which is upright.

    Of a photo that is stored lying on its side, they fit if they state the size of the upright one.
    """
    turn, fits = _turn(source), stated == size
    if turn == 1:
        return "" if fits or stated is None else RESIZED
    return "" if turn > 4 and fits and len({*(stated or ())}) == 2 else TURNED


def _turn(source: Path) -> int:
    """Return the EXIF orientation of a photo; 1, upright, for formats that Pillow does not open."""
    try:
        with Image.open(source) as image:
            value = image.getexif().get(ORIENTATION, 1)
    except Exception:  # noqa: BLE001  it was read and released, so only this look at its header failed
        return 1
    return value if value in range(2, 9) else 1
