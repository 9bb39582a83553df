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
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import islice, pairwise
from pathlib import Path
from types import TracebackType
from typing import Final, ParamSpec
from zipfile import BadZipFile

import numpy as np

from dpveil.core.arrays import UInt8
from dpveil.errors import ClipError, DPVeilError, OutputError
from dpveil.faces.base import FaceMethod
from dpveil.faces.geometry.landmarks import locator
from dpveil.io import place_together
from dpveil.io.folders import identity
from dpveil.io.names import check_path, show_path
from dpveil.io.writing import USUAL, refusal, sha256_of
from dpveil.noise.bits import SECURE, SEEDED, BitSource, KeptBits, SeededBits
from dpveil.release.keys import SigningKey
from dpveil.release.saving import CLIPS, certificate_path, tidy
from dpveil.video.analyzing import Progress, no_progress
from dpveil.video.certificate import ClipOutput, VideoCertificate
from dpveil.video.choices import MEAN, SPLIT
from dpveil.video.decoding import Source
from dpveil.video.drawing import (
    Drawn,
    Mean,
    cover_draw,
    crop_of,
    draw,
    draw_frame,
    draw_mean,
    read_draws,
    write_draws,
)
from dpveil.video.facts import Facts, Frame, Track
from dpveil.video.painting import Layer, paint
from dpveil.video.places import Scene, Subject
from dpveil.video.plan import Payer, Payment, VideoPlan, check_payer
from dpveil.video.plan_file import to_text
from dpveil.video.reading import DECODED, MAX_PIXELS, Clip, ahead, open_clip, pick_frames, room_for
from dpveil.video.renderer import Renderer
from dpveil.video.state import CERTIFICATE, DRAWS, PLAN, State, as_output_error, keep_plan, settings_of, state
from dpveil.video.verification import content_problems
from dpveil.video.writing import Writer, check_times, container_for, encoder_for, join

Given = ParamSpec("Given")


