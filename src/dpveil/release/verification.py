"""Verifies that a release matches its certificate: unsigned, this shows inconsistency, not forgery."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

from dpveil.accounting.meaning import at_least as enough
from dpveil.accounting.meaning import check_strength_name
from dpveil.assets.file_reference import forbids_commerce
from dpveil.core.certificate import Certificate, Output
from dpveil.core.guarantee import Guarantee
from dpveil.errors import INTACT, DPVeilError
from dpveil.io.names import check_path, escape_text
from dpveil.io.reading import MAX_PIXELS
from dpveil.io.unreadable import Refused
from dpveil.io.untrusted_files import is_present, read_untrusted
from dpveil.noise.bits import SECURE, UNKNOWN
from dpveil.noise.bits import SEEDED as SEEDED_BITS
from dpveil.postprocessing import step_from_certificate as stated_step
from dpveil.release.keys import PublicKey, trusted_keys
from dpveil.release.quote import NO_ACCOUNTANT, quote_of, with_sentences
from dpveil.release.saving import (
    ReleaseFiles,
    certificate_from,
    certificate_path,
    image_path,
    read_certificate,
)
from dpveil.release.words import (
    bit_cautions,
    few_pixels_warning,
    kept_faces_sentences,
    passed_notes,
    share,
    total_warnings,
    traces,
)

UNREAD: Final = "its C2PA manifest was not looked into: a C2PA validator tells what it says"


@dataclass(frozen=True)
class Verification:
    """The result of verifying one image file.

    `status` is "consistent" (image, certificate and method agree), "unprotected" (they agree that it is a
    copy without any guarantee), "missing" (there is no certificate), "unchecked" (what reads the file is not
    installed) or "inconsistent"; `problems` say why, one line each. `certificate` is None if it cannot be
    read. `few_only` says that the promise is about few pixels only. `refused` says why the release
    does not satisfy `at_least`, or is empty. `signer` is the fingerprint of the key whose signature fits the
    certificate, `trusted_as` the name of the trusted key that this is, and `untrusted` says why no trusted
    key signed it, if one was asked for; each is empty if there is none. `inside` is the file of many releases
    that holds it, if one does, and `together` what all of it promise, if it is a document.
    """

    path: Path
    status: str
    problems: tuple[str, ...] = ()
    certificate: Certificate | None = None
    few_only: bool = False
    refused: str = ""
    signer: str = ""
    trusted_as: str = ""
    untrusted: str = ""
    inside: Path | None = None
    together: str = ""

    def __bool__(self) -> bool:
        raise TypeError("a verification is neither true nor false: read status or publishable")

    def __repr__(self) -> str:
        """Return the status and the first problem in one line."""
        first = next(iter(self.problems), self.refused or self.untrusted)
        why = f": {first}" if first else ""
        return f"Verification({str(self.path)!r}, {self.status}{why})"

    @property
    def sha256(self) -> str:
        """The SHA-256 of the image file, as its certificate states it; empty unless that is so."""
        stated = None if self.certificate is None else self.certificate.output
        return "" if stated is None or self.status not in ("consistent", "unprotected") else stated.sha256

    @property
    def costs(self) -> tuple[Guarantee, ...]:
        """What the release costs, draw by draw, as its certificate states it; empty if nothing was drawn."""
        stated = None if self.certificate is None else self.certificate.composition
        return () if stated is None else (stated,)

    @property
    def publishable(self) -> bool:
        """Whether the release is `sound` and has no `objections` to publishing it."""
        return self.sound and self.certificate is not None and not self.objections

    @property
    def sound(self) -> bool:
        """Whether the release is consistent, and neither `refused` nor `untrusted`."""
        return self.status == "consistent" and not self.refused and not self.untrusted

    @property
    def in_the_clear(self) -> tuple[str, ...]:
        """What a consistent release shows of the original, in sentences."""
        total = None if self.certificate is None else self.certificate.composition
        return () if total is None or self.status != "consistent" else total.scope.in_the_clear

    @property
    def objections(self) -> tuple[str, ...]:
        return () if self.certificate is None else self.certificate.objections

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes about a consistent release, recomputed, not copied from its certificate; else empty."""
        stated = self.certificate
        if self.status != "consistent" or stated is None or stated.composition is None:
            return ()
        known = stated.bits in (SECURE, SEEDED_BITS)
        notes = [*bit_cautions(stated.bits if known else UNKNOWN), *total_warnings(stated.composition)]
        notes += traces(stated.regions)
        if self.few_only:
            notes.append(few_pixels_warning(stated.composition))
        if (output := stated.output) is not None:
            if output.manifest:
                notes.append(UNREAD)
            if output.metadata:
                notes.append(f"kept of its EXIF: {', '.join(output.metadata)}")
            if part := share(stated.regions, output.width, output.height):
                notes.insert(0, part)
        if stated.columns:
            named = escape_text(", ".join(stated.columns))
            notes.append(f"beside it in the clear, and not checked: {named}")
        if forbids_commerce(stated.terms.values()):
            notes.append(RESEARCH_ONLY)
        notes += kept_faces_sentences(stated.request, stated.regions)
        notes += map(escape_text, passed_notes(stated.passed_over))
        return (*notes, *self.signature, *filter(None, [self.together]))

    @property
    def signature(self) -> tuple[str, ...]:
        """By whom the release is signed, in words; empty if it is not."""
        stranger = f"{self.signer}, which nobody vouched for"
        who = f"{self.trusted_as} ({self.signer})" if self.trusted_as else stranger
        return (f"signed by {who}",) * bool(self.signer)


