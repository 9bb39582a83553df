"""The photos to release and the output of each, determined before any of them is read."""

from __future__ import annotations

import os
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import replace
from errno import ENOENT
from itertools import chain
from pathlib import Path
from typing import Final

from dpveil.batch.archive_inputs import (
    ALL,
    ARCHIVES,
    Scan,
    Shard,
    archive_of,
    is_document,
    may_be_document,
    pages_inside,
    photos_in_shard,
)
from dpveil.batch.task import Task
from dpveil.core.urls import Url
from dpveil.errors import InvalidParameter, PhotoError, UnknownName, UsageError, suggestion
from dpveil.io import FORMATS, format_of
from dpveil.io.document import PDF
from dpveil.io.folders import UNWRITTEN, identity, is_folder, is_link, private_digest, real, walk
from dpveil.io.names import WRITTEN_AS, released_suffix, show_path
from dpveil.io.unreadable import Refused
from dpveil.io.urls import objects
from dpveil.io.writing import refusal
from dpveil.release.saving import SUFFIX, certificate_path

NAMES: Final = ("keep", "number")
"""How outputs are named."""
DIGITS: Final = 15
NAMED: Final = f"photo-{{:0{DIGITS}}}{{}}"
"""The name of a numbered output: its number, and its suffix."""
ARGUMENTS: Final = {"out": "out", "names": "names"}
FOREIGN = UNWRITTEN | {".svg"}
SEEN: Final = UNWRITTEN.union(FORMATS, ARCHIVES, {PDF})
"""Suffixes of the files that are taken from a folder."""
OWN: Final = ".dpveil"
"""What the names of dpveil's own hidden files begin with."""
SUFFIX_LIKE: Final = re.compile(r"\.[a-z]{3,4}", re.IGNORECASE)
"""Suffixes that may be a mistyped image format's."""


def plan_tasks(
    inputs: Iterable[Path],
    out: Path,
    *,
    names: str = "keep",
    format: str | None = None,  # noqa: A002
    scan: Scan = ALL,
) -> list[Task]:
    """Return the tasks for files and folders, in a fixed order; a folder's tree is mirrored under `out`.

    In folders, hidden files, links to folders or out of the input folder, dpveil's own outputs, and files
    without the suffix of a picture or video are left out. A file with several paths is taken once. A
    WebDataset shard (.tar) or Parquet file is the photos in it, whose releases `release_all` writes to a file
    of the same name; for one, `out` may be that. A PDF, or a TIFF of several pages, is its pages, as `scan`
    tells, each with an output of its own, such as `scan.pdf-page-0001.png`; if `out` is a .pdf, they become
    that. With `names` "number" all outputs are in `out`, such as photo-000418053119273.png: a number follows
    from a photo's name and a key of this user's, so it stays the same and tells nobody the name. Outputs in a
    folder have the suffixes of `released_suffix` for a `format`, such as "png".
    Photos with one output are rivals, of which none is released. Raises `UsageError` if an output would
    overwrite an input, `out` is an input folder, several photos have one file name as output, or one photo a
    new folder whose name looks like a mistyped file name; and `OutputError` for a file in a folder that does
    not exist.
    """
    if names not in NAMES:
        hint = f"{suggestion(names, NAMES)}write {' or '.join(NAMES)}"
        raise InvalidParameter("names", names, "is unknown", hint=hint)
    if format not in (None, *WRITTEN_AS):
        raise UnknownName("format", str(format), WRITTEN_AS)
    given = list(inputs)
    if out.suffix.lower() == PDF and not is_folder(out):
        return check_outputs(_into_a_document(given, out, names, scan), given)
    if archive_of(out) is not None and not is_folder(out):
        return check_outputs(_into_a_shard(given, out, names), given)
    if out.suffix.lower() in FOREIGN.union(FORMATS) and not is_folder(out):
        return check_outputs([_into_a_file(given, out, names, format)], given)
    if (
        len(given) == 1
        and not is_folder(given[0])
        and not is_folder(out)
        and SUFFIX_LIKE.fullmatch(out.suffix)
    ):
        problem = f"{{out}} {show_path(out)}: {show_path(out.suffix)} is no format that dpveil writes"
        hint = (
            f"name a file such as {show_path(out.with_suffix('.png'))}, or a folder that exists or has no dot"
        )
        raise UsageError(problem, hint=hint, arguments=ARGUMENTS)
    if any(is_folder(start) and identity(start) == identity(out) for start in given):
        problem = f"{{out}} {show_path(out)} is the input folder, and releases would lie among the originals"
        raise UsageError(problem, hint="name another folder, such as out", arguments=ARGUMENTS)
    photos = sorted(photos_of(given, out), key=lambda pair: str(pair[1]))
    paged = {source for source, _ in photos if is_document(source)}
    held = [source for source, _ in photos if source in paged or archive_of(source) is not None]
    if held and format is not None:
        raise UsageError(
            f"what is in {show_path(held[0])} keeps its format, and {{format}} would change it",
            hint="leave out {format}, or name the others alone",
            arguments={"format": "format"},
        )
    files = [pair for pair in photos if archive_of(pair[0]) is None and pair[0] not in paged]
    tasks = (_name_tasks if names == "keep" else _number_tasks)(files, out, format)
    for source, relative in photos:
        if source in paged:
            tasks += in_document(source, out / relative, out, names, scan, loose=True)
        elif archive_of(source) is not None:
            tasks += in_shard(source, out / relative, out, names)
    return check_outputs(tasks, [source for source, _ in photos])


