"""Does a saved release fit its certificate? Finds inconsistency, not forgery: certificates are not signed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from dpveil.catalogue import build
from dpveil.core.certificate import SEEDED, UNPROTECTED, Certificate, Output, this_tool
from dpveil.core.guarantee import Guarantee, Scope
from dpveil.core.region import Box
from dpveil.errors import CertificateError, DPVeilError, InvalidParameter, PhotoError
from dpveil.io import MAX_PIXELS, read
from dpveil.io.containers import format_name
from dpveil.postprocessing import parse_all
from dpveil.promise import (
    MISSING,
    NO_ACCOUNTANT,
    NONE_FOUND,
    accountant,
    bit_cautions,
    cautions,
    composition,
    is_face,
    promise,
)
from dpveil.regions.boxes import box_of_text
from dpveil.release import SUFFIX, certificate_path

NOT_FORGERY: Final = "certificates are not signed: this finds inconsistency, not forgery"
NO_GREY: Final = frozenset({"webp"})
"""Formats that give a grey release back with three equal channels."""


@dataclass(frozen=True)
class Verification:
    """What `verify` found about one image file.

    `status` is "consistent" (image, certificate and method agree), "unprotected" (they agree that it is a
    copy without any guarantee) or "inconsistent"; `problems` say why, one line each. `publishable` means
    consistent, with a formal guarantee and secure bits. `certificate` is None when it cannot be read.
    """

    path: Path
    status: str
    problems: tuple[str, ...] = ()
    certificate: Certificate | None = None

    @property
    def publishable(self) -> bool:
        """Whether the release may leave the house, as far as its certificate goes."""
        return self.status == "consistent" and self.certificate is not None and self.certificate.publishable


def verify(path: str | Path, *, max_pixels: int = MAX_PIXELS) -> Verification:
    """Return whether the image file at `path` (or the one that a certificate is beside) fits its certificate.

    Recomputes the file's hash, format and size, every guarantee from the method, its parameters and the
    sizes of the regions, and their composition. Never raises for what it finds in the files: that is a
    problem of the result. Source: docs, "Certificate".
    """
    text = str(path)
    image = Path(text.removesuffix(SUFFIX) if text.endswith(SUFFIX) else text)
    try:
        certificate = _load(image)
    except CertificateError as error:
        return Verification(image, "inconsistent", (str(error),))
    try:
        problems = tuple(_problems(image, certificate, max_pixels))
    except DPVeilError as error:
        problems = (f"the certificate cannot be recomputed: {error.message}",)
    sound = "consistent" if certificate.guarantees else "unprotected"
    return Verification(image, "inconsistent" if problems else sound, problems, certificate)


def _load(image: Path) -> Certificate:
    beside = certificate_path(image)
    if not _is_file(beside):
        missing = "has no certificate" if _is_file(image) else "does not exist"
        raise CertificateError(f"the file {missing}", hint="only what dpveil released can be verified")
    try:
        return Certificate.from_text(beside.read_bytes().decode())
    except (OSError, UnicodeDecodeError) as error:
        raise CertificateError("the certificate cannot be read", hint="release the photo again") from error


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:
        return False


def _problems(image: Path, certificate: Certificate, max_pixels: int) -> Iterator[str]:
    output = certificate.output
    if output is None:
        yield "the certificate describes no file"
        return
    yield from _file_problems(image, output, max_pixels)
    yield from (_promise_problems if certificate.guarantees else _copy_problems)(certificate, output)
    for text in (SEEDED, UNPROTECTED):
        due = certificate.bits == "seeded" if text == SEEDED else not certificate.guarantees
        if (text in certificate.warnings) != due:
            yield f"the warning {text.split(':')[0]!r} {'is missing' if due else 'does not belong here'}"


def _file_problems(image: Path, output: Output, max_pixels: int) -> Iterator[str]:
    if not _is_file(image):
        yield "the image is missing"
        return
    try:
        contents = image.read_bytes()
    except OSError as error:
        yield f"the image cannot be read ({error.strerror})"
        return
    if hashlib.sha256(contents).hexdigest() != output.sha256:
        yield "the image was changed: its SHA-256 is not the one in the certificate"
        return
    if (format_name(contents[:64]) or "unknown").lower() != output.format:
        yield f"the image is not a {output.format} file"
    try:
        photo = read(image, max_pixels=max_pixels)
    except PhotoError as error:
        yield f"the image cannot be decoded: {error.message}"
        return
    channels = output.channels if output.format in NO_GREY else photo.channels
    if (photo.width, photo.height, channels) != (output.width, output.height, output.channels):
        yield f"the image is {photo.width}×{photo.height}×{photo.channels}, not as the certificate says"


def _copy_problems(certificate: Certificate, output: Output) -> Iterator[str]:
    made = (certificate.method, dict(certificate.parameters), certificate.post_processing)
    if (*made, certificate.composition) != (None, {}, (), None) or (
        certificate.bits,
        certificate.accountant,
    ) != ("none", NO_ACCOUNTANT):
        yield "there is no guarantee, and yet a method, composition, accountant or bit source"


def _promise_problems(certificate: Certificate, output: Output) -> Iterator[str]:
    method = build(certificate.method or "", certificate.parameters)
    if json.dumps(method.parameters(), sort_keys=True) != json.dumps(
        dict(certificate.parameters), sort_keys=True
    ):
        yield "the parameters are not written as the method writes them"
    # Another version may put the same promise into other words: then only numbers are compared.
    same_words = certificate.tool == this_tool()
    size = {"width": output.width, "height": output.height, "channels": output.channels}
    for record, stated in zip(certificate.regions, certificate.guarantees, strict=True):
        if not record.box.inside(output.width, output.height):
            yield f"the region {record.in_words()} is outside the photo"
        if record.masked is not None and not 1 <= record.masked <= record.box.w * record.box.h:
            yield f"the region {record.in_words()} masks an impossible number of pixels"
        if not _agree(stated, expected := promise(method, record, **size), same_words):
            yield _difference(record.label, stated, expected)
    total = composition(method, certificate.regions, certificate.guarantees, output.channels)
    if certificate.composition is None or not _agree(certificate.composition, total, same_words):
        yield _difference("the composition", certificate.composition, total)
    if (
        tuple(step.description for step in parse_all(certificate.post_processing))
        != certificate.post_processing
    ):
        yield "the post-processing is not written as its steps write it"
    if certificate.accountant != accountant(method):
        yield f"the accountant {certificate.accountant!r} is unknown"
    due = bit_cautions(certificate.bits)
    due += cautions(method, certificate.regions, output.channels, total) if same_words else ()
    yield from (f"the warning {text!r} is missing" for text in due if text not in certificate.warnings)
    yield from _request_problems(certificate, output)


def _request_problems(certificate: Certificate, output: Output) -> Iterator[str]:
    """A box that was asked for lies inside a region (regions may grow, and `if_none` may protect all)."""
    boxes = [record.box for record in certificate.regions]
    found = any(is_face(record) or record.label == NONE_FOUND for record in certificate.regions)
    for text in certificate.request:
        if MISSING.format(text) in certificate.warnings:
            continue
        if text.partition(" ")[0] == "faces" and not found:
            yield "faces were requested, and no protected region is one"
        try:
            wanted = Box(0, 0, output.width, output.height) if text == "whole" else box_of_text(text)
        except InvalidParameter:
            continue
        if not any(_within(wanted, box) for box in boxes):
            yield f"the requested region {text} is in no protected region"


def _within(inner: Box, outer: Box) -> bool:
    across = outer.x <= inner.x and inner.x + inner.w <= outer.x + outer.w
    return across and outer.y <= inner.y and inner.y + inner.h <= outer.y + outer.h


def _agree(stated: Guarantee, expected: Guarantee, same_words: bool) -> bool:
    if not same_words:
        stated, expected = (replace(entry, scope=Scope("")) for entry in (stated, expected))
    return stated == expected


def _difference(what: str, stated: Guarantee | None, expected: Guarantee) -> str:
    if str(stated) == str(expected):
        numbers = stated is not None and replace(stated, scope=Scope("")) == replace(
            expected, scope=Scope("")
        )
        wrong = "the words of its scope are" if numbers else "a number is"
        return f"{what}: {wrong} not what the parameters and regions give"
    return f"{what}: the certificate states {stated}, and the parameters and regions give {expected}"