RESEARCH_ONLY: Final = "for non-commercial research only"
FORGED: Final = (
    "its signature is not one of this certificate by the key that it names: one of them was altered, or the"
    " certificate is forged"
)
MOST_PROBLEMS: Final = 20  # most problems that are reported
UNFORESEEN: Final = "the certificate cannot be recomputed"

Found = TypeVar("Found", bound=Verification)


def judge(found: Found, least: str | None, trusted: Sequence[PublicKey] | None) -> Found:
    """Return a verification with why it is weaker than `least`, its signer, and why that is not `trusted`.

    None asks for nothing. The signature of a consistent release fits: others are inconsistent.
    """
    found, stated = replace(found, refused=too_weak(found, least)), found.certificate
    signature = None if stated is None or found.status == "inconsistent" else stated.signature
    signer = "" if signature is None else signature.signer
    if trusted is None:
        return replace(found, signer=signer)
    if signature is None:
        unsigned = "it is not signed, and only a trusted signature was to pass"
        return replace(found, untrusted=next(iter(found.problems), unsigned))
    for key in trusted:
        if key.data.hex() == signature.public_key:
            return replace(found, signer=signer, trusted_as=key.name or signer)
    return replace(found, signer=signer, untrusted=f"it is signed by {signer}, which is not a trusted key")


Trusted = PublicKey | str | Path | Sequence[PublicKey | str | Path] | None
"""Public keys, or their files; None asks for nobody."""


def verify(
    path: str | Path, *, max_pixels: int = MAX_PIXELS, at_least: str | None = None, trust: Trusted = None
) -> Verification:
    """Return whether the image file at `path`, which may also name its certificate, fits its certificate.

    That is `dpveil.verify` of a photo.
    """

    def photo(image: Path) -> Verification:
        def contents(most: int) -> bytes:
            if not is_present(image):
                raise Refused("is missing", INTACT)
            return read_untrusted(image, most)

        pair = ReleaseFiles(image, contents, partial(read_untrusted, certificate_path(image)))
        return _examine_photo(pair, partial(read_certificate, image, Certificate), max_pixels)

    return verify_file(path, photo, Verification, at_least=at_least, trust=trust)


