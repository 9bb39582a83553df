"""Rendering a clip by its plan: paid, drawn once, rendered, certified; or gone on with.

After any end, also `kill -9`, the next rendering pays nothing twice and draws the same. A hidden folder
beside the output, which only its owner can read, holds the clip as far as it is written, and `state.json`:
what the rendering is of, a nonce that the ledger's key contains, 32 random bytes that key the draws, and the
plan, if a run made it. That is on the disk before anything is paid. The key is deleted before the release
has its name, as whoever has both undoes the release; from there on `release` is the SHA-256 of the clip that
is complete.
"""

from __future__ import annotations

import errno
import json
import os
import secrets
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from dpveil.core.envelope import this_tool
from dpveil.errors import ClipError, DPVeilError, OutputError
from dpveil.faces.base import FaceMethod
from dpveil.faces.geometry.landmarks import locator
from dpveil.io.folders import identity
from dpveil.io.locking import hold_lock
from dpveil.io.names import check_path, show_path
from dpveil.io.writing import (
    OWNER_ONLY,
    as_output_error,
    flush_folder,
    no_folder,
    place_together,
    sha256_of,
    write_error,
)
from dpveil.noise.bits import SECURE, SEEDED, BitSource, KeptBits, SeededBits
from dpveil.release.keys import SigningKey
from dpveil.release.saving import CLIPS, certificate_path, remove_leftovers
from dpveil.video.certificate import ClipOutput, VideoCertificate
from dpveil.video.containers import Source
from dpveil.video.decoding import MAX_PIXELS
from dpveil.video.facts import Facts, Frame
from dpveil.video.frame_renderer import Renderer
from dpveil.video.make_plan import Progress, no_progress
from dpveil.video.plan import Payer, VideoPlan
from dpveil.video.reading import Clip, ahead, open_clip, pick_frames, room_for
from dpveil.video.track_draws import Drawn, crop_of, draw, paint
from dpveil.video.verification import content_problems
from dpveil.video.writing import Writer, check_times, container_for, encoder_for

if TYPE_CHECKING:
    from dpveil.ledger import Ledger

STATE: Final = "state.json"
LOCK: Final = "lock"
OTHER: Final = (
    "give the same as then, which costs nothing; or {replace}, which drops it, and what was paid for it is"
    " lost"
)


def settings_of(plan: VideoPlan, out: Path, payer: Sequence[str] | None, seed: int | None) -> dict[str, Any]:
    """Return what a rendering to `out` is of; only one of the same goes on."""
    about = {"clip": plan.facts.sha256, "plan": plan.sha256, "name": out.name}
    return {**about, "seed": seed, "payer": payer and [*payer], "version of dpveil": this_tool()}


def folder_of(out: Path) -> Path:
    """Return where a rendering to `out` keeps its state.

    >>> folder_of(Path("private.mp4")).name
    '.private.mp4.dpveil-video'
    """
    return out.with_name(f".{out.name}.dpveil-video")


@dataclass(frozen=True)
class Unfinished:
    """A rendering's folder, which this process alone uses, and its state; an earlier one may have `begun`."""

    folder: Path
    state: dict[str, Any]
    begun: bool

    @property
    def nonce(self) -> str:
        """What keys of the ledger contain: new for each rendering that is begun."""
        return str(self.state["nonce"])

    @property
    def release(self) -> str | None:
        """The SHA-256 of the clip once it is complete."""
        return self.state.get("release")

    def complete(self, sha256: str) -> None:
        """Store that the clip is complete, and delete the key: nothing is drawn any more."""
        del self.state["key"]
        self.state["release"] = sha256
        self.store()

    def store(self) -> None:
        """Write the state; it survives a loss of power then."""
        with as_output_error(self.folder):
            part = self.folder / f"{STATE}.part"
            part.unlink(missing_ok=True)
            handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, OWNER_ONLY)
            with os.fdopen(handle, "w") as file:
                json.dump(self.state, file)
                file.flush()
                os.fsync(handle)
            part.replace(self.folder / STATE)
            flush_folder(self.folder)

    def remove(self) -> None:
        """Delete everything: the rendering is finished, or dropped."""
        with as_output_error(self.folder):
            for path in self.folder.iterdir():
                if path.name not in (STATE, LOCK):
                    shutil.rmtree(path) if path.is_dir() else path.unlink()
            # the state last: one that is killed before is known to be finished
            for name in (STATE, LOCK):
                (self.folder / name).unlink(missing_ok=True)
            self.folder.rmdir()
            flush_folder(self.folder.parent)


