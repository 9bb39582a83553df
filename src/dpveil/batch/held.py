"""What a file of many holds that is to be verified: images with certificates, and whatever else is in it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from typing import BinaryIO, Final

from dpveil.batch.labels import LINK, LONGEST_RELEASE, ROW, refusal_of
from dpveil.io.names import quoted
from dpveil.io.parquet import MOST_ROWS, any_rows
from dpveil.io.refused import COPY_AGAIN, Refused
from dpveil.io.tar import Member, members
from dpveil.release.pair import Read
from dpveil.release.saving import SUFFIX

MOST_WAITING: Final = 1 << 16
"""Most images of a shard at a time whose certificates come later, and the other way round."""
TWICE: Final = "has the name of another before it"


@dataclass(frozen=True)
class Held:
    """An image with the `name` and its certificate; one is None where it is not there.

    `problem` says why they are not looked at, if so.
    """

    name: str
    image: Read | None = None
    certificate: Read | None = None
    problem: str = ""


def held_members(file: BinaryIO, size: int) -> Iterator[Held]:
    """Yield what a .tar of `size` bytes holds, each as soon as image and certificate are known.

    Memory is about 100 bytes for each member. Raises `Refused` where it is damaged; of what waits for its
    other part then, nothing is said.
    """
    seen = set[bytes]()
    waiting = dict[str, Member]()
    for member in members(file, size):
        name = member.name.removeprefix("./")
        if member.folder:
            continue
        short = blake2b(name.encode("utf-8", "surrogateescape"), digest_size=8).digest()
        problem = _problem(member, name, twice=short in seen)
        seen.add(short)
        image = name.removesuffix(SUFFIX)
        if problem:
            yield Held(name, problem=problem)
        elif (other := waiting.pop(image, None)) is None:
            waiting[image] = member
            if len(waiting) > MOST_WAITING:
                problem = f"has more than {MOST_WAITING:,} images whose certificates do not follow"
                raise Refused(problem, "pack each certificate after its image")
        else:
            one, two = (other, member) if image != name else (member, other)
            yield Held(image, partial(_contents, file, one), partial(_contents, file, two))
    for image, member in waiting.items():
        read = partial(_contents, file, member)
        beside = member.name.endswith(SUFFIX)
        yield Held(image, certificate=read) if beside else Held(image, read)


def held_rows(file: BinaryIO, size: int) -> Iterator[Held]:
    """Yield what a Parquet file of releases holds, row by row; raises `Refused` for any other, and damage."""
    del size
    seen = set[int]()
    for row, path, image, certificate in any_rows(file):
        if row is None or not 0 <= row < MOST_ROWS:
            yield Held("#", problem=f"is a row of the number {row}")
            continue
        name = ROW.format(row)
        if row in seen:
            yield Held(name, problem=TWICE)
        elif path not in (None, name):
            yield Held(name, problem=f"has the path {quoted(path or '')!r}, which is not its name")
        else:
            yield Held(name, _bounded(image), _bounded(certificate))
        seen.add(row)


def _problem(member: Member, name: str, *, twice: bool) -> str:
    if (reason := refusal_of(name.removesuffix(SUFFIX), longest=LONGEST_RELEASE)) is not None:
        return reason.problem
    return TWICE if twice else "" if member.plain else LINK


def _contents(file: BinaryIO, member: Member, most: int) -> bytes:
    _check(member.size, most)
    file.seek(member.start)
    return file.read(member.size)


def _bounded(contents: bytes | None) -> Read | None:
    return None if contents is None else partial(_within, contents)


def _within(contents: bytes, most: int) -> bytes:
    _check(len(contents), most)
    return contents


def _check(size: int, most: int) -> None:
    if size > most:
        raise Refused(f"has {size:,} bytes, and at most {most:,} are read", COPY_AGAIN)
