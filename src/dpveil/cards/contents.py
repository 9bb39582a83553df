"""The files of a card: releases that were verified, or the pictures of a synthetic data set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from dpveil.accounting.meaning import NONE
from dpveil.core.certificate import Certificate
from dpveil.core.guarantee import Guarantee, counted
from dpveil.errors import CertificateError, OutputError, UsageError
from dpveil.io.folders import real
from dpveil.io.names import format_of, quoted, shown
from dpveil.noise.bits import SECURE
from dpveil.release.verification import Verification
from dpveil.synthesis.certificate import SetCertificate
from dpveil.synthesis.plan import SHEET

CHECK: Final = (
    "a card is made of what dpveil verify finds publishable: mend the folder, or leave the file out"
)
UNPACK: Final = (
    "unpack it (docs, Many photos), and make the card of the folder of its images and certificates"
)
NO_RELEASES: Final = "name a folder of releases, or one that dpveil synthesize made"


@dataclass(frozen=True)
class Listed:
    """One picture: its `name` below the folder, with slashes, the SHA-256 of its bytes, and its `format`.

    `certificate` and `notes` are those of a release; a picture of a synthetic set has none of its own.
    `picture` is False for a contact sheet.
    """

    name: str
    sha256: str
    format: str
    certificate: Certificate | None = None
    notes: tuple[str, ...] = ()
    picture: bool = True

    @property
    def guarantee(self) -> Guarantee | None:
        """The promise about this picture, if it has one of its own."""
        return None if self.certificate is None else self.certificate.composition


def releases(folder: Path, found: Sequence[Verification]) -> tuple[Listed, ...]:
    """Return the releases of a folder, sorted by name; `found` is the verification of every picture in it.

    All of it would be published with the card, so one file that is no release refuses the whole: raises
    `CertificateError` if a file is not consistent, has no certificate, or may not be published for another
    reason than its strength, and `OutputError` for names that a card cannot state.
    """
    if not found:
        raise CertificateError("there are no releases in the folder", hint=NO_RELEASES)
    if packed := next((one.inside for one in found if one.inside is not None), None):
        problem = f"{quoted(shown(packed))} holds several releases in one file, which a card cannot list"
        raise CertificateError(problem, hint=UNPACK)
    wrong = [(one.path, why) for one in found if (why := _against(one))]
    if wrong:
        path, why = wrong[0]
        more = f" (and {counted(len(wrong) - 1, 'other file')})" if len(wrong) > 1 else ""
        raise CertificateError(f"{quoted(shown(path))}: {quoted(why)}{more}", hint=CHECK)
    clips = [one.path for one in found if not isinstance(one.certificate, Certificate)]
    if clips:
        problem = f"{quoted(shown(clips[0]))} is a clip, and a card lists pictures"
        raise CertificateError(problem, hint="keep clips in a folder of their own")
    return tuple(sorted((_listed(folder, one) for one in found), key=lambda one: one.name))


def pictures(stated: SetCertificate) -> tuple[Listed, ...]:
    """Return the files of a synthetic set, sorted by name.

    Raises `CertificateError` unless it is made from secure bits.
    """
    if stated.bits != SECURE:
        raise CertificateError(f"the set was made from {stated.bits} bits", hint=CHECK)
    names = sorted(stated.files)
    return tuple(Listed(name, stated.files[name], "png", picture=name != SHEET) for name in names)


def prefix(folder: Path, out: Path) -> str:
    """Return what leads from a card at `out` to the files of `folder`: empty, or names with a slash each.

    Raises `UsageError` unless the card lies in the folder itself or in one above it, so that no name in it
    leads out of the card's own folder, and `OutputError` for names that a card cannot state.
    """
    home, inner = real(out.parent), real(folder)
    if not inner.is_relative_to(home):
        problem = f"the card {shown(out)} would lie beside the files that it lists, or below them"
        raise UsageError(problem, hint="write it to the folder itself, or to one above it")
    return "".join(f"{_plain(part)}/" for part in inner.relative_to(home).parts)


def _against(found: Verification) -> str:
    """Return why a file has no place in a card; empty if it has one."""
    stated = found.certificate
    if found.status == "unprotected":
        return "it is a copy of the original and carries no guarantee"
    if found.status != "consistent" or stated is None or stated.output is None or stated.composition is None:
        return "; ".join(found.problems) or "it is no release"
    others = [objection for objection in found.objections if objection != NONE]
    return found.refused or found.untrusted or (f"not publishable: {', '.join(others)}" if others else "")


def _listed(folder: Path, found: Verification) -> Listed:
    parts = found.path.relative_to(folder).parts
    stated = found.certificate
    if stated is None or stated.output is None:
        raise CertificateError("there is no certificate", hint=CHECK)
    name = "/".join(map(_plain, parts))
    return Listed(name, stated.output.sha256, format_of(name), stated, found.notes)


def _plain(part: str) -> str:
    """Return one name of a path; raises `OutputError` if a card cannot state it as part of an address."""
    if part in (".", "..") or not part.isprintable() or "\\" in part or "/" in part:
        problem = f"a card cannot state the name {quoted(shown(part))}"
        raise OutputError(problem, hint="rename it, without control characters and backslashes")
    return part