class Beside:
    """Calls in one other thread, in order, of which at most `most` wait; use it as a context manager.

    What a call raises is raised by a later one, or on leaving the context, which waits for all of them; after
    an error, it drops those that have not begun.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="beside")
        self._due: deque[Future[object]] = deque()

    def __enter__(self) -> Beside:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            while kind is None and self._due:
                self._due.popleft().result()
        finally:
            self._worker.shutdown(cancel_futures=True)

    def call(self, function: Callable[Given, object], *args: Given.args, **more: Given.kwargs) -> None:
        """Call `function` after all others, as soon as there is room."""
        while len(self._due) >= self._most:
            self._due.popleft().result()
        self._due.append(self._worker.submit(function, *args, **more))


SECONDS: Final = Fraction(8)
"""The least length of a segment: what a killed rendering loses is at most one of them."""
MOST_FRAMES: Final = 600
"""Most frames of a segment, whatever their times."""


def spans(facts: Facts) -> list[tuple[int, int]]:
    """Return the first frame of every segment, and that of the next one (or the number of frames).

    >>> one = dict(sha256="", format="mp4", codec="h264", width=8, height=8, audio=False)
    >>> spans(Facts(**one, time_base=Fraction(1, 10), start=0, steps=((1, 179),)))
    [(0, 80), (80, 180)]
    """
    starts, began = [0], facts.start
    for index, time in enumerate(facts.times):
        if (time - began) * facts.time_base >= SECONDS or index - starts[-1] >= MOST_FRAMES:
            starts.append(index)
            began = time
    if len(starts) > 1 and (facts.frames - starts[-1]) * 2 < starts[-1] - starts[-2]:
        del starts[-1]  # a short rest belongs to the segment before
    return [*pairwise([*starts, facts.frames])]


CHECKING: Final = "checking"


def check_possible(
    plan: VideoPlan, clip: Clip, container: str | None, *, paid: bool, progress: Progress = no_progress
) -> None:
    """Raise an error of `dpveil.errors` if a plan cannot be rendered to a file in `container`, if known.

    Looks for an encoder, at the times of all frames, at all packets of sound that is kept, and for landmarks
    where a face is refused without them. If it is to be `paid`, every frame is decoded, too, unless this
    process has done so. Writes and draws nothing.
    """
    facts = clip.facts
    if container is not None:
        encoder_for(container, facts.width, facts.height)
        check_times(facts, container)
        if plan.keep_audio:
            clip.ask("sound", container)
    _check_faces(plan, clip)
    if paid and facts.sha256 not in DECODED:
        for frame in clip.frames():
            progress(CHECKING, frame.index + 1, facts.frames)


def _check_faces(plan: VideoPlan, clip: Clip) -> None:
    """Raise what placing a face would: `UsageError` without landmarks, `RegionError` if they are not sure."""
    method, faces = plan.method, [draw for draw in plan.draws if plan.scene.shows_face(draw.track)]
    if not isinstance(method, FaceMethod) or not faces:
        return
    if method.placing == "auto" and method.reads:
        locator()
    if method.placing == "landmarks":
        for frame in pick_frames(clip, [draw.key.frame for draw in faces]):
            for draw in faces:
                if draw.key.frame == frame.index:
                    crop_of(plan.scene, draw.track, draw.key, frame.image)


Bits = Callable[[str], BitSource]
"""Returns the bits of a draw by its name, such as "person 2"."""
OWN: Final = "{} in frame {} of track {}"
"""The name of the draw of one frame."""


@dataclass(frozen=True)
class Stage:
    """A plan made ready to be drawn and rendered."""

    plan: VideoPlan

    @property
    def scene(self) -> Scene:
        """The clip as it will be rendered."""
        return self.plan.scene

    @cached_property
    def subjects(self) -> tuple[Subject, ...]:
        """Whoever and whatever is drawn, numbered from 1."""
        draws = enumerate(self.plan.draws, start=1)
        return tuple(Subject(number, one.tracks, one.track, one.key) for number, one in draws)

    @property
    def each_frame(self) -> bool:
        """Whether every frame is drawn on its own, so that the bits are needed to the end."""
        return self.plan.over_time == SPLIT and not self.scene.faces

    def draw(self, clip: Clip, bits: Bits) -> dict[int, Drawn]:
        """Draw everybody once, the same for the same clip and `bits`; nobody if `each_frame` is drawn."""
        if self.each_frame:
            return {}
        means = self.plan.over_time == MEAN and not self.scene.faces
        return self._means(clip, bits) if means else self._draw_once(clip, bits)

    def renderer(self, clip: Clip, draws: Mapping[int, Drawn], bits: Bits) -> Renderer:
        """Return what renders frames from what was drawn; `bits` are asked if `each_frame` is drawn."""
        own = self._frame_drawer(bits) if self.each_frame else None
        return Renderer(self.scene, self.subjects, draws, dict(self._paint_heads(clip, draws)), own)

    def _draw_once(self, clip: Clip, bits: Bits) -> dict[int, Drawn]:
        draws = {}
        for subject, frame in _at(clip, {s.number: s.key.frame for s in self.subjects}):
            one = self.subjects[subject - 1]
            plain = self.scene.faces and not self.scene.shows_face(one.track)
            draws[subject] = (
                cover_draw() if plain else draw(self.scene, one, frame.image, bits(self._name(one)))
            )
        return draws

    def _means(self, clip: Clip, bits: Bits) -> dict[int, Drawn]:
        """Draw the mean of each subject, whose box stays where it is, as the plan has checked."""
        means = {s.number: Mean(self.scene.raster(s.track, s.key.frame)) for s in self.subjects}
        first = min(subject.track.first for subject in self.subjects)
        last = max(subject.track.last for subject in self.subjects)
        for frame in clip.frames(first, last + 1):
            for subject in self.subjects:
                if subject.track.first <= frame.index <= subject.track.last:
                    means[subject.number].add(frame.image)
        return {s.number: draw_mean(self.scene, means[s.number], bits(self._name(s))) for s in self.subjects}

    def _paint_heads(
        self, clip: Clip, draws: Mapping[int, Drawn]
    ) -> Iterator[tuple[int, dict[int | None, Layer]]]:
        """Yield the heads of each face; reads pixels outside of what is replaced alone."""
        scene = self.scene
        faces = {
            track.number: (subject.number, track)
            for subject in self.subjects
            for track in subject.tracks
            if scene.shows_face(track)
        }
        frames = {number: scene.painted_at(track).frame for number, (_, track) in faces.items()}
        for number, frame in _at(clip, frames):
            subject, track = faces[number]
            yield number, paint(scene, draws[subject], track, frame.image)

    def _frame_drawer(self, bits: Bits) -> Callable[[Subject, Track, Frame], UInt8[np.ndarray, "h w 3"]]:
        """Return what draws one frame, by a part of the budget; the same again for the same bits."""

        def draw_one(subject: Subject, track: Track, frame: Frame) -> UInt8[np.ndarray, "h w 3"]:
            name = OWN.format(self._name(subject), frame.index, track.number)
            method = self.plan.draws[subject.number - 1].method
            return draw_frame(self.scene, method, track, frame.index, frame.image, bits(name))

        return draw_one

    def _name(self, subject: Subject) -> str:
        return self.plan.draws[subject.number - 1].name


def _at(clip: Clip, frames: Mapping[int, int]) -> Iterator[tuple[int, Frame]]:
    """Yield each number with its frame, in the order of frames, decoding each once."""
    for frame in pick_frames(clip, frames.values()):
        for number in sorted(number for number, wanted in frames.items() if wanted == frame.index):
            yield number, frame


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
    progress: Progress = no_progress,
) -> Rendered:
    """Write the release of `clip` by its `plan` to `out`, and its certificate beside it: both or neither.

    Every draw is debited from `subject` in `ledger` before anything is drawn. After any end of the process,
    the same call goes on where it was, pays nothing twice and draws nothing anew; a call with another plan or
    payer is refused then, unless `replace` drops what was begun. `seed` makes the bits reproducible, which is
    not for publication. `sign` signs the certificate; `replace` replaces existing files. `asked` is what
    `left.left_plan` finds this plan by. Raises errors of `dpveil.errors`; nothing half written has the name
    `out`.
    """
    target, source = Path(check_path(out, "give the name of a file, such as private.mp4")), Path(clip)
    container = container_for(target)
    check_payer(ledger, subject, seed, other_regions=other_regions)
    payment = Payment(ledger=ledger, subject=subject, other_regions=other_regions)
    plan.prepare()
    check_out(target, source)
    tidy(target.parent)
    with open_clip(source, max_pixels=max_pixels) as opened:
        check_same(plan, opened.facts, source)
        with state(target, settings_of(plan, target, payment.payer, seed), anew=replace) as work:
            job = _Job(plan, opened, target, container, work, seed, progress)
            try:
                if asked is not None and not work.has(PLAN):
                    keep_plan(work, to_text(plan), asked)
                if not work.has(CERTIFICATE) and job.finished_certificate() is None:
                    job.begin(payment, replace=replace)
                    job.render()
                    job.join(sign)
                work.forget_key()  # before the release has its name
                certificate = job.name(payment, replace=replace)
            except DPVeilError:
                if not work.has(DRAWS) and not payment.has_paid(plan, work.nonce):
                    work.remove()  # nothing is lost by that
                raise
            with suppress(OutputError):  # all is released: what is left is dropped by the next run
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
    def joined_name(self) -> str:
        return f"{JOINED}{self.target.suffix.lower()}"

    def bits(self, name: str) -> BitSource:
        """Return the bits of one draw, which are the same whichever process draws."""
        if self.seed is not None:
            return SeededBits(self.seed, f"{self.target.name} {name}")
        return KeptBits(self.work.key, name)

    def begin(self, payment: Payment, *, replace: bool) -> None:
        """Pay for every draw, then draw, if no process did; what was drawn is stored then.

        Whatever can be known to fail does so before that. A ledger that lacks a debit gets it again.
        """
        if not replace:
            _check_free(self.target)
        drawn = self.work.has(DRAWS)
        if not drawn:
            _ = self.work.key  # raises if it is gone
            paid = payment.ledger is not None
            check_possible(self.plan, self.clip, self.container, paid=paid, progress=self.progress)
        payment.pay(self.plan, self.work.nonce)
        if not drawn:
            with self.work.new(DRAWS) as file:
                write_draws(file, self.stage.draw(self.clip, self.bits))
                self.clip.check()
        if not self.stage.each_frame:
            self.work.forget_key()

    def render(self) -> None:
        """Render the segments that are not there; each has its name once it is whole."""
        parts = spans(self.clip.facts)
        missing = [part for part in parts if not self.work.has(SEGMENT.format(part[0]))]
        if missing:
            try:
                draws = read_draws(self.work.path(DRAWS), self.plan.method, self.plan.post_processing)
            except (OSError, EOFError, ValueError, TypeError, BadZipFile) as error:
                raise self.work.damage_error() from error
            renderer = self.stage.renderer(self.clip, draws, self.bits)
            self._segments(renderer, parts[parts.index(missing[0]) :])

    def _segments(self, renderer: Renderer, parts: Sequence[tuple[int, int]]) -> None:
        """Render segments that follow each other to the end of the clip."""
        facts, first = self.clip.facts, parts[0][0]
        self.progress(RENDERING, first, facts.frames)
        with closing(ahead(self.clip.frames(max(0, first - renderer.memory)), room_for(facts))) as frames:
            for frame in islice(frames, min(first, renderer.memory)):
                renderer.look(frame)
            for start, stop in parts:
                self._segment(renderer, SEGMENT.format(start), islice(frames, stop - start))
            next(frames, None)  # raises if there are more, or the file was written to

    def _segment(self, renderer: Renderer, name: str, frames: Iterable[Frame]) -> None:
        """Render the frames of one segment, while those before are encoded."""
        facts, part = self.clip.facts, self.work.new_part(name)
        with Writer(part, facts, container=self.container) as writer, Beside(room_for(facts)) as encoding:
            for frame in frames:
                encoding.call(writer.write, Frame(frame.index, frame.time, renderer.frame(frame)))
                self.progress(RENDERING, frame.index + 1, facts.frames)
        self.clip.check()
        self.work.finish(name)

    def join(self, sign: SigningKey | None) -> None:
        """Join the segments, and write the certificate of that file: nothing is drawn from here on."""
        facts, part = self.clip.facts, self.work.new_part(self.joined_name)
        segments = [self.work.path(SEGMENT.format(start)) for start, _ in spans(facts)]
        if self.plan.keep_audio:
            self.clip.ask(
                "join",
                [str(segment.absolute()) for segment in segments],
                str(part.absolute()),
                self.container,
            )
        else:
            join(segments, part, facts, container=self.container)
        self.clip.check_bytes()
        certificate = self._certificate(_hash(part))
        self._check(part, certificate)
        self.work.finish(self.joined_name)
        text = (certificate if sign is None else sign.signed(certificate)).to_text().encode()
        self.work.note_release(text)
        self.work.keep(CERTIFICATE, text, mode=USUAL)

    def _check(self, part: Path, certificate: VideoCertificate) -> None:
        """Raise `OutputError` for what `verify` would not accept: it never gets a name."""
        with closing(Source(part)) as source:
            for problem in content_problems(source, certificate, max_pixels=self.clip.most):
                hint = "leave the sound out" if self.plan.keep_audio else "write a file in another format"
                raise OutputError(f"cannot write {show_path(self.target)}: {problem}", hint=hint)

    def finished_certificate(self) -> VideoCertificate | None:
        """Return the certificate of this rendering's release if both files have their names."""
        beside = certificate_path(self.target)
        with as_output_error(beside):
            text = beside.read_bytes() if beside.is_file() else b""
        if not self.work.is_of(text) or not self.target.is_file():
            return None
        stated = self._certificate_of(text)
        return stated if _hash(self.target) == stated.output.sha256 else None

    def name(self, payment: Payment, *, replace: bool) -> VideoCertificate:
        """Give the certificate and the clip their names, unless a process before has done so."""
        payment.pay(self.plan, self.work.nonce)
        if (there := self.finished_certificate()) is not None:
            payment.note(self.plan, self.work.nonce, there.output.sha256)
            return there
        beside, text = certificate_path(self.target), self.work.read(CERTIFICATE) or b""
        if not self.work.is_of(text):
            raise self.work.damage_error()
        stated = self._certificate_of(text)
        if (
            not self.work.has(self.joined_name)
            or _hash(self.work.path(self.joined_name)) != stated.output.sha256
        ):
            raise self.work.damage_error()
        with as_output_error(beside):
            ours = beside.is_file() and beside.read_bytes() == text
        place_together(
            [(self.work.path(CERTIFICATE), beside), (self.work.path(self.joined_name), self.target)],
            replace=replace or (ours and not os.path.lexists(self.target)),
            before=lambda: payment.note(self.plan, self.work.nonce, stated.output.sha256),
        )
        return stated

    def _certificate_of(self, text: bytes) -> VideoCertificate:
        """Return the certificate that a text of `join` has, without its signature."""
        return self._certificate(str(json.loads(text)["output"]["sha256"]))

    def _certificate(self, sha256: str) -> VideoCertificate:
        output = ClipOutput(sha256, CLIPS[self.target.suffix.lower()], self.clip.facts.seconds)
        return self.plan.certificate(self.kind, output)


