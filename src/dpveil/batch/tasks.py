"""The photos of a run, the settings that they share, and the output of each, before any of them is read."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from dpveil.batch.archive_inputs import (
    ALL,
    ARCHIVES,
    ArchivedPhoto,
    PageSettings,
    Shard,
    archive_of,
    is_document,
    may_be_document,
    pages_inside,
    photos_in_shard,
    release_names,
)
from dpveil.batch.state import Stamp, stamp_of
from dpveil.core.certificate import OTHERS
from dpveil.core.photo import Photo
from dpveil.core.rationals import Json
from dpveil.core.urls import Url
from dpveil.errors import DPVeilError, OutputError, UnknownName, UsageError
from dpveil.io.folders import PDF, UNWRITTEN, identity, is_folder, is_link, private_digest, real, walk
from dpveil.io.names import FORMATS, WRITTEN_AS, format_of, released_suffix, show_path
from dpveil.io.reading import MAX_PIXELS, photo_error, read
from dpveil.io.unreadable import Refused
from dpveil.io.writing import as_output_error, no_folder, write_error
from dpveil.mechanisms.method import Method, Size
from dpveil.noise.bits import SECURE, SEEDED, BitSource, SecureBits, SeededBits
from dpveil.postprocessing import Step
from dpveil.regions import Finder
from dpveil.release.quote import quote_of_sizes
from dpveil.release.saving import SUFFIX, certificate_path

if TYPE_CHECKING:
    from dpveil.ledger import Ledger
    from dpveil.release.c2pa_manifests import Marker
    from dpveil.release.keys import SigningKey

KEEP_PAGES: Final = "others+copy"
"""What becomes of pages of a document without a region, unless the user says: they are kept as they are."""


@dataclass(frozen=True, kw_only=True)
class RunSettings:
    """The settings that all photos of a run share.

    `regions` are finders that the method accepts; `if_none` and `at_least` are as in `plan`, `max_pixels` and
    `trust_source` as in `read`. With a `seed`, the bits of each photo are a function of it and the output's
    name. `force` replaces existing outputs. `sign` is the key that signs the certificates, `mark` adds a C2PA
    manifest to files, `metadata` names what of the originals' EXIF is kept (`dpveil.io.exif.NAMES`), and
    `columns` what else of samples in shards and Parquet files (`parse_columns`); they are no settings of a
    release. With a `ledger`, `subject` pays for every release; `other_regions` is as in `Plan.release`. A run
    that is `dry` tells what its releases would cost, and draws none.
    """

    method: Method
    regions: Sequence[Finder]
    post_processing: Sequence[Step] = ()
    if_none: str | None = None
    at_least: str | None = None
    seed: int | None = None
    max_pixels: int = MAX_PIXELS
    trust_source: str | None = None
    force: bool = False
    sign: SigningKey | None = None
    mark: Marker | None = None
    metadata: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    ledger: Ledger | None = None
    subject: str | None = None
    other_regions: bool = False
    dry: bool = False

    def bits(self, name: str) -> BitSource:
        return SecureBits() if self.seed is None else SeededBits(self.seed, name)

    @property
    def free(self) -> bool:
        """Whether the method costs nothing, so that releasing a photo again does not either."""
        size: Size = {"height": 64, "width": 64, "channels": 3}  # any: what costs nothing does at every size
        try:
            return quote_of_sizes(self.method, [size]).total.free
        except DPVeilError:
            return False

    @property
    def paying(self) -> dict[str, Any]:
        """Return how a release is paid, as arguments of `Plan.release`."""
        return {"ledger": self.ledger, "subject": self.subject, "other_regions": self.other_regions}

    @property
    def settings(self) -> dict[str, Json]:
        return {
            "method": self.method.name,
            "parameters": self.method.parameters(),
            "request": [finder.description for finder in self.regions],
            "post_processing": [step.description for step in self.post_processing],
            "bits": SECURE if self.seed is None else SEEDED,
        }


@dataclass(frozen=True)
class Task:
    """One photo: its `source`, its `output`, and `name`, the output relative to the chosen folder.

    `numbered` says that the name of the output does not tell that of the input. The `source` of a photo
    `inside` of a shard names it, and nothing is at this path. One that is put elsewhere, at the URL `remote`,
    waits at its `output` until it is there. What is `earlier` may be a release of it from a run that gave it
    a shorter name, as no other photo had it.
    """

    source: Path
    output: Path
    name: str
    numbered: bool = False
    inside: ArchivedPhoto | None = None
    remote: Url | None = None
    earlier: Path | None = None

    @property
    def stamp(self) -> Stamp | None:
        """Size and time of the photo's file; None if it cannot be inspected."""
        return stamp_of(self.source) if self.inside is None else self.inside.stamp

    def keeps(self, choices: RunSettings) -> bool:
        """Whether it is a page that is kept as it is without a region, if its document has one elsewhere."""
        page = self.inside is not None and self.inside.shard.scan is not None
        return page and choices.if_none in (None, OTHERS)

    def read(self, max_pixels: int, trust_source: str | None = None) -> Photo:
        """Return the photo; raises `PhotoError`. The arguments are those of `dpveil.read`."""
        photo = self.source if self.inside is None else self.inside.read(max_pixels)
        return read(photo, max_pixels=max_pixels, trust_source=trust_source)

    @property
    def paths(self) -> list[Path]:
        shard = [] if self.inside is None else [self.inside.shard.path, self.inside.shard.target]
        outputs = [self.output, *shard[1:]]
        return [self.source, *outputs, *map(certificate_path, outputs), *shard[:1]]

    @property
    def shard(self) -> Shard | None:
        return None if self.inside is None else self.inside.shard