def photos_in(inputs: Iterable[Path]) -> list[Path]:
    """Return the photos among files, folders and URLs in a fixed order, as `plan_remote_tasks` finds them.

    Those in shards are left out. Raises `UsageError` and `PhotoError` for URLs.
    """
    return sorted((source for source, _ in photos_of(inputs, None)), key=str)


def left_out(inputs: Iterable[Path], out: Path) -> dict[str, list[Path]]:
    """Return the links and the hidden photos in the input folders that `plan_tasks` leaves out."""
    left: dict[str, list[Path]] = {"link": [], "hidden photo": []}
    given = list(inputs)
    named = {real(path) for path in (*given, out)}
    for start in filter(is_folder, given):
        for path, problem in walk(start, real(out), hidden=True):
            if problem or real(path) in named:
                continue
            hidden = [part for part in path.relative_to(start).parts if part.startswith(".")]
            seen = path.suffix.lower() in SEEN
            if hidden and seen and not hidden[0].startswith(OWN):
                left["hidden photo"].append(path)
            elif not hidden and ((seen and _leads_out(path, start)) or (is_link(path) and is_folder(path))):
                left["link"].append(path)
    return left


def _leads_out(path: Path, start: Path) -> bool:
    """Whether a path is a link to something that is not below the folder in which it was found."""
    return is_link(path) and not real(path).is_relative_to(real(start))


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


def _into_a_file(given: Sequence[Path], out: Path, names: str, format_: str | None) -> Task:
    source = given[0]
    if len(given) > 1 or is_folder(source) or archive_of(source) is not None or source.suffix.lower() == PDF:
        problem = f"{{out}} {show_path(out)} is the name of one picture, and the inputs may be several"
        hint = "name a folder, such as out, or for one file of many photos another of its kind"
        raise UsageError(problem, hint=hint, arguments=ARGUMENTS)
    if names == "number":
        problem = f"{{out}} {show_path(out)} is a file name, and {{names}} number would choose another"
        raise UsageError(problem, hint="name a folder, or leave out {names}", arguments=ARGUMENTS)
    if format_of(out) != (format_ or format_of(out)):
        problem = f"{{out}} {show_path(out)} is no name of a {format_} file, which {{format}} asks for"
        arguments = ARGUMENTS | {"format": "format"}
        raise UsageError(problem, hint="leave out {format}, or name another file", arguments=arguments)
    if not is_folder(out.parent):
        raise refusal(out, FileNotFoundError(ENOENT, ""))
    return Task(given[0], out, out.name)


def _into_a_document(given: Sequence[Path], out: Path, names: str, scan: Scan) -> list[Task]:
    if len(given) != 1 or is_folder(given[0]) or not may_be_document(given[0]):
        problem = f"{{out}} {show_path(out)} is the name of one PDF, and the inputs are not one PDF or TIFF"
        raise UsageError(problem, hint="name a folder, such as out", arguments=ARGUMENTS)
    if not is_folder(out.parent):
        raise refusal(out, FileNotFoundError(ENOENT, ""))
    return in_document(given[0], out, out.parent, names, scan, loose=False)


def _into_a_shard(given: Sequence[Path], out: Path, names: str) -> list[Task]:
    if len(given) != 1 or is_folder(given[0]) or archive_of(given[0]) is not archive_of(out):
        called = ARCHIVES[out.suffix.lower()].called
        problem = f"{{out}} {show_path(out)} is the name of one {called}, and the inputs are not one"
        raise UsageError(problem, hint="name a folder, such as out", arguments=ARGUMENTS)
    if not is_folder(out.parent):
        raise refusal(out, FileNotFoundError(ENOENT, ""))
    return in_shard(given[0], out, out.parent, names)


