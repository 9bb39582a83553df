"""Photos of a data set: found in a cache by their content, or planned, paid for, drawn and kept.

The cache is a folder of releases: a photo that is met again, in another epoch or run, is not drawn again.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import numpy as np

from dpveil.accounting.meaning import check_strength_name
from dpveil.core.array_types import UInt8
from dpveil.core.certificate import Certificate, parse_certificate
from dpveil.core.envelope import MOST_BYTES
from dpveil.core.guarantee import Relation
from dpveil.core.parameters import check_count
from dpveil.core.photo import Photo
from dpveil.core.region import CoverageDigests
from dpveil.errors import (
    AlreadyPaid,
    CertificateError,
    DPVeilError,
    InvalidParameter,
    LedgerError,
    ModelError,
    NoRegion,
    OutputError,
)
from dpveil.io import (
    MAX_PIXELS,
    Source,
    is_present,
    leftovers,
    make_folder,
    most_bytes,
    read,
    read_bytes,
    read_untrusted,
    sole_writer,
    write_together,
)
from dpveil.io.names import check_path, show_path
from dpveil.io.unreadable import Refused
from dpveil.io.writing import refusal
from dpveil.ledger.ledger import Ledger
from dpveil.mechanisms.method import Method
from dpveil.noise.bits import SECURE, SecureBits
from dpveil.postprocessing import Step, parse_all
from dpveil.regions import Finder, Spec
from dpveil.release.plan import choose_method, plan
from dpveil.release.quote import require_strength
from dpveil.release.saving import (
    Budget,
    Release,
    certificate_path,
    check_payment,
    read_certificate,
    remove_leftovers,
)

KEY: Final = "key"  # the file of the secret that names releases, in the cache's folder
RELEASES: Final = "releases"
"""The folder of releases and certificates, the only part of a cache that may be published."""
DRAWING: Final = "drawing"  # the folder whose subfolders are locked while a photo is drawn
KEY_BYTES: Final = 32
REMEDY: Final = "get both of its files back; or take both away, and it is released, and paid for, anew"


@dataclass(frozen=True, repr=False)
class Stored:
    """A release: `contents` of its PNG, the `certificate` of that, and whether it was `drawn` just now.

    `path` is that of the PNG in a cache, if there is one.
    """

    contents: bytes
    certificate: Certificate
    drawn: bool
    path: Path | None = None

    def photo(self) -> Photo:
        """Return the released photo, decoded."""
        return read_bytes(self.contents, "the release")


class Cache:
    """Releases in `folder`, which is made if it is not there; processes and threads may share it.

    A release is found by the content of its original and the settings. It is named by an HMAC of both, whose
    key is in the file `key`, readable by its owner only: with it, whoever guesses a photo can check whether
    it is among the originals. Only the subfolder `releases` may be published. Raises `OutputError`, and
    `DPVeilError` if there are releases and no usable key, as all of them would be drawn again.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(check_path(folder, "give the name of a folder"))
        make_folder(self.folder)
        key = self.folder / KEY
        if not is_present(key) and not is_present(self.folder / RELEASES):
            with suppress(OutputError):  # another process may have made it meanwhile
                write_together([(key, os.urandom(KEY_BYTES))], replace=False, private=True)
        try:
            self._key = read_untrusted(key, KEY_BYTES)
        except Refused as refused:
            raise self._cache_error(f"the key of {show_path(self.folder)} {refused.problem}") from refused
        if len(self._key) != KEY_BYTES:
            raise self._cache_error(f"the key of {show_path(self.folder)} is damaged")

    @staticmethod
    def _cache_error(problem: str) -> DPVeilError:
        return DPVeilError(problem, hint="bring the file back, or choose another folder, which pays anew")

    def __repr__(self) -> str:
        return f"Cache({str(self.folder)!r})"

    @property
    def fingerprint(self) -> str:
        """What tells this cache from others and nothing of its key, for processes on other machines."""
        return self.name(b"fingerprint")

    def name(self, unit: bytes) -> str:
        """Return the name of a work unit, which tells nothing of it without the key."""
        return hmac.new(self._key, unit, hashlib.sha256).hexdigest()

    def path(self, unit: bytes) -> Path:
        """Return the path of the release of a work unit, whether it is there or not."""
        name = self.name(unit)
        return self.folder / RELEASES / name[:2] / f"{name[2:]}.png"

    @contextmanager
    def drawing(self, path: Path) -> Iterator[None]:
        """Let no other process or thread draw the photo whose release will be at `path`.

        Raises `OutputError` if another one does not finish, or where there are no locks.
        """
        lock = self.folder / DRAWING / path.parent.name / path.name[0]
        for folder in (lock, path.parent):
            make_folder(folder)
        with ExitStack() as stack:
            try:
                held = stack.enter_context(sole_writer([lock]))
            except OSError as error:
                raise refusal(path, error) from error
            if not held:
                problem = f"{show_path(lock)} cannot be locked, and another process could draw the same photo"
                raise OutputError(problem, hint="choose a folder on a disk that has locks")
            yield

    def find(self, path: Path) -> Stored | None:
        """Return the release at `path`, or None if there is none.

        Raises `CertificateError` if one of its files is missing, or if they do not belong together: nothing
        is drawn a second time because a file was damaged.
        """
        there = _files_present(path)
        if 0 < there < 2:  # it is being written, or its writer was killed
            remove_leftovers(path.parent, delete=False)
            there = _files_present(path)
        if not there:
            return None
        certificate = read_certificate(path, Certificate)
        output = certificate.output
        if output is None or not certificate.guarantees:
            raise CertificateError(f"{show_path(path)} is no release", hint=REMEDY)
        try:
            contents = read_untrusted(path, most_bytes(output.width * output.height))
        except Refused as refused:
            raise CertificateError(f"{show_path(path)} {refused.problem}", hint=REMEDY) from refused
        if hashlib.sha256(contents).hexdigest() != output.sha256:
            raise CertificateError(f"{show_path(path)} is not the file of its certificate", hint=REMEDY)
        return Stored(contents, certificate, drawn=False, path=path)

    def recover(self, path: Path, sha256s: Collection[str]) -> Stored | None:
        """Return the release that a ledger paid for, if its process was killed before the files got their
        names; its hash is one of `sha256s`.

        Both files are in the folder then, complete, under temporary names, and get those of `path`. Returns
        None if there are no such files. Only whoever is `drawing` the photo may call this.
        """
        with sole_writer([path.parent]) as alone:
            waiting = leftovers(path.parent) if alone else []
            images, certificates = {}, {}
            for each in waiting:
                with suppress(OSError, Refused, UnicodeDecodeError, CertificateError):
                    contents = read_untrusted(each, most_bytes(MAX_PIXELS))
                    images[hashlib.sha256(contents).hexdigest()] = each
                    if len(contents) <= MOST_BYTES:
                        output = parse_certificate(contents.decode()).output
                        certificates["" if output is None else output.sha256] = each
            found = next((hash_ for hash_ in sha256s if hash_ in images and hash_ in certificates), None)
            if found is None:
                return None
            try:
                certificates[found].replace(certificate_path(path))
                images[found].replace(path)
            except OSError as error:
                raise refusal(path, error) from error
        return self.find(path)

    def store(self, path: Path, release: Release) -> Stored:
        """Write a release to `path` and return it; raises `OutputError`.

        Once a ledger may know the files, they stay for `recover`, however this ends.
        """
        release.write(path, keep=True)
        stored = self.find(path)
        if stored is None:
            raise OutputError(f"{show_path(path)} is gone", hint="let nothing else write into the cache")
        return replace(stored, drawn=True)