def check_written(
    path: Path, sources: Sequence[Path], *, what: str, replace: bool, start: bytes | None = None
) -> None:
    """Raise any error that would prevent writing a file about photos, before anything is drawn.

    `what` is its name in messages, and files that begin with `start` are replaced without `replace`. Raises
    `OutputError` if the path is one of the `sources`, another file exists, or nothing can be written there.
    """
    if identity(path) in set(map(identity, sources)):
        problem = f"{what} {show_path(path)} is the input itself, or an output"
        raise OutputError(problem, hint="choose another name")
    if not path.parent.is_dir():
        raise no_folder(path)
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise write_error(path, PermissionError(errno.EACCES, ""))
    ours = replace and not path.is_dir()
    if start is not None and path.is_file() and os.access(path, os.R_OK):
        with path.open("rb") as file:
            ours |= file.read(len(start)) in (b"", start)
    if os.path.lexists(path) and not ours:
        error = write_error(path, FileExistsError(errno.EEXIST, ""))
        if start is not None:  # of a run, --force is about releases, which cost again
            hint = "choose another name, as {replace} releases every photo anew"
            error = OutputError(error.message, hint=hint, arguments={"replace": "replace=True"})
        raise error


def places_of(tasks: Sequence[Task]) -> list[Path]:
    """Return the inputs and outputs of a run."""
    return [place for task in tasks for place in (task.source, task.output, certificate_path(task.output))]


def check_apart(files: Sequence[Path], paths: Sequence[Path]) -> None:
    """Raise `UsageError` if one of the `paths` of a run is one of a ledger's `files`.

    Opening and closing such a file by another way takes the database's locks from this process: a debit may
    be lost.
    """
    taken = set(map(identity, files))
    for path in paths:
        if identity(path) in taken:
            raise UsageError(f"{show_path(path)} belongs to the ledger", hint="name another file")


def is_beside_output(path: Path, task: Task) -> bool:
    """Whether `path` is in the folder of a task's output, or in one below it."""
    return real(path).is_relative_to(real(task.output.parent))


NAMES: Final = ("keep", "number")  # how outputs are named
DIGITS: Final = 15  # of a number in a name: two of a million photos have one number once in 2 000 runs
ARGUMENTS: Final = {"out": "out", "names": "names", "format": "format"}
WRITTEN: Final = {PDF, ".svg", *UNWRITTEN, *FORMATS}
READ: Final = UNWRITTEN.union(FORMATS, ARCHIVES, [PDF])  # the suffixes of what is taken from folders
SUFFIX_LIKE: Final = re.compile(r"\.[a-z]{3,4}")  # of a mistyped image format


def _misuse(problem: str, hint: str = "name a folder, such as out") -> UsageError:
    return UsageError(problem, hint=hint, arguments=ARGUMENTS)


def plan_tasks(
    inputs: Iterable[Path],
    out: Path,
    *,
    names: str = "keep",
    format: str | None = None,  # noqa: A002
    scan: PageSettings = ALL,
) -> list[Task]:
    """Return the tasks for files and folders, in a fixed order; a folder's tree is mirrored under `out`.

    In folders, hidden files, links to folders or out of the input folder, dpveil's own outputs, and files
    without the suffix of a picture or video are left out. A file with several paths is taken once. A
    WebDataset shard (.tar) or Parquet file is the photos in it, whose releases `release_all` writes to a file
    of the same name; for one, `out` may be that. A PDF, or a TIFF of several pages, is its pages, as `scan`
    tells, which become a PDF, such as `scan.pdf` or `scan.tif.pdf`. With `names` "number" all outputs are in
    `out`, such as photo-000418053119273.png: a number follows from a photo's name and a key of this user's,
    so it stays the same and tells nobody the name. Outputs in a folder have the suffixes of `released_suffix`
    for a `format`, such as "png".
    Raises `UsageError` if an output would overwrite an input, `out` is an input folder, or several photos
    have one output; and `OutputError` for a file in a folder that does not exist.
    """
    if names not in NAMES:
        raise UnknownName("way to name outputs", names, NAMES)
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
    if held:
        _check_held(min(held), names, format)
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
            pdf = relative.suffix.lower() == PDF
            tasks += in_shard(source, out / (relative if pdf else f"{relative}{PDF}"), out, scan)
        elif archive_of(source) is not None:
            tasks += in_shard(source, out / relative, out)
    return check_outputs(tasks, [source for source, _ in photos])


