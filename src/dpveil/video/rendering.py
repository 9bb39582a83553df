"""Rendering a clip by its plan: paid, drawn once, rendered in segments, joined, certified; or gone on with.

A process may end at any moment, also by `kill -9`: `state` keeps what the next one needs to go on. In which
order things become durable is what makes that sound: the bytes that key the draws, the debits (under keys
with a nonce that the state has), what was drawn, whole segments, the joined clip, its certificate, and the
names of both. Nothing drawn leaves the state before its certificate, and what is drawn again is the same.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Final

from dpveil.core.certificate import this_tool
from dpveil.errors import ClipError, DPVeilError, OutputError
from dpveil.io import place_together
from dpveil.io.folders import identity
from dpveil.io.names import check_path, shown
from dpveil.io.writing import USUAL, refusal
from dpveil.noise.bits import SECURE, SEEDED, BitSource, KeptBits, SeededBits
from dpveil.release.keys import SigningKey
from dpveil.release.saving import certificate_path, tidy
from dpveil.video.analyzing import Progress, nothing
from dpveil.video.beside import Beside, ahead, room_for
from dpveil.video.certificate import FORMATS, ClipOutput, VideoCertificate
from dpveil.video.encoders import container_for
from dpveil.video.facts import Facts, Frame
from dpveil.video.joining import join
from dpveil.video.paying import Payer, Payment, check_payer
from dpveil.video.plan import VideoPlan
from dpveil.video.plan_file import to_text
from dpveil.video.reading import MAX_PIXELS, Clip, open_clip
from dpveil.video.renderer import Renderer
from dpveil.video.segments import spans
from dpveil.video.stage import Stage
from dpveil.video.state import CERTIFICATE, DRAWS, PLAN, State, sha256_of, state
from dpveil.video.writing import Writer

RENDERING: Final = "rendering"
SEGMENT: Final = "{:08d}.mp4"
JOINED: Final = "joined"
PIECE: Final = 1 << 20


@dataclass(frozen=True)
class Rendered:
    """A released clip: its file, its certificate, and whether an earlier process began it."""

    path: Path
    certificate: VideoCertificate
    resumed: bool


def render(
    plan: VideoPlan,
    clip: str | Path,
    out: str | Path,
    *,
    ledger: Payer | None = None,
    subject: str | None = None,
    other_regions: bool = False,
    seed: int | None = None,
    sign: SigningKey | None = None,
    replace: bool = False,
    asked: str | None = None,
    max_pixels: int = MAX_PIXELS,
    progress: Progress = nothing,
) -> Rendered:
    """Write the release of `clip` by its `plan` to `out`, and its certificate beside it: both or neither.

    Every draw is debited from `subject` in `ledger` before anything is drawn. After any end of the process,
    the same call goes on where it was, pays nothing twice and draws nothing anew; a call with another plan or
    payer is refused then, unless `replace` drops what was begun. `seed` makes the bits reproducible, which is
    not for publication. `sign` signs the certificate; `replace` replaces existing files. `asked` is what
    `state.left_plan` finds this plan by. Raises errors of `dpveil.errors`; nothing half written has the name
    `out`.
    """
    target, source = Path(check_path(out, "give the name of a file, such as private.mp4")), Path(clip)
    container = container_for(target)
    check_payer(ledger, subject, seed, other_regions=other_regions)
    payment = Payment(ledger=ledger, subject=subject, other_regions=other_regions)
    plan.prepare()
    _check_out(target, source)
    tidy(target.parent)
    with open_clip(source, max_pixels=max_pixels) as opened:
        check_same(plan, opened.facts, source)
        payer = None if ledger is None else [ledger.name, subject]
        settings = {"plan": plan.sha256, "out": target.name, "seed": seed, "payer": payer}
        settings["tool"] = this_tool()
        with state(target, settings, anew=replace) as work:
            job = _Job(plan, opened, target, container, work, seed, progress)
            try:
                if asked is not None and not work.has(PLAN):
                    work.keep_plan(to_text(plan), asked)
                if not work.has(CERTIFICATE):
                    job.begin(payment, replace=replace)
                    job.render()
                    job.join(sign)
                work.forget_key()  # before the release has its name
                certificate = job.name(payment, replace=replace)
            except DPVeilError:
                if not work.has(DRAWS) and not payment.has_paid(plan, work.nonce):
                    work.remove()  # nothing is lost by that
                raise
            work.remove()
            return Rendered(target, certificate, work.resumed)


@dataclass(frozen=True)
class _Job:
    """One rendering, whose state is `work`."""

    plan: VideoPlan
    clip: Clip
    target: Path
    container: str
    work: State
    seed: int | None
    progress: Progress

    @cached_property
    def stage(self) -> Stage:
        return Stage(self.plan)

    @property
    def kind(self) -> str:
        return SECURE if self.seed is None else SEEDED

    @property
    def joined(self) -> str:
        return f"{JOINED}{self.target.suffix.lower()}"

    def bits(self, name: str) -> BitSource:
        """Return the bits of one draw, which are the same whichever process draws."""
        if self.seed is not None:
            return SeededBits(self.seed, f"{self.target.name} {name}")
        return KeptBits(self.work.key, name)

    def begin(self, payment: Payment, *, replace: bool) -> None:
        """Pay for every draw, then draw, if no process did; what was drawn is stored then."""
        if not replace:
            _check_free(self.target)
        if not self.work.has(DRAWS):
            payment.pay(self.plan, self.work.nonce)
            self.work.keep(DRAWS, self.stage.draw(self.clip, self.bits))
        if not self.stage.each_frame:
            self.work.forget_key()

    def render(self) -> None:
        """Render the segments that are not there; each has its name once it is whole."""
        facts, parts, drawn = self.clip.facts, spans(self.clip.facts), self.work.draws
        missing = [n for n, part in enumerate(parts) if not self.work.has(SEGMENT.format(part[0]))]
        if not missing or drawn is None:
            return
        renderer = self.stage.renderer(drawn, self.bits)
        first = parts[missing[0]][0]
        self.progress(RENDERING, first, facts.frames)
        with closing(ahead(self.clip.frames(max(0, first - renderer.memory)), room_for(facts))) as frames:
            for frame in islice(frames, min(first, renderer.memory)):
                renderer.look(frame)
            for start, stop in parts[missing[0] :]:
                self._segment(renderer, SEGMENT.format(start), islice(frames, stop - start))

    def _segment(self, renderer: Renderer, name: str, frames: Iterable[Frame]) -> None:
        """Render the frames of one segment, while those before are encoded."""
        facts, part = self.clip.facts, self.work.part(name)
        part.unlink(missing_ok=True)
        with Writer(part, facts, container=self.container) as writer, Beside(room_for(facts)) as encoding:
            for frame in frames:
                encoding.call(writer.write, Frame(frame.index, frame.time, renderer.frame(frame)))
                self.progress(RENDERING, frame.index + 1, facts.frames)
        self.work.finish(name)

    def join(self, sign: SigningKey | None) -> None:
        """Join the segments, and write the certificate of that file: nothing is drawn from here on."""
        facts, part = self.clip.facts, self.work.part(self.joined)
        segments = [self.work.path(SEGMENT.format(start)) for start, _ in spans(facts)]
        sound = self.clip if self.plan.keep_audio else None
        join(segments, part, facts, container=self.container, audio_from=sound)
        certificate = self._certificate(sha256_of(part))
        self.work.finish(self.joined)
        text = (certificate if sign is None else certificate.signed(sign)).to_text()
        self.work.keep(CERTIFICATE, text.encode(), mode=USUAL)

    def name(self, payment: Payment, *, replace: bool) -> VideoCertificate:
        """Give the certificate and the clip their names, unless a process before has done so."""
        beside, text = certificate_path(self.target), self.work.read(CERTIFICATE) or b""
        stated = self._certificate(str(json.loads(text)["output"]["sha256"]))
        ours = beside.is_file() and beside.read_bytes() == text
        if ours and self.target.is_file() and sha256_of(self.target) == stated.output.sha256:
            return stated
        place_together(
            [(self.work.path(CERTIFICATE), beside), (self.work.path(self.joined), self.target)],
            replace=replace or (ours and not os.path.lexists(self.target)),
            before=lambda: payment.note(self.plan, self.work.nonce, stated.output.sha256),
        )
        return stated

    def _certificate(self, sha256: str) -> VideoCertificate:
        output = ClipOutput(sha256, FORMATS[self.target.suffix.lower()], self.clip.facts.seconds)
        return VideoCertificate(quote=self.plan.quote, bits=self.kind, output=output)


def check_same(plan: VideoPlan, facts: Facts, clip: Path) -> None:
    """Raise `ClipError` unless a plan is of this clip."""
    if plan.facts.sha256 != facts.sha256:
        hint = "give the clip that was analyzed, or analyze this one"
        raise ClipError(f"{shown(clip)} is not the clip of this plan, but another file", hint=hint)
    if plan.facts != facts:
        text = f"the plan does not tell the size, times and streams of {shown(clip)} as they are"
        raise ClipError(text, hint="analyze the clip again, and change nothing of `clip` in the plan")


def _check_out(target: Path, clip: Path) -> None:
    """Raise `OutputError` if nothing can be written there, or the clip itself would be replaced."""
    if identity(clip) in (identity(target), identity(certificate_path(target))):
        raise OutputError(f"{shown(target)} is the clip itself", hint="choose another name for the output")
    if target.is_dir():
        raise refusal(target, IsADirectoryError(errno.EISDIR, ""))
    if not target.parent.is_dir():
        raise refusal(target, FileNotFoundError(errno.ENOENT, ""))


def _check_free(target: Path) -> None:
    """Raise `OutputError` if the clip or its certificate exists."""
    for path in (target, certificate_path(target)):
        if os.path.lexists(path):
            raise refusal(path, FileExistsError(errno.EEXIST, ""))
