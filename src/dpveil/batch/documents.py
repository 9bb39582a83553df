"""Documents of a run: gathered like shards, and written as one PDF if all of its pages were released."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import BinaryIO, Final

from dpveil.batch.archives import Release
from dpveil.batch.choices import Choices
from dpveil.batch.document import pack, released_pages
from dpveil.batch.inside import Shard
from dpveil.batch.report import RELEASED, SKIPPED, Entry
from dpveil.batch.staged import held, write
from dpveil.errors import OutputError
from dpveil.io import is_present
from dpveil.io.names import shown
from dpveil.release.documents import number_of
from dpveil.release.saving import certificate_path

ALL_OR_NONE: Final = "{} is not written, as {} was not released: a document is all of its pages, or none"
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
        yield from released_pages(shard.target, shard.scan.dpi, [number_of(name) for name in names])


def check_gone(shard: Shard) -> None:
    """Raise `OutputError` if there is a certificate without its document, of which no page waits."""
    if is_present(certificate_path(shard.target)) and not any(shard.folder.glob("*.png")):
        raise OutputError(
            f"{shown(shard.target)} is gone and its certificate is still there, so it was released before",
            hint="bring it back, or choose another {out}; or {force}, which costs again",
            arguments={"out": "out", "force": "force=True"},
        )


def lacking(shard: Shard, entries: Sequence[Entry]) -> str:
    """Return why a document is not written, if a page of it was not released; else an empty text."""
    bad = [entry for entry in entries if entry.status not in (RELEASED, SKIPPED)]
    if shard.scan is None or not bad:
        return ""
    words = ALL_OR_NONE.format(shown(shard.target), shown(bad[0].source))
    return words if len(bad) == len(entries) else words + WAITS.format(shown(shard.folder))


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