def _into_a_file(
    given: Sequence[Path], out: Path, names: str, format_: str | None, scan: PageSettings
) -> list[Task] | None:
    """Return the tasks if `out` is the name of a file, and None if it is that of a new folder."""
    suffix, called = out.suffix.lower(), f"{{out}} {show_path(out)}"
    source = given[0] if len(given) == 1 and not is_folder(given[0]) else None
    kind = archive_of(out)
    if source is not None and kind is None and SUFFIX_LIKE.fullmatch(suffix) and suffix not in WRITTEN:
        hint = (
            f"name a file such as {show_path(out.with_suffix('.png'))}, or a folder that exists or has no dot"
        )
        raise _misuse(f"{called}: {show_path(out.suffix)} is no format that dpveil writes", hint)
    picture = kind is None and suffix in UNWRITTEN.union(FORMATS)
    if not picture and kind is None and suffix != PDF:
        return None
    if picture:
        fits, what = (
            source is not None and archive_of(source) is None and source.suffix.lower() != PDF,
            "picture",
        )
    elif kind is not None:
        fits, what = source is not None and archive_of(source) is kind, kind.called
    else:
        fits, what = source is not None and may_be_document(source), "PDF"
    if source is None or not fits:
        other = "there are several inputs" if source is None else f"{show_path(source)} is none"
        raise _misuse(f"{called} is the name of one {what}, and {other}")
    if picture and names == "number":
        problem = f"{called} is a file name, and {{names}} number would choose another"
        raise _misuse(problem, "name a folder, or add {names} keep")
    if picture and format_of(out) != (format_ or format_of(out)):
        problem = f"{called} is no name of a {format_} file, which {{format}} asks for"
        raise _misuse(problem, "leave out {format}, or name another file")
    if not is_folder(out.parent):
        raise no_folder(out)
    if picture:
        return [Task(source, out, out.name)]
    _check_held(source, names, format_)
    return in_shard(source, out, out.parent, scan if suffix == PDF else None)


def _check_held(source: Path, names: str, format_: str | None) -> None:
    if names != "keep" or format_ is not None:
        problem = f"what is in {show_path(source)} keeps its names and format, and"
        problem += " {names} would change them" if names != "keep" else " {format} would change it"
        raise _misuse(problem, "leave it out, or name the others alone")


def in_shard(source: Path, target: Path, root: Path, scan: PageSettings | None = None) -> list[Task]:
    photos = (
        photos_in_shard(source, target, root) if scan is None else pages_inside(source, target, root, scan)
    )
    return [
        Task(each.source, each.shard.place(each.name), each.target.relative_to(root).as_posix(), inside=each)
        for each in photos
    ]


def photos_of(given: Iterable[Path], out: Path) -> list[tuple[Path, Path]]:
    """Return every photo once, with its path relative to the input in which it was found."""
    every = [pair for start in given for pair in _images(start, out)]
    found: dict[Path, tuple[Path, Path]] = {}
    for source, relative in sorted(every, key=lambda pair: is_link(pair[0])):  # a file before links to it
        found.setdefault(real(source), (source, relative))
    return [*found.values()]


def _numbered_task(source: Path, relative: Path, out: Path, format_: str | None) -> Task:
    with as_output_error(out):  # this user may have no folder for the key
        number = int(private_digest(os.fsencode(relative.as_posix())), 16) % 10**DIGITS
    name = f"photo-{number:0{DIGITS}}{released_suffix(relative, format_)}"
    return Task(source, out / name, name, numbered=True)


def other_files(given: Iterable[Path], out: Path) -> list[Path]:
    """Return the files in input folders that are left out, such as texts; not hidden ones, nor dpveil's."""
    folders = (start for start in given if not isinstance(start, Url) and is_folder(start))
    files = (path for start in folders for path, _ in walk(start, real(out)))
    return [path for path in files if path.suffix.lower() not in READ and not path.name.endswith(SUFFIX)]


def _images(start: Path, out: Path) -> Iterator[tuple[Path, Path]]:
    if isinstance(start, Url):
        yield from _objects_below(start, out, READ)
        return
    if not is_folder(start):
        yield start, Path(start.name)
        return
    for path, problem in walk(start, real(out)):
        leads_out = is_link(path) and not real(path).is_relative_to(real(start))
        own = os.path.lexists(certificate_path(path)) or path.name.endswith(SUFFIX)
        if problem or (path.suffix.lower() in READ and not own and not leads_out):
            yield path, path.relative_to(start)


def _objects_below(start: Url, out: Path, suffixes: Set[str]) -> Iterator[tuple[Path, Path]]:
    """Yield the photos below a URL, or the one object that it names; raises `PhotoError`."""
    from dpveil.io.urls import objects

    try:
        found = list(objects(start))
    except Refused as reason:
        raise photo_error(start, reason) from reason
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


def check_outputs(tasks: list[Task], sources: Iterable[Path]) -> list[Task]:
    """Return the tasks; raises `UsageError` if an output is one of the `sources`, or of two of them."""
    originals = {identity(source) for source in sources}
    places: dict[Path, Path] = {}
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
    return tasks
