"""Documents of a run: gathered like shards, and written as one PDF if all of its pages were released."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import BinaryIO, Final

from dpveil.batch.archives import Release
from dpveil.batch.choices import Choices
from dpveil.batch.document import pack, released_pages
from dpveil.batch.inside import Shard
from dpveil.batch.report import NO_REGION, RELEASED, SKIPPED, Entry
from dpveil.batch.staged import held, write
from dpveil.batch.task import Task
from dpveil.errors import OutputError
from dpveil.io import is_present
from dpveil.io.names import shown
from dpveil.release.documents import number_of
from dpveil.release.saving import certificate_path

ALL_OR_NONE: Final = "{} is not written, as {} was not released: a document is all of its pages, or none"
COPIES: Final = (
    "; with {0} others, what is found on each page is replaced; where nothing is, {0} others+whole replaces"
    " the whole page, and {0} others+copy leaves it as an unprotected copy"
)
WAITS: Final = "; what is done waits in {} (keep it) for another run"


def releases_in(
    shard: Shard, names: Sequence[str], file: BinaryIO, size: int, most: int
) -> Iterator[Release]:
    """Yield what is in a shard or document that was written before, of the size; raises `Refused`.

    A document has to have the pages with these names, and no other.
    """
    if shard.scan is None:
        yield from shard.archive.releases(file, size, most)
    else:
        yield from released_pages(shard.target, shard.scan.dpi, [number_of(name) for name in names], most)


def check_gone(shard: Shard) -> None:
    """Raise `OutputError` if there is a certificate without its document, of which no page waits."""
    if is_present(certificate_path(shard.target)) and not any(shard.folder.glob("*.png")):
        raise OutputError(
            f"{shown(shard.target)} is gone and its certificate is still there, so it was released before",
            hint="bring it back, or choose another {out}; or {force}, which makes another",
            arguments={"out": "out", "force": "force=True"},
        )


def lacking(shard: Shard, entries: Sequence[Entry], options: Mapping[str, str]) -> str:
    """Return why a document is not written, if a page of it was not released; else an empty text.

    `options` are a command line's names of arguments.
    """
    bad = [entry for entry in entries if entry.status not in (RELEASED, SKIPPED)]
    if shard.scan is None or not bad:
        return ""
    words = ALL_OR_NONE.format(shown(shard.target), shown(bad[0].source))
    if any(entry.status == NO_REGION for entry in bad):
        words += COPIES.format(options.get("if_none", "if_none"))
    return words if len(bad) == len(entries) else words + WAITS.format(shown(shard.folder))


def named(entry: Entry, task: Task, names: Mapping[Path, str], *, waits: bool = False) -> Entry:
    """Return an entry in which releases are called as in their shard, and a page as its document.

    A page that `waits` for a document, which is not written, has no output.
    """
    if task.inside is None or task.shard is None:
        return entry
    shard = task.shard
    places = re.compile(f"{re.escape(shown(shard.folder))}/[0-9a-f]+[.]png")

    def name(found: re.Match[str]) -> str:
        if shard.scan is not None:
            there = is_present(shard.target)
            return shown(shard.target) if there else f"a page that waits for {shown(shard.target)}"
        return shown(f"{shard.target}/{names.get(Path(found[0]), found[0])}")

    failure = entry.failure
    if failure is not None:
        failure = replace(
            failure, message=places.sub(name, failure.message), hint=places.sub(name, failure.hint)
        )
    output = None if entry.output is None or waits else task.inside.target
    warnings = tuple(
        text if places.search(text) is None else places.sub(name, text) for text in entry.warnings
    )
    beside = None if waits else task.inside.certificate
    return replace(entry, output=output, failure=failure, warnings=warnings, certificate=beside)


def write_releases(shard: Shard, releases: Mapping[Path, str], choices: Choices, *, over: bool) -> str:
    """Write a shard or document of releases, which are at these places and have these names.

    Returns what the pages of a document promise together. A shard by URL takes the place of one only if it
    may be put `over` it. Raises `OSError` and `OutputError`.
    """
    read = partial(held, choices=choices)
    if shard.scan is not None:
        pages = [
            (number_of(name), partial(read, place), partial(read, certificate_path(place)))
            for place, name in releases.items()
        ]
        return pack(shard.folder, shard.target, shard.scan.dpi, pages, choices.sign)
    all_of = ((name, read(place), read(certificate_path(place))) for place, name in releases.items())
    write(shard.folder, shard.target, lambda file: shard.archive.write(file, all_of), replace=over)
    return ""