@contextmanager
def hold_rendering(
    out: Path, settings: Mapping[str, Any], *, anew: bool = False, plan: str | None = None
) -> Iterator[Unfinished]:
    """Hold a rendering of these `settings` to `out`, begun now, with this `plan`, or by a process that ended.

    One with other settings is an `OutputError`; `anew` drops that one. Raises `OutputError` if another
    process is rendering to `out`, or the folder cannot be written.
    """
    folder = folder_of(out)
    with ExitStack() as held:
        try:
            held.enter_context(hold_lock(folder / LOCK))
            folder.chmod(0o700)
        except OSError as error:
            if error.errno != errno.EBUSY:
                raise write_error(out, error) from error
            text = f"another process is rendering {show_path(out)}"
            raise OutputError(text, hint="wait until it is done") from error
        there = _read_state(folder)
        if there is not None and there["settings"] != settings:
            if not anew:
                then = there["settings"]
                other = " and ".join(name for name in settings if then.get(name) != settings[name])
                text = f"a rendering to {show_path(out)} was begun and not finished, with another {other}"
                raise OutputError(text, hint=OTHER, arguments={"replace": "replace=True"})
            there = None
        begun = {"settings": dict(settings), "nonce": secrets.token_hex(16), "key": os.urandom(32).hex()}
        work = Unfinished(folder, there or {**begun, "plan": plan}, begun=there is not None)
        if there is None:
            work.store()
            flush_folder(folder.parent)
        yield work


def unfinished_nonce(out: Path, settings: Mapping[str, Any]) -> str | None:
    """Return the nonce of a rendering with these `settings` to `out` that was begun, and is not finished."""
    found = _read_state(folder_of(out))
    return str(found["nonce"]) if found is not None and found["settings"] == settings else None


def left_plan(out: Path, sha256: str) -> str | None:
    """Return the plan that a run made for this clip before it was killed while rendering to `out`."""
    found = _read_state(folder_of(out))
    same = found is not None and found["settings"]["clip"] == sha256
    return found["plan"] if found is not None and same else None


def drop(out: Path, sha256: str) -> bool:
    """Delete what is left of the rendering of the release at `out`, which has this SHA-256.

    Returns whether there is another rendering to `out`, begun and not finished; it is kept.
    """
    folder = folder_of(out)
    if not folder.is_dir():
        return False
    with suppress(OSError, OutputError), hold_lock(folder / LOCK):
        found = _read_state(folder)
        if found is not None and found.get("release") != sha256:
            return True
        Unfinished(folder, {}, begun=True).remove()
    return False


def damage_error(folder: Path) -> OutputError:
    """Return the error that a rendering's folder is damaged."""
    hint = "remove it to begin anew; what was paid for it is lost then"
    return OutputError(f"{show_path(folder)} is damaged", hint=hint)


def _read_state(folder: Path) -> dict[str, Any] | None:
    """Return the state of a rendering that was begun; None if none was. Raises `OutputError` for damage."""
    try:
        found = json.loads((folder / STATE).read_bytes())
        _ = found["settings"]["clip"], found["nonce"], found["plan"]
        return dict(found)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise damage_error(folder) from error


