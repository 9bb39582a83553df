"""A folder of releases, by the content of their originals: a photo that is met again is not drawn again."""

from __future__ import annotations

import hashlib
import hmac
import os
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from dpveil.core.certificate import Certificate, parse_certificate
from dpveil.core.envelope import MOST_BYTES
from dpveil.core.photo import Photo
from dpveil.errors import CertificateError, DPVeilError, OutputError
from dpveil.io import (
    MAX_PIXELS,
    is_present,
    leftovers,
    make_folder,
    most_bytes,
    read_bytes,
    read_untrusted,
    sole_writer,
    write_together,
)
from dpveil.io.names import check_path, show_path
from dpveil.io.unreadable import Refused
from dpveil.io.writing import refusal
from dpveil.release.saving import Release, certificate_path, read_certificate, tidy

KEY: Final = "key"
"""The file of the secret that names releases, in the cache's folder."""
RELEASES: Final = "releases"
"""The folder of releases and certificates, the only part of a cache that may be published."""
DRAWING: Final = "drawing"
"""The folder whose subfolders are locked while a photo is drawn."""
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
        """Return the folder, and nothing of the key."""
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
            tidy(path.parent, delete=False)
            there = _files_present(path)
        if not there:
            return None
        certificate = read_certificate(path)
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
    """Return how many of the two files of a release are there."""
    return is_present(path) + is_present(certificate_path(path))
