"""What models read of photos and their releases, in the format of hifd, so that it can score them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from dpveil.attacks.base import installed
from dpveil.bench.data import Dataset
from dpveil.bench.faces_seen import Seen, model, seen
from dpveil.bench.items import Item
from dpveil.bench.league import settings_in_words
from dpveil.bench.settings import AnySetting
from dpveil.bench.split import split
from dpveil.bench.utility import FACES, Image, rgb
from dpveil.core.numbers import Json
from dpveil.core.region import Box
from dpveil.errors import OutputError, UsageError
from dpveil.io import is_present, make_folder, write_together

VERSION: Final = "1.0"
"""The version of hifd's schema."""
ORIGINALS: Final = "private-originals"
"""The folder of what is read of the photos themselves."""
LONGEST: Final = 64
"""Longest name of a method, in characters."""
Readings = Mapping[str, Mapping[str, Json]]
"""What is read of the face in a picture, by task, as hifd's schema has it."""


def _gender(_: Image, face: Seen) -> Mapping[str, Json]:
    return {"probs": face.likely["gender"].tolist()}


def _landmarks(_: Image, face: Seen) -> Mapping[str, Json]:
    """Return five points in pixels, and the eyes' middles: left is the left of the picture."""
    left, right = face.points[2:4].mean(axis=0), face.points[:2].mean(axis=0)
    points = face.points.tolist()
    return {"points": points, "left_eye_center": left.tolist(), "right_eye_center": right.tolist()}


def _embedding(image: Image, face: Seen) -> Mapping[str, Json] | None:
    from dpveil.faces.embedding import aligned, embedder

    chip = aligned(image, face.box)
    return None if chip is None else {"embedding": embedder()(chip[None])[0].tolist()}


@dataclass(frozen=True)
class Task:
    """A task of hifd, the name of what reads it here, and how."""

    name: str
    estimator: str
    read: Callable[[Image, Seen], Mapping[str, Json] | None]

    @property
    def file(self) -> str:
        """Where its predictions are, in the folder of the originals or of a method."""
        return f"{self.name}/{self.estimator}.json"


TASKS: Final = (
    Task("gender", "dpveil-attributes", _gender),
    Task("landmark", "dlib5", _landmarks),
    Task("face_embedding", "dlib", _embedding),
)
"""What is read; dpveil's model reads age in five bands, and hifd takes years."""


def check_possible(sets: Sequence[Dataset], folder: Path, results: Path) -> None:
    """Raise `UsageError` where no face can be read, and `OutputError` for a folder with contents or one in
    `results`, which are published.
    """
    if not any(one.subject == "faces" for one in sets):
        raise UsageError("no data set shows faces, which hifd scores", hint="give photos of people")
    if not all(installed(extra) for extra in FACES):
        raise UsageError(
            "reading faces needs what is not installed", hint="pip install 'dpveil[faces,models]'"
        )
    if folder.resolve().is_relative_to(results.resolve()):
        raise OutputError(f"{folder} is private, and lies in the results", hint="choose another folder")
    if is_present(folder) and not (folder.is_dir() and not any(folder.iterdir())):
        raise OutputError(f"{folder} is there already", hint="choose another folder")


def write(
    sets: Sequence[Dataset],
    settings: Sequence[AnySetting],
    seed: int,
    folder: Path,
    step: Callable[[], None] = lambda: None,
) -> list[str]:
    """Write the predictions of each data set of faces into a folder of its own, and return notes.

    They are of the photos that are attacked and of their first releases, which are made again from the seed.
    Photos are numbered in the order of their names' hashes. Faces that are not found have no prediction, and
    hifd leaves them out: the notes, a line for each setting, say how many. `step` is called after each
    setting. All is readable by the user only. Raises `OutputError`, and what a method or a photo raises.
    Source: infraface/hifd 0.x, docs/schema.md, version 1.0.
    """
    notes: list[str] = []
    for dataset in sets:
        if dataset.subject == "faces":
            notes += _of_set(dataset, settings, seed, folder / dataset.name, step)
    return [*notes, f"{folder} is private: {ORIGINALS} says what the photos themselves show"]