def verify_file(
    path: str | Path,
    examine_file: Callable[[Path], Found],
    kind: type[Found],
    *,
    at_least: str | None,
    trust: Trusted,
) -> Found:
    """Return what `examine_file` finds of a file that `path` names, or its certificate, judged."""
    given = Path(check_path(path, "give the name of a released file"))
    wanted, file = check_requirements(at_least, trust), image_path(given)
    if file is None:
        return judge(kind(given, "inconsistent", ("the name is that of no file's certificate",)), *wanted)
    found = examine_file(file)
    if found.certificate is None and not is_present(certificate_path(file)):
        found = replace(found, status="missing")
    return judge(found, *wanted)


def verify_pair(
    pair: ReleaseFiles, *, max_pixels: int = MAX_PIXELS, at_least: str | None = None, trust: Trusted = None
) -> Verification:
    """Return whether an image fits its certificate, as `verify` does, wherever the two are."""
    wanted = check_requirements(at_least, trust)
    stated = partial(certificate_from, pair.certificate, Certificate)
    return judge(_examine_photo(pair, stated, max_pixels), *wanted)


def check_requirements(
    at_least: str | None, trust: Trusted
) -> tuple[str | None, tuple[PublicKey, ...] | None]:
    """Return what is asked of a release, checked: a strength, and trusted keys."""
    return None if at_least is None else check_strength_name(at_least), trusted_keys(trust)


def too_weak(found: Verification, least: str | None) -> str:
    """Return why the release is weaker than `least` or not publishable; empty if it is neither."""
    stated = found.certificate
    if least is None:
        return ""
    if found.status != "consistent" or stated is None:
        return next(iter(found.problems), "it is an unprotected copy")
    if enough(stated.strength, least):
        return "" if found.publishable else f"it is not publishable ({', '.join(found.objections)})"
    return f"it promises {stated.composition}, which is {stated.strength}, and at least {least} was asked for"


def examine(
    kind: type[Found], path: Path, stated: Callable[[], Any], problems: Callable[[Any], Iterable[str]]
) -> Found:
    """Return what is found of a release whose certificate `stated` reads; `problems` tell what is wrong.

    These are read one by one, until there are too many: nothing that is wrong with its files is raised.
    """
    certificate = None
    try:
        certificate = stated()
        found = _first_lines(problems(certificate))
    except DPVeilError as error:
        found = (escape_text(str(error)),)
    except Exception as error:  # noqa: BLE001  an untrusted file must not end a run over many
        found = (f"{UNFORESEEN} ({type(error).__name__})",)
    return kind(path, "inconsistent" if found else "consistent", found, certificate)


def _examine_photo(pair: ReleaseFiles, stated: Callable[[], Certificate], max_pixels: int) -> Verification:
    found = examine(Verification, pair.path, stated, lambda made: _problems(pair, made, max_pixels))
    certificate = found.certificate
    if certificate is None or found.problems:
        return found
    certificate = with_sentences(certificate)
    total = certificate.composition
    few = total is not None and few_pixels_warning(total) in certificate.warnings
    status = "consistent" if certificate.guarantees else "unprotected"
    return replace(found, status=status, certificate=certificate, few_only=few)


def _first_lines(problems: Iterable[str]) -> tuple[str, ...]:
    """Return the first problems, one line each, and "and more" if there are others; an error is the last."""
    lines: list[str] = []
    try:
        for problem in problems:
            if len(lines) == MOST_PROBLEMS:
                return (*lines, "and more")
            lines.append(escape_text(problem))
    except DPVeilError as error:
        lines.append(escape_text(f"{UNFORESEEN}: {error.message}"))
    except Exception as error:  # noqa: BLE001  as above
        lines.append(f"{UNFORESEEN} ({type(error).__name__})")
    return tuple(lines)


