"""Reruns: a photo that was already released with the same settings is skipped, at no cost."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from dpveil.batch.remote_output import beside_url, discard, release_place
from dpveil.batch.state import Stamp, State
from dpveil.batch.tasks import KEEP_PAGES, RunSettings, Task
from dpveil.core.certificate import Certificate
from dpveil.core.envelope import Envelope
from dpveil.core.region_origin import BLOCKLESS
from dpveil.core.urls import Url
from dpveil.errors import DPVeilError
from dpveil.io.locking import sole_writer
from dpveil.io.names import show_path
from dpveil.io.untrusted_files import is_present
from dpveil.regions.spec import last_of, passes_over
from dpveil.release.quote import require_strength
from dpveil.release.saving import ReleaseFiles, certificate_path, remove_leftovers

if TYPE_CHECKING:
    from dpveil.ledger import Ledger
    from dpveil.release.keys import SigningKey
    from dpveil.release.verification import Verification

ARGUMENTS: Final = {
    **{"force": "force=True", "out": "out", "at_least": "at_least", "sign": "sign", "mark": "mark"},
}
ALONE: Final = "release this one file with {force}"
"""The remedy for one photo; for a whole folder, it would pay for every photo again."""


def find_finished(
    task: Task, choices: RunSettings, state: State, stamp: Stamp | None
) -> tuple[Path, Certificate] | None:
    """Return the output and certificate of an earlier run with the same settings, or None if there is none.

    `stamp` is the input's current one. Raises `DPVeilError` if the output is something else, a release of
    another photo, or of the input before it was replaced, and `TooWeak` if it is weaker than asked for.
    """
    output, page = release_place(task), None
    if task.shard is not None and task.shard.scan is not None and is_present(task.shard.target):
        from dpveil.batch.released_pdf import verify_page
        from dpveil.release.document_certificate import number_of

        page = verify_page(task.shard.target, number_of(task.inside.name))  # type: ignore[union-attr]
    if page is None and not _exists(output):
        if task.earlier is None or not _exists(task.earlier):
            return None
        raise DPVeilError(
            f"{show_path(task.earlier)} may be an earlier release of it, so it is not released again",
            hint=f"rename it to {show_path(output)} if so, or choose another {{out}}; or "
            + released_again(choices),
            arguments=ARGUMENTS,
        )
    asked = replace(choices, if_none=KEEP_PAGES) if task.keeps(choices) else choices
    certificate = matching_certificate(output, asked, page)
    if certificate is None:
        raise output_taken(output, released_again(choices))
    sha256 = "" if certificate.output is None else certificate.output.sha256
    if state.is_replaced(sha256, stamp):
        raise DPVeilError(
            f"{show_path(output)} is a release of another photo,"
            f" or of {show_path(task.source)} before it changed",
            hint=f"{released_again(choices)}, or choose another {{out}}",
            arguments=ARGUMENTS,
        )
    if choices.at_least is not None and (certificate.guarantees or not task.keeps(choices)):
        stated = certificate.strength, certificate.composition, certificate.exposed_requests
        require_strength(choices.at_least, *stated, certificate.regions)
    if output is task.remote and not choices.dry:
        discard(task)
    return task.output, certificate


def matching_certificate(
    output: Path, choices: RunSettings, found: Verification | None = None
) -> Certificate | None:
    """Return the certificate of the file `output` if it is a consistent release with these settings.

    `found` is what is known of it already. Raises `DPVeilError` if it is one that the run's key did not sign,
    that was to have a manifest and has none, or for which the run's subject did not pay from its ledger.
    """
    from dpveil.io.urls import contents
    from dpveil.release.verification import verify, verify_pair

    if found is not None:
        pass
    elif isinstance(output, Url):
        reads = partial(contents, output), partial(contents, beside_url(output))
        found = verify_pair(ReleaseFiles(output, *reads), max_pixels=choices.max_pixels)
    elif (found := verify(output, max_pixels=choices.max_pixels)).status in ("inconsistent", "missing"):
        # another run may be writing it, or was killed
        remove_leftovers(output.parent)
        with suppress(OSError), sole_writer([output.parent]):
            found = verify(output, max_pixels=choices.max_pixels)
    stated = found.certificate
    if stated is None or not _is_alike(stated, found.status, choices):
        return None
    manifest = stated.output is not None and stated.output.manifest is not None
    if choices.mark is not None and not manifest:
        raise _lacking(output, "mark", "has no C2PA manifest", released_again(choices))
    sha256 = "" if stated.output is None else stated.output.sha256
    pays = choices.ledger if stated.guarantees else None  # a page that is kept as it is cost nothing
    check_ours(output, stated, sha256, sign=choices.sign, ledger=pays, subject=choices.subject)
    return stated


def check_ours(
    output: Path,
    stated: Envelope,
    sha256: str,
    *,
    sign: SigningKey | None,
    ledger: Ledger | None,
    subject: str | None,
) -> None:
    """Raise `DPVeilError` for a release that this key did not sign, or this subject did not pay for."""
    if sign is not None and not sign.has_signed(stated):
        raise _lacking(output, "sign", "not one that this key signed", ALONE)
    if ledger is not None and subject is not None and not ledger.knows(subject, sha256):
        raise DPVeilError(
            f"{show_path(output)} exists, and {subject} did not pay for it from this ledger",
            hint=f"choose another {{out}}, or {ALONE}, which replaces it and is paid for",
            arguments=ARGUMENTS,
        )


def _lacking(output: Path, name: str, what: str, again: str) -> DPVeilError:
    text = f"{show_path(output)} is a release with these settings, and {what}"
    hint = f"leave out {{{name}}} to keep it, or choose another {{out}}; or {again}"
    return DPVeilError(text, hint=hint, arguments=ARGUMENTS)


def _is_alike(stated: Certificate, status: str, choices: RunSettings) -> bool:
    """Whether a run with these settings would have made a release as this one."""
    if status == "unprotected":  # a copy that an earlier run was allowed to make
        asked = list(stated.request) == choices.settings["request"]
        return last_of(choices.if_none) == "copy" and asked
    # regions were missing then, which this run would refuse
    whole = any(region.origin.fallback for region in stated.regions)
    ways = (
        (stated.exposed_requests, choices.if_none == "copy"),
        (stated.passed_over, passes_over(choices.if_none)),
        (whole, last_of(choices.if_none) == "whole"),
    )
    kept = {*((stated.output and stated.output.metadata) or ())}
    words = {not r.origin.escapes for r in stated.regions if r.origin.grown_to in BLOCKLESS}
    return (
        status == "consistent"
        and stated.settings == choices.settings
        and all(allowed or not used for used, allowed in ways)
        and kept <= {*choices.metadata}
        and stated.columns == choices.columns
        and words <= {choices.trust_source is not None}  # the owner's word about the source
    )


def released_again(choices: RunSettings) -> str:
    """Return the remedy for one photo, and what that costs."""
    return ALONE if choices.free else f"{ALONE}, which costs again"


def output_taken(output: Path, alone: str = ALONE) -> DPVeilError:
    """Return the error for a photo whose output is something else than its release with these settings."""
    problem, hint = "exists and is not a release with these settings", f"choose another {{out}}, or {alone}"
    if not is_present(output):
        problem = "is gone and its certificate is still there, so it was released before"
        hint = f"bring it back; or {alone}"
    return DPVeilError(f"{show_path(output)} {problem}", hint=hint, arguments=ARGUMENTS)


def _exists(output: Path) -> bool:
    both = output, certificate_path(output)
    return any(is_present(path) if isinstance(path, Url) else os.path.lexists(path) for path in both)
