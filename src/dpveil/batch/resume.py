"""Reruns: a photo already released with the same settings is not paid for again."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Final

from dpveil.accounting.meaning import at_least
from dpveil.batch.choices import Choices
from dpveil.batch.state import Stamp, State
from dpveil.batch.tasks import Task
from dpveil.core.certificate import Certificate
from dpveil.errors import CertificateError, DPVeilError, TooWeak
from dpveil.io import sole_writer
from dpveil.io.names import shown
from dpveil.release.saving import certificate_path, read_certificate, tidy
from dpveil.release.verification import verify

ARGUMENTS: Final = {"force": "force=True", "out": "out", "names": "names", "at_least": "at_least"}
ALONE: Final = "release this one file with {force}"
"""What to do about one photo of many: with the whole folder, every photo would be paid for again."""


def finished(
    task: Task, choices: Choices, state: State, stamp: Stamp | None
) -> tuple[Path, Certificate] | None:
    """Return the release of an earlier run with the same settings, or None if there is nothing.

    Raises `DPVeilError` where something else lies there, a release of another photo, or one of what the input
    was before it was replaced (`stamp` is what it is like now), and `TooWeak` where it promises too little.
    """
    place = _place(task, choices, state)
    if place is None:
        return None
    output, certificate = place
    sha256 = "" if certificate.output is None else certificate.output.sha256
    if state.replaced(sha256, stamp):
        if state.another(sha256, task.source.name):
            raise DPVeilError(
                f"{shown(output)} was released from a photo of another name, not from {shown(task.source)}",
                hint=f"choose another {{out}}, or rename one; or {ALONE}, which puts it in its place",
                arguments=ARGUMENTS,
            )
        raise DPVeilError(
            f"{shown(task.source)} was replaced or changed since {shown(output)} was released from it",
            hint=f"{ALONE}, which costs again, or choose another {{out}}",
            arguments=ARGUMENTS,
        )
    if choices.at_least is None:
        return place
    if not certificate.in_these_words:
        raise DPVeilError(
            f"{shown(output)} is a release by {certificate.tool}, whose certificate this version cannot check"
            " in full",
            hint="leave out {at_least}, or use that version of dpveil",
            arguments=ARGUMENTS,
        )
    if not at_least(certificate.strength, choices.at_least) or certificate.missing:
        raise TooWeak(
            asked=choices.at_least,
            strength=certificate.strength,
            total=certificate.composition,
            missing=certificate.missing,
        )
    return place


def same(output: Path, choices: Choices) -> Certificate | None:
    """Return the certificate of what lies at `output`, if it is a sound release with these settings."""
    found = verify(output, max_pixels=choices.max_pixels)
    if found.status in ("inconsistent", "missing"):  # another run may be writing it, or was killed meanwhile
        tidy(output.parent)
        with suppress(OSError), sole_writer([output.parent]):
            found = verify(output, max_pixels=choices.max_pixels)
    stated = found.certificate
    if stated is None:
        return None
    if found.status == "unprotected":  # what an earlier run copied, where it was told to
        asked = list(stated.request) == choices.settings["request"]
        return stated if choices.if_none == "copy" and asked else None
    allowed = {"copy": stated.missing, "whole": [r for r in stated.regions if r.origin.fallback]}
    if any(used and choices.if_none != way for way, used in allowed.items()):
        return None  # nothing was found then, and this run would refuse the photo
    return stated if found.status == "consistent" and stated.settings == choices.settings else None


def _place(task: Task, choices: Choices, state: State) -> tuple[Path, Certificate] | None:
    """Return where a release with these settings lies; raises where something else does."""
    if _exists(task.output):
        if stated := same(task.output, choices):
            return task.output, stated
        raise DPVeilError(
            f"{shown(task.output)} exists and is not a release with these settings",
            hint=f"choose another {{out}}, or {ALONE}, which replaces it and costs again",
            arguments=ARGUMENTS,
        )
    for place in earlier(task):
        raise DPVeilError(
            f"{shown(place)} may be an earlier release of it, so releasing it again would cost twice",
            hint=f"name outputs as then ({{names}}), or choose another {{out}}; or {ALONE}: their costs add",
            arguments=ARGUMENTS,
        )
    if task.former is None or not _exists(task.former):
        return None
    # A name with both suffixes can only come from this photo; a name without may come from a sibling.
    longer = len(task.former.name) > len(task.output.name)
    if longer and (stated := same(task.former, choices)):
        return task.former, stated
    raise _of_whom(task, task.former, state)


def _of_whom(task: Task, former: Path, state: State) -> DPVeilError:
    """Return the refusal of a photo that `former` may be a release of, or of another with the same stem."""
    place, sha256, suffixed = shown(former), "", "rename it (and its certificate) to {}"
    with suppress(CertificateError):
        output = read_certificate(former).output
        sha256 = "" if output is None else output.sha256
    if not state.another(sha256, task.source.name):
        problem = f"{place} may be an earlier release of it, so releasing it again would cost twice"
        hint = f"if it is, {suffixed.format(shown(task.output.name))}; if not, {ALONE}"
        return DPVeilError(problem, hint=hint, arguments=ARGUMENTS)
    stem = task.source.stem
    near = (path.name for path in task.source.parent.iterdir() if path.stem == stem)
    own = next((shown(name) for name in sorted(near) if not state.another(sha256, name)), "")
    problem = f"{place} was released from {own or 'a photo of another name'}, not from {shown(task.source)}"
    return DPVeilError(problem, hint=suffixed.format(f"{own}.png") if own else ALONE, arguments=ARGUMENTS)


def earlier(task: Task) -> list[Path]:
    """Return where releases lie that may be of this photo, from runs that named outputs in the other way."""
    return [place for place in task.elsewhere if place != task.output and _exists(place)]


def _exists(output: Path) -> bool:
    return any(os.path.lexists(path) for path in (output, certificate_path(output)))
