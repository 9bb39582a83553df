"""A release: the private image and its certificate, saved together or not at all."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np

from dpveil.core.array_types import UInt8
from dpveil.core.certificate import MANIFEST, Certificate, Output
from dpveil.core.envelope import MOST_BYTES, Sealed, parse
from dpveil.core.guarantee import count_noun
from dpveil.core.jpeg_blocks import JpegBlocks
from dpveil.core.urls import Url
from dpveil.errors import INTACT, CertificateError, OutputError, PhotoError
from dpveil.io.exif import NO_TEXTS, check_texts
from dpveil.io.locking import leftovers, sole_writer
from dpveil.io.names import FORMATS, check_path, format_of, show_path
from dpveil.io.reading import MAX_PIXELS, most_bytes, read_bytes
from dpveil.io.screening import format_name
from dpveil.io.unreadable import Refused
from dpveil.io.untrusted_files import is_present, read_untrusted
from dpveil.io.writing import encode, only_picture, sha256_of, write_together

if TYPE_CHECKING:
    import PIL.Image

    from dpveil.release.c2pa_manifests import Marker
    from dpveil.release.keys import SigningKey


MORE: Final = "the image file holds more than a picture, or is not as dpveil writes it"
NO_GREY: Final = frozenset({"webp"})  # formats that store a grey release with three equal channels

Read = Callable[[int], bytes]  # returns bytes, at most so many; raises `Refused`


class Payment(Protocol):
    """A debit for one release, as `dpveil.ledger.Reservation` once it is committed."""

    def stored(self, sha256: str) -> None:
        """Note the SHA-256 of a file of the release, before that file gets its name."""


@dataclass(frozen=True)
class ReleaseFiles:
    """An image and its certificate, which come from anyone.

    `path` is what messages call the image, and tells its format; nothing need be there. `image` and
    `certificate` return the bytes of each.
    """

    path: Path
    image: Read | None
    certificate: Read

    def problems(self, output: Output, max_pixels: int) -> Iterator[str]:
        """Yield why the image is not the one that its certificate describes, cheap reasons first."""
        if self.image is None:  # a page, whose document has a hash of its own
            return
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
        elif not only_picture(
            contents, output.format, manifest=output.manifest is not None, texts=check_texts(output.metadata)
        ):
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


def certificate_from(read: Read, kind: type[Sealed], most: int = MOST_BYTES) -> Sealed:
    """Return a certificate, whose content is untrusted; raises `CertificateError`, and `MissingPlugin`."""
    try:
        return parse(read(most).decode(), kind)
    except Refused as refusal:
        raise CertificateError(f"the certificate {refusal.problem}", hint=refusal.remedy) from refusal
    except UnicodeDecodeError as error:
        problem = "the certificate cannot be read: it is not UTF-8 text"
        raise CertificateError(problem, hint=INTACT) from error


SUFFIX: Final = ".certificate.json"
CLIPS: Final = {".mp4": "mp4", ".m4v": "mp4", ".mov": "mov", ".mkv": "mkv", ".webm": "webm"}
"""Formats of released clips, by suffix."""


def certificate_path(image: str | Path) -> Path:
    """Return the path of an image file's certificate.

    >>> certificate_path("group.private.png").name
    'group.private.png.certificate.json'
    """
    return image.with_name(f"{image.name}{SUFFIX}") if isinstance(image, Url) else Path(f"{image}{SUFFIX}")


def image_path(path: Path) -> Path | None:
    """Return the image's path for a path of the image or of its certificate; None if no name would be left.

    >>> str(image_path(Path("a.png.certificate.json"))), image_path(Path(".certificate.json"))
    ('a.png', None)
    """
    if not path.name.endswith(SUFFIX):
        return path
    name = path.name.removesuffix(SUFFIX)
    return path.with_name(name) if name.strip(".") else None


def is_clip(path: Path) -> bool:
    """Whether a path has the name of a clip in one of `CLIPS`, or that of the certificate of one.

    >>> is_clip(Path("private.mp4")), is_clip(Path("private.mp4.certificate.json")), is_clip(Path("a.png"))
    (True, True, False)
    """
    clip = image_path(path)
    return clip is not None and clip.suffix.lower() in CLIPS


def read_certificate(image: Path, kind: type[Sealed]) -> Sealed:
    """Return the certificate beside a file, such as an image; its content is untrusted.

    Raises `CertificateError` if there is none, or it cannot be read or parsed.
    """
    beside = certificate_path(image)
    if not is_present(beside):
        missing = "has no certificate" if is_present(image) else "does not exist"
        raise CertificateError(f"the file {missing}", hint="only what dpveil released can be verified")
    return certificate_from(partial(read_untrusted, beside), kind)


@dataclass(frozen=True, eq=False)
class Release:
    """A private photo: `image` is uint8, height × width × channels, levels 0..255 and read-only.

    `certificate` states the guarantee. `notes` say how the file was converted when it was read, what
    was not searched for in it, or may have been missed; they are for the owner of the original, and are never
    saved.
    `paid` is the debit in a ledger.
    `blocks` are those of an original JPEG that hold nothing of a region: a release that is a JPEG keeps them.
    """

    image: UInt8[np.ndarray, "h w c"]
    certificate: Certificate
    notes: tuple[str, ...] = ()
    paid: Payment | None = None
    blocks: JpegBlocks | None = None

    def __repr__(self) -> str:
        """Return the size and the certificate only: a representation ends up in logs."""
        height, width, channels = self.image.shape
        return f"Release({width}×{height}, {count_noun(channels, 'channel')}, {self.certificate!r})"

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """Return a copy of the released image, for `numpy.asarray`."""
        return np.array(self.image, dtype=dtype, copy=copy)

    def to_pil(self) -> PIL.Image.Image:
        """Return the released image as a Pillow image of mode L or RGB."""
        from PIL import Image

        return Image.fromarray(self.image[:, :, 0] if self.image.shape[2] == 1 else self.image)

    def _repr_png_(self) -> bytes | None:
        """Return the image as a PNG for notebooks, which store it; None for an unprotected copy."""
        return encode(self.image, "png") if self.certificate.guarantees else None

    def save(
        self,
        path: str | Path,
        *,
        replace: bool = False,
        sign: SigningKey | str | Path | None = None,
        mark: Marker | None = None,
        metadata: Mapping[str, str] = NO_TEXTS,
    ) -> tuple[Path, Path]:
        """Write the image to `path` and its certificate beside it; return both paths.

        The suffix of `path` determines the format. Both files are written or neither, the certificate first;
        existing files are an error unless `replace`. `sign` is a key, or the name of an unencrypted key file,
        that signs the certificate; `mark` adds a C2PA manifest to the image, and `metadata` EXIF: texts by
        name (date, copyright, caption), which a JPEG or PNG then shows to everybody and the certificate
        states. Raises `UnknownName` for a suffix, `InvalidParameter` for a key or a text, and `OutputError`.
        """
        self.write(path, replace=replace, sign=sign, mark=mark, metadata=metadata)
        return Path(path), certificate_path(path)

    def write(
        self,
        path: str | Path,
        *,
        replace: bool = False,
        sign: SigningKey | str | Path | None = None,
        mark: Marker | None = None,
        metadata: Mapping[str, str] = NO_TEXTS,
    ) -> Certificate:
        """Write both files as `save` does, which returns paths; return the certificate, with its `output`."""
        target = Path(check_path(path, "give the name of a file, such as private.png"))
        key = None
        if sign is not None:
            from dpveil.release.keys import signing_key

            key = signing_key(sign)
        contents, certificate = self.encode_with_certificate(
            format_of(target), sign=key, mark=mark, metadata=metadata
        )
        text = certificate.to_text().encode()
        if len(text) > MOST_BYTES:
            problem = f"cannot write {show_path(target)}: its certificate has more than {MOST_BYTES:,} bytes"
            raise OutputError(problem, hint="nobody could verify it; release fewer regions")

        def note() -> None:
            # The ledger knows a file before it has its name, and none that could not be written. The folder
            # stays locked meanwhile: else another process could take the name in between.
            if self.paid is not None and certificate.output is not None:
                self.paid.stored(certificate.output.sha256)

        files = [(certificate_path(target), text), (target, contents)]
        write_together(files, replace=replace, before=note)
        return certificate

    def encode_with_certificate(
        self,
        format: str,  # noqa: A002  the field's word
        *,
        sign: SigningKey | None = None,
        mark: Marker | None = None,
        metadata: Mapping[str, str] = NO_TEXTS,
    ) -> tuple[bytes, Certificate]:
        """Return the bytes of an image file in this `format`, such as "png", and its certificate.

        `sign`, `mark` and `metadata` are as in `save`. Raises `UnknownName` for a format that dpveil does not
        write, and `OutputError`.
        """
        texts, (height, width, channels) = check_texts(metadata), self.image.shape

        def stated(manifest: str | None = None) -> Certificate:
            sha256 = hashlib.sha256(contents).hexdigest()
            output = Output(sha256, format, width, height, channels, manifest, texts)
            return replace(self.certificate, output=output)

        if self.blocks is None or format != "jpeg":
            contents = encode(self.image, format, texts)
        else:
            from dpveil.io.jpeg import jpeg_file

            contents = jpeg_file(self.blocks.with_pixels(self.image), texts)
        certificate = stated()
        if mark is not None:
            contents = mark.embed_manifest(contents, format, certificate)
            certificate = stated(MANIFEST)
        return contents, certificate if sign is None else sign.sign(certificate)


def remove_leftovers(folder: Path) -> None:
    """Complete or remove what killed processes left in `folder`.

    If the image of a certificate still has its temporary name, it gets its own; all other temporary files are
    deleted. Waits for another process that writes there; does nothing if the folder cannot be locked.
    """
    if not leftovers(folder):
        return
    with suppress(OSError), sole_writer([folder]) as alone:
        if not alone:
            return
        found = leftovers(folder)
        _finish(folder, found)
        for path in found:
            with suppress(OSError):  # it may be a folder
                path.unlink(missing_ok=True)


def _finish(folder: Path, found: Sequence[Path]) -> None:
    """Rename temporary files that were `found` to the missing images whose certificates state their hash.

    Files larger than any of these images can be, or than MAX_PIXELS allows, are not read.
    """
    without: dict[str, tuple[Path, Output]] = {}
    for beside in sorted(_regular_files(folder.glob(f"*{SUFFIX}"))):
        image = image_path(beside)
        if image is not None and not os.path.lexists(image):
            with suppress(CertificateError):
                if (output := read_certificate(image, Certificate).output) is not None:
                    without[output.sha256] = image, output
    pixels = max((output.width * output.height for _, output in without.values()), default=0)
    for path in _regular_files(found) if without else ():
        if path.lstat().st_size <= most_bytes(min(pixels, MAX_PIXELS)):
            image, _ = without.pop(sha256_of(path), (None, None))
            if image is not None:
                path.replace(image)


def _regular_files(paths: Iterable[Path]) -> Iterator[Path]:
    return (path for path in paths if path.is_file() and not path.is_symlink())