def check_possible(plan: VideoPlan, clip: Clip, container: str | None) -> None:
    """Raise an error of `dpveil.errors` if a plan cannot be rendered to a file in `container`, if known.

    Looks for an encoder, at the times of all frames, at all packets of sound that is kept, and for landmarks
    where a face is refused without them. Writes and draws nothing.
    """
    facts, method = clip.facts, plan.method
    if container is not None:
        encoder_for(container, facts.width, facts.height)
        check_times(facts, container)
        if plan.keep_audio:
            clip.ask("sound", container)
    faces = [draw for draw in plan.draws if plan.scene.shows_face(draw.track)]
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
RENDERING: Final = "rendering"


def draw_all(plan: VideoPlan, clip: Clip, bits: Bits) -> dict[int, Drawn]:
    """Draw everybody once, and return what is shown of each track by its number.

    It is the same for the same clip and `bits`.
    """
    drawn: dict[int, Drawn] = {}
    for number, frame in _at(clip, {number: one.key.frame for number, one in enumerate(plan.draws)}):
        one = plan.draws[number]
        shown = draw(plan.scene, one.track, one.key, frame.image, bits(one.name))
        drawn |= {track.number: shown for track in one.tracks}
    return drawn


def renderer_of(plan: VideoPlan, clip: Clip, drawn: Mapping[int, Drawn]) -> Renderer:
    """Return what renders frames from what was drawn; reads pixels outside of what is replaced alone."""
    scene = plan.scene
    faces = {track.number: track for track in scene.tracks if scene.shows_face(track)}
    painted_at = {number: scene.painted_at(track).frame for number, track in faces.items()}
    layers = {
        number: paint(scene, drawn[number], faces[number], frame.image)
        for number, frame in _at(clip, painted_at)
    }
    return Renderer(scene, drawn, layers)


def _at(clip: Clip, frames: Mapping[int, int]) -> Iterator[tuple[int, Frame]]:
    """Yield each number with its frame, in the order of frames, decoding each once."""
    for frame in pick_frames(clip, frames.values()):
        for number in sorted(number for number, wanted in frames.items() if wanted == frame.index):
            yield number, frame


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
    ledger: Ledger | None = None,
    subject: str | None = None,
    other_regions: bool = False,
    seed: int | None = None,
    sign: SigningKey | None = None,
    replace: bool = False,
    keep_plan: bool = False,
    max_pixels: int = MAX_PIXELS,
    progress: Progress = no_progress,
) -> Rendered:
    """Write the release of `clip` by its `plan` to `out`, and its certificate beside it: both or neither.

    The clip is debited from `subject` in `ledger` before anything is drawn. After any end of the process,
    the same call goes on, pays nothing twice and draws the same; a call with another plan or payer is refused
    then, unless `replace` drops what was begun. `seed` makes the bits reproducible, which is not for
    publication. `sign` signs the certificate; `replace` replaces existing files. With `keep_plan`,
    `left_plan` finds this plan after a kill. Raises errors of `dpveil.errors`; nothing half written
    has the name `out`.
    """
    target, source = Path(check_path(out, "give the name of a file, such as private.mp4")), Path(clip)
    container = container_for(target)
    payment = Payer(ledger=ledger, subject=subject, other_regions=other_regions, seed=seed)
    plan.prepare()
    check_out(target, source)
    remove_leftovers(target.parent)
    kept = plan.to_text() if keep_plan else None
    opened = open_clip(source, max_pixels=max_pixels)
    check_same(plan, opened.facts, source)
    settings = settings_of(plan, target, payment.payer, seed)
    with hold_rendering(target, settings, anew=replace, plan=kept) as work:
        job = _Job(plan, opened, target, container, work, seed)
        try:
            if work.release is None:
                for path in () if replace else (target, certificate_path(target)):
                    if os.path.lexists(path):
                        raise write_error(path, FileExistsError(errno.EEXIST, ""))
                check_possible(plan, opened, container)
            payment.pay(plan, work.nonce)  # also what a restored ledger lacks
            if work.release is None:
                job.write(progress)
            certificate = job.name(payment, sign, replace=replace)
        except DPVeilError:
            if not payment.is_paid(work.nonce):
                work.remove()  # nothing is lost by that
            raise
        with suppress(OutputError):  # all is released: what is left is dropped by the next run
            work.remove()
        return Rendered(target, certificate, work.begun)


