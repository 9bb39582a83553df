"""The photos to release and the output of each, determined before any of them is read."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence, Set
from errno import ENOENT
from pathlib import Path
from typing import Final

from dpveil.batch.archive_inputs import (
    ALL,
    ARCHIVES,
    Scan,
    archive_of,
    is_document,
    may_be_document,
    pages_inside,
    photos_in_shard,
    release_names,
)
from dpveil.batch.task import Task
from dpveil.core.urls import Url
from dpveil.errors import InvalidParameter, PhotoError, UnknownName, UsageError, suggestion
from dpveil.io import FORMATS, format_of
from dpveil.io.folders import PDF, UNWRITTEN, identity, is_folder, is_link, private_digest, real, walk
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
ARGUMENTS: Final = {"out": "out", "names": "names", "format": "format"}
FOREIGN = UNWRITTEN | {".svg"}
SUFFIX_LIKE: Final = re.compile(r"\.[a-z]{3,4}", re.IGNORECASE)
"""Suffixes that may be a mistyped image format's."""


def _misuse(problem: str, hint: str = "name a folder, such as out") -> UsageError:
    return UsageError(problem, hint=hint, arguments=ARGUMENTS)


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
    Raises `UsageError` if an output would overwrite an input, `out` is an input folder, several photos have
    one output, or one photo a new folder whose name looks like a mistyped file name; and `OutputError` for a
    file in a folder that does not exist.
    """
    if names not in NAMES:
        hint = f"{suggestion(names, NAMES)}write {' or '.join(NAMES)}"
        raise InvalidParameter("names", names, "is unknown", hint=hint)
    if format not in (None, *WRITTEN_AS):
        raise UnknownName("format", str(format), WRITTEN_AS)
    given = list(inputs)
    if not is_folder(out) and (tasks := _into_a_file(given, out, names, format, scan)) is not None:
        return check_outputs(tasks, given)
    if any(is_folder(start) and identity(start) == identity(out) for start in given):
        problem = f"{{out}} {show_path(out)} is the input folder, and releases would lie among the originals"
        raise _misuse(problem, "name another folder, such as out")
    photos = sorted(photos_of(given, out), key=lambda pair: str(pair[1]))
    paged = {source for source, _ in photos if is_document(source)}
    held = {source for source, _ in photos if source in paged or archive_of(source) is not None}
    if held and format is not None:
        problem = f"what is in {show_path(min(held))} keeps its format, and {{format}} would change it"
        raise _misuse(problem, "leave out {format}, or name the others alone")
    files = [pair for pair in photos if pair[0] not in held]
    if names == "keep":
        called = release_names((relative for _, relative in files), format)
        tasks, taken = [], {*called.values()}
        for path, name in files:
            short = name.with_suffix(released_suffix(name, format))
            earlier = None if short in taken else out / short
            tasks.append(Task(path, out / called[name], called[name].as_posix(), earlier=earlier))
    else:
        tasks = [_numbered_task(*pair, out, format) for pair in files]
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


def _leads_out(path: Path, start: Path) -> bool:
    """Whether a path is a link to something that is not below the folder in which it was found."""
    return is_link(path) and not real(path).is_relative_to(real(start))


def _into_a_file(
    given: Sequence[Path], out: Path, names: str, format_: str | None, scan: Scan
) -> list[Task] | None:
    """Return the tasks if `out` is the name of a file, and None if it is that of a new folder."""
    suffix, called = out.suffix.lower(), f"{{out}} {show_path(out)}"
    source = given[0] if len(given) == 1 and not is_folder(given[0]) else None
    kind = archive_of(out)
    if suffix != PDF and kind is None and suffix not in FOREIGN.union(FORMATS):
        if source is not None and SUFFIX_LIKE.fullmatch(out.suffix):
            problem = f"{called}: {show_path(out.suffix)} is no format that dpveil writes"
            better = show_path(out.with_suffix(".png"))
            raise _misuse(problem, f"name a file such as {better}, or a folder that exists or has no dot")
        return None
    if suffix == PDF and (source is None or not may_be_document(source)):
        raise _misuse(f"{called} is the name of one PDF, and the inputs are not one PDF or TIFF")
    if kind is not None and (source is None or archive_of(source) is not kind):
        raise _misuse(f"{called} is the name of one {kind.called}, and the inputs are not one")
    if suffix != PDF and kind is None:
        if source is None or archive_of(source) is not None or source.suffix.lower() == PDF:
            hint = "name a folder, such as out, or for one file of many photos another of its kind"
            raise _misuse(f"{called} is the name of one picture, and the inputs may be several", hint)
        if names == "number":
            problem = f"{called} is a file name, and {{names}} number would choose another"
            raise _misuse(problem, "name a folder, or leave out {names}")
        if format_of(out) != (format_ or format_of(out)):
            problem = f"{called} is no name of a {format_} file, which {{format}} asks for"
            raise _misuse(problem, "leave out {format}, or name another file")
    if not is_folder(out.parent):
        raise refusal(out, FileNotFoundError(ENOENT, ""))
    if source is None:
        return []
    if suffix == PDF:
        return in_document(source, out, out.parent, names, scan, loose=False)
    return [Task(source, out, out.name)] if kind is None else in_shard(source, out, out.parent, names)


def in_shard(source: Path, target: Path, root: Path, names: str) -> list[Task]:
    """Return the tasks for the photos in a shard."""
    if names != "keep":
        problem = f"the photos in {show_path(source)} keep their names, and {{names}} would change them"
        raise _misuse(problem, "leave out {names}, or unpack it")
    return [
        Task(each.source, each.shard.place(each.name), each.target.relative_to(root).as_posix(), inside=each)
        for each in photos_in_shard(source, target, root)
    ]


def in_document(source: Path, target: Path, root: Path, names: str, scan: Scan, *, loose: bool) -> list[Task]:
    """Return the tasks for the pages of a document, which become a PDF, or are `loose`."""
    if names != "keep":
        problem = f"the pages of {show_path(source)} keep their numbers, and {{names}} would change them"
        raise _misuse(problem, "leave out {names}")
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


def _numbered_task(source: Path, relative: Path, out: Path, format_: str | None) -> Task:
    """Return the task of a photo whose number belongs to its path relative to its input.

    Raises `OutputError` for `out` if this user has no key for it.
    """
    try:
        number = int(private_digest(os.fsencode(relative.as_posix())), 16) % 10**DIGITS
    except OSError as error:
        raise refusal(out, error) from error
    name = NAMED.format(number, released_suffix(relative, format_))
    return Task(source, out / name, name, numbered=True)


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


def check_outputs(tasks: list[Task], sources: Iterable[Path]) -> list[Task]:
    """Return the tasks; raises `UsageError` if an output is one of the `sources`, or of two of them."""
    originals = {identity(source) for source in sources}
    places: dict[Path, Path] = {}
    shards: dict[Path, Path] = {}
    for task in tasks:
        shard = task.shard
        target = task.remote or task.output if shard is None else shard.target
        source = task.source if shard is None else shard.path
        for place in (target, certificate_path(target)):
            if identity(place) in originals:
                problem = f"{show_path(place)} is one of the inputs"
                raise _misuse(problem, "choose another {out}")
        other = places.setdefault(target, source)
        if other != source:
            problem = f"{show_path(other)} and {show_path(source)} would both be written to"
            raise _misuse(f"{problem} {show_path(target)}", "rename one, or release them into other folders")
        if shard is not None:
            shards[target] = source
    folders = {folder for place in places for folder in place.parents}
    for target, source in shards.items():
        if target in folders:
            problem = f"{show_path(source)} would be written to {show_path(target)}, a folder of releases"
            raise _misuse(problem, "rename one, or release them into other folders")
    return tasks


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