def contradictions(certificate: Certificate) -> tuple[str, ...]:
    """Return what is wrong with a certificate alone, one line each; its image is not looked at."""
    return _first_lines(_problems(None, certificate, MAX_PIXELS))


def _problems(pair: ReleaseFiles | None, certificate: Certificate, max_pixels: int) -> Iterator[str]:
    """Yield problems in stages of rising cost; a stage is only run if the ones before found nothing."""
    output = certificate.output
    if output is None:
        yield "the certificate describes no file"
        return
    promises = _promise_problems if certificate.guarantees else _copy_problems
    wrong = _text_problems(certificate, output, max_pixels)
    shown = () if pair is None else pair.problems(output, max_pixels)
    for problems in (wrong, shown, promises(certificate, output)):
        found = False
        for problem in problems:
            found = True
            yield problem
        if found:
            return


def _text_problems(certificate: Certificate, output: Output, max_pixels: int) -> Iterator[str]:
    if not certificate.signature_fits():
        yield FORGED
    size = {"width": output.width, "height": output.height}
    if output.width * output.height > max_pixels:
        yield f"the certificate is of a photo of more than the limit of {max_pixels:,} pixels"
    for region in certificate.regions:
        if problem := region.problem(**size):
            yield f"the region {region.in_words()} {problem}"
    if certificate.guarantees:
        yield from _request_problems(certificate)


def _request_problems(certificate: Certificate) -> Iterator[str]:
    """Yield requests without a region, and regions that nobody asked for.

    Whether a region's place is one that its finder could have given is not asked: without a trusted signature
    the image and all of its certificate can be forged together anyway.
    """
    finders, request = {record.origin.finder for record in certificate.regions}, {*certificate.request}
    missing = {*certificate.missing}
    if not request:
        yield "nothing was asked for"
    yield from (f"{text} is missing and was not asked for" for text in sorted(missing - request))
    if any(record.origin.fallback for record in certificate.regions):
        return
    yield from (
        f"{text} was requested, and no region is of it" for text in sorted(request - missing - finders)
    )
    yield from (f"{text} is missing, and a region is of it" for text in sorted(missing & finders))
    yield from (f"a region is of {text!r}, which was not asked for" for text in sorted(finders - request))


def _copy_problems(certificate: Certificate, output: Output) -> Iterator[str]:
    if {*certificate.missing} != {*certificate.request}:
        yield "it is a copy, and not everything that was asked for is missing"
    made = certificate.method, certificate.composition, certificate.strength
    drawn = (*certificate.parameters, *certificate.post_processing, *(one for one in made if one is not None))
    if drawn or (certificate.bits, certificate.accountant) != ("none", NO_ACCOUNTANT):
        yield "there is no guarantee, and yet a method, composition, accountant or bit source"


def _promise_problems(certificate: Certificate, output: Output) -> Iterator[str]:
    quote = quote_of(certificate)
    method = quote.method
    written, stated = method.parameters(), dict(certificate.parameters)
    if json.dumps(written, sort_keys=True) != json.dumps(stated, sort_keys=True):
        yield "the parameters are not written as the method writes them"
    for record, told, due in zip(certificate.regions, certificate.guarantees, quote.guarantees, strict=True):
        if told != due:
            yield _difference(record.label, told, due)
    if certificate.composition != quote.total:
        yield _difference("the composition", certificate.composition, quote.total)
    if certificate.strength != quote.strength:
        yield f"the strength is {quote.strength}, and the certificate says {certificate.strength!r}"
    if any(stated_step(step).description != step for step in certificate.post_processing):
        yield "the post-processing is not written as its steps write it"
    if certificate.accountant != quote.accountant:
        yield f"the accountant {certificate.accountant!r} is unknown"


def _difference(what: str, stated: Guarantee | None, expected: Guarantee) -> str:
    if str(stated) == str(expected):
        return f"{what}: a number is not what the parameters and regions give"
    return f"{what}: the certificate states {stated}, and the parameters and regions give {expected}"