@dataclass(frozen=True)
class _Job:
    plan: VideoPlan
    clip: Clip
    target: Path
    container: str
    work: Unfinished
    seed: int | None

    @property
    def part(self) -> Path:
        """The clip until it has its name."""
        return self.work.folder / f"clip{self.target.suffix.lower()}"

    def bits(self, name: str) -> BitSource:
        """Return the bits of one draw, which are the same whichever process draws."""
        if self.seed is not None:
            return SeededBits(self.seed, f"{self.target.name} {name}")
        return KeptBits(bytes.fromhex(self.work.state["key"]), name)

    def write(self, progress: Progress) -> None:
        """Draw, render all frames while those before are encoded, and add the sound, if it is kept."""
        facts, room = self.clip.facts, room_for(self.clip.facts)
        silent = self.part.with_name(f"silent{self.part.suffix}")
        with as_output_error(self.part):
            for path in (self.part, silent):
                path.unlink(missing_ok=True)
        renderer = renderer_of(self.plan, self.clip, draw_all(self.plan, self.clip, self.bits))

        def show(frame: Frame) -> Frame:
            return Frame(frame.index, frame.time, renderer.frame(frame))

        pictures = silent if self.plan.keep_audio else self.part
        progress(RENDERING, 0, facts.frames)
        with (
            Writer(pictures, facts, container=self.container) as writer,
            closing(ahead(self.clip.frames(), room)) as read,
            closing(ahead(map(show, read), room)) as shown,
        ):
            for frame in shown:
                writer.write(frame)
                progress(RENDERING, frame.index + 1, facts.frames)
        if self.plan.keep_audio:
            self.clip.ask("add sound", str(silent.absolute()), str(self.part.absolute()), self.container)
        sha256 = _hash(self.part)
        # What `verify` would not accept never gets a name.
        certificate = self._certificate(sha256)
        for problem in content_problems(Source(self.part), certificate, max_pixels=self.clip.most):
            hint = "leave the sound out" if self.plan.keep_audio else "write a file in another format"
            raise OutputError(f"cannot write {show_path(self.target)}: {problem}", hint=hint)
        self.work.complete(sha256)

    def name(self, payment: Payer, sign: SigningKey | None, *, replace: bool) -> VideoCertificate:
        """Give the certificate and the clip their names, unless a process before has done so."""
        sha256 = str(self.work.release)
        certificate = self._certificate(sha256)
        if self.target.is_file() and _hash(self.target) == sha256:
            payment.note(self.work.nonce, sha256)
            return certificate
        if not self.part.is_file() or _hash(self.part) != sha256:
            raise damage_error(self.work.folder)
        beside, text = certificate_path(self.target), self.work.folder / "certificate.json"
        signed = (certificate if sign is None else sign.sign(certificate)).to_text().encode()
        with as_output_error(beside):
            text.write_bytes(signed)
            with text.open("rb") as file:
                os.fsync(file.fileno())
            # a process before may have been killed between the two names
            ours = beside.is_file() and beside.read_bytes() == signed
        place_together(
            [(text, beside), (self.part, self.target)],
            replace=replace or (ours and not os.path.lexists(self.target)),
            before=lambda: payment.note(self.work.nonce, sha256),
        )
        return certificate

    def _certificate(self, sha256: str) -> VideoCertificate:
        output = ClipOutput(sha256, CLIPS[self.target.suffix.lower()], self.clip.facts.seconds)
        return self.plan.certificate(SECURE if self.seed is None else SEEDED, output)


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
        hint = "choose another name for the output"
        raise OutputError(f"{show_path(target)} is the clip itself", hint=hint)
    if target.is_dir():
        raise write_error(target, IsADirectoryError(errno.EISDIR, ""))
    if not target.parent.is_dir():
        raise no_folder(target)