def in_shard(source: Path, target: Path, root: Path, names: str) -> list[Task]:
    """Return the tasks for the photos in a shard."""
    if names != "keep":
        problem = (
            f"the photos in {show_path(source)} keep their names, and {{names}} {names} would change them"
        )
        raise UsageError(problem, hint="leave out {names}, or unpack it", arguments=ARGUMENTS)
    tasks = []
    for photo in photos_in_shard(source, target, root):
        shard, name = photo.shard, photo.target.relative_to(root).as_posix()
        elsewhere = tuple(map(shard.place, photo.others))
        tasks.append(Task(photo.source, shard.place(photo.name), name, elsewhere=elsewhere, inside=photo))
    return tasks


def in_document(source: Path, target: Path, root: Path, names: str, scan: Scan, *, loose: bool) -> list[Task]:
    """Return the tasks for the pages of a document, which become a PDF, or are `loose`."""
    if names != "keep":
        problem = (
            f"the pages of {show_path(source)} keep their numbers, and {{names}} {names} would change them"
        )
        raise UsageError(problem, hint="leave out {names}", arguments=ARGUMENTS)
    tasks = []
    for page in pages_inside(source, target, root, scan, loose=loose):
        alone = target.with_name(f"{target.name}-{page.name}")
        output = alone if loose else page.shard.place(page.name)
        name = (alone if loose else page.target).relative_to(root).as_posix()
        tasks.append(Task(page.source, output, name, inside=page))
    return tasks


def photos_of(given: Iterable[Path], out: Path | None) -> list[tuple[Path, Path]]:
    """Return every photo once, with its path relative to the input in which it was found."""
    found: dict[Path, tuple[Path, Path]] = {}
    links: dict[Path, tuple[Path, Path]] = {}
    for start in given:
        for source, relative in _images(start, out):
            (links if is_link(source) else found).setdefault(real(source), (source, relative))
    return list(found.values()) + [pair for path, pair in links.items() if path not in found]


def _number_tasks(photos: Sequence[tuple[Path, Path]], out: Path, format_: str | None) -> list[Task]:
    """Return tasks with numbered outputs; a number belongs to the path relative to its input."""
    tasks = []
    for source, relative in photos:
        number = _number(relative, out)
        name = NAMED.format(number, released_suffix(relative, format_))
        earlier = _released([*_in_formats(relative), *_numbered_names(number)], out)
        tasks.append(Task(source, out / name, name, elsewhere=earlier, numbered=True))
    return tasks


def _number(relative: Path, out: Path) -> int:
    """Return the number of a photo; raises `OutputError` for `out` if this user has no key for it."""
    try:
        return int(private_digest(os.fsencode(relative.as_posix())), 16) % 10**DIGITS
    except OSError as error:
        raise refusal(out, error) from error


def _numbered_names(number: int) -> list[Path]:
    return [Path(NAMED.format(number, suffix)) for suffix in WRITTEN_AS.values()]


def _released(names: Iterable[Path], out: Path) -> tuple[Path, ...]:
    """Return the names of releases in a folder, by their certificates."""
    places = dict.fromkeys(out / name for name in names)
    return tuple(place for place in places if os.path.lexists(certificate_path(place)))


def _images(start: Path, out: Path | None) -> Iterator[tuple[Path, Path]]:
    suffixes = UNWRITTEN.union(FORMATS, () if out is None else (*ARCHIVES, PDF))
    if isinstance(start, Url):
        yield from photos_below(start, out, suffixes)
        return
    if not is_folder(start):
        yield start, Path(start.name)
        return
    for path, problem in walk(start, None if out is None else real(out)):
        own = os.path.lexists(certificate_path(path)) or path.name.endswith(SUFFIX) or _leads_out(path, start)
        if (path.suffix.lower() in suffixes and not own) or problem:
            yield path, path.relative_to(start)


def _name_tasks(photos: list[tuple[Path, Path]], out: Path, format_: str | None) -> list[Task]:
    """Return tasks with named outputs: a.jpg for a.jpg, and a.png for a.heic, or a.heic.png if that would
    collide.
    """
    names = {relative: _short(relative, format_) for _, relative in photos}
    while True:
        many = Counter(_key(names[relative]) for _, relative in photos)
        many.update({_key(parent) for name in names.values() for parent in name.parents})  # folders count too
        alike = [r for r, name in names.items() if many[_key(name)] > 1 and name != _full_name(r, format_)]
        changed = [r for r in alike if names[r] != r] or alike  # who has its own name keeps it
        if not changed:
            break
        names |= {relative: _full_name(relative, format_) for relative in changed}
    taken = {_key(name) for name in names.values()}
    numbered = is_folder(out) and any(out.glob(f"photo-{DIGITS * '[0-9]'}.*{SUFFIX}"))
    tasks = []
    for source, relative in photos:
        others = [one for one in _in_formats(relative) if _key(one) not in taken]
        others += _numbered_names(_number(relative, out)) if numbered else []
        name = names[relative]
        tasks.append(Task(source, out / name, name.as_posix(), _released(others, out)))
    return tasks


