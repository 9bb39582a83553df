"""Which photos to release and where each lands: worked out before any of them is read."""

from __future__ import annotations

import os
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from dpveil.errors import UsageError
from dpveil.io import FORMATS, format_of
from dpveil.io.names import shown
from dpveil.release.saving import SUFFIX, certificate_path

PICTURES = "gif heic heif avif jp2 j2k jxl jpe jfif pgm ppm pnm psd tga ico cr2 cr3 nef arw dng orf rw2 raf"
VIDEOS = "mp4 mov m4v avi mkv webm mpg mpeg 3gp mts"
UNREAD = frozenset(f".{name}" for name in f"{PICTURES} {VIDEOS}".split())
"""Pictures and videos that dpveil does not read: in a folder they are reported, never left out in silence."""
FOREIGN = UNREAD | {".pdf", ".svg"}


@dataclass(frozen=True)
class Task:
    """One photo: `name` is its output relative to the chosen place; `former` is where an earlier run may
    have put the same photo, when it had other neighbours.
    """

    source: Path
    output: Path
    name: str
    former: Path | None = None


def plan(inputs: Iterable[Path], out: Path) -> list[Task]:
    """Return the tasks for files and folders, in a fixed order; a folder's tree is mirrored under `out`.

    Hidden files and what dpveil wrote are left out of folders, as are files whose suffix is no picture's or
    video's. A file that several names lead to is taken once. Raises `UsageError` where two photos would land
    on one output, an output would overwrite an input, or several photos would go into one file's name.
    """
    given = list(inputs)
    file_like = out.suffix.lower() in FOREIGN.union(FORMATS) and not is_folder(out)
    if file_like and (len(given) > 1 or is_folder(given[0])):
        raise UsageError(
            f"--out {shown(out)} is the name of one picture, and the inputs may be several",
            hint="name a folder, such as out",
        )
    if file_like:
        format_of(out)
        return _checked([Task(given[0], out, out.name)], given)
    found: dict[Path, tuple[Path, Path]] = {}
    links: dict[Path, tuple[Path, Path]] = {}
    for start in given:
        for source, relative in _images(start, out):
            (links if is_link(source) else found).setdefault(_real(source), (source, relative))
    photos = list(found.values()) + [pair for real, pair in links.items() if real not in found]
    tasks = _placed(sorted(photos, key=lambda pair: str(pair[1])), out)
    inside = any(is_folder(start) and identity(start) == identity(out) for start in given)
    return _checked(tasks, [s for s, _ in photos], ", because --out is the input folder" if inside else "")


def is_folder(path: Path) -> bool:
    """Whether `path` is a folder; one that cannot even be looked at is none, and fails when it is read."""
    try:
        return path.is_dir()
    except OSError:
        return False


def is_link(path: Path) -> bool:
    """Whether `path` is a symbolic link; what cannot be looked at is none, and fails when it is read."""
    try:
        return path.is_symlink()
    except OSError:
        return False


def walk(folder: Path, skipped: Path | None = None) -> Iterator[tuple[Path, str]]:
    """Yield the files under `folder` that are not hidden, sorted, each with ""; links are not entered.

    At last come the folders that cannot be read, each with why, so that none is left out in silence.
    """
    unread: list[tuple[Path, str]] = []
    waiting = [folder]
    while waiting:  # a list, as folders may lie deeper in one another than functions can
        here = waiting.pop()
        try:
            with os.scandir(here) as entries:
                seen = sorted((entry.name, _entered(entry)) for entry in entries if entry.name[0] != ".")
        except OSError as error:
            unread.append((here, f"cannot be read ({error.strerror})"))
            continue
        yield from ((here / name, "") for name, entered in seen if not entered)
        inside = [here / name for name, entered in seen if entered]
        waiting += [path for path in reversed(inside) if skipped is None or _real(path) != skipped]
    yield from unread


def _entered(entry: os.DirEntry[str]) -> bool:
    """Whether it is a folder, and no link to one: where a link leads is not even asked."""
    try:
        return entry.is_dir(follow_symlinks=False)
    except OSError:
        return False


def _images(start: Path, out: Path) -> Iterator[tuple[Path, Path]]:
    if not is_folder(start):
        yield start, Path(start.name)
        return
    for path, problem in walk(start, _real(out)):
        own = os.path.lexists(certificate_path(path)) or path.name.endswith(SUFFIX)
        if (path.suffix.lower() in UNREAD.union(FORMATS) and not own) or problem:
            yield path, path.relative_to(start)


def _placed(photos: list[tuple[Path, Path]], out: Path) -> list[Task]:
    """a.jpg becomes a.png; only where that would collide is it a.jpg.png, until nothing collides."""
    names = {relative: relative.with_suffix(".png") for _, relative in photos}
    while True:
        many = Counter(_key(names[relative]) for _, relative in photos)
        many.update({_key(parent) for name in names.values() for parent in name.parents})  # a folder a.png
        changed = {r: _full(r) for r, name in names.items() if many[_key(name)] > 1 and name != _full(r)}
        if not changed:
            break
        names |= changed
    taken = {_key(name) for name in names.values()}
    tasks = []
    for source, relative in photos:
        name = names[relative]
        other = relative.with_suffix(".png") if name == _full(relative) else _full(relative)
        former = None if _key(other) in taken else out / other
        tasks.append(Task(source, out / name, name.as_posix(), former))
    return tasks


def _full(relative: Path) -> Path:
    return relative.with_name(f"{relative.name}.png")


def _key(path: Path) -> str:
    """Return what a disk that ignores case and Unicode forms would take the name for (Unicode, D145)."""
    folded = unicodedata.normalize("NFD", path.as_posix()).casefold()
    return unicodedata.normalize("NFD", folded)


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))


def identity(path: Path) -> object:
    """Return what is equal for two names of one file, on disks that ignore case too."""
    try:
        status = path.stat()
    except OSError:
        return _real(path)
    return status.st_dev, status.st_ino


def _checked(tasks: list[Task], sources: Iterable[Path], why: str = "") -> list[Task]:
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
                raise UsageError(f"{shown(target)} is one of the inputs{why}", hint="choose another --out")
    return tasks
