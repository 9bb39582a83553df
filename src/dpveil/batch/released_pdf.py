"""Released documents: a PDF of pictures with a certificate beside it, written, read back and verified."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from hashlib import file_digest, sha256
from pathlib import Path
from typing import BinaryIO, Final

from dpveil.accounting.meaning import at_least as enough
from dpveil.accounting.meaning import check_strength_name
from dpveil.batch.archive_inputs import ARCHIVES, archive_of
from dpveil.batch.remote_output import write
from dpveil.core.certificate import parse_certificate
from dpveil.core.urls import Status
from dpveil.errors import CertificateError, OutputError, UnknownName
from dpveil.io.document import pieces, stream_of
from dpveil.io.folders import PDF, is_link
from dpveil.io.names import escape_text, show_path
from dpveil.io.reading import MAX_PIXELS
from dpveil.io.unreadable import COPY, COPY_AGAIN, LINK, Refused, Unread
from dpveil.io.untrusted_files import is_present, open_untrusted, read_untrusted
from dpveil.io.writing import flush_folder, temporary_path
from dpveil.release.document_certificate import MOST_BYTES, DocumentCertificate, Page
from dpveil.release.keys import SigningKey, trusted_keys
from dpveil.release.saving import ReleaseFiles, certificate_from, certificate_path
from dpveil.release.verification import FORGED, Trusted, Verification, verify_pair

FILE_ALTERED: Final = ("was changed after its release, or is not the one of its certificate", COPY_AGAIN)
NO_FILE: Final = "the file does not exist"
NO_CERTIFICATE: Final = "it has no certificate"
NO_DOCUMENT: Final = "the document is missing"
UNSIGNED: Final = "the certificate of the document is not signed by a key of --trust"
TOO_WEAK: Final = "its pages together promise {}, which is {}, and at least {} was asked for"
NO_SUM: Final = "its pages together have no guarantee, and at least {} was asked for"

Read = Callable[[], bytes]


def pack(
    folder: Path, target: Path, dpi: int, pages: Sequence[tuple[int, Read, Read]], key: SigningKey | None
) -> str:
    """Write a PDF of released pictures in place of any other, and its certificate, which gets its name first.

    Each page is its number and what reads its picture and its certificate; `folder` is where files are begun.
    Returns what its pages promise together. Raises `OSError` and `OutputError`.
    """
    told = []
    for number, image, certificate in pages:
        try:
            size = len(stream_of(image()))
        except ValueError as error:
            hint = "leave out what marks it"
            raise OutputError(f"page {number:,} is no plain picture", hint=hint) from error
        told.append(Page(number, size, parse_certificate(certificate().decode())))
    temporary, hashed = temporary_path(folder), sha256()

    def fill(file: BinaryIO) -> None:
        first, *others = pieces([page.sheet for page in told], dpi)
        reads = (stream_of(image()) for _, image, _ in pages)
        for part in (first, *(part for pair in zip(reads, others, strict=True) for part in pair)):
            hashed.update(part)
            file.write(part)

    try:
        write(folder, temporary, fill)
        size = temporary.stat().st_size
        stated = DocumentCertificate(sha256=hashed.hexdigest(), size=size, dpi=dpi, pages=tuple(told))
        text = (stated if key is None else key.sign(stated)).to_text().encode()
        if len(text) > MOST_BYTES:
            raise OutputError(
                f"cannot write {show_path(target)}: its certificate has more than {MOST_BYTES:,} bytes",
                hint="release fewer pages at a time",
            )
        target.unlink(missing_ok=True)  # no old document is seen beside a new certificate
        write(folder, certificate_path(target), text)
        temporary.replace(target)
        flush_folder(target.parent)
        return stated.together
    finally:
        temporary.unlink(missing_ok=True)


def check_document(path: Path, dpi: int, numbers: Sequence[int]) -> None:
    """Raise `Refused` unless a PDF is one of releases, in this resolution and of these pages."""
    stated = _read_certificate(path)
    with open_untrusted(path) as (file, status):
        _check(file, status, stated)
    if stated.dpi != dpi:
        raise Refused(f"has {stated.dpi} pixels per inch, not {dpi}", "")
    if [page.number for page in stated.pages] != list(numbers):
        raise Refused("is of other pages than those that are asked for", "")


def verify_page(path: Path, number: int) -> Verification:
    """Return whether the certificate of a page holds, of a document that was checked."""
    return verify_pair(_page_files(path, _pages_of(path, path.stat().st_mtime_ns)[number]))


@lru_cache(maxsize=2)
def _pages_of(path: Path, time: int) -> dict[int, Page]:
    return {page.number: page for page in _read_certificate(path).pages}


def _page_files(path: Path, page: Page) -> ReleaseFiles:
    text = page.certificate.to_text().encode()
    return ReleaseFiles(Path(f"{path}/{page.name}"), None, lambda most: text)


def _read_certificate(path: Path) -> DocumentCertificate:
    try:
        read = partial(read_untrusted, certificate_path(path))
        return certificate_from(read, DocumentCertificate, MOST_BYTES)
    except CertificateError as error:
        told = error.message.removeprefix("the certificate ")
        raise Refused(f"has a certificate that {told}", error.hint) from error


HEAD: Final = b"%PDF-"


def _check(file: BinaryIO, status: os.stat_result | Status, stated: DocumentCertificate) -> None:
    found = file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]
    if status.st_size != stated.size or found != stated.sha256:
        raise Refused(*FILE_ALTERED)
    file.seek(0)
    if not file.read(len(HEAD)) == HEAD:
        raise Refused("is none: it does not begin as one", COPY_AGAIN)


def verify_document(
    path: Path, *, max_pixels: int = MAX_PIXELS, at_least: str | None = None, trust: Trusted = None
) -> Iterator[Verification]:
    """Yield the verification of every page of a PDF, as of pictures, and of the document if it fails itself.

    The file is to have the bytes of its certificate; its pictures are not looked at. Problems are never
    raised. Raises `UnknownName` for a strength, and `InvalidParameter` for keys.
    """
    least = None if at_least is None else check_strength_name(at_least)
    trusted = trusted_keys(trust)
    keys = None if trusted is None else list(trusted)
    failed = partial(Verification, path, inside=path)
    if not is_present(path) or not is_present(certificate_path(path)):
        if is_present(certificate_path(path)):
            yield failed("inconsistent", (NO_DOCUMENT,))
        else:
            yield failed("missing", (NO_CERTIFICATE if is_present(path) else NO_FILE,))
        return
    try:
        if is_link(path):
            raise Refused(LINK, "")
        stated = _read_certificate(path)
        if not stated.signature_fits():
            yield failed("inconsistent", (FORGED,))
            return
        with open_untrusted(path) as (file, status):
            if any(page.sheet.width * page.sheet.height > max_pixels for page in stated.pages):
                yield failed("inconsistent", (f"a page has more than the limit of {max_pixels:,} pixels",))
                return
            _check(file, status, stated)
        for page in stated.pages:
            asked = least if page.certificate.guarantees or not stated.protected else None
            found = verify_pair(_page_files(path, page), max_pixels=max_pixels, at_least=asked, trust=keys)
            if found.status == "unprotected" and stated.protected and not found.untrusted:
                continue  # it is kept as it is, which the others' `together` says
            yield replace(found, inside=path, together=stated.together)
    except (Refused, CertificateError) as why:
        told = f"the PDF {why.problem}" if isinstance(why, Refused) else why.message
        yield failed("inconsistent", (escape_text(told),))
        return
    if least is not None and not enough(stated.strength, least):
        total = stated.composition
        words = NO_SUM.format(least) if total is None else TOO_WEAK.format(total, stated.strength, least)
        yield failed("consistent", refused=words)
    elif trusted is not None and not stated.signed_by(trusted):
        yield failed("consistent", untrusted=UNSIGNED)


NO_IMAGE: Final = "the image is missing"
NO_RELEASE: Final = "it holds no release"
REST_UNVERIFIED: Final = "what follows in it was not verified"


def verify_inside(
    path: Path, *, max_pixels: int = MAX_PIXELS, at_least: str | None = None, trust: Trusted = None
) -> Iterator[Verification]:
    """Yield the verification of everything in a file of many photos, about in its order.

    Each release is checked as by `verify`. Whatever has no certificate is "missing", also if it is no image,
    so that nothing in the file goes unseen. The file itself is "inconsistent" if it cannot be read, or from
    some part on, "unchecked" if what reads it is not installed, and "missing" if it holds nothing: there is
    always a result. Problems are never raised. Raises `UnknownName` for a file that is none of many photos by
    its suffix, and for a strength, and `InvalidParameter` for keys.
    """
    if path.suffix.lower() == PDF:
        yield from verify_document(path, max_pixels=max_pixels, at_least=at_least, trust=trust)
        return
    kind = archive_of(path)
    if kind is None:
        raise UnknownName("kind of file with many photos", path.suffix, ARCHIVES)
    least = None if at_least is None else check_strength_name(at_least)
    trusted, found = trusted_keys(trust), False
    if not is_present(path):
        yield Verification(path, "missing", (NO_FILE,), inside=path)
        return
    try:
        if is_link(path):
            raise Refused(LINK, COPY)
        with open_untrusted(path) as (file, status):
            for held in kind.held(file, status.st_size):
                found, place = True, Path(f"{path}/{held.name}")
                if held.problem:
                    yield Verification(place, "inconsistent", (f"it {held.problem}",), inside=path)
                elif held.image is None and held.certificate is not None:
                    yield Verification(place, "inconsistent", (NO_IMAGE,), inside=path)
                elif held.image is None or held.certificate is None:
                    yield Verification(place, "missing", (NO_CERTIFICATE,), inside=path)
                else:
                    pair = ReleaseFiles(place, held.image, held.certificate)
                    result = verify_pair(pair, max_pixels=max_pixels, at_least=least, trust=trusted)
                    yield replace(result, inside=path)
    except Refused as refusal:
        why = f"it {refusal.problem}" + (f", and {REST_UNVERIFIED}" if found else "")
        remedy = f": {refusal.remedy}" if refusal.remedy else ""
        unread = isinstance(refusal, Unread)
        yield Verification(path, "unchecked" if unread else "inconsistent", (f"{why}{remedy}",), inside=path)
        return
    if not found:
        yield Verification(path, "missing", (NO_RELEASE,), inside=path)
