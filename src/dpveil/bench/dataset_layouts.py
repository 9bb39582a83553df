"""Layouts of data sets: whose each photo is, by the names of files and folders."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from dpveil.bench.items import Item, PhotoFile
from dpveil.errors import UsageError
from dpveil.io.folders import UNWRITTEN
from dpveil.io.names import FORMATS
from dpveil.io.unreadable import Refused
from dpveil.io.untrusted_files import read_untrusted

SUFFIXES: Final = UNWRITTEN.union(FORMATS)  # suffixes of the photos that are read, in lower case
DEEPEST: Final = 3  # folders below a person's that are searched
MOST_PHOTOS: Final = 1_000_000  # most photos of a data set
MOST_BYTES: Final = 64 << 20  # largest list of identities that is read
RAFD: Final = re.compile(r"Rafd\d+_(\d+)_\w+", re.IGNORECASE)
KDEF: Final = re.compile(r"[AB]([FM]\d{2})", re.IGNORECASE)
UTKFACE: Final = re.compile(r"\d{1,3}_[01]_[0-4]_\d+(\.jpg)?(\.chip)?", re.IGNORECASE)
FFHQ: Final = re.compile(r"\d{5}")
EYE: Final = re.compile(r"[LR]", re.IGNORECASE)
CELEBA: Final = "identity_CelebA.txt"
CELEBRITY: Final = re.compile(r"\d{1,9}")
CELEBA_FOLDERS: Final = ("img_align_celeba", "img_celeba", ".")


@dataclass(frozen=True)
class Layout:
    """How a data set lies in a folder.

    `found` tells it, and `items` yields its photos, in any order. Those of an `unnamed` one may say nobody's
    name: then each is of a person of its own.
    """

    name: str
    identity: str
    found: Callable[[Path], bool]
    items: Callable[[Path], Iterator[Item]]
    unnamed: bool = False


def layout_of(folder: Path) -> Layout:
    """Return the first layout that fits."""
    return next(one for one in LAYOUTS if one.found(folder))


def items_of(folder: Path, layout: Layout | None = None) -> list[Item]:
    """Return the photos of a data set by its layout, or by another one.

    Links, hidden folders and files that are no photos are left out. Raises `UsageError` for more than a
    million photos, and for a list of identities that is none.
    """
    found: list[Item] = []
    for item in (layout or layout_of(folder)).items(folder):
        found.append(item)
        if len(found) > MOST_PHOTOS:
            raise UsageError(f"{folder} holds more than {MOST_PHOTOS} photos", hint="give a part of it")
    return found


def loose(folder: Path) -> int:
    """Return how many photos lie in a folder itself, and not in one of those below it."""
    return sum(1 for _ in _photos(folder, 0))


def one_person_each(folder: Path) -> list[Item]:
    """Return the photos in a folder itself, each as that of a person of its own."""
    return [_item(folder, f"./{path.name}", path) for path in _photos(folder, 0)]


def _photos(folder: Path, deeper: int) -> Iterator[Path]:
    for place in sorted(folder.iterdir()):
        if place.is_symlink() or place.name.startswith("."):
            continue
        if place.is_dir() and deeper:
            yield from _photos(place, deeper - 1)
        elif place.suffix.lower() in SUFFIXES and place.is_file():
            yield place


def _item(folder: Path, person: str, path: Path) -> Item:
    return PhotoFile(person, path.relative_to(folder).as_posix(), path)


def _people(folder: Path) -> Iterator[Path]:
    plain = (one for one in sorted(folder.iterdir()) if one.is_dir() and not one.is_symlink())
    return (one for one in plain if not one.name.startswith("."))


def _by_folder(folder: Path) -> Iterator[Item]:
    for place in _people(folder):
        for path in _photos(place, DEEPEST):
            yield _item(folder, place.name, path)


def _by_itself(folder: Path) -> Iterator[Item]:
    """Yield every photo as that of a person of its own."""
    for path in _photos(folder, 1):
        name = path.relative_to(folder).as_posix()
        yield _item(folder, name, path)


def _has_utkface(folder: Path) -> bool:
    first = next(_photos(folder, 0), None)
    return first is not None and UTKFACE.fullmatch(first.stem) is not None


def _has_ffhq(folder: Path) -> bool:
    """Whether all photos have numbers of five digits, and lie in no folder or in those of their thousand."""
    found = False
    for path in _photos(folder, DEEPEST):
        if not FFHQ.fullmatch(path.stem) or path.parent not in (folder, folder / f"{path.stem[:2]}000"):
            return False
        found = True
    return found


def _has_rafd(folder: Path) -> bool:
    return any(RAFD.fullmatch(path.stem) for path in _photos(folder, 0))


def _rafd(folder: Path) -> Iterator[Item]:
    for path in _photos(folder, 0):
        if match := RAFD.fullmatch(path.stem):
            yield _item(folder, match[1], path)


def _has_kdef(folder: Path) -> bool:
    names = [place.name for place in _people(folder)]
    return bool(names) and all(KDEF.fullmatch(name) for name in names)


def _kdef(folder: Path) -> Iterator[Item]:
    for place in _people(folder):
        if match := KDEF.fullmatch(place.name):
            for path in _photos(place, 0):
                yield _item(folder, match[1].upper(), path)


def _has_eyes(folder: Path) -> bool:
    first = next(_people(folder), None)
    return first is not None and any(EYE.fullmatch(place.name) for place in _people(first))


def _eyes(folder: Path) -> Iterator[Item]:
    for place in _people(folder):
        for side in _people(place):
            for path in _photos(side, 0) if EYE.fullmatch(side.name) else ():
                yield _item(folder, f"{place.name}-{side.name.upper()}", path)


def _celeba(folder: Path) -> Iterator[Item]:
    place = next(folder / name for name in CELEBA_FOLDERS if (folder / name).is_dir())
    try:
        lines = read_untrusted(folder / CELEBA, MOST_BYTES).decode("utf-8").splitlines()
    except (Refused, UnicodeDecodeError) as error:
        raise UsageError(f"{folder / CELEBA} is no list of identities", hint="get an intact copy") from error
    for number, line in enumerate(filter(None, lines), 1):
        name, _, person = line.strip().partition(" ")
        if not CELEBRITY.fullmatch(person) or Path(name).name != name or name.startswith("."):
            problem = f"{folder / CELEBA}, line {number}, is not a photo and a number"
            raise UsageError(problem, hint="get an intact copy")
        path = place / name
        if path.suffix.lower() in SUFFIXES and path.is_file() and not path.is_symlink():
            yield _item(folder, str(int(person)), path)


LAYOUTS: Final = (
    Layout(
        "CelebA", "the numbers in identity_CelebA.txt", lambda folder: (folder / CELEBA).is_file(), _celeba
    ),
    Layout("RaFD", "the model's number in file names, as in Rafd090_01_…", _has_rafd, _rafd),
    Layout("KDEF", "folders such as AF01 and BF01, the same person in two sessions", _has_kdef, _kdef),
    Layout("CASIA-Iris", "folders 001/L and 001/R: every eye is one", _has_eyes, _eyes),
    Layout(
        "UTKFace",
        "nobody: every photo is one person's, as in 26_1_0_….jpg",
        _has_utkface,
        _by_itself,
        unnamed=True,
    ),
    Layout(
        "FFHQ",
        "nobody: every photo is one person's, as in 31000/31007.png",
        _has_ffhq,
        _by_itself,
        unnamed=True,
    ),
    Layout("folders", "a folder for each: AT&T, LFW, FaceScrub, PubFig, your own", Path.is_dir, _by_folder),
)
"""Layouts, the first that fits is taken."""
