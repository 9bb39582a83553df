"""One photo of a data set: found in a cache, or planned, paid for, drawn and kept."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from dpveil.accounting.meaning import at_least as enough
from dpveil.accounting.meaning import check_strength_name
from dpveil.core.guarantee import Relation
from dpveil.core.parameters import check_count
from dpveil.core.photo import Photo
from dpveil.core.region import Covered
from dpveil.datasets.cache import Cache, Stored
from dpveil.errors import (
    AlreadyPaid,
    CertificateError,
    DPVeilError,
    InvalidParameter,
    LedgerError,
    ModelError,
    NoRegion,
    OutputError,
    TooWeak,
)
from dpveil.io import MAX_PIXELS, Source, read
from dpveil.ledger.ledger import Ledger
from dpveil.mechanisms.method import Method
from dpveil.noise.bits import SECURE, SecureBits
from dpveil.postprocessing import Step, parse_all
from dpveil.regions import Finder, Spec
from dpveil.release.plan import choose_method, plan
from dpveil.release.saving import Budget, Release, check_payment

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
        content = Covered.of(photo, (), Relation("any-image")).photo
        return hashlib.sha256(hashlib.sha256(settings).digest() + content).digest()

    def _check_stored(self, stored: Stored, photo: Photo) -> Stored:
        """Return a stored release if it is what would be drawn today; raises `DPVeilError` if it is not."""
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
        if self.at_least is not None and not enough(stated.strength, self.at_least):
            strength, total = stated.strength, stated.composition
            raise TooWeak(asked=self.at_least, strength=strength, total=total)
        if not stored.drawn:
            self._check_paid(output.sha256)
        return stored

    def _check_paid(self, sha256: str) -> None:
        knows = getattr(_open_ledger(self.ledger), "knows", None)
        if callable(knows) and not knows(self.subject, sha256):
            problem = f"it has a stored release, and {self.subject} did not pay for that from this ledger"
            raise DPVeilError(problem, hint="choose another folder, where it is drawn and paid for")


def _open_ledger(ledger: Budget | str | None) -> Budget | None:
    """Return a ledger that is given by its URL as an open one, which this process keeps open."""
    return _by_url(ledger) if isinstance(ledger, str) else ledger


@lru_cache(maxsize=8)
def _by_url(url: str) -> Ledger:
    return Ledger(url)
