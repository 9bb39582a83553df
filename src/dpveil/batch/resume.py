"""Reruns: a photo that was already released with the same settings is skipped, at no cost."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Final

from dpveil.accounting.meaning import at_least
from dpveil.batch.state import Stamp, State
from dpveil.batch.task import Choices, Task
from dpveil.core.certificate import FEW_COLOURS, Certificate, shown_by_colours
from dpveil.core.origin import BLOCKLESS
from dpveil.errors import DPVeilError, TooWeak
from dpveil.io import sole_writer
from dpveil.io.names import show_path
from dpveil.regions.spec import last_of, passes_over
from dpveil.release.saving import certificate_path, tidy
from dpveil.release.verification import verify

ARGUMENTS: Final = {
    **{"force": "force=True", "out": "out", "names": "names", "format": "format", "at_least": "at_least"},
    **{"sign": "sign", "mark": "mark"},
}
LACKS: Final = {"sign": "not one that this key signed", "mark": "has no C2PA manifest"}
"""What a finished release lacks, by the argument that asks for it."""
ALONE: Final = "release this one file with {force}"
"""The remedy for one photo; for a whole folder, it would pay for every photo again."""


def find_finished(
    task: Task, choices: Choices, state: State, stamp: Stamp | None
) -> tuple[Path, Certificate] | None:
    """Return the output and certificate of an earlier run with the same settings, or None if there is none.

    `stamp` is the input's current one. Raises `DPVeilError` if the output is something else, a release of
    another photo, or of the input before it was replaced, and `TooWeak` if it is weaker than asked for.
    """
    place = _place(task, choices)
    if place is None:
        return None
    output, certificate = place
    sha256 = "" if certificate.output is None else certificate.output.sha256
    if state.is_replaced(sha256, stamp):
        raise DPVeilError(
            f"{show_path(task.source)} was replaced or changed since"
            f" {show_path(output)} was released from it, or"
            " that is of another photo",
            hint=f"{released_again(choices)}, or choose another {{out}}",
            arguments=ARGUMENTS,
        )
    if choices.at_least is None:
        return place
    strong, coloured = at_least(certificate.strength, choices.at_least), shown_by_colours(certificate.regions)
    if not strong or certificate.exposed or coloured:
        raise TooWeak(
            asked=choices.at_least,
            strength=certificate.strength,
            total=certificate.composition,
            missing=certificate.exposed,
            objection=FEW_COLOURS * (strong and coloured),
        )
    return place


def matching_certificate(output: Path, choices: Choices) -> Certificate | None:
    """Return the certificate of the file `output` if it is a consistent release with these settings.

    Raises `DPVeilError` if it is one that the run's key did not sign, or for which the run's
    subject did not pay from its ledger.
    """
    stated = _find_matching(output, choices)
    if stated is None or choices.ledger is None or choices.subject is None:
        return stated
    sha256 = "" if stated.output is None else stated.output.sha256
    if not choices.ledger.knows(choices.subject, sha256):
        raise DPVeilError(
            f"{show_path(output)} exists, and {choices.subject} did not pay for it from this ledger",
            hint=f"choose another {{out}}, or {ALONE}, which replaces it and is paid for",
            arguments=ARGUMENTS,
        )
    return stated


def is_paid_release(output: Path, choices: Choices) -> bool:
    """Whether a file is a release with any settings, signed by the run's key and paid for from its ledger.

    A run may have neither. A copy that protects nothing is no release. Raises `LedgerError`.
    """
    found = verify(output, max_pixels=choices.max_pixels)
    stated = found.certificate
    if found.status != "consistent" or stated is None or stated.output is None:
        return False
    if stated.columns != choices.columns:  # it would lie beside what it does not state
        return False
    if choices.sign is not None and not choices.sign.has_signed(stated):
        return False
    if choices.ledger is None or choices.subject is None:
        return True
    return choices.ledger.knows(choices.subject, stated.output.sha256)


def _find_matching(output: Path, choices: Choices) -> Certificate | None:
    found = verify(output, max_pixels=choices.max_pixels)
    if found.status in ("inconsistent", "missing"):  # another run may be writing it, or was killed
        tidy(output.parent)
        with suppress(OSError), sole_writer([output.parent]):
            found = verify(output, max_pixels=choices.max_pixels)
    stated = found.certificate
    if stated is None:
        return None
    if found.status == "unprotected":  # a copy that an earlier run was allowed to make
        asked = list(stated.request) == choices.settings["request"]
        return (
            _check_signed(output, stated, choices) if last_of(choices.if_none) == "copy" and asked else None
        )
    whole = any(region.origin.fallback for region in stated.regions)
    ways = (
        (stated.exposed, choices.if_none == "copy"),
        (stated.passed_over, passes_over(choices.if_none)),
        (whole, last_of(choices.if_none) == "whole"),
    )
    if any(used and not allowed for used, allowed in ways):
        return None  # regions were missing then, which this run would refuse
    if stated.output is not None and not {*(stated.output.metadata or ())} <= {*choices.metadata}:
        return None  # it keeps texts that this run was not asked to keep
    if stated.columns != choices.columns:
        return None
    words = {not r.origin.escapes for r in stated.regions if r.origin.grown_to in BLOCKLESS}
    if words - {choices.trust_source is not None}:
        return None  # the owner's word about the source was another
    alike = found.status == "consistent" and stated.settings == choices.settings
    return _check_signed(output, stated, choices) if alike else None


def _check_signed(output: Path, stated: Certificate, choices: Choices) -> Certificate:
    """Return a certificate, verified before; raises `DPVeilError` if it is not signed by the run's key, or if
    its file was to have a manifest and has none.
    """
    lacks = {
        "sign": choices.sign is not None and not choices.sign.has_signed(stated),
        "mark": choices.mark is not None and (stated.output is None or stated.output.manifest is None),
    }
    for name in (name for name, lacking in lacks.items() if lacking):
        raise DPVeilError(
            f"{show_path(output)} is a release with these settings, and {LACKS[name]}",
            hint=f"leave out {{{name}}} to keep it, or choose another {{out}}; or {released_again(choices)}",
            arguments=ARGUMENTS,
        )
    return stated


def _place(task: Task, choices: Choices) -> tuple[Path, Certificate] | None:
    """Return an existing release with these settings and its certificate; raises if anything else exists."""
    if _exists(task.output):
        if stated := matching_certificate(task.output, choices):
            return task.output, stated
        raise output_taken(task.output, released_again(choices))
    for place in other_outputs(task):
        raise DPVeilError(
            f"{show_path(place)} may be an earlier release of it, so it is not released again",
            hint="name outputs as then ({names}, {format}), or choose another {out}; or "
            + released_again(choices),
            arguments=ARGUMENTS,
        )
    return None


def released_again(choices: Choices) -> str:
    """Return the remedy for one photo, and what that costs."""
    return ALONE if choices.free else f"{ALONE}, which costs again"


def output_taken(output: Path, alone: str = ALONE) -> DPVeilError:
    """Return the error for a photo whose output is something else than its release with these settings."""
    if not os.path.lexists(output):
        return DPVeilError(
            f"{show_path(output)} is gone and its certificate is still there, so it was released before",
            hint=f"bring it back; or {alone}",
            arguments=ARGUMENTS,
        )
    return DPVeilError(
        f"{show_path(output)} exists and is not a release with these settings",
        hint=f"choose another {{out}}, or {alone}",
        arguments=ARGUMENTS,
    )


def other_outputs(task: Task) -> list[Path]:
    """Return existing outputs that may be of this photo, from runs that named it otherwise."""
    return [place for place in task.elsewhere if place != task.output and _exists(place)]


def _exists(output: Path) -> bool:
    return any(os.path.lexists(path) for path in (output, certificate_path(output)))
