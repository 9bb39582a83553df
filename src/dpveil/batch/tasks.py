"""The photos to release and the output of each, determined before any of them is read."""

from __future__ import annotations

import os
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from errno import ENOENT
from itertools import chain
from pathlib import Path
from typing import Final

from dpveil.batch.numbering import NAMED, keep_numbers, number_of, numbered
from dpveil.batch.state import State, key_of
from dpveil.errors import InvalidParameter, UsageError, meant
from dpveil.io import FORMATS, format_of
from dpveil.io.folders import UNWRITTEN, identity, is_folder, is_link, real, walk
from dpveil.io.names import shown
from dpveil.io.writing import refusal
from dpveil.release.saving import SUFFIX, certificate_path

NAMES: Final = ("keep", "number")
"""How outputs are named."""
ARGUMENTS: Final = {"out": "out", "names": "names"}
FOREIGN = UNWRITTEN | {".pdf", ".svg"}
SUFFIX_LIKE: Final = re.compile(r"\.[a-z]{3,4}", re.IGNORECASE)
"""Suffixes that may be a mistyped image format's."""


@dataclass(frozen=True)
class Task:
    """One photo: its `source`, its `output`, and `name`, the output relative to the chosen folder.

    `former` is where an earlier run may have written it, when other inputs had the same stem, and `elsewhere`
    are the outputs by the other way of naming. `numbered` is the input's name if the output is a number.
    """

    source: Path
    output: Path
    name: str
    former: Path | None = None
    elsewhere: tuple[Path, ...] = ()
    numbered: str | None = None

    @property
    def paths(self) -> list[Path]:
        """Every file that a run may open for it."""
        outputs = [self.output, *self.elsewhere, *([] if self.former is None else [self.former])]
        return [self.source, *outputs, *map(certificate_path, outputs)]


def store_numbers(tasks: Iterable[Task]) -> None:
    """Store the numbers of all numbered outputs, as `keep_numbers`."""
    found: dict[Path, dict[str, str]] = {}
    for task in tasks:
        if task.numbered is not None:
            found.setdefault(task.output.parent, {})[task.numbered] = task.output.name
    for folder, names in found.items():
        keep_numbers(names, folder)


def plan_tasks(inputs: Iterable[Path], out: Path, *, names: str = "keep") -> list[Task]:
    """Return the tasks for files and folders, in a fixed order; a folder's tree is mirrored under `out`.

    In folders, hidden files, dpveil's own outputs, and files without the suffix of a picture or video are
    left out. A file with several paths is taken once. With `names` "number" all outputs are in `out` as
    photo-000001.png and so on; a photo keeps its number, which `release_all` stores before anything is drawn.
    Writes nothing. Raises `UsageError` if two photos have the same output, an output would overwrite an
    input, `out` is an input folder, several photos have one file name as output, or one photo a new folder
    whose name looks like a mistyped file name; and `OutputError` for a file in a folder that does not exist.
    """
    if names not in NAMES:
        hint = f"{meant(names, NAMES)}write {' or '.join(NAMES)}"
        raise InvalidParameter("names", names, "is unknown", hint=hint)
    given = list(inputs)
    if out.suffix.lower() in FOREIGN.union(FORMATS) and not is_folder(out):
        return _checked([_into_a_file(given, out, names)], given)
    if (
        len(given) == 1
        and not is_folder(given[0])
        and not is_folder(out)
        and SUFFIX_LIKE.fullmatch(out.suffix)
    ):
        problem = f"{{out}} {shown(out)}: {shown(out.suffix)} is no format that dpveil writes"
        hint = f"name a file such as {shown(out.with_suffix('.png'))}, or a folder that exists or has no dot"
        raise UsageError(problem, hint=hint, arguments=ARGUMENTS)
    if any(is_folder(start) and identity(start) == identity(out) for start in given):
        problem = f"{{out}} {shown(out)} is the input folder, and releases would lie among the originals"
        raise UsageError(problem, hint="name another folder, such as out", arguments=ARGUMENTS)
    photos = sorted(_photos(given, out), key=lambda pair: str(pair[1]))
    tasks = _placed(photos, out) if names == "keep" else _numbered(photos, out)
    return _checked(tasks, [source for source, _ in photos])


def photos_in(inputs: Iterable[Path]) -> list[Path]:
    """Return the photos among files and folders in a fixed order, as `plan_tasks` finds them."""
    return sorted((source for source, _ in _photos(inputs, None)), key=str)


def linked_folders(inputs: Iterable[Path], out: Path) -> list[Path]:
    """Return the links to folders inside the input folders, which `plan_tasks` does not follow."""
    folders = (start for start in inputs if is_folder(start))
    found = (path for start in folders for path, _ in walk(start, real(out)))
    return [path for path in found if is_link(path) and is_folder(path) and real(path) != real(out)]