def _files_present(path: Path) -> int:
    return is_present(path) + is_present(certificate_path(path))


ENDS: Final = (LedgerError, ModelError, OutputError)
"""Errors that are about no single photo: after one of these, no other photo is tried."""
IF_NONE: Final = (None, "whole")
FALLBACK: Final = "the whole photo was replaced where nothing was found, which is not asked for here"


@dataclass(frozen=True, kw_only=True)
class Releaser:
    """The settings of a data set's releases, and where they are kept; `of` makes one.

    Instances may be sent to other processes if `ledger` is a URL.
    """

    method: Method
    regions: tuple[Finder, ...]
    if_none: str | None
    post_processing: tuple[Step, ...]
    at_least: str | None
    max_pixels: int
    cache: Cache | None
    ledger: Budget | str | None = field(repr=False)
    subject: str | None

    @classmethod
    def of(
        cls,
        method: str | Method | None = None,
        *,
        cache: Cache | str | Path | None = None,
        regions: Spec | Sequence[Spec] | None = None,
        if_none: str | None = None,
        post_processing: Sequence[str | Step] | str | Step = (),
        at_least: str | None = None,
        max_pixels: int = MAX_PIXELS,
        ledger: Budget | str | None = None,
        subject: str | None = None,
        **parameters: Any,
    ) -> Releaser:
        """Return the releaser with these settings, which are checked before any photo is read.

        `cache` is a folder, `ledger` the URL of one or a `Ledger`, and all others are as in `dpveil.plan`,
        `dpveil.read` and `Plan.release`, except that photos without a region are never copied. Raises errors
        of `dpveil.errors`.
        """
        if if_none not in IF_NONE:
            hint = "choose whole, or leave it out"
            raise InvalidParameter("if_none", str(if_none), "is not possible in a data set", hint=hint)
        made_by, finders = choose_method(method, regions, parameters)
        check_payment(_open_ledger(ledger), subject, None, SecureBits())
        return cls(
            method=made_by,
            regions=finders,
            if_none=if_none,
            post_processing=tuple(parse_all(post_processing)),
            at_least=None if at_least is None else check_strength_name(at_least),
            max_pixels=check_count(max_pixels, "max_pixels"),
            cache=Cache(cache) if isinstance(cache, str | Path) else cache,
            ledger=ledger,
            subject=subject,
        )

    def release(
        self,
        photo: Source,
        *,
        row: str | None = None,
        timed: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> Stored:
        """Return the release of `photo`, which is anything that `dpveil.read` accepts.

        With a cache, a photo whose release is in it is neither drawn nor paid for: for each content and
        settings there is one draw, and with the name of a `row` for each of these as well. Without one, every
        call draws and pays. A release in the cache for which the subject did not pay from the ledger is
        refused. All work is done within contexts that `timed` makes, and waiting for others outside of them.
        Raises errors of `dpveil.errors`, and then nothing of the photo is released.
        """
        with timed():
            given = read(photo, max_pixels=self.max_pixels)
            if self.cache is None:
                contents, certificate = self._release(given, None).encode_with_certificate("png")
                return Stored(contents, certificate, drawn=True)
            unit = self._unit(given, row)
            path = self.cache.path(unit)
            found = self.cache.find(path)
        if found is None:
            with self.cache.drawing(path), timed():
                found = self.cache.find(path) or self._draw_or_recover(self.cache, path, given, unit)
        return self._check_stored(found, given)

    def _draw_or_recover(self, cache: Cache, path: Path, photo: Photo, unit: bytes) -> Stored:
        """Draw and keep a release, or return the one that was paid for when its process was killed."""
        try:
            release = self._release(photo, unit)
        except AlreadyPaid as error:
            found = cache.recover(path, error.sha256s)
            if found is None:
                raise
            return found
        return cache.store(path, release)

    def _release(self, photo: Photo, key: bytes | None) -> Release:
        made = plan(
            photo,
            self.method,
            regions=self.regions,
            if_none=self.if_none,
            post_processing=self.post_processing,
            at_least=self.at_least,
        )
        if self.ledger is None:
            return made.release()
        return made.release(ledger=_open_ledger(self.ledger), subject=self.subject, key=key)

    @property
    def ledger_files(self) -> Sequence[Path]:
        """The files of the ledger, which nothing else in this process may open; raises `LedgerError`."""
        files: Sequence[Path] = getattr(_open_ledger(self.ledger), "files", ())
        return files

    @property
    def settings(self) -> dict[str, Any]:
        """The settings as every certificate has to state them (`Certificate.settings`)."""
        return {
            "method": self.method.name,
            "parameters": self.method.parameters(),
            "request": [finder.description for finder in self.regions],
            "post_processing": [step.description for step in self.post_processing],
            "bits": SECURE,
        }

    @property
    def payer(self) -> tuple[str, str | None]:
        """The name of the ledger, and who pays; the name is empty without a ledger, or if it has none."""
        return str(getattr(_open_ledger(self.ledger), "name", "")), self.subject

    def _unit(self, photo: Photo, row: str | None) -> bytes:
        """Return a hash of the photo's levels and the settings: the work unit of cache and ledger.

        With a `row` it is a unit of that row: else the number of releases would tell which rows are alike. A
        grey photo in three channels is another unit, as its release has three, and so is the same photo in
        another format, whose blocks regions grow to. The hash follows from the
        original, so it leaves this process as an HMAC only.
        """
        rows = [] if row is None else [row]
        grid = None if photo.grid is None else asdict(photo.grid)
        settings = json.dumps([self.settings, photo.channels, grid, *rows], sort_keys=True).encode()
        content = CoverageDigests.of(photo, (), Relation("any-image")).photo
        return hashlib.sha256(hashlib.sha256(settings).digest() + content).digest()

    def _check_stored(self, stored: Stored, photo: Photo) -> Stored:
        stated = stored.certificate
        output = stated.output
        if (
            output is None
            or (output.width, output.height) != (photo.width, photo.height)
            or json.dumps(stated.settings, sort_keys=True) != json.dumps(self.settings, sort_keys=True)
        ):
            problem = "the stored release is of another photo, or has other settings"
            raise CertificateError(problem, hint="choose another cache: this one was altered")
        if self.if_none is None and any(region.origin.fallback for region in stated.regions):
            raise NoRegion(FALLBACK, hint="choose another cache, or ask for it")
        require_strength(self.at_least, stated.strength, stated.composition, regions=stated.regions)
        if not stored.drawn:
            self._check_paid(output.sha256)
        return stored

    def _check_paid(self, sha256: str) -> None:
        knows = getattr(_open_ledger(self.ledger), "knows", None)
        if callable(knows) and not knows(self.subject, sha256):
            problem = f"it has a stored release, and {self.subject} did not pay for that from this ledger"
            raise DPVeilError(problem, hint="choose another folder, where it is drawn and paid for")


def _open_ledger(ledger: Budget | str | None) -> Budget | None:
    return _by_url(ledger) if isinstance(ledger, str) else ledger


@lru_cache(maxsize=8)
def _by_url(url: str) -> Ledger:
    return Ledger(url)


class DPVeil:
    """A transform as those of albumentations: `veil(image=photo)["image"]` is a release of `photo`.

    `cache` names a folder, and each photo is drawn and spent once, whatever the number of epochs. `cache`,
    `ledger`, `subject`, `regions` and all other settings are those of `Releaser.of`. Nothing random may come
    before it: a photo that was cropped or flipped is another photo, which is drawn and spent anew. Raises
    errors of `dpveil.errors`, and then returns no image at all.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     DPVeil("fill", cache=folder)(image=np.full((4, 4), 9, np.uint8), label=7)["label"]
    7
    """

    available_keys: Final = frozenset({"image"})
    """The targets that it changes, for `albumentations.Compose`."""

    def __init__(
        self, method: str | Method | None = None, *, cache: Cache | str | Path, **settings: Any
    ) -> None:
        self.releaser = Releaser.of(method, cache=cache, **settings)

    def __call__(self, *, image: Source, **others: Any) -> dict[str, Any]:
        """Return the other targets unchanged, and `image` released: uint8, levels 0..255.

        It has the shape of a given array, and else height × width × channels (1 or 3).
        """
        return {**others, "image": self.image(image)}

    def image(self, photo: Source, **_: Any) -> UInt8[np.ndarray, ...]:
        """Return the levels of a release of `photo`, which is anything that `dpveil.read` accepts.

        It is a loader for `torchvision.datasets.ImageFolder`, and a function for `albumentations.Lambda`.
        """
        levels = self.releaser.release(photo).photo().image
        return np.array(levels.reshape(photo.shape) if isinstance(photo, np.ndarray) else levels)