def _in_formats(relative: Path) -> list[Path]:
    """Return all names that the release of a photo may have had, by any format."""
    suffixes = dict.fromkeys((released_suffix(relative), *WRITTEN_AS.values()))
    longer = (relative.with_name(f"{relative.name}{suffix}") for suffix in suffixes)
    return [*map(relative.with_suffix, suffixes), *longer]


def _short(relative: Path, format_: str | None) -> Path:
    return relative.with_suffix(released_suffix(relative, format_))


def _full_name(relative: Path, format_: str | None) -> Path:
    return relative.with_name(f"{relative.name}{released_suffix(relative, format_)}")


def _key(path: Path) -> str:
    """Return the name as a disk compares it that ignores case and normalisation (Unicode, D145)."""
    folded = unicodedata.normalize("NFD", path.as_posix()).casefold()
    return unicodedata.normalize("NFD", folded)


def check_outputs(tasks: list[Task], sources: Iterable[Path]) -> list[Task]:
    """Return the tasks, those with one output as rivals.

    Raises `UsageError` if an output is one of the `sources`, or two files of many would be written to one.
    """
    places: dict[str, list[Path]] = {}
    for task in tasks:
        places.setdefault(_key(task.output), []).append(task.source)
    originals = {identity(source) for source in sources}
    beside = (place for task in tasks for place in (task.output, certificate_path(task.output)))
    packed = [shard.target for shard in _shards(tasks)]
    for target in (*beside, *packed, *map(certificate_path, packed)):
        if identity(target) in originals:
            problem = f"{show_path(target)} is one of the inputs"
            raise UsageError(problem, hint="choose another {out}", arguments=ARGUMENTS)
    return [_with_rival(task, places[_key(task.output)]) for task in tasks]


def _with_rival(task: Task, sources: Sequence[Path]) -> Task:
    """Return the task of one of the sources of an output, with another one as its rival, if there is one."""
    if len(sources) == 1:
        return task
    return replace(task, rival=sources[1] if sources[0] == task.source else sources[0])


def _shards(tasks: Iterable[Task]) -> list[Shard]:
    """Return the shards of tasks; raises `UsageError` if two would be written to one, or over a photo."""
    given = list(tasks)
    shards = list(dict.fromkeys(task.shard for task in given if task.shard is not None))
    written = [task.output if task.shard is None else task.shard.target for task in given]
    folders = {_key(folder) for place in written for folder in place.parents}
    places: dict[str, Shard] = {}
    for shard in shards:
        if _key(shard.target) in folders:
            raise UsageError(
                f"{show_path(shard.path)} would be written to"
                f" {show_path(shard.target)}, a folder of other releases",
                hint="rename one, or release them into different folders",
            )
        other = places.setdefault(_key(shard.target), shard)
        if other is not shard:
            raise UsageError(
                f"{show_path(other.path)} and {show_path(shard.path)} would both be"
                f" written to {show_path(shard.target)}",
                hint="rename one, or release them into different folders",
            )
    return shards


def photos_below(start: Url, out: Path | None, suffixes: Set[str]) -> Iterator[tuple[Path, Path]]:
    """Yield the photos below a URL, or the one object that it names, each with its path below it.

    Left out are hidden ones, releases with their certificates, other `suffixes`, and what is below `out`.
    Raises `PhotoError` if any part of the list is missing.
    """
    found = _list_objects(start)
    if found == [start]:
        yield found[0], Path(start.name)
        return
    names = {str(each) for each in found if each.name.endswith(SUFFIX)}
    for each in found:
        relative = Path(*each.parts[len(start.parts) :])
        own = f"{each}{SUFFIX}" in names or each.name.endswith(SUFFIX)
        hidden = any(part.startswith(".") for part in relative.parts)
        below = isinstance(out, Url) and each.is_relative_to(out)
        if each.problem or (each.suffix.lower() in suffixes and not (own or hidden or below)):
            yield each, relative


def _list_objects(start: Url) -> list[Url]:
    try:
        return list(objects(start))
    except Refused as reason:
        raise PhotoError(f"{show_path(start)} {reason.problem}", hint=reason.remedy) from reason