def among_originals(inputs: Iterable[Path], tasks: Sequence[Task], out: Path) -> Path | None:
    """Return the folder of originals in which the folder `out` lies, and the releases with it; None if apart.

    This is an input folder, or that of an input; a file `out` has a name that was chosen with care.
    """
    if all(task.output == out for task in tasks):
        return None
    here, given = real(out), list(inputs)
    around = (start for start in given if is_folder(start) and here.is_relative_to(real(start)))
    beside = (start.parent for start in given if not is_folder(start) and here == real(start.parent))
    return next(chain(around, beside), None)


def _into_a_file(given: Sequence[Path], out: Path, names: str) -> Task:
    if len(given) > 1 or is_folder(given[0]):
        raise UsageError(
            f"{{out}} {shown(out)} is the name of one picture, and the inputs may be several",
            hint="name a folder, such as out",
            arguments=ARGUMENTS,
        )
    if names == "number":
        problem = f"{{out}} {shown(out)} is a file name, and {{names}} number would choose another"
        raise UsageError(problem, hint="name a folder, or leave out {names}", arguments=ARGUMENTS)
    format_of(out)
    if not is_folder(out.parent):
        raise refusal(out, FileNotFoundError(ENOENT, ""))
    return Task(given[0], out, out.name)


def _photos(given: Iterable[Path], out: Path | None) -> list[tuple[Path, Path]]:
    """Return every photo once, with its path relative to the input in which it was found."""
    found: dict[Path, tuple[Path, Path]] = {}
    links: dict[Path, tuple[Path, Path]] = {}
    for start in given:
        for source, relative in _images(start, out):
            (links if is_link(source) else found).setdefault(real(source), (source, relative))
    return list(found.values()) + [pair for path, pair in links.items() if path not in found]


def _numbered(photos: Sequence[tuple[Path, Path]], out: Path) -> list[Task]:
    """Return tasks with numbered outputs; a number belongs to the path relative to its input."""
    sources: dict[Path, Path] = {}
    for source, relative in photos:
        other = sources.setdefault(relative, source)
        if other is not source:
            raise UsageError(
                f"{shown(other)} and {shown(source)} have the same name and would get the same number",
                hint="rename one, or release them into different folders",
            )
    names = numbered([relative.as_posix() for relative in sources], out)
    tasks = []
    for (relative, source), name in zip(sources.items(), names, strict=True):
        kept = (relative.with_suffix(".png"), _full(relative))
        elsewhere = tuple(out / other for other in kept if number_of(other.as_posix()) is None)
        tasks.append(Task(source, out / name, name, elsewhere=elsewhere, numbered=relative.as_posix()))
    return tasks


def _images(start: Path, out: Path | None) -> Iterator[tuple[Path, Path]]:
    if not is_folder(start):
        yield start, Path(start.name)
        return
    for path, problem in walk(start, None if out is None else real(out)):
        own = os.path.lexists(certificate_path(path)) or path.name.endswith(SUFFIX)
        if (path.suffix.lower() in UNWRITTEN.union(FORMATS) and not own) or problem:
            yield path, path.relative_to(start)


def _placed(photos: list[tuple[Path, Path]], out: Path) -> list[Task]:
    """Return tasks with named outputs: a.png for a.jpg, or a.jpg.png if that would collide."""
    names = {relative: relative.with_suffix(".png") for _, relative in photos}
    while True:
        many = Counter(_key(names[relative]) for _, relative in photos)
        many.update({_key(parent) for name in names.values() for parent in name.parents})  # folders count too
        changed = {r: _full(r) for r, name in names.items() if many[_key(name)] > 1 and name != _full(r)}
        if not changed:
            break
        names |= changed
    taken, numbers = {_key(name) for name in names.values()}, State.read(out).numbers
    tasks = []
    for source, relative in photos:
        name = names[relative]
        other = relative.with_suffix(".png") if name == _full(relative) else _full(relative)
        former = None if _key(other) in taken else out / other
        number = numbers.get(key_of(relative.as_posix()))
        elsewhere = () if number is None else (out / NAMED.format(number),)
        tasks.append(Task(source, out / name, name.as_posix(), former, elsewhere))
    return tasks


def _full(relative: Path) -> Path:
    return relative.with_name(f"{relative.name}.png")


def _key(path: Path) -> str:
    """Return the name as a disk compares it that ignores case and normalisation (Unicode, D145)."""
    folded = unicodedata.normalize("NFD", path.as_posix()).casefold()
    return unicodedata.normalize("NFD", folded)


def _checked(tasks: list[Task], sources: Iterable[Path]) -> list[Task]:
    places: dict[str, Task] = {}
    for task in tasks:
        other = places.setdefault(_key(task.output), task)
        if other is not task:
            raise UsageError(
                f"{shown(other.source)} and {shown(task.source)} would both be written to"
                f" {shown(task.output)}",
                hint="rename one, or release them into different folders",
            )
    originals = {identity(source) for source in sources}
    for task in tasks:
        for target in (task.output, certificate_path(task.output)):
            if identity(target) in originals:
                problem = f"{shown(target)} is one of the inputs"
                raise UsageError(problem, hint="choose another {out}", arguments=ARGUMENTS)
    return tasks
