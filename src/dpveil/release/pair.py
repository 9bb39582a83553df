"""The two parts of a release, wherever they are: in files of their own, or in one of many."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from dpveil.core.certificate import Certificate, Output, parse_certificate
from dpveil.core.envelope import MOST_BYTES
from dpveil.errors import INTACT, CertificateError, PhotoError
from dpveil.io import FORMATS, most_bytes, read_bytes
from dpveil.io.refused import Refused
from dpveil.io.screening import format_name
from dpveil.io.writing import only_picture

MORE: Final = "the image file holds more than a picture, or is not as dpveil writes it"
NO_GREY: Final = frozenset({"webp"})
"""Formats that store a grey release with three equal channels."""

Read = Callable[[int], bytes]
"""Returns bytes, at most so many; raises `Refused`."""


@dataclass(frozen=True)
class Pair:
    """An image and its certificate, which come from anyone.

    `path` is what messages call the image, and tells its format; nothing need be there. `image` and
    `certificate` return the bytes of each.
    """

    path: Path
    image: Read
    certificate: Read

    def problems(self, output: Output, max_pixels: int) -> Iterator[str]:
        """Yield why the image is not the one that its certificate describes, cheap reasons first."""
        if FORMATS.get(self.path.suffix.lower()) != output.format:
            yield f"its name does not end as that of a {output.format} file"
        try:
            contents = self.image(most_bytes(output.width * output.height))
        except Refused as refusal:
            yield f"the image {refusal.problem}"
            return
        if hashlib.sha256(contents).hexdigest() != output.sha256:
            yield "the image was changed: its SHA-256 is not the one in the certificate"
            return
        if (format_name(contents[:64]) or "unknown").lower() != output.format:
            yield f"the image is not a {output.format} file"
        elif not _is_picture(contents, output):
            yield MORE
            return  # unusual files may take long to decode
        try:
            photo = read_bytes(contents, str(self.path), max_pixels=max_pixels)
        except PhotoError as error:
            yield f"the image cannot be decoded: {error.message}"
            return
        grey = output.format in NO_GREY and bool((photo.image == photo.image[:, :, :1]).all())
        channels = output.channels if grey else photo.channels
        if (photo.width, photo.height, channels) != (output.width, output.height, output.channels):
            yield f"the image is {photo.width}×{photo.height}×{photo.channels}, not as the certificate says"


def _is_picture(contents: bytes, output: Output) -> bool:
    """Return whether a file is a picture alone; what its manifest states is read if c2pa-python is there."""
    marked = output.manifest is not None
    if not only_picture(contents, output.format, manifest=marked):
        return False
    if not (marked and find_spec("c2pa")):
        return True
    from dpveil.release.marking import states_no_more  # its imports make photos without a manifest slower

    return states_no_more(contents, output.format)


def parsed(read: Read) -> Certificate:
    """Return a certificate, whose content is untrusted; raises `CertificateError`."""
    try:
        return parse_certificate(read(MOST_BYTES).decode())
    except Refused as refusal:
        raise CertificateError(f"the certificate {refusal.problem}", hint=refusal.remedy) from refusal
    except UnicodeDecodeError as error:
        problem = "the certificate cannot be read: it is not UTF-8 text"
        raise CertificateError(problem, hint=INTACT) from error
