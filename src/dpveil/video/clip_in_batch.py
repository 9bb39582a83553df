"""A clip among the inputs of a run: analyzed and rendered in one go, or skipped where that is done."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from dpveil.accounting.meaning import at_least
from dpveil.batch.photo_release import FORGOTTEN
from dpveil.batch.report import PRICED, RELEASED, SKIPPED, Entry, Promise
from dpveil.batch.resume import ARGUMENTS, check_ours, output_taken, released_again
from dpveil.batch.state import Stamp, State
from dpveil.batch.tasks import RunSettings, Task
from dpveil.core.notes import Aside, Caution, Note, Unfinished
from dpveil.core.rationals import Json
from dpveil.core.region_origin import FACE
from dpveil.errors import DPVeilError, OutputError, TooWeak
from dpveil.io.names import show_path
from dpveil.io.writing import make_folder
from dpveil.noise.bits import SECURE, SEEDED
from dpveil.release.keys import SigningKey
from dpveil.release.saving import certificate_path
from dpveil.video.certificate import VideoCertificate
from dpveil.video.containers import Source, container_of
from dpveil.video.make_plan import Progress, analyze, name_of, no_progress, stay_by_request
from dpveil.video.plan import Payer, VideoPlan, parse_plan
from dpveil.video.quote import ClipQuote
from dpveil.video.reading import open_clip
from dpveil.video.render_job import (
    check_possible,
    drop,
    folder_of,
    left_plan,
    render,
    settings_of,
    unfinished_nonce,
)
from dpveil.video.verification import verify_clip
from dpveil.video.writing import container_for

if TYPE_CHECKING:
    from dpveil.ledger import Ledger

USUAL: Final[Mapping[str, Json]] = {"keep_audio": False}
"""The settings of clips alone, as they are without options."""
UNFINISHED_KEPT: Final = (
    "a rendering to {} was begun and not finished, and is kept in {}: its own command goes on there, and what"
    " was paid for it is lost if you remove that folder"
)
GOES_ON: Final = "a rendering was begun and not finished: this goes on with it, and pays nothing twice"
RESUMED: Final = "went on with the rendering that was begun before, and paid nothing twice"
DROPPED: Final = "left out of the clip: {}"


def find_finished_clip(
    output: Path,
    settings: Mapping[str, Json],
    *,
    quote: ClipQuote | None = None,
    seed: int | None = None,
    ledger: Ledger | None = None,
    subject: str | None = None,
    sign: SigningKey | None = None,
) -> VideoCertificate | None:
    """Return the certificate of the clip `output` if it is a release with these settings, and this `quote`.

    None if nothing is there, or a process that was killed has not given both files their names yet. Raises
    `DPVeilError` if it is something else, or a release that `sign` did not sign or that `subject` did not pay
    for from `ledger`.
    """
    beside = certificate_path(output)
    there = [os.path.lexists(path) for path in (output, beside)]
    if not any(there) or (there == [False, True] and folder_of(output).is_dir()):
        return None
    found = verify_clip(output)
    stated = found.certificate
    kind = SECURE if seed is None else SEEDED
    if stated is None or found.status != "consistent" or stated.settings != settings or stated.bits != kind:
        raise output_taken(output)
    if quote is not None and stated.quote != quote:
        raise output_taken(output)
    check_ours(output, stated, stated.output.sha256, sign=sign, ledger=ledger, subject=subject)
    return stated


@dataclass(frozen=True, kw_only=True)
class ClipRun:
    """What is asked for the clips of a run: its `choices`, and `more`, arguments of `analyze` for clips.

    `see` is called for every clip that was released, with its plan.
    """

    choices: RunSettings
    more: Mapping[str, Any] = field(default_factory=dict)
    see: Callable[[Task, VideoPlan], None] = lambda task, plan: None

    @property
    def settings(self) -> dict[str, Json]:
        chosen = {name: value for name, value in self.choices.settings.items() if name != "bits"}
        return {**chosen, **USUAL, **{name: value for name, value in self.more.items() if name in USUAL}}

    def release(self, task: Task, progress: Progress = no_progress) -> Entry:
        """Release one clip, or only plan it in a dry run; return its entry in the report.

        A release with the same settings is skipped. Raises errors of `dpveil.errors`; after any of them, as
        after an interrupt, the same call goes on where this one was.
        """
        choices = self.choices
        name_of(task.source)
        if not choices.force and (there := self._find_finished_clip(task)) is not None:
            return _skip_entry(task, there)
        beside = os.path.lexists(certificate_path(task.output)) or folder_of(task.output).is_dir()
        if choices.force and os.path.lexists(task.output) and not beside:
            name = show_path(task.output)  # which was derived from another, and could hit an original
            text = f"{name} has no certificate beside it, so it may be an original: it is not replaced"
            raise OutputError(text, hint="choose another {out}, or remove it", arguments=ARGUMENTS)
        plan = self.plan(task, progress)
        if choices.dry:
            check_possible(plan, open_clip(task.source), container_for(task.output))
            return self._dry_entry(task, plan)
        make_folder(task.output.parent)
        chosen = {"seed": choices.seed, "sign": choices.sign, "replace": choices.force}
        more = {**choices.paying, **chosen, "keep_plan": True, "progress": progress}
        entry = release_clip(task, plan, more, stamps=[] if task.stamp is None else [task.stamp])
        self.see(task, plan)
        return entry

    def plan(self, task: Task, progress: Progress) -> VideoPlan:
        """Return the plan that a killed process has left of this clip and settings, or a new one."""
        source, choices = Source(task.source), self.choices
        container_of(source)  # raises for what is no clip
        left = left_plan(task.output, source.sha256())  # not found anew, so that it is what was paid for
        if left is not None and (plan := parse_plan(left)).settings == self.settings:
            plan.check_strength(choices.at_least)
            return plan
        return analyze(
            task.source,
            choices.method,
            regions=list(choices.regions),
            post_processing=list(choices.post_processing),
            if_none=choices.if_none,
            at_least=choices.at_least,
            progress=progress,
            **self.more,
        )

    def _dry_entry(self, task: Task, plan: VideoPlan) -> Entry:
        payer = Payer(**self.choices.paying)
        nonce = unfinished_nonce(task.output, settings_of(plan, task.output, payer.payer, self.choices.seed))
        payer.check(plan, nonce)
        faces = all(track.kind == FACE for draw in plan.draws for track in draw.tracks)
        promise = Promise(plan.guarantees, plan.total, plan.strength, _kinds(plan.guarantees, faces))
        goes_on = [Aside(GOES_ON)] * (nonce is not None)
        told = (*goes_on, *plan.quote.warnings, *_about(plan))
        return Entry(PRICED, task.source, None, promise, told, paid=payer.is_paid(nonce))

    def _find_finished_clip(self, task: Task) -> VideoCertificate | None:
        output, choices = task.output, self.choices
        payer = {"seed": choices.seed, "ledger": choices.ledger, "subject": choices.subject}
        stated = find_finished_clip(output, self.settings, sign=choices.sign, **payer)  # type: ignore[arg-type]
        if stated is None:
            return None
        tracks = stated.quote.tracks
        stay = stay_by_request(stated.quote.request[0], [track.number for track in tracks])
        by_plan = any(t.visible != (t.number in stay) or t.person is not None for t in tracks)
        if by_plan or State.read(output.parent).is_replaced(stated.output.sha256, task.stamp):
            why = f"by a plan, or of {show_path(task.source)} before it was replaced or changed"
            text = f"{show_path(output)} is a release with these settings {why}"
            hint = f"leave out the clip to keep it, or choose another {{out}}; or {released_again(choices)}"
            raise DPVeilError(text, hint=hint, arguments=ARGUMENTS)
        if choices.at_least is not None and not at_least(stated.strength, choices.at_least):
            raise TooWeak(asked=choices.at_least, strength=stated.strength, total=stated.composition)
        return stated


def release_clip(
    task: Task, plan: VideoPlan, more: Mapping[str, Any], *, stamps: Sequence[Stamp] = ()
) -> Entry:
    """Release a clip by its plan; `more` are arguments of `render`. Return its entry in the report.

    The plan is remembered with the release, and the `stamps` of what else it is known by.
    """
    made = render(plan, task.source, task.output, **more)
    noted: list[str] = []
    try:
        state = State.read(task.output.parent)
        for stamp in (*stamps, _stamp_of(plan)):
            state.note_release(made.certificate.output.sha256, stamp)
    except OSError as error:
        noted.append(FORGOTTEN.format(error.strerror or error))
    resumed = [Aside(RESUMED)] * made.resumed
    return _entry(RELEASED, task, made.certificate, (*resumed, *_about(plan), *noted))


def earlier_entry(task: Task, plan: VideoPlan, paying: Mapping[str, Any]) -> Entry | None:
    """Return the entry of a clip that was released by this very plan before; None if nothing is there.

    Raises as `find_finished_clip`; `paying` are its arguments.
    """
    chosen = {name: paying[name] for name in ("seed", "ledger", "subject", "sign") if name in paying}
    stated = find_finished_clip(task.output, plan.settings, quote=plan.quote, **chosen)
    if stated is None:
        return None
    if State.read(task.output.parent).is_replaced(stated.output.sha256, _stamp_of(plan)):
        raise output_taken(task.output)  # by another plan: its places are not in the certificate
    return _skip_entry(task, stated)


def _skip_entry(task: Task, stated: VideoCertificate) -> Entry:
    kept = drop(task.output, stated.output.sha256)
    text = UNFINISHED_KEPT.format(show_path(task.output), show_path(folder_of(task.output)))
    return _entry(SKIPPED, task, stated, (Unfinished(text),) * kept)


def _entry(status: str, task: Task, stated: VideoCertificate, notes: tuple[str, ...] = ()) -> Entry:
    quote = stated.quote
    faces = all(track.kind == FACE for group in quote.persons for track in group)
    promise = Promise(quote.guarantees, quote.total, quote.strength, _kinds(quote.guarantees, faces))
    cautions = (text if isinstance(text, Note) else Caution(text) for text in stated.warnings)
    return Entry(status, task.source, task.output, promise, (*cautions, *notes))


def _kinds(each: Sequence[object], faces: bool) -> tuple[str, ...]:
    return (FACE if faces else "region",) * len(each)


def _about(plan: VideoPlan) -> tuple[str, ...]:
    """Return what the owner of a clip has to know, which no certificate has."""
    more = [text for text in plan.warnings if text not in plan.quote.warnings]
    out = plan.left_out
    return (*more, *([Aside(DROPPED.format(", ".join(out)))] if out else []))


def _stamp_of(plan: VideoPlan) -> Stamp:
    """Return what stands for a plan where files have a size and a time: 120 bits of its hash."""
    return int(plan.sha256[:15], 16), int(plan.sha256[15:30], 16)