def _of_set(
    dataset: Dataset, settings: Sequence[AnySetting], seed: int, folder: Path, step: Callable[[], None]
) -> list[str]:
    items = sorted(split(dataset).probes, key=lambda item: item.rank)
    faces, originals = _originals(items)
    files = _files(ORIGINALS, "original", originals)
    methods, notes = [], []
    for number, setting in enumerate(settings):
        found = _released(items, faces, setting, seed)
        name, place = _name(number, setting), f"methods/{number}"
        files |= _files(place, "deid", found)
        methods.append({"name": name, "base_path": place})
        notes.append(f"{dataset.name}: {name}: {len(found)} of {len(faces)} faces are found")
        step()
    files["methods.yaml"] = {"original": {"base_path": ORIGINALS}, "methods": methods}
    files["estimators.yaml"] = _estimators()
    _write(folder, files)
    return notes


def _originals(items: Sequence[Item]) -> tuple[dict[Item, Box], dict[str, Readings]]:
    """Return the places of faces in photos that show one, and what is read of each, by number."""
    faces, readings = {}, {}
    for number, item in enumerate(items):
        photo = rgb(item.read().image)
        if (face := seen(photo)) is not None:
            faces[item] = face.box
            readings[f"{number:06}"] = _read(photo, face)
    return faces, readings


def _released(
    items: Sequence[Item], faces: Mapping[Item, Box], setting: AnySetting, seed: int
) -> dict[str, Readings]:
    """Return what is read of the faces that are found at their places in releases, by number."""
    found = {}
    places = [faces.get(item) for item in items]
    for number, (place, shown) in enumerate(zip(places, setting.all_shown(items, seed), strict=True)):
        if place is not None and shown is not None:
            release = rgb(shown[0].image)
            if (face := seen(release, place)) is not None:
                found[f"{number:06}"] = _read(release, face)
    return found


def _read(image: Image, face: Seen) -> Readings:
    return {task.name: one for task in TASKS if (one := task.read(image, face)) is not None}


def _name(number: int, setting: AnySetting) -> str:
    """Return a name for tables that says the method and its parameters as far as there is room."""
    words = settings_in_words({"parameters": json.dumps(setting.parameters)})
    plain = "".join(one if one.isalnum() or one in " .-" else " " for one in f"{setting.name} {words}")
    return " ".join(f"{number} {plain}".split())[:LONGEST].strip()


def _files(place: str, source: str, readings: Mapping[str, Readings]) -> dict[str, Any]:
    """Return the prediction files of pictures by path; none for a task of which nothing is read."""
    files: dict[str, Any] = {}
    for task in TASKS:
        predictions = {name: read[task.name] for name, read in readings.items() if task.name in read}
        if predictions:
            files[f"{place}/{task.file}"] = _envelope(task, source, predictions)
    return files


def _envelope(task: Task, source: str, predictions: Mapping[str, Any]) -> dict[str, Any]:
    classes = {"class_names": list(model().values["gender"])} if task.name == "gender" else {}
    told = {"task": task.name, "source": source, "estimator": task.estimator, "schema_version": VERSION}
    return {**told, **classes, "predictions": predictions}


def _estimators() -> dict[str, Any]:
    return {
        "tasks": {
            task.name: {
                "estimators": [{"name": task.estimator, "orig_json": task.file, "deid_json": task.file}]
            }
            for task in TASKS
        }
    }


def _write(folder: Path, files: Mapping[str, Any]) -> None:
    """Write files as JSON, which is YAML, too."""
    contents = [
        (folder / name, (json.dumps(value, indent=1, allow_nan=False) + "\n").encode())
        for name, value in files.items()
    ]
    for parent in dict.fromkeys(path.parent for path, _ in contents):
        make_folder(parent)
    write_together(contents, replace=False, private=True)
