"""Verifies that a saved release matches its certificate; without trusted signatures, this detects
inconsistency, not forgery.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Final

from dpveil.accounting.meaning import at_least as enough
from dpveil.accounting.meaning import check_strength_name
from dpveil.core.certificate import Certificate, Output
from dpveil.core.guarantee import Guarantee
from dpveil.errors import INTACT, CertificateError, DPVeilError
from dpveil.io import MAX_PIXELS, is_present, received
from dpveil.io.names import check_path, quoted
from dpveil.io.refused import Refused
from dpveil.mechanisms.placement import Pose
from dpveil.postprocessing import stated as stated_step
from dpveil.release.keys import PublicKey, trusted_keys
from dpveil.release.pair import Pair, parsed
from dpveil.release.quote import NO_ACCOUNTANT, quote_of, with_sentences
from dpveil.release.requests import passing_problems, place_problems, request_problems
from dpveil.release.saving import certificate_path, image_path, read_certificate
from dpveil.release.trust import judged
from dpveil.release.verified import Verification
from dpveil.release.words import few_only

FORGED: Final = (
    "its signature is not one of this certificate by the key that it names: one of them was altered, or the"
    " certificate is forged"
)
MOST_PROBLEMS: Final = 20
"""Most problems that are reported."""
UNFORESEEN: Final = "the certificate cannot be recomputed"

Trusted = PublicKey | str | Path | Sequence[PublicKey | str | Path] | None
"""Public keys, or their files; None asks for nobody."""


def verify(
    path: str | Path,
    *,
    max_pixels: int = MAX_PIXELS,
    at_least: str | None = None,
    trust: Trusted = None,
) -> Verification:
    """Return whether the image file at `path`, which may also name its certificate, fits its certificate.

    That is `dpveil.verify` of a photo.
    """
    given = Path(check_path(path, "give the name of a released image"))
    wanted = asked(at_least, trust)
    image = image_path(given)
    if image is None:
        problem = "the name is that of no image's certificate"
        return _judged(Verification(given, "inconsistent", (problem,)), *wanted)
    pair = Pair(image, partial(_received, image), partial(received, certificate_path(image)))
    found = _verified(pair, partial(read_certificate, image), max_pixels)
    if found.certificate is None and not is_present(certificate_path(image)):
        found = replace(found, status="missing")
    return _judged(found, *wanted)


def verify_pair(
    pair: Pair,
    *,
    max_pixels: int = MAX_PIXELS,
    at_least: str | None = None,
    trust: Trusted = None,
) -> Verification:
    """Return whether an image fits its certificate, as `verify` does, wherever the two are."""
    wanted = asked(at_least, trust)
    return _judged(_verified(pair, partial(parsed, pair.certificate), max_pixels), *wanted)


def asked(at_least: str | None, trust: Trusted) -> tuple[str | None, tuple[PublicKey, ...] | None]:
    """Return what is asked of a release, checked: a strength, and trusted keys."""
    return None if at_least is None else check_strength_name(at_least), trusted_keys(trust)


def _judged(found: Verification, least: str | None, trusted: Sequence[PublicKey] | None) -> Verification:
    return judged(replace(found, refused=too_weak(found, least)), trusted)


def _received(image: Path, most: int) -> bytes:
    if not is_present(image):
        raise Refused("is missing", INTACT)
    return received(image, most)


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


def _verified(pair: Pair, stated: Callable[[], Certificate], max_pixels: int) -> Verification:
    image = pair.path
    try:
        certificate = stated()
    except CertificateError as error:
        return Verification(image, "inconsistent", (str(error),))
    problems = _at_most(_told(_problems(pair, certificate, max_pixels)))
    sound = "consistent" if certificate.guarantees else "unprotected"
    if problems:
        return Verification(image, "inconsistent", problems, certificate)
    certificate = with_sentences(certificate)
    few = certificate.composition is not None and few_only(certificate.composition) in certificate.warnings
    return Verification(image, sound, (), certificate, few)


def _told(problems: Iterator[str]) -> Iterator[str]:
    """Yield problems as they are found, each in one line; an exception on the way becomes the last one."""
    try:
        yield from map(quoted, problems)
    except DPVeilError as error:
        yield quoted(f"{UNFORESEEN}: {error.message}")
    except Exception as error:  # noqa: BLE001  an untrusted file must not end a run over many
        yield f"{UNFORESEEN} ({type(error).__name__})"


def _at_most(problems: Iterator[str]) -> tuple[str, ...]:
    """Return the first problems, and "and more" if there are others, which are not computed."""
    first = tuple(islice(problems, MOST_PROBLEMS))
    return (*first, "and more") if next(problems, None) else first


def contradictions(certificate: Certificate) -> tuple[str, ...]:
    """Return what is wrong with a certificate alone, one line each; its image is not looked at."""
    return _at_most(_told(_problems(None, certificate, MAX_PIXELS)))


def _problems(pair: Pair | None, certificate: Certificate, max_pixels: int) -> Iterator[str]:
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
    """Yield contradictions within the certificate itself, before anything is recomputed."""
    if not certificate.signature_fits():
        yield FORGED
    size = {"width": output.width, "height": output.height}
    if output.width * output.height > max_pixels:
        yield f"the certificate is of a photo of more than the limit of {max_pixels:,} pixels"
    wrong = [(r.in_words(), problem) for r in certificate.regions if (problem := r.problem(**size))]
    yield from (f"the region {words} {problem}" for words, problem in wrong)
    yield from passing_problems(certificate)
    if certificate.guarantees and not wrong:
        yield from request_problems(certificate, output)


def _copy_problems(certificate: Certificate, output: Output) -> Iterator[str]:
    made = (certificate.method, dict(certificate.parameters), certificate.post_processing)
    nothing: tuple[object, ...] = (None, {}, (), None, None)
    if {*certificate.missing} != {*certificate.request}:
        yield "it is a copy, and not everything that was asked for is missing"
    if (*made, certificate.composition, certificate.strength) != nothing or (
        certificate.bits,
        certificate.accountant,
    ) != ("none", NO_ACCOUNTANT):
        yield "there is no guarantee, and yet a method, composition, accountant or bit source"


def _promise_problems(certificate: Certificate, output: Output) -> Iterator[str]:
    quote = quote_of(certificate)
    method = quote.method
    if json.dumps(method.parameters(), sort_keys=True) != json.dumps(
        dict(certificate.parameters), sort_keys=True
    ):
        yield "the parameters are not written as the method writes them"
    yield from place_problems(certificate, output, method)
    for record, told, due in zip(certificate.regions, certificate.guarantees, quote.guarantees, strict=True):
        if told != due:
            yield _difference(record.label, told, due)
    if certificate.composition != quote.total:
        yield _difference("the composition", certificate.composition, quote.total)
    if certificate.strength != quote.strength:
        yield f"the strength is {quote.strength}, and the certificate says {certificate.strength!r}"
    if (
        tuple(stated_step(step).description for step in certificate.post_processing)
        != certificate.post_processing
    ):
        yield "the post-processing is not written as its steps write it"
    if certificate.accountant != quote.accountant:
        yield f"the accountant {certificate.accountant!r} is unknown"
    if certificate.pose is not None and (method.name != "latent" or Pose.of(certificate.pose) is None):
        yield f"the faces of {method.name} have one pose"


def _difference(what: str, stated: Guarantee | None, expected: Guarantee) -> str:
    if str(stated) == str(expected):
        return f"{what}: a number is not what the parameters and regions give"
    return f"{what}: the certificate states {stated}, and the parameters and regions give {expected}"