def check_same(plan: VideoPlan, facts: Facts, clip: Path) -> None:
    """Raise `ClipError` unless a plan is of this clip."""
    if plan.facts.sha256 != facts.sha256:
        hint = "give the clip that was analyzed, or analyze this one"
        raise ClipError(f"{show_path(clip)} is not the clip of this plan, but another file", hint=hint)
    if plan.facts != facts:
        text = f"the plan does not tell the size, times and streams of {show_path(clip)} as they are"
        raise ClipError(text, hint="analyze the clip again, and change nothing of `clip` in the plan")


def _hash(path: Path) -> str:
    with as_output_error(path):
        return sha256_of(path)


def check_out(target: Path, clip: Path) -> None:
    """Raise `OutputError` if nothing can be written there, or the clip itself would be replaced."""
    if identity(clip) in (identity(target), identity(certificate_path(target))):
        raise OutputError(
            f"{show_path(target)} is the clip itself", hint="choose another name for the output"
        )
    if target.is_dir():
        raise refusal(target, IsADirectoryError(errno.EISDIR, ""))
    if not target.parent.is_dir():
        raise refusal(target, FileNotFoundError(errno.ENOENT, ""))


def _check_free(target: Path) -> None:
    """Raise `OutputError` if the clip or its certificate exists."""
    for path in (target, certificate_path(target)):
        if os.path.lexists(path):
            raise refusal(path, FileExistsError(errno.EEXIST, ""))
